"""Work on frames that may be large, in slices: generators that yield after some 2 ms."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from gateway.wire.contract import Effects, Sliced

Result = TypeVar("Result")

Slices = Generator[None, None, Result]
"""Work that yields after some 2 ms, and returns its result."""

UNITS = 8
"""Units of work in one slice. A right that is looked up takes one: 10 µs with ten rules, 280 µs
with a thousand. So does a place of a request of Produce."""

OPENED = 2
"""Units of an account that is opened, in up to 500 µs."""

CHEAP = 1000
"""Simple operations, of 1 to 2 µs each, in one slice."""

DRAWN = 250
"""Substitutes that are drawn in one slice, of up to 8 µs each."""


def finished(slices: Slices[Result]) -> Result:
    """Return the result of work that is done at once."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result


def decided(slices: Slices[Effects]) -> Effects:
    """Return the effects of a decision: at once if it takes one slice, otherwise a `Sliced` for the
    rest of it."""
    try:
        next(slices)
    except StopIteration as end:
        effects: Effects = end.value
        return effects
    return (Sliced(slices),)
