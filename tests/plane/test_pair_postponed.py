"""`Postpone` and `Resume`, and stop frames that are the heads of longer frames."""

from __future__ import annotations

import math
import weakref

import pytest

from gateway.errors import PeerError
from gateway.plane.share import UNCLAIMED
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Await,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Pause,
    Postpone,
    Replace,
    Resume,
)

from .harness import BUFFER, OURS, FakeJob, Opened, Plane, both, resume
from .protocol import HEAD, headed, passing, stop

TO_BROKER, TO_CLIENT = Direction

LARGE = stop(b"w" + b"l" * (3 * BUFFER + 17))
"""A stop frame that waits, and that no chunk has whole."""


def waits(pair: Opened, until: float, times: int = 1) -> None:
    """Postpone each stop frame that begins with `w` so many times, and forward it then. One that
    begins with `r` is dropped, and resumes the client's direction; one with `o` is dropped, and
    ours goes to the client."""
    left: dict[bytes, int] = {}

    def response(direction: Direction, frame: bytes) -> Effects:
        match frame[HEAD.size : HEAD.size + 1]:
            case b"w":
                left[frame] = left.get(frame, times) - 1
                return FORWARD if left[frame] < 0 else (Postpone(until),)
            case b"r":
                return (Drop(), Resume(TO_BROKER))
            case b"o":
                return (Drop(), Inject(TO_CLIENT, OURS))
        return FORWARD

    pair.session.response = response


def says(pair: Opened, plane: Plane, data: bytes, piece: int = BUFFER) -> None:
    """Have the client send bytes, and the plane read as much of them as it reads."""
    for at in range(0, len(data), piece):
        pair.client.say(data[at : at + piece])
        plane.turn()


# -- its time ------------------------------------------------------------------------------------


