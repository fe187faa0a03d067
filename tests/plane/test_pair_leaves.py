"""Shutdown: a pair carries out the session's steps of leaving, then ends."""

from __future__ import annotations

from gateway.plane.pair import EMPTY, QUIET
from gateway.wire.contract import Direction, EndReason, Inject

from .harness import OURS, Opened, Plane
from .protocol import crash, passing

TO_BROKER, TO_CLIENT = Direction


def test_a_step_is_carried_out(plane: Plane, pair: Opened) -> None:
    pair.session.departure = lambda now: (Inject(TO_BROKER, OURS), Inject(TO_CLIENT, OURS))
    plane.reactor.leave(pair.pair)
    assert pair.broker.hear() == OURS
    assert pair.client.hear() == OURS
    assert not pair.pair.over


def test_an_empty_pair_ends_when_it_is_quiet(plane: Plane, pair: Opened) -> None:
    plane.after(QUIET * 0.9)
    plane.reactor.leave(pair.pair)
    assert not pair.pair.over
    plane.after(QUIET * 0.2)
    plane.reactor.leave(pair.pair)
    assert plane.hooks.reasons == [EndReason.DRAINED]


def test_an_empty_pair_that_is_not_quiet_ends_a_little_later(plane: Plane, pair: Opened) -> None:
    steps = 0
    while not pair.pair.over:
        pair.client.say(passing(b"x"))
        plane.turn()
        plane.reactor.leave(pair.pair)
        plane.after(QUIET / 2)
        steps += 1
    assert EMPTY / QUIET < steps / 2 < EMPTY / QUIET + 2
    assert plane.hooks.reasons == [EndReason.DRAINED]


def test_a_pair_that_is_used_again_is_not_empty(plane: Plane, pair: Opened) -> None:
    plane.reactor.leave(pair.pair)
    plane.after(EMPTY)
    pair.session.departure = lambda now: ()
    plane.reactor.leave(pair.pair)
    plane.after(EMPTY)
    pair.client.say(passing(b"x"))
    plane.turn()
    pair.session.departure = lambda now: None
    plane.reactor.leave(pair.pair)
    assert not pair.pair.over


def test_a_bug_ends_the_pair(plane: Plane, pair: Opened) -> None:
    pair.session.departure = crash
    plane.reactor.leave(pair.pair)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]


def test_an_ended_pair_takes_no_steps(plane: Plane, pair: Opened) -> None:
    pair.pair.end(EndReason.IDLE)
    pair.session.departure = crash
    plane.reactor.leave(pair.pair)
    assert plane.hooks.crashes == []
