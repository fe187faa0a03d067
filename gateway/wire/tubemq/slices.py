"""Changes long lists in slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.wire.slices import Slices

T = TypeVar("T")
U = TypeVar("U")

AT_ONCE = 100
"""Texts that are changed in one slice, each of which takes up to 10 µs."""


MANY = 5000
"""Texts in lists that protobuf takes part of a millisecond to read or to write."""


def changed(items: Sequence[T], change: Callable[[T], U | None]) -> Slices[list[U]]:
    """Return what `change` returns for each of the items, without None."""
    results: list[U] = []
    for start in range(0, len(items), AT_ONCE):
        if start:
            yield
        kept = map(change, items[start : start + AT_ONCE])
        results += [result for result in kept if result is not None]
    return results
