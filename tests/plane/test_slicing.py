"""`Sliced`: decisions that are taken in slices."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import (
    FORWARD,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Postpone,
    Replace,
    Resume,
    Sliced,
)
from gateway.wire.subject import Caller
from gateway.wire.traced import TracedSession

from .harness import BUFFER, Opened, Plane, both
from .protocol import FakeSession, passing, stop

TO_BROKER, TO_CLIENT = Direction
LARGE = stop(b"s" + b"l" * (3 * BUFFER + 17))


class Steps:
    """A decision of so many slices. `taken`: the slices so far; `is_closed`: the generator is."""

    def __init__(self, slices: int, effects: Effects = FORWARD) -> None:
        self._slices = slices
        self._effects = effects
        self.taken = 0
        self.is_closed = False

    def run(self) -> Generator[None, None, Effects]:
        """Return the generator."""
        try:
            for _ in range(self._slices):
                self.taken += 1
                yield
            return self._effects
        finally:
            self.is_closed = True


def slices(pair: Opened, steps: Steps) -> None:
    """Decide stop frames that begin with `s` by these steps, and forward all others."""

    def response(_direction: Direction, frame: bytes) -> Effects:
        return (Sliced(steps.run()),) if frame[5:6] == b"s" else FORWARD

    pair.session.response = response


def violating() -> Generator[None, None, Effects]:
    """Return the steps of a decision about a frame that violates the protocol."""
    yield
    raise PeerError("too many")


@both
@pytest.mark.parametrize("frame", [stop(b"s"), LARGE], ids=["small", "large"])
def test_the_frame_waits_for_its_slices_and_what_follows_keeps_its_order(
    plane: Plane, pair: Opened, direction: Direction, frame: bytes
) -> None:
    speaker, hearer = pair.far(direction)
    steps = Steps(5, (Replace(passing(b"instead")),))
    slices(pair, steps)
    data = passing(b"before") + frame + stop(b"next") + passing(b"behind")
    for at in range(0, len(data), BUFFER):
        speaker.say(data[at : at + BUFFER])
        plane.turn()
    expected = passing(b"before") + passing(b"instead") + stop(b"next") + passing(b"behind")
    plane.until(lambda: hearer.hear() == expected)
    assert steps.taken == 5
    assert pair.session.decided == [(direction, frame), (direction, stop(b"next"))]


@both
def test_a_decided_frame_is_not_scanned_again(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    """To a session that has decided a response, nothing is in flight any more."""
    speaker, hearer = pair.far(direction)
    scanner, scanned = pair.session.scanners[direction], list[bytes]()
    scan = scanner.scan

    def once(chunk: bytearray, start: int, end: int) -> int:
        at = scan(chunk, start, end)
        if scanner.stop:
            scanned.append(bytes(chunk[at : at + scanner.stop]))
        return at

    scanner.scan = once  # type: ignore[method-assign]
    slices(pair, Steps(3))
    speaker.say(stop(b"s") + stop(b"next"))
    plane.turn()
    assert hearer.hear() == stop(b"s") + stop(b"next")
    assert scanned == [stop(b"s"), stop(b"next")]


def test_the_outcome_may_postpone_the_frame_which_is_decided_anew_then(
    plane: Plane, pair: Opened
) -> None:
    outcomes: list[Effects] = [(Postpone(plane.clock() + 5),), FORWARD]
    pair.session.response = lambda _, __: (Sliced(Steps(2, outcomes.pop(0)).run()),)
    pair.client.say(stop(b"s") + passing(b"behind"))
    plane.after(4)
    assert pair.broker.hear() == b""
    assert len(outcomes) == 1
    plane.after(2)
    assert pair.broker.hear() == stop(b"s") + passing(b"behind")
    assert outcomes == []


def test_others_are_served_between_two_slices(plane: Plane, pair: Opened) -> None:
    steps, taken = Steps(10), list[int]()
    slices(pair, steps)
    session = FakeSession()
    session.caller = Caller(connection=2, host="another")
    other = plane.open(session)

    def response(_direction: Direction, _frame: bytes) -> Effects:
        taken.append(steps.taken)
        return FORWARD

    session.response = response
    pair.client.say(stop(b"s"))
    plane.until(lambda: steps.taken == 3)
    other.client.say(stop(b"x"))
    plane.turn()
    assert len(taken) == 1
    assert taken[0] < 10
    assert pair.broker.hear() == stop(b"s")


def test_the_other_direction_goes_on(plane: Plane, pair: Opened) -> None:
    steps = Steps(100)
    slices(pair, steps)
    pair.client.say(stop(b"s"))
    plane.until(lambda: steps.taken == 2)
    pair.broker.say(passing(b"meanwhile"))
    plane.until(lambda: pair.client.hear() == passing(b"meanwhile"))
    assert steps.taken < 100


def test_a_resume_meanwhile_does_not_begin_the_decision_anew(plane: Plane, pair: Opened) -> None:
    steps = Steps(20)

    def response(direction: Direction, _frame: bytes) -> Effects:
        return (Sliced(steps.run()),) if direction is TO_BROKER else (Drop(), Resume(TO_BROKER))

    pair.session.response = response
    pair.client.say(stop(b"s"))
    plane.until(lambda: steps.taken == 3)
    pair.broker.say(stop(b"r"))
    plane.until(lambda: pair.broker.hear() == stop(b"s"))
    assert steps.taken == 20


def test_a_violation_within_a_slice_ends_the_pair(plane: Plane, pair: Opened) -> None:
    pair.session.response = lambda _, __: (Sliced(violating()),)
    pair.broker.say(stop(b"s"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_VIOLATION]
    assert plane.hooks.ends[0].detail == "too many"


def test_a_bug_within_a_slice_ends_the_pair_alone(plane: Plane, pair: Opened) -> None:
    def steps() -> Generator[None, None, Effects]:
        yield
        raise RuntimeError("a bug")

    other = plane.open()
    pair.session.response = lambda _, __: (Sliced(steps()),)
    pair.client.say(stop(b"s"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    other.client.say(stop(b"x"))
    plane.turn()
    assert other.broker.hear() == stop(b"x")


def test_a_decision_may_end_the_pair(plane: Plane, pair: Opened) -> None:
    slices(pair, Steps(3, (End(EndReason.DRAINED, passing(b"farewell")),)))
    pair.client.say(stop(b"s"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.DRAINED]
    assert pair.client.hear() == passing(b"farewell")


def test_the_steps_are_closed_if_the_pair_ends_first(plane: Plane, pair: Opened) -> None:
    steps = Steps(1000)
    slices(pair, steps)
    pair.client.say(stop(b"s"))
    plane.until(lambda: steps.taken == 2)
    pair.pair.end(EndReason.DRAINED)
    assert steps.is_closed
    plane.turn()
    assert steps.taken == 2


def test_a_traced_decision_is_written_with_its_last_slice() -> None:
    session, lines = FakeSession(), list[str]()
    decisions = {b"good": Steps(2, (Drop(),)).run(), b"bad": violating()}
    session.response = lambda _, frame: (Sliced(decisions[frame]),)
    entry: Any = type("Entry", (), {"describe": lambda _self, _direction, frame: frame.decode()})()
    inner: Any = session
    traced = TracedSession(inner, lambda *line: lines.append(f"{line[1]}: {line[3]}"), entry)
    good, bad = (traced.decide(TO_BROKER, frame, 0.0)[0] for frame in decisions)
    assert isinstance(good, Sliced)
    assert isinstance(bad, Sliced)
    assert lines == []
    assert list(good.steps) == [None, None]
    with pytest.raises(PeerError):
        list(bad.steps)
    assert lines == ["good: drop", "bad: violation"]
