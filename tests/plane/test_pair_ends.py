"""All ends of a pair: by its peers, its session and bugs."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import (
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Job,
    Pause,
)

from .harness import KIB, OURS, FakeJob, Opened, Plane, Transmission, both, held, responses, resume
from .protocol import BUG, VIOLATION, FakeSession, counted, crash, frame, passing, stop

TO_BROKER, TO_CLIENT = Direction


# -- end -------------------------------------------------------------------------------------


def test_an_end_delivers_earlier_frames(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS, "because"),)))
    pair.client.say(passing(b"before") + stop(b"x") + passing(b"behind"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.UNKNOWN_COMMAND]
    assert plane.hooks.ends[0].detail == "because"
    assert pair.broker.hear() == passing(b"before")
    assert pair.client.hear() == OURS
    assert pair.client.told_the_end
    assert pair.broker.told_the_end


def test_effects_after_an_end_are_ignored(plane: Plane, pair: Opened) -> None:
    job: Job = FakeJob()
    after = (Forward(), Inject(TO_CLIENT, OURS), pair.session.start(job, 1))
    responses(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND), *after)))
    pair.client.say(stop(b"x") + stop(b"y"))
    plane.turn()
    assert pair.broker.hear() == b""
    assert pair.client.hear() == b""
    assert plane.hooks.started == []
    assert len(pair.session.decided) == 1


def test_the_session_gives_the_farewell_for_ends_by_the_plane(plane: Plane, pair: Opened) -> None:
    pair.session.words[EndReason.IDLE] = OURS
    pair.pair.end(EndReason.IDLE)
    assert pair.client.hear() == OURS


def test_no_farewell_within_a_frame(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS),)))
    pair.broker.say(passing(b"l" * 50)[:20])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == passing(b"l" * 50)[:20]
    assert pair.client.told_the_end


def test_a_farewell_goes_behind_pending_bytes(plane: Plane) -> None:
    pair = plane.open(send_buffer=8 * KIB)
    responses(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS),)))
    said = passing(b"m" * 1995) * 30
    pair.broker.say(said)
    plane.turn()
    assert pair.pair.client.pending
    pair.client.say(stop(b"x"))
    plane.until(lambda: plane.hooks.ends)
    plane.until(lambda: pair.client.told_the_end)
    assert pair.client.heard == said + OURS


def test_a_pair_ends_once(plane: Plane, pair: Opened) -> None:
    pair.pair.end(EndReason.IDLE)
    pair.pair.end(EndReason.DRAINED)
    assert plane.hooks.reasons == [EndReason.IDLE]
    assert pair.session.closed == 1


def test_held_frames_are_freed_with_their_pair(plane: Plane, pair: Opened) -> None:
    held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    assert plane.memory.used
    pair.pair.end(EndReason.IDLE)
    assert plane.memory.used == 0


def test_an_action_that_ends_the_pair_drops_what_waits_behind_it(
    plane: Plane, pair: Opened
) -> None:
    """The lane lingers by then: no other code may send on it or turn its reading off."""
    pause = Pause(TO_CLIENT, plane.clock() + 5)
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS), pause)))
    transmission = Transmission(pair.pair.client)
    long = passing(b"l" * 50)
    pair.broker.say(long[:20])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    transmission.fails_at = transmission.calls + 2
    pair.broker.say(long[20:])
    plane.turn()
    assert plane.hooks.reasons == [EndReason.CLIENT_LOST]
    pair.broker.close()
    plane.turn()
    assert plane.reactor._lanes == {}, "the broker's lane is not heard any more"


# -- faults ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("before", [b"", passing(b"before")])
def test_bytes_that_violate_the_protocol_end_the_pair(
    plane: Plane, pair: Opened, direction: Direction, before: bytes
) -> None:
    speaker, _ = pair.far(direction)
    violation = (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)[direction]
    pair.session.words[violation] = OURS
    speaker.say(before)
    plane.turn()
    speaker.say(frame(VIOLATION))
    plane.turn()
    assert plane.hooks.reasons == [violation]
    assert plane.hooks.ends[0].detail == "not a frame"
    assert plane.hooks.crashes == []
    assert pair.client.hear().endswith(OURS)


@both
def test_a_violation_while_bytes_are_owed_has_no_farewell(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    pair.session.words[EndReason.BROKER_VIOLATION] = OURS
    pair.broker.say(passing(b"l" * 50)[:20])
    plane.turn()
    pair.broker.say(passing(b"l" * 50)[20:] + frame(VIOLATION))
    plane.turn()
    assert pair.client.hear() == passing(b"l" * 50)[:20]


@both
def test_a_session_may_find_a_violation(plane: Plane, pair: Opened, direction: Direction) -> None:
    def response(direction: Direction, frame: bytes) -> Effects:
        raise PeerError("not now")

    pair.session.response = response
    speaker, hearer = pair.far(direction)
    speaker.say(passing(b"before") + stop() + passing(b"behind"))
    plane.turn()
    assert plane.hooks.reasons == [
        (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)[direction]
    ]
    assert hearer.hear() == passing(b"before")


@both
def test_a_violation_in_carried_bytes_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    responses(pair, (b"x", (Drop(), Pause(direction, plane.clock() + 5))))
    speaker.say(stop(b"x") + frame(VIOLATION))
    plane.turn()
    assert plane.hooks.ends == []
    plane.after(5)
    assert plane.hooks.reasons == [
        (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)[direction]
    ]
    assert plane.hooks.crashes == []


@both
@pytest.mark.parametrize("where", ["scan", "decide", "collected"])
def test_a_bug_ends_its_pair_alone(
    plane: Plane, pair: Opened, direction: Direction, where: str
) -> None:
    other = plane.open()
    pair.session.response = crash
    speaker, _ = pair.far(direction)
    if where == "collected":
        speaker.say(stop(b"x" * 20)[:10])
        plane.turn()
        speaker.say(stop(b"x" * 20)[10:])
    else:
        speaker.say(frame(BUG) if where == "scan" else stop())
    other.client.say(passing(b"other"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert [(crashed, type(error)) for crashed, error in plane.hooks.crashes] == [
        (pair.pair, RuntimeError)
    ]
    assert other.broker.hear() == passing(b"other")
    assert pair.client.told_the_end
    assert pair.broker.told_the_end


def test_a_bug_in_carried_bytes_ends_the_pair(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    pair.client.say(stop(b"x") + frame(BUG))
    plane.turn()
    plane.after(5)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert len(plane.hooks.crashes) == 1


def test_a_bug_in_a_resumption_ends_the_pair(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 1))))
    pair.session.resumption = crash
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    resume(pair, plane, 1)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]


def test_a_bug_while_a_granted_frame_is_decided_ends_the_pair(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.session.response = crash
    del pair.session.accounts[1]
    plane.reactor.grant(account, 9, 1000)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert len(plane.hooks.crashes) == 1


class Broken(FakeSession):
    """A session that raises while it ends."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.response = crash

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        if self._where != "close":
            crash()
        return b""

    def close(self) -> bool:
        """See `contract.Session`."""
        more = super().close()
        if self._where != "farewell":
            crash()
        return more