@both
def test_a_frame_is_offered_again_at_its_time_and_what_follows_is_not_read(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    waits(pair, plane.clock() + 5)
    before, behind = passing(b"1"), stop(b"s") + passing(b"2") + passing(b"cut")
    speaker.say(before + stop(b"wait") + behind[:-3])
    plane.turn()
    speaker.say(behind[-3:] + passing(b"unread"))
    plane.after(4.9)
    assert hearer.hear() == before
    assert pair.session.decided == [(direction, stop(b"wait"))]
    plane.after(0.2)
    assert hearer.hear() == before + stop(b"wait") + behind + passing(b"unread")
    assert [frame for _, frame in pair.session.decided] == [stop(b"wait")] * 2 + [stop(b"s")]
    assert plane.memory.used == 0


def test_a_frame_may_be_postponed_again_and_again(plane: Plane, pair: Opened) -> None:
    waits(pair, 0.0, times=3)  # a time that is over: at once, and after others had their turn
    pair.client.say(stop(b"wait") + passing(b"2"))
    plane.turn()
    assert pair.broker.hear() == stop(b"wait") + passing(b"2")
    assert len(pair.session.decided) == 4


def test_the_other_direction_goes_on_while_a_frame_waits(plane: Plane, pair: Opened) -> None:
    waits(pair, plane.clock() + 5)
    pair.client.say(stop(b"wait"))
    plane.turn()
    pair.broker.say(passing(b"1") + stop(b"o"))
    plane.turn()
    assert pair.client.hear() == passing(b"1") + OURS
    assert pair.broker.hear() == b""


def test_a_paused_direction_is_read_when_all_its_reasons_are_over(
    plane: Plane, pair: Opened
) -> None:
    now = plane.clock()
    waits(pair, now + 3)
    pair.client.say(stop(b"wait") + passing(b"2"))
    plane.turn()
    pair.session.response = lambda _, frame: (Drop(), Pause(TO_BROKER, now + 6))
    pair.broker.say(stop(b"pause"))
    plane.turn()
    pair.session.response = lambda _, frame: FORWARD
    plane.after(3.1)
    assert pair.broker.hear() == b""
    plane.after(3)
    assert pair.broker.hear() == stop(b"wait") + passing(b"2")


# -- resume --------------------------------------------------------------------------------------


def test_a_frame_is_offered_again_at_resume_and_not_once_more_at_its_time(
    plane: Plane, pair: Opened
) -> None:
    waits(pair, plane.clock() + 5)
    pair.client.say(stop(b"wait") + passing(b"2"))
    plane.turn()
    pair.broker.say(stop(b"resume") + passing(b"back"))
    plane.turn()
    assert pair.broker.hear() == stop(b"wait") + passing(b"2")
    assert pair.client.hear() == passing(b"back")
    plane.after(6)
    assert [frame for _, frame in pair.session.decided].count(stop(b"wait")) == 2


def test_a_frame_that_waits_for_ever_is_offered_again_at_resume(plane: Plane, pair: Opened) -> None:
    waits(pair, math.inf)
    pair.client.say(stop(b"wait"))
    plane.turn()
    plane.after(50)
    assert pair.broker.hear() == b""
    pair.broker.say(stop(b"resume"))
    plane.turn()
    assert pair.broker.hear() == stop(b"wait")


def test_resume_of_nothing_changes_nothing(plane: Plane, pair: Opened) -> None:
    waits(pair, plane.clock() + 5)
    pair.broker.say(stop(b"r") * 3)
    pair.client.say(passing(b"1") + stop(b"r") + passing(b"2")[:3])
    plane.turn()
    pair.client.say(passing(b"2")[3:])
    plane.turn()
    assert pair.broker.hear() == passing(b"1") + passing(b"2")
    pair.client.say(stop(b"wait"))
    plane.turn()
    assert pair.broker.hear() == passing(b"1") + passing(b"2")


def test_resume_does_not_end_a_pause(plane: Plane, pair: Opened) -> None:
    until = plane.clock() + 5
    pair.session.response = lambda _, frame: (Drop(), Pause(TO_BROKER, until), Resume(TO_BROKER))
    pair.client.say(stop() + passing(b"2"))
    plane.after(4)
    assert pair.broker.hear() == b""
    plane.after(2)
    assert pair.broker.hear() == passing(b"2")


@pytest.mark.parametrize("piece", [1, 7, BUFFER])
def test_resume_by_the_other_direction_leaves_the_shared_buffer_to_it(
    plane: Plane, pair: Opened, piece: int
) -> None:
    """The chunk in which the broker's response stands is moved on while the client's is taken
    up."""
    waits(pair, plane.clock() + 5)
    said = stop(b"wait") + passing(b"c" * 5000) + stop(b"s") + passing(b"d" * 5000)
    pair.client.say(said)
    plane.turn()
    told = passing(b"1" * 3000) + stop(b"resume") + passing(b"2" * 3000) + stop(b"s") + OURS
    for at in range(0, len(told), piece):
        pair.broker.say(told[at : at + piece])
        plane.turn()
        pair.client.hear()
    assert pair.broker.hear() == said
    assert pair.client.hear() == told.replace(stop(b"resume"), b"")
    assert plane.memory.used == 0


def test_resume_goes_with_a_result_and_with_a_grant(plane: Plane, pair: Opened) -> None:
    account = pair.session.account(1)
    account.hold()
    responses: list[Effects] = [
        (pair.session.start(FakeJob(), 7), Postpone(math.inf)),
        (Await(account), Postpone(math.inf)),
    ]
    pair.session.response = lambda _, frame: responses.pop(0) if responses else FORWARD
    pair.session.resumption = lambda number, result: (Resume(TO_BROKER),)
    pair.session.delivery = lambda: (Resume(TO_BROKER),)
    pair.client.say(stop(b"wait") + passing(b"2"))
    plane.turn()
    resume(pair, plane, 7)
    assert (responses, pair.broker.hear()) == ([], b"")
    plane.reactor.grant(account, 1, 100)
    plane.turn()
    assert pair.broker.hear() == stop(b"wait") + passing(b"2")


# -- frames that came in parts ---------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1000, BUFFER])
@pytest.mark.parametrize("times", [1, 3])
def test_a_frame_that_came_in_parts_is_kept_whole_and_decided_again(
    plane: Plane, pair: Opened, piece: int, times: int
) -> None:
    waits(pair, plane.clock() + 5, times)
    says(pair, plane, LARGE, piece)
    pair.client.say(passing(b"unread"))
    plane.turn()
    assert pair.session.decided == [(TO_BROKER, LARGE)]
    assert plane.memory.used == pair.pair.kept == len(LARGE)
    assert plane.memory.collected == 0
    for _ in range(times):
        pair.broker.say(stop(b"resume"))
        plane.turn()
    plane.until(lambda: len(pair.broker.hear()) >= len(LARGE + passing(b"unread")))
    assert pair.broker.heard == LARGE + passing(b"unread")
    own = [frame for direction, frame in pair.session.decided if direction is TO_BROKER]
    assert own == [LARGE] * (times + 1)
    assert plane.memory.kept == 0


def test_what_came_behind_a_frame_that_came_in_parts_keeps_its_place(
    plane: Plane, pair: Opened
) -> None:
    """The end of the frame and the next frames lie in bytes that a pause has kept."""
    until = plane.clock() + 2
    frame, behind = stop(b"w" + b"l" * 900), stop(b"w2") + passing(b"3") + stop(b"w4")
    waits(pair, until + 5)
    waiting = pair.session.response
    pair.session.response = lambda _, frame: (Drop(), Pause(TO_BROKER, until))
    pair.client.say(stop(b"p") + frame[:500])
    plane.turn()
    pair.session.response = waiting
    plane.after(2)
    pair.client.say(frame[500:] + behind)
    plane.turn()
    assert pair.broker.hear() == b""
    for _ in range(3):
        pair.broker.say(stop(b"resume"))
        plane.turn()
    assert pair.broker.hear() == frame + behind
    assert plane.memory.kept == 0


def test_a_frame_that_waited_claims_its_room_again(plane: Plane, pair: Opened) -> None:
    """A frame above a buffer is collected again when it is taken up, and others may have the room
    by then."""
    waits(pair, plane.clock() + 5)
    says(pair, plane, LARGE)
    share = plane.memory.collecting
    taken = share.claim("another", share.size - UNCLAIMED, lambda: None)
    plane.after(5)
    assert pair.broker.hear() == b""
    assert plane.hooks.ends == []
    share.release(taken)
    plane.turn()
    plane.until(lambda: len(pair.broker.hear()) >= len(LARGE))
    assert pair.broker.heard == LARGE
    assert plane.memory.kept == 0


# -- ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [stop(b"wait") + passing(b"kept"), LARGE], ids=["one", "in parts"])
def test_a_pair_that_ends_while_a_frame_waits_keeps_nothing(
    plane: Plane, pair: Opened, said: bytes
) -> None:
    waits(pair, plane.clock() + 5)
    says(pair, plane, said)
    assert plane.memory.used == len(said)
    pair.broker.close()
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_CLOSED]
    assert plane.memory.kept == 0
    plane.after(10)
    assert len(pair.session.decided) == 1


