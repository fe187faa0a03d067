"""A table by ids that a peer chooses, which no choice of ids makes slow.

Python hashes an integer to itself, and probes for a free slot in an order that anybody can compute.
So 20,000 chosen ids can make each lookup walk past thousands of others. Here only ids below
`SMALL`, which real clients mostly use, are keyed by their number: their chains have a bound. All
others are keyed by their bytes, whose hash has a secret seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

SMALL = 1024
"""Ids from this number on cost 0.1 µs more. Below it the longest chain that chosen ids can make
costs half a microsecond."""

_BYTES = 10
"""Length of a key. A scanner may read a varint of 70 bits, which is no valid id."""


_NONE: dict[int, Any] = {}
"""All tables without small ids share this dict, into which nothing is put. Most tables of a pair
are empty, and idle pairs are many."""


class IdTable(Generic[T]):
    """Values by unsigned ids of 64 bits. `small`: the values of ids below `SMALL`, which scanners
    read without a call."""

    __slots__ = ("_large", "small")

    def __init__(self) -> None:
        self.small: dict[int, T] = _NONE
        self._large: dict[bytes, T] | None = None

    def __len__(self) -> int:
        return len(self.small) + len(self._large or ())

    def __iter__(self) -> Iterator[T]:
        yield from self.small.values()
        if self._large is not None:
            yield from self._large.values()

    def items(self) -> list[tuple[int, T]]:
        """Return all ids with their values."""
        large = self._large or {}
        return [
            *self.small.items(),
            *((int.from_bytes(key), value) for key, value in large.items()),
        ]

    def get(self, id: int) -> T | None:
        """Return the value under this id; None if there is no value."""
        if id < SMALL:
            return self.small.get(id)
        return None if self._large is None else self._large.get(id.to_bytes(_BYTES))

    def put(self, id: int, value: T) -> None:
        """Put a value under this id, in place of an earlier value."""
        if id < SMALL:
            if self.small is _NONE:
                self.small = {}
            self.small[id] = value
            return
        if self._large is None:
            self._large = {}
        self._large[id.to_bytes(_BYTES)] = value

    def pop(self, id: int) -> T | None:
        """Remove the value under this id, and return it; None if there is no value."""
        if id < SMALL:
            return self.small.pop(id, None)
        return None if self._large is None else self._large.pop(id.to_bytes(_BYTES), None)
