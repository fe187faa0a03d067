"""The plane under test, whose end is part of every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import Opened, Plane


@pytest.fixture
def plane() -> Iterator[Plane]:
    """A plane without pairs. After the test, all pairs are ended and nothing may be left."""
    plane = Plane()
    yield plane
    plane.close()


@pytest.fixture
def pair(plane: Plane) -> Opened:
    """An open pair on two socket pairs."""
    return plane.open()
