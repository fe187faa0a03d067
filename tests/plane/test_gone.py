"""Peers that are gone without closing: silent ones, and those that take nothing."""

from __future__ import annotations

import pytest

from gateway.plane.state import PlaneSettings
from gateway.wire.contract import Direction, EndReason

from .harness import BUFFER, KIB, Opened, Plane, both
from .protocol import passing

SILENT = {
    Direction.TO_BROKER: EndReason.CLIENT_SILENT,
    Direction.TO_CLIENT: EndReason.BROKER_SILENT,
}
"""The end reason, by the direction in which nothing comes."""

STALLED = {
    Direction.TO_BROKER: EndReason.BROKER_STALLED,
    Direction.TO_CLIENT: EndReason.CLIENT_STALLED,
}


MUCH = passing(b"x" * 60 * KIB)


def both_speak(plane: Plane, pair: Opened) -> None:
    for peer in (pair.client, pair.broker):
        peer.say(passing(b"x"))
    plane.turn()


# -- silent ------------------------------------------------------------------------------------


@both
def test_a_silent_peer_ends_the_pair_while_the_other_sends(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction.opposite)
    silent = plane.settings.silent
    for _ in range(3):
        plane.after(silent * 0.3)
        speaker.say(passing(b"are you there"))
        plane.turn()
    assert plane.hooks.ends == []
    plane.after(silent * 0.1 + 1)
    assert plane.hooks.reasons == [SILENT[direction]]


def test_a_peer_that_sends_now_and_then_stays(plane: Plane, pair: Opened) -> None:
    for _ in range(5):
        plane.after(plane.settings.silent * 0.9)
        both_speak(plane, pair)
    assert plane.hooks.ends == []


def test_two_silent_peers_end_the_pair_only_as_idle(plane: Plane, pair: Opened) -> None:
    plane.after(plane.settings.silent)
    assert plane.hooks.ends == []
    plane.after(plane.settings.idle - plane.settings.silent)
    assert plane.hooks.reasons == [EndReason.IDLE]


@both
def test_a_peer_that_is_not_read_is_not_silent(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    other, _ = pair.far(direction.opposite)
    pump = pair.pair.pumps[direction]
    pump.pause()
    speaker.say(passing(b"long ago"))
    for _ in range(4):
        plane.after(plane.settings.silent * 0.5)
        other.say(passing(b"x"))
        plane.turn()
    assert plane.hooks.ends == []
    pump.unpause(plane.clock())
    plane.after(plane.settings.silent * 0.9)  # it has all the time again
    assert plane.hooks.ends == []


# -- stalled -----------------------------------------------------------------------------------


def narrow(plane: Plane) -> Opened:
    """Return a pair whose sockets take little of `MUCH` while the far end does not read."""
    return plane.open(send_buffer=4 * KIB)


@both
@pytest.mark.parametrize("size", [0, 3 * KIB], ids=["nothing", "a little now and then"])
def test_a_peer_that_takes_too_little_is_gone(
    plane: Plane, direction: Direction, size: int
) -> None:
    pair = narrow(plane)
    speaker, hearer = pair.far(direction)
    speaker.say(MUCH)
    plane.turn()
    for _ in range(10):
        plane.after(plane.settings.stalled * 0.0999)
        hearer.hear(size)
    assert plane.hooks.ends == []
    plane.after(plane.settings.stalled * 0.01)
    assert plane.hooks.reasons == [STALLED[direction]]


@both
def test_a_peer_that_takes_all_in_time_stays(plane: Plane, direction: Direction) -> None:
    pair = narrow(plane)
    speaker, hearer = pair.far(direction)
    for _ in range(4):
        speaker.say(MUCH)
        plane.turn()
        plane.after(plane.settings.stalled * 0.9)
        plane.until(lambda: not hearer.hear() or not pair.pair.kept)
        both_speak(plane, pair)
    assert plane.hooks.ends == []
    assert hearer.hear().count(MUCH) == 4


@both
def test_a_stall_is_noticed_soon_after_its_deadline(direction: Direction) -> None:
    plane = Plane(PlaneSettings(buffer=BUFFER, idle=100, silent=100, stalled=10))
    pair = narrow(plane)
    for _ in range(7):  # no multiple of the time between two looks
        plane.after(9)
        both_speak(plane, pair)
    speaker, _ = pair.far(direction)
    speaker.say(MUCH)
    plane.turn()
    plane.after(9.9)
    assert plane.hooks.ends == []
    plane.after(0.2)
    assert plane.hooks.reasons == [STALLED[direction]]
    plane.close()