@pytest.mark.parametrize("where", ["farewell", "close", "both"])
def test_a_bug_while_a_session_closes_affects_no_other_pair(plane: Plane, where: str) -> None:
    broken, other = plane.open(Broken(where)), plane.open()
    broken.client.say(stop())
    other.client.say(passing(b"other"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert broken.client.told_the_end
    assert broken.broker.told_the_end
    assert other.broker.hear() == passing(b"other")


class Slow(FakeSession):
    """A session that takes several steps to close."""

    steps = 0

    def close(self) -> bool:
        """See `contract.Session`."""
        self.steps += 1
        self.closed = 1
        return self.steps < 5


def test_a_large_session_is_closed_step_by_step(plane: Plane) -> None:
    slow, more = Slow(), Slow()
    for pair in (plane.open(slow), plane.open(more)):
        pair.pair.end(EndReason.IDLE)
    assert (slow.steps, more.steps) == (1, 1)
    plane.after(0.0)
    assert (slow.steps, more.steps) == (5, 5)


class Stuck(Slow):
    """A session that raises in a later step of closing."""

    def close(self) -> bool:
        """See `contract.Session`."""
        if super().close() and self.steps > 1:
            crash()
        return True


def test_a_bug_in_a_later_closing_step_blocks_no_other_session(plane: Plane) -> None:
    stuck, more = Stuck(), Slow()
    for pair in (plane.open(stuck), plane.open(more)):
        pair.pair.end(EndReason.IDLE)
    plane.after(0.0)
    assert (stuck.steps, more.steps) == (2, 5)
    assert len(plane.hooks.crashes) == 1
