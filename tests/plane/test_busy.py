"""A busy turn waits for what comes next: by the kernel's clock, unlike all other tests of turns."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

import pytest

from gateway._pure import COMPILED
from gateway.plane.state import PlaneSettings
from gateway.wire.contract import Drop

from .harness import BUFFER, FakeJob, Plane, responses
from .protocol import passing, stop


@pytest.fixture(scope="module", autouse=True)
def linger() -> None:
    """Turns wait, other than those of the other tests."""


def plane_of(turn: float) -> Iterator[Plane]:
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, turn=turn))
    plane.reactor.clock = time.monotonic
    yield plane
    plane.clock.now = time.monotonic()
    plane.reactor.clock = plane.clock
    plane.close()


@pytest.fixture
def brief() -> Iterator[Plane]:
    yield from plane_of(0.002)


@pytest.fixture
def long() -> Iterator[Plane]:
    yield from plane_of(2.0)


def turn(plane: Plane) -> None:
    """Take a turn as of a busy plane: the last one has just ended."""
    plane.reactor._ended = math.inf
    plane.reactor.turn()


@pytest.mark.skipif(not COMPILED, reason="a turn of the pure loop waits for a millisecond")
def test_a_busy_turn_moves_what_comes_meanwhile(long: Plane) -> None:
    pair = long.open()
    responses(pair, (b"last", (Drop(), pair.session.start(FakeJob(), 7))))
    pair.client.say(passing(b"a"))

    def response() -> None:
        while not pair.broker.hear().endswith(passing(b"a")):
            pass
        pair.client.say(passing(b"b"))
        while not pair.broker.hear().endswith(passing(b"b")):
            pass
        pair.client.say(stop(b"last"))  # the front is to begin its job, so nothing is awaited

    answering = threading.Thread(target=response)
    answering.start()
    turn(long)
    answering.join()
    assert pair.broker.hear().endswith(passing(b"a") + passing(b"b"))
    assert long.hooks.started
    assert not long.woken(long.settings.turn + 0.1), "its timer wakes nobody afterwards"


@pytest.mark.skipif(not COMPILED, reason="a turn of the pure loop waits for a millisecond")
def test_a_busy_turn_waits_no_longer_than_until_a_deadline(long: Plane) -> None:
    pair = long.open()
    pair.client.say(passing(b"a"))

    def response() -> None:
        while not pair.broker.hear().endswith(passing(b"a")):
            pass
        long.reactor.deadlines.add(time.monotonic(), lambda _: None)
        pair.client.say(passing(b"b"))

    answering = threading.Thread(target=response)
    answering.start()
    turn(long)
    answering.join()
    assert time.monotonic() < long.reactor.until, "the whole turn"


def test_a_turn_in_which_nothing_more_comes_ends(brief: Plane) -> None:
    pair = brief.open()
    for _ in range(20):
        pair.client.say(passing(b"a"))
        turn(brief)
        assert pair.broker.hear().endswith(passing(b"a"))


def test_the_end_of_a_turn_wakes_nobody_later(brief: Plane) -> None:
    pair = brief.open()
    pair.client.say(passing(b"a"))
    turn(brief)
    assert not brief.woken(0.05)
