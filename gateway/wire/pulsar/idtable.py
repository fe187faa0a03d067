"""Tables by ids that a peer chooses, which no choice of ids makes slow.

Python hashes an integer to itself, and probes for a free slot in an order that anybody can compute.
So 20,000 chosen ids can make each lookup walk past thousands of others. Here only ids below
`SMALL`, which real clients mostly use, are their own keys: their chains have a bound. All others
are keyed by their bytes, whose hash has a secret seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

SMALL = 1024
"""Ids from this number on cost 0.1 µs more. Below it the longest chain that chosen ids can make
costs half a microsecond."""

_BYTES = 8

Key = int | bytes


def key(id: int) -> Key:
    """Return the key of an unsigned id of 64 bits in a dict."""
    return id if id < SMALL else id.to_bytes(_BYTES)


def id_of(key: Key) -> int:
    """Return the id of a key."""
    return key if isinstance(key, int) else int.from_bytes(key)


class IdTable(Generic[T]):
    """Values by unsigned ids of 64 bits."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Key, T] | None = None  # most tables are empty, and idle pairs are many

    def __len__(self) -> int:
        return len(self._values or ())

    def __iter__(self) -> Iterator[T]:
        return iter((self._values or {}).values())

    def items(self) -> list[tuple[int, T]]:
        """Return all ids with their values."""
        return [(id_of(key), value) for key, value in (self._values or {}).items()]

    def get(self, id: int) -> T | None:
        """Return the value under this id; None if there is no value."""
        return None if self._values is None else self._values.get(key(id))

    def put(self, id: int, value: T) -> None:
        """Put a value under this id, in place of an earlier value."""
        if self._values is None:
            self._values = {}
        self._values[key(id)] = value

    def pop(self, id: int) -> T | None:
        """Remove the value under this id, and return it; None if there is no value."""
        return None if self._values is None else self._values.pop(key(id), None)