@pytest.mark.parametrize("seconds", [60.0, math.inf])
def test_a_pair_that_has_ended_is_freed_before_the_time_of_its_frame(
    plane: Plane, seconds: float
) -> None:
    """Otherwise clients that come, wait and go would fill the memory."""
    assert come_and_go(plane, seconds)() is None


def come_and_go(plane: Plane, seconds: float) -> weakref.ref[object]:
    """Open a pair with a frame that waits, and end it; return its session."""
    pair = plane.open()
    waits(pair, plane.clock() + seconds)
    pair.client.say(stop(b"wait"))
    plane.turn()
    pair.broker.close()
    plane.turn()
    plane.after(2)
    plane.forget(pair)
    pair.client.close()
    return weakref.ref(pair.session)


@pytest.mark.parametrize("said", [stop(b"wait"), LARGE], ids=["one", "in parts"])
def test_a_decision_may_postpone_a_frame_and_end_the_pair(
    plane: Plane, pair: Opened, said: bytes
) -> None:
    until = plane.clock() + 5
    pair.session.response = lambda _, frame: (Postpone(until), End(EndReason.DRAINED, OURS))
    says(pair, plane, said)
    assert pair.client.hear() == OURS
    assert plane.memory.kept == 0


def test_a_violation_when_a_frame_is_offered_again_ends_the_pair(
    plane: Plane, pair: Opened
) -> None:
    waits(pair, plane.clock() + 5)
    pair.client.say(stop(b"wait") + passing(b"2"))
    plane.turn()

    def violated(direction: Direction, frame: bytes) -> Effects:
        raise PeerError("not of the protocol")

    pair.session.response = violated
    plane.after(6)
    assert plane.hooks.reasons == [EndReason.CLIENT_VIOLATION]
    assert plane.memory.kept == 0


# -- heads -----------------------------------------------------------------------------------------


def goes_on(pair: Opened, *behind: Inject) -> list[bytes]:
    """Forward each head, have its rest pass, and these frames follow. Return the heads."""
    heads: list[bytes] = []

    def response(direction: Direction, frame: bytes) -> Effects:
        if len(frame) > HEAD.size:
            return FORWARD
        heads.append(frame)
        pair.session.scanners[direction].go_on()
        return (Forward(), *behind)

    pair.session.response = response
    return heads


LONG = headed(b"l" * 80)


