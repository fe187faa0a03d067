"""Frames that wait for allowance too long, or that are too many."""

from __future__ import annotations

import pytest

from gateway.plane import waiting
from gateway.plane.deadlines import FEW
from gateway.plane.state import PlaneSettings
from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction, Discard, Effects, EndReason, Forward, Inject
from tests.support.subjects import subject_of

from .harness import BUFFER, OURS, Opened, Plane, held
from .protocol import GIVEN_UP, counted, crash, frames, passing, stop

BOUND = 64 * 1024
TOO_OLD = 20.0


class Resets:
    """Discards the frames of a producer in reset, and tells its client after `steps` steps."""

    def __init__(self, pair: Opened, steps: int = 0) -> None:
        self.began = 0
        self._steps = steps
        self._pair = pair
        pair.session.resetting = self

    def __call__(self, account: Account) -> Effects | None:
        if account not in self._pair.session.accounts.values():
            return None
        self.began += 1
        self._steps -= 1
        if self._steps >= 0:
            return (Discard(account),)
        self._pair.session.accounts.clear()
        return (Discard(account), Inject(Direction.TO_CLIENT, OURS))


def test_a_frame_that_waits_too_long_resets_its_producer(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    resets = Resets(pair)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD - 1)
    assert resets.began == 0
    plane.after(2)
    assert pair.client.hear() == OURS
    assert plane.memory.used == account.queued == 0
    assert not plane.reactor.granted


def test_a_reset_goes_on_until_the_session_ends_it(plane: Plane, pair: Opened) -> None:
    held(pair, 1)
    resets = Resets(pair, steps=3)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD)
    assert resets.began == 1
    for _ in range(10):
        plane.after(0.1)
    assert resets.began == 4
    assert pair.client.hear() == OURS


def test_frames_sent_again_are_reset_once_more_after_the_clients_timeout(
    plane: Plane, pair: Opened
) -> None:
    held(pair, 1)
    resets = Resets(pair)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD)
    assert resets.began == 1
    again = pair.session.account(1)  # of the same topic
    again.hold()
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(GIVEN_UP - TOO_OLD - 0.1)
    assert (resets.began, again.queued) == (1, len(counted(1, b"0")))
    plane.after(0.2)
    assert (resets.began, again.queued) == (2, 0)
    anew = pair.session.account(1)
    anew.hold()
    pair.client.say(counted(1, b"1"))
    plane.turn()
    plane.after(TOO_OLD - 0.1)
    assert resets.began == 2, "of what comes now nothing was thrown away"
    plane.after(0.2)
    assert resets.began == 3


def test_frames_that_passed_meanwhile_cause_no_second_reset(plane: Plane, pair: Opened) -> None:
    held(pair, 1)
    resets = Resets(pair)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD)
    pair.session.account(1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(GIVEN_UP)
    assert resets.began == 1


def test_frames_sent_in_time_cause_no_reset(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    resets = Resets(pair)
    for number in range(8):
        pair.client.say(counted(1, b"%d" % number))
        plane.turn()
        plane.after(TOO_OLD / 4)
        plane.reactor.grant(account, 1, 1000)
    plane.after(10 * TOO_OLD)
    assert resets.began == 0
    assert len(frames(pair.broker.hear())) == 8


def test_the_oldest_frame_decides_when_to_reset(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    resets = Resets(pair)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD - 1)
    pair.client.say(counted(1, b"1"))
    plane.turn()
    plane.reactor.grant(account, 1, 1000)
    plane.after(2)
    assert resets.began == 0
    plane.after(TOO_OLD - 2)
    assert resets.began == 1


def test_behind_a_full_queue_nothing_passes_until_the_producer_is_reset() -> None:
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, held=2 * BOUND))
    pair = plane.open()
    (account,) = held(pair, 1)
    resets = Resets(pair)
    full = [counted(1, b"%06d" % number + bytes(1000)) for number in range(100)]
    for frame in full:
        pair.client.say(frame)
        plane.turn()
    assert plane.memory.held <= BOUND + len(full[0])
    kept = plane.memory.held // len(full[0])
    plane.reactor.grant(account, kept - 1, 1 << 30)
    assert resets.began == 0
    plane.reactor.grant(account, 1 << 30, 1 << 30)
    assert resets.began == 1
    assert frames(pair.broker.hear()) == full[:kept]
    assert pair.client.hear() == OURS
    assert not plane.reactor.granted
    plane.close()


PING = passing(b"ping")


def pings(pair: Opened) -> int:
    """Return how many PINGs the broker has heard."""
    return frames(pair.broker.hear()).count(PING)


