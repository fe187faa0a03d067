"""Lingering lanes: pending bytes are delivered, and no reset overtakes them."""

from __future__ import annotations

import pytest

from gateway.wire.contract import EndReason

from .harness import KIB, Opened, Plane, Transmission, tcp_sockets
from .protocol import passing

FAREWELL = passing(b"farewell")


def end(pair: Opened, reason: EndReason = EndReason.UNKNOWN_COMMAND) -> None:
    """End a pair with a farewell."""
    pair.pair.end(reason, FAREWELL)


def test_no_reset_overtakes_the_farewell(plane: Plane) -> None:
    """The client still sends when its pair ends; closing a socket with unread bytes resets."""
    pair = plane.open(sockets=tcp_sockets)
    pair.client.say(passing(b"unread" * 1000))
    end(pair)
    pair.client.say(passing(b"more" * 1000))
    plane.turn()
    pair.client.say(passing(b"and more" * 1000))
    plane.turn()
    plane.until(lambda: pair.client.told_the_end)
    assert pair.client.heard == FAREWELL


def test_a_lane_is_closed_when_its_peer_closes(plane: Plane) -> None:
    pair = plane.open(sockets=tcp_sockets)
    end(pair)
    assert len(plane.reactor._lanes) == 2
    pair.client.close()
    pair.broker.close()
    plane.until(lambda: plane.reactor.is_empty)


def test_a_lane_is_closed_when_its_peer_takes_too_long(plane: Plane, pair: Opened) -> None:
    end(pair)
    plane.after(plane.settings.linger - 0.01)
    assert len(plane.reactor._lanes) == 2
    plane.after(0.01)
    assert plane.reactor._lanes == {}


def test_a_peer_that_keeps_sending_is_closed_in_time(plane: Plane, pair: Opened) -> None:
    end(pair)
    for _ in range(10):
        pair.client.say(b"x" * 10_000)
        plane.after(plane.settings.linger / 10)
    assert plane.reactor._lanes == {}


def test_a_reset_of_the_peer_closes_the_lane(plane: Plane) -> None:
    pair = plane.open(sockets=tcp_sockets)
    end(pair)
    pair.client.reset()
    pair.broker.reset()
    plane.until(lambda: not plane.reactor._lanes)


def test_the_lane_of_the_peer_that_closed_is_closed_at_once(plane: Plane, pair: Opened) -> None:
    pair.broker.close()
    plane.turn()
    assert list(plane.reactor._lanes.values()) == [pair.pair.client]


@pytest.mark.parametrize("closes", [False, True])
def test_a_slow_peer_gets_all_pending_bytes(plane: Plane, closes: bool) -> None:
    """A peer that has shut down sending but still reads gets them too."""
    pair = plane.open(sockets=tcp_sockets, send_buffer=8 * KIB)
    transmission = Transmission(pair.pair.client)
    transmission.most = 0
    said = passing(b"x" * 1995) * 10
    pair.broker.say(said)
    plane.until(lambda: plane.memory.used == len(said))
    end(pair)
    if closes:
        pair.client.sock.shutdown(1)
    for _ in range(5):
        plane.reactor.turn()
    transmission.most = 1000
    plane.until(lambda: pair.client.told_the_end)
    assert pair.client.heard == said + FAREWELL
    if closes:
        assert pair.pair.client not in plane.reactor._lanes.values()


def test_pending_bytes_that_the_peer_does_not_take_are_dropped(plane: Plane, pair: Opened) -> None:
    Transmission(pair.pair.client).most = 0
    end(pair)
    assert plane.memory.used == len(FAREWELL)
    plane.after(plane.settings.linger)
    assert plane.memory.used == 0


def test_an_error_while_delivering_closes_the_lane(plane: Plane, pair: Opened) -> None:
    transmission = Transmission(pair.pair.client)
    transmission.most = 0
    end(pair)
    transmission.fails_at = transmission.calls + 1
    plane.reactor.turn()
    assert pair.pair.client not in plane.reactor._lanes.values()
    assert plane.memory.used == 0


def test_a_farewell_that_cannot_be_sent_is_no_error(plane: Plane, pair: Opened) -> None:
    Transmission(pair.pair.client).fails_at = 1
    end(pair)
    assert pair.pair.client not in plane.reactor._lanes.values()
    assert plane.hooks.reasons == [EndReason.UNKNOWN_COMMAND]
    assert plane.hooks.crashes == []
