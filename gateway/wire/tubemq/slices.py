"""Long lists are worked through in slices, between which other pairs are served; see
`contract.Sliced`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

Steps = Generator[None, None, T]
"""Work that yields after at most 2 ms, and returns its result."""

AT_ONCE = 100
"""Texts that are changed in one slice, each of which takes up to 10 µs."""


MANY = 5000
"""Texts in lists that protobuf takes part of a millisecond to read or to write."""


def changed(items: Sequence[T], change: Callable[[T], U | None]) -> Steps[list[U]]:
    """Return what `change` returns for each of the items, without None."""
    results: list[U] = []
    for start in range(0, len(items), AT_ONCE):
        if start:
            yield
        kept = map(change, items[start : start + AT_ONCE])
        results += [result for result in kept if result is not None]
    return results


def whole(steps: Steps[T]) -> T:
    """Do all of the work at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