def flood(plane: Plane, pair: Opened, count: int) -> None:
    """Have the client send frames: the first ones fill the queue, the others are discarded."""
    for _ in range(count):
        pair.client.say(counted(1, bytes(2000)))
        plane.turn()


def test_a_client_that_heeds_no_window_is_read_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WINDOW", 4 * BOUND)
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, held=2 * BOUND))
    pair = plane.open()
    held(pair, 1)
    flood(plane, pair, 100)
    pair.client.say(PING)
    plane.turn()
    assert pings(pair) == 1
    flood(plane, pair, 100)
    for number in range(1, 4):
        pair.client.say(PING)
        plane.after(waiting.HEEDLESS_PAUSE / 2)
        assert pings(pair) == number
        plane.after(waiting.HEEDLESS_PAUSE / 2 + 0.1)
        assert pings(pair) == number + 1
        flood(plane, pair, 1)
    plane.close()


def test_a_client_that_keeps_to_a_window_is_read_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WINDOW", 4 * BOUND)
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, held=2 * BOUND))
    pair = plane.open()
    resets = Resets(pair)
    for number in range(4):
        (account,) = held(pair, 1)
        flood(plane, pair, 100)
        plane.reactor.grant(account, 1 << 30, 1 << 30)
        assert resets.began == number + 1
        pair.client.say(PING)
        plane.turn()
        assert pings(pair) == number + 1
    plane.close()


def test_closed_producers_count_towards_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WINDOW", 4 * BOUND)
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, held=2 * BOUND))
    pair = plane.open()

    def closed(_direction: Direction, _frame: bytes) -> Effects:
        return (Forward(), Discard(pair.session.accounts[1]))

    for number in range(4):
        held(pair, 1)
        flood(plane, pair, 100)
        pair.session.response = closed
        pair.client.say(stop(b"close") + PING)
        plane.turn()
        assert pings(pair) == number + 1
    plane.close()


def test_the_next_grant_resets_a_producer_whose_frame_found_no_room(
    plane: Plane, pair: Opened
) -> None:
    (account,) = held(pair, 1)
    plane.memory.hold(plane.memory.held_most)
    pair.client.say(counted(1, b"x"))
    plane.turn()
    assert account.queued == 0
    resets: list[Account] = []
    pair.session.resetting = resets.append
    plane.reactor.grant(account, 5, 10_000)
    assert resets == [account]
    assert pair.broker.hear() == b""
    plane.memory.hold(-plane.memory.held_most)


def test_other_producers_go_on_while_frames_of_one_are_discarded() -> None:
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=1 << 24, held=2 * BOUND))
    pair = plane.open()
    held(pair, 1)
    pair.session.account(2)
    for _ in range(100):
        pair.client.say(counted(1, bytes(1000)) + counted(2, b"free") + passing(b"ping"))
        plane.turn()
    assert pair.broker.hear() == (counted(2, b"free") + passing(b"ping")) * 100
    plane.close()


def test_a_grant_reaches_the_pair_whose_frames_wait(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    other = plane.open()
    (free,) = held(other, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.reactor.grant(account, 5, 1000)
    assert pair.broker.hear() == counted(1, b"0")
    assert not plane.reactor.granted
    plane.reactor.grant(free, 5, 1000)
    assert free.messages_ceiling == 5


def test_a_pair_that_ends_holds_no_frames(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.client.close()
    plane.turn()
    assert not plane.reactor.granted
    assert account.queued == 0
    plane.after(TOO_OLD + 1)


def test_a_bug_in_a_reset_ends_its_pair_alone(plane: Plane, pair: Opened) -> None:
    other = plane.open()
    held(pair, 1)
    pair.session.resetting = crash
    pair.client.say(counted(1, b"0"))
    plane.turn()
    plane.after(TOO_OLD + 1)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert not other.pair.over


def test_the_age_timers_of_closed_producers_are_cancelled(plane: Plane, pair: Opened) -> None:
    held(pair)
    waiting = pair.pair._wait()
    for number in range(3 * FEW):
        account = Account(Action.PRODUCE, subject_of(f"topic {number}"))
        waiting.put(account, counted(1), plane.clock())
        waiting.discard(account)
    assert len(plane.reactor.deadlines) <= FEW + 10
    assert not waiting._aging


def test_age_timers_do_not_keep_an_ended_pair_in_memory(plane: Plane) -> None:
    for _ in range(2):
        pair = plane.open()
        waiting = pair.pair._wait()
        for number in range(2 * FEW):
            account = Account(Action.PRODUCE, subject_of(f"topic {number}"))
            waiting.put(account, counted(1), plane.clock())
        pair.pair.end(EndReason.DRAINED)
        assert not waiting._aging
    assert len(plane.reactor.deadlines) <= FEW + 10
