"""Decisions that are made in slices."""

from __future__ import annotations

from gateway.wire.contract import Effects
from gateway.wire.slices import Slices


def effects_of(steps: Slices[Effects]) -> tuple[int, Effects]:
    """Return how many slices of a decision were left, the one that ends it included, and the
    effects."""
    count = 1
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1
