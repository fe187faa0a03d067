"""The plane under test, whose end is part of every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.plane import reactor

from .harness import Opened, Plane


@pytest.fixture(scope="module", autouse=True)
def linger() -> Iterator[None]:
    """No turn waits for the next event: what a test says is there at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reactor, "LINGER_MS", 0)
        yield


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
