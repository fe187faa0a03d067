"""Randomness of a made-up month: each part has dice of its own, so that no part disturbs others."""

from __future__ import annotations

from random import Random


def dice(seed: int, part: str) -> Random:
    """Return what rolls the same numbers for the same seed and part."""
    return Random(f"{seed} {part}")  # noqa: S311 - nothing is secret here


def roughly(rng: Random, value: float) -> int:
    """Return a whole number next to a value, whose mean is the value."""
    return int(value + rng.random())
