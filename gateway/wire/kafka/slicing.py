"""How much work on a large frame is one slice, and decisions that may take several."""

from __future__ import annotations

from gateway.wire.contract import Effects, Sliced
from gateway.wire.slices import Slices

UNITS = 8
"""Units of work in one slice. A right that is looked up takes one: 10 µs with ten rules, 280 µs
with a thousand. So does a place of a request of Produce."""

OPENED = 2
"""Units of an account that is opened, in up to 500 µs."""

CHEAP = 1000
"""Simple operations, of 1 to 2 µs each, in one slice."""

DRAWN = 250
"""Substitutes that are drawn in one slice, of up to 8 µs each."""


def decided(slices: Slices[Effects]) -> Effects:
    """Return the effects of a decision: at once if it takes one slice, otherwise a `Sliced` for the
    rest of it."""
    try:
        next(slices)
    except StopIteration as end:
        effects: Effects = end.value
        return effects
    return (Sliced(slices),)
