"""How much work on a large frame is one slice, beside `wire.slices.UNITS`."""

OPENED = 2
"""Units of an account that is opened, in up to 500 µs."""

CHEAP = 1000
"""Simple operations, of 1 to 2 µs each, in one slice."""

DRAWN = 250
"""Substitutes that are drawn in one slice, of up to 8 µs each."""
