"""Names as SASL writes them where commas separate fields (RFC 5801 section 4)."""

from __future__ import annotations

NAME = r"(?>(?:[^=,\0]|=2C|=3D)+)"
"""The pattern of a written name. It takes one go: nothing in it could be read in two ways.

It is an atomic group, because CPython before 3.11.5 matches a group with `++` wrongly (its issue
106052)."""


def written(name: str) -> str:
    """Return a name without commas."""
    return name.replace("=", "=3D").replace(",", "=2C")


def read(text: str) -> str:
    """Return the name that matched `NAME`."""
    return text.replace("=2C", ",").replace("=3D", "=")
