"""`Later`: the session is asked again at a set time."""

from __future__ import annotations

import weakref

from gateway.errors import PeerError
from gateway.wire.contract import (
    Denial,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Inject,
)

from .harness import OURS, Opened, Plane
from .protocol import crash, passing, stop

TO_BROKER = Direction.TO_BROKER


def delays(plane: Plane, pair: Opened, seconds: float = 2.0) -> None:
    """Delay stop frames: `x` as number 1, any other as number 2, which is due a second later."""

    def response(direction: Direction, frame: bytes) -> Effects:
        number = 1 if frame == stop(b"x") else 2
        return (Drop(), pair.session.later(number, plane.clock() + seconds + number - 1))

    pair.session.response = response
    pair.session.resumption = lambda number, result: (Inject(TO_BROKER, stop(b"%d" % number)),)


def test_the_session_is_asked_at_its_time_while_other_frames_pass(
    plane: Plane, pair: Opened
) -> None:
    delays(plane, pair)
    pair.client.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert pair.broker.hear() == passing(b"1") + passing(b"2")
    plane.after(1.9)
    assert pair.session.resumed == []
    plane.after(0.2)
    assert pair.session.resumed == [(1, b"")]
    assert pair.broker.hear() == passing(b"1") + passing(b"2") + stop(b"1")
    plane.after(100)
    assert len(pair.session.resumed) == 1


def test_each_delayed_frame_has_its_own_time(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)
    pair.client.say(stop(b"y") + stop(b"x"))
    plane.turn()
    plane.after(2.5)
    plane.after(1)
    assert pair.broker.hear() == stop(b"1") + stop(b"2")


def test_a_frame_due_within_another_is_sent_behind_it(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)
    long = passing(b"l" * 50)
    pair.client.say(stop(b"x") + long[:20])
    plane.turn()
    plane.after(2.1)
    assert pair.broker.hear() == long[:20]
    pair.client.say(long[20:] + passing(b"2"))
    plane.turn()
    assert pair.broker.hear() == long + stop(b"1") + passing(b"2")


def test_the_session_may_delay_again(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)

    def again(number: int, result: bytes | Denial) -> Effects:
        if number == 1:
            return (pair.session.later(7, plane.clock() + 1),)
        return (Inject(TO_BROKER, OURS),)

    pair.session.resumption = again
    pair.client.say(stop(b"x"))
    plane.turn()
    plane.after(2.1)
    assert pair.broker.hear() == b""
    plane.after(1.1)
    assert pair.broker.hear() == OURS


def test_the_session_of_an_ended_pair_is_not_asked(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)
    pair.client.say(stop(b"x"))
    plane.turn()
    pair.client.close()
    plane.turn()
    plane.after(3)
    assert pair.session.resumed == []
    assert plane.hooks.reasons == [EndReason.CLIENT_CLOSED]


def test_a_delayed_effect_may_end_the_pair(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)
    pair.session.resumption = lambda number, result: (End(EndReason.CLIENT_VIOLATION, OURS),)
    pair.client.say(stop(b"x") + stop(b"y"))
    plane.turn()
    plane.after(2.1)
    assert pair.client.hear() == OURS
    plane.after(2)
    assert len(pair.session.resumed) == 1


def test_a_delayed_violation_ends_the_pair(plane: Plane, pair: Opened) -> None:
    delays(plane, pair)

    def violation(number: int, result: bytes | Denial) -> Effects:
        raise PeerError("not of the protocol")

    pair.session.resumption = violation
    pair.client.say(stop(b"x"))
    plane.turn()
    plane.after(2.1)
    assert [(end.reason, end.detail) for end in plane.hooks.ends] == [
        (EndReason.CLIENT_VIOLATION, "not of the protocol")
    ]


def test_a_bug_ends_that_pair_alone(plane: Plane, pair: Opened) -> None:
    other = plane.open()
    delays(plane, pair)
    pair.session.resumption = crash
    pair.client.say(stop(b"x"))
    plane.turn()
    plane.after(2.1)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert other.pair in plane.reactor.pairs


def test_a_pair_that_has_ended_is_freed_before_the_time_of_its_delay(plane: Plane) -> None:
    """Otherwise short connections of a protocol with long delays would fill the memory."""
    assert come_and_go(plane)() is None


def come_and_go(plane: Plane) -> weakref.ref[object]:
    """Open a pair that delays for seconds and for hours, and end it; return its session."""
    pair = plane.open()
    now = plane.clock()
    laters = [pair.session.later(7, now + seconds) for seconds in (1, 120, 3600)]
    pair.session.response = lambda _, frame: (Drop(), *laters)
    pair.client.say(stop(b"x"))
    plane.after(2)
    assert len(pair.session.resumed) == 1
    pair.client.close()
    plane.turn()
    plane.after(2)
    plane.forget(pair)
    pair.broker.close()
    pair.session.response = lambda _, frame: ()  # what it answered refers to it
    return weakref.ref(pair.session)