@both
@pytest.mark.parametrize("piece", [1, 3, 50, 1000])
def test_the_rest_of_a_frame_passes_once_its_head_is_decided(
    plane: Plane, pair: Opened, direction: Direction, piece: int
) -> None:
    speaker, hearer = pair.far(direction)
    heads = goes_on(pair)
    said = passing(b"1") + LONG + stop(b"s") + LONG + LONG + passing(b"2")
    for at in range(0, len(said), piece):
        speaker.say(said[at : at + piece])
        plane.turn()
        hearer.hear()
    assert hearer.heard == said
    assert heads == [LONG[: HEAD.size]] * 3


@both
@pytest.mark.parametrize("piece", [1, 3, 50, 1000])
@pytest.mark.parametrize("first", [b"", passing(b"1"), stop(b"s")], ids=["none", "passing", "stop"])
def test_what_follows_a_frame_waits_for_its_border(
    plane: Plane, pair: Opened, direction: Direction, piece: int, first: bytes
) -> None:
    """However the frame is cut, and whatever came before it in its chunk."""
    speaker, hearer = pair.far(direction)
    goes_on(pair, Inject(direction, OURS))
    said = first + LONG + passing(b"2") + LONG
    for at in range(0, len(said), piece):
        speaker.say(said[at : at + piece])
        plane.turn()
        hearer.hear()
    assert hearer.heard == first + LONG + OURS + passing(b"2") + LONG + OURS
    assert plane.memory.used == 0


def test_a_pause_behind_a_head_begins_at_the_border(plane: Plane, pair: Opened) -> None:
    until = plane.clock() + 5
    heads = goes_on(pair)
    forward = pair.session.response
    pair.session.response = lambda direction, frame: (
        *forward(direction, frame),
        *((Pause(direction, until),) if len(heads) == 1 else ()),
    )
    pair.client.say(stop(b"0") + LONG + passing(b"1"))
    plane.turn()
    assert pair.broker.hear() == stop(b"0") + LONG
    plane.after(6)
    assert pair.broker.hear() == stop(b"0") + LONG + passing(b"1")


@pytest.mark.parametrize("piece", [1, 50, 1000])
def test_a_head_may_wait_and_its_rest_with_it(plane: Plane, pair: Opened, piece: int) -> None:
    goes_on(pair)
    forward = pair.session.response
    pair.session.response = lambda _, frame: (Postpone(math.inf),)
    said = LONG + stop(b"s") + passing(b"2")
    for at in range(0, len(said), piece):
        pair.client.say(said[at : at + piece])
        plane.turn()
    assert pair.broker.hear() == b""
    pair.session.response = forward
    plane.clock.now += 1
    pair.pair.pumps[TO_BROKER].take_up(plane.clock())
    plane.turn()
    assert pair.broker.hear() == said


def test_a_head_may_be_replaced_or_dropped(plane: Plane, pair: Opened) -> None:
    """What the rest of a frame belongs to is the session's matter."""
    pair.session.response = lambda _, frame: (Replace(passing(b"other")),)
    pair.client.say(headed(b"") + passing(b"2"))
    plane.turn()
    pair.session.response = lambda _, frame: DROP
    pair.client.say(headed(b"") + passing(b"3"))
    plane.turn()
    assert pair.broker.hear() == passing(b"other") + passing(b"2") + passing(b"3")


@both
@pytest.mark.parametrize("piece", [1, 3, 50, 1000])
def test_the_rest_of_a_frame_may_be_dropped_with_its_head(
    plane: Plane, pair: Opened, direction: Direction, piece: int
) -> None:
    speaker, hearer = pair.far(direction)

    def response(direction: Direction, frame: bytes) -> Effects:
        if len(frame) > HEAD.size:
            return FORWARD
        pair.session.scanners[direction].go_on()
        return (Drop(owed=True), Inject(direction, OURS))

    pair.session.response = response
    said = passing(b"1") + LONG + passing(b"2") + stop(b"s") + LONG + LONG + passing(b"3")
    for at in range(0, len(said), piece):
        speaker.say(said[at : at + piece])
        plane.turn()
        hearer.hear()
    passed = passing(b"1") + OURS + passing(b"2") + stop(b"s") + OURS + OURS + passing(b"3")
    assert hearer.heard == passed
    assert plane.memory.used == 0


def test_no_farewell_is_sent_within_a_frame_whose_head_was_decided(
    plane: Plane, pair: Opened
) -> None:
    goes_on(pair)
    pair.session.words[EndReason.DRAINED] = OURS
    pair.broker.say(LONG[:50])
    plane.turn()
    pair.pair.end(EndReason.DRAINED)
    assert pair.client.hear() == LONG[:50]
