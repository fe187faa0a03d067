"""Work that may take long, in slices: generators that yield after some 2 ms of work, so that other
pairs are served between two slices."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

UNITS = 8
"""Units of work in one slice. A right that is looked up takes one: 10 µs with ten rules, 280 µs
with a thousand. So does a place of a request of Produce."""

Slices = Generator[None, None, Result]
"""Work that yields between two slices, and returns its result."""


def finished(slices: Slices[Result]) -> Result:
    """Do all slices at once, and return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
