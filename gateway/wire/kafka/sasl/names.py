"""The encoding of user names in tokens whose fields are separated by commas (RFC 5801 section
4)."""

from __future__ import annotations

NAME = r"(?>(?:[^=,\0]|=2C|=3D)+)"
"""The pattern of an encoded name. It matches in one go: no part of it could be matched in two ways.

It is an atomic group, because CPython before 3.11.5 matches a group with `++` wrongly (its issue
106052).
"""


def written(name: str) -> str:
    """Return a user name in the encoded form of SASL tokens, which has no commas."""
    return name.replace("=", "=3D").replace(",", "=2C")


def read(text: str) -> str:
    """Return the user name whose encoded form is `text`. The text must match `NAME`."""
    return text.replace("=2C", ",").replace("=3D", "=")
