"""What comes in one read with a violation, before it: it is sent up to a border, or the last frame
stays cut and no farewell follows it."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pytest

from gateway.plane.state import PlaneSettings
from gateway.wire.contract import Direction, EndReason

from .harness import Opened, Plane, unix_sockets
from .test_bulk import PulsarSession, frame

VIOLATION = pack(">II", 5, 500) + bytes(20)
"""The head of a frame that is smaller than its command."""

FAREWELL = b"farewell"


@pytest.fixture
def plane() -> Iterator[Plane]:
    plane = Plane(PlaneSettings())
    yield plane
    plane.close()


@pytest.fixture
def pair(plane: Plane) -> Opened:
    session = PulsarSession()
    session.words[EndReason.BROKER_VIOLATION] = FAREWELL
    return plane.open(session, sockets=unix_sockets)


def heard_before(plane: Plane, pair: Opened, *said: bytes) -> bytes:
    """Have the broker say this and then a violation. Return what the client hears."""
    source, sink = pair.far(Direction.TO_CLIENT)
    for piece in said[:-1]:
        source.sock.sendall(piece)
        plane.until(sink.hear)
    source.sock.sendall(said[-1] + VIOLATION)
    plane.until(lambda: pair.pair.over)
    plane.until(lambda: sink.told_the_end)
    return sink.heard


def test_a_farewell_follows_a_border(plane: Plane, pair: Opened) -> None:
    whole = frame(Direction.TO_CLIENT, 500)
    heard = heard_before(plane, pair, whole, whole)
    assert heard in (whole + FAREWELL, whole + whole + FAREWELL)


@pytest.mark.parametrize("cut", [100, 400])
def test_no_farewell_stands_within_a_frame(plane: Plane, pair: Opened, cut: int) -> None:
    whole = frame(Direction.TO_CLIENT, 500)
    heard = heard_before(plane, pair, whole[:cut], whole[cut:])
    assert heard in (whole[:cut], whole + FAREWELL)
