"""Every effect carried out, and every way a pair ends."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Account,
    Block,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Hold,
    Inject,
    Job,
    Pause,
    Refusal,
    Replace,
    Start,
    Step,
    StepResult,
)

from .harness import BUFFER, KIB, Opened, Plane, Transmission, resume
from .protocol import BUG, VIOLATION, FakeSession, counted, crash, frame, frames, passing, stop

TO_BROKER, TO_CLIENT = Direction
both = pytest.mark.parametrize("direction", list(Direction))
OURS = passing(b"ours")


class FakeJob:
    """Nobody converses here."""

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `Job`."""
        raise NotImplementedError


def answers(pair: Opened, *effects: tuple[bytes, Effects]) -> None:
    """Have stop frames decided by their bodies; all others go on."""
    table = {stop(body): chosen for body, chosen in effects}
    pair.session.answer = lambda direction, frame: table.get(frame, FORWARD)


# -- what becomes of a stop frame ------------------------------------------------------------


@both
def test_forward(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", (Forward(),)))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + stop(b"x") + passing(b"2")


@both
def test_replace(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", (Replace(OURS * 3),)))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + OURS * 3 + passing(b"2")


@both
def test_replace_by_nothing(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", (Replace(b""),)))
    speaker.say(stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"2")


@both
def test_drop(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", DROP))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + passing(b"2")


# -- inject ----------------------------------------------------------------------------------


@both
def test_frames_of_our_own_go_the_other_way(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", (Drop(), Inject(direction.opposite, OURS))))
    speaker.say(stop(b"x"))
    plane.turn()
    assert speaker.hear() == OURS
    assert hearer.hear() == b""


@both
@pytest.mark.parametrize("behind", [False, True])
def test_frames_of_our_own_go_the_same_way(
    plane: Plane, pair: Opened, direction: Direction, behind: bool
) -> None:
    speaker, hearer = pair.far(direction)
    inject = Inject(direction, OURS)
    answers(pair, (b"x", (Forward(), inject) if behind else (inject, Forward())))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    between = stop(b"x") + OURS if behind else OURS + stop(b"x")
    assert hearer.hear() == passing(b"1") + between + passing(b"2")


@both
@pytest.mark.parametrize("cut", [6, 50, 99])
def test_frames_of_our_own_wait_for_a_border(
    plane: Plane, pair: Opened, direction: Direction, cut: int
) -> None:
    speaker, hearer = pair.far(direction)
    asker, _ = pair.far(direction.opposite)
    answers(
        pair,
        (b"x", (Drop(), Inject(direction, OURS))),
        (b"y", (Drop(), Inject(direction, passing(b"second")))),
    )
    long = passing(b"l" * 95)
    speaker.say(passing(b"1") + long[:cut])
    plane.turn()
    asker.say(stop(b"x") + stop(b"y"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + long[:cut]
    speaker.say(long[cut:] + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + long + OURS + passing(b"second") + passing(b"2")


@pytest.mark.parametrize("step", [1, 3])
def test_a_border_is_found_however_the_rest_comes(plane: Plane, pair: Opened, step: int) -> None:
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    long, following = passing(b"l" * 40), passing(b"2")
    pair.broker.say(long[:10])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    rest = long[10:] + following
    for at in range(0, len(rest), step):
        pair.broker.say(rest[at : at + step])
        plane.turn()
    assert pair.client.hear() == long + OURS + following


def test_a_carried_header_is_no_obstacle(plane: Plane, pair: Opened) -> None:
    """It was not sent yet, so the sink is at a border."""
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(passing(b"2")[:3])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == OURS
    pair.broker.say(passing(b"2")[3:])
    plane.turn()
    assert pair.client.hear() == OURS + passing(b"2")


def test_a_collected_frame_is_no_obstacle(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(stop(b"2" * 50)[:30])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == OURS
    pair.broker.say(stop(b"2" * 50)[30:])
    plane.turn()
    assert pair.client.hear() == OURS + stop(b"2" * 50)


def test_frames_of_our_own_go_behind_what_is_pending(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    transmission = Transmission(pair.pair.client)
    transmission.most = 3
    pair.broker.say(passing(b"1" * 20))
    plane.reactor.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == passing(b"1" * 20) + OURS


def test_what_waits_for_a_border_is_counted(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(passing(b"l" * 40)[:10])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert plane.memory.used == pair.pair.kept == len(OURS)
    pair.client.close()
    plane.turn()
    assert plane.memory.used == 0


# -- hold, grant, discard --------------------------------------------------------------------


def held(pair: Opened, *ids: int) -> list[Account]:
    """Accounts without allowance, whose frames are held."""
    accounts = [pair.session.account(id) for id in ids]
    for account in accounts:
        account.hold()

    def answer(direction: Direction, frame: bytes) -> Effects:
        account = pair.session.accounts.get(frame[5])
        if frame[4] != counted(0)[4]:
            return FORWARD
        return DROP if account is None else (Hold(account),)

    pair.session.answer = answer
    return accounts


def test_a_held_frame_lets_the_others_pass(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.session.account(2)
    pair.client.say(counted(1, b"a") + counted(2, b"b") + passing(b"c") + counted(1, b"d"))
    plane.turn()
    assert pair.broker.hear() == counted(2, b"b") + passing(b"c")
    assert plane.memory.used == pair.pair.kept == len(counted(1, b"a") + counted(1, b"d"))
    assert account.messages == 0


def test_a_grant_lets_as_many_go_as_it_says(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(b"".join(counted(1, b"%d" % n) for n in range(5)))
    plane.turn()
    pair.pair.grant(account, 2, 1000, plane.clock())
    assert pair.broker.hear() == counted(1, b"0") + counted(1, b"1")
    assert account.messages == 2
    pair.client.say(counted(1, b"5"))
    plane.turn()
    pair.pair.grant(account, 100, 1000, plane.clock())
    pair.client.say(counted(1, b"6"))
    plane.turn()
    assert frames(pair.broker.hear()) == [counted(1, b"%d" % n) for n in range(7)]
    assert account.messages == 7
    assert plane.memory.used == 0


def test_a_grant_without_held_frames_is_an_allowance(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.pair.grant(account, 1, 1000, plane.clock())
    pair.client.say(counted(1, b"0") + counted(1, b"1"))
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0")


def test_a_grant_waits_for_a_border(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    long = passing(b"l" * 50)
    pair.client.say(counted(1, b"0") + counted(1, b"1") + long[:20])
    plane.turn()
    pair.pair.grant(account, 1, 1000, plane.clock())
    assert pair.broker.hear() == long[:20]
    behind = b"".join(passing(b"%d" % n) for n in range(20)) + counted(1, b"2")
    pair.client.say(long[20:] + behind + passing(b"cut")[:3])
    plane.turn()
    pair.client.say(passing(b"cut")[3:])
    plane.turn()
    pair.pair.grant(account, 100, 1000, plane.clock())
    expected = [
        long,
        counted(1, b"0"),
        *(passing(b"%d" % n) for n in range(20)),
        passing(b"cut"),
        counted(1, b"1"),
        counted(1, b"2"),
    ]
    assert frames(pair.broker.hear()) == expected


def test_a_grant_goes_before_a_carried_header(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0") + passing(b"next")[:3])
    plane.turn()
    pair.pair.grant(account, 9, 1000, plane.clock())
    pair.client.say(passing(b"next")[3:])
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0") + passing(b"next")


def test_a_grant_goes_before_a_collected_frame(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0") + stop(b"collected" * 9)[:30])
    plane.turn()
    pair.pair.grant(account, 9, 1000, plane.clock())
    pair.client.say(stop(b"collected" * 9)[30:])
    plane.turn()
    assert pair.broker.hear() == counted(1, b"0") + stop(b"collected" * 9)


def test_a_grant_does_not_wait_for_a_pause(plane: Plane, pair: Opened) -> None:
    """Not reading keeps nothing from going that was read before, and order stays."""
    (account,) = held(pair, 1)
    inner = pair.session.answer
    pair.session.answer = lambda direction, frame: (
        (Forward(), Pause(TO_BROKER, plane.clock() + 5))
        if frame == stop(b"p")
        else inner(direction, frame)
    )
    pair.client.say(counted(1, b"0") + stop(b"p") + counted(1, b"1") + passing(b"2")[:2])
    plane.turn()
    pair.pair.grant(account, 9, 1000, plane.clock())
    assert pair.broker.hear() == stop(b"p") + counted(1, b"0")
    pair.client.say(passing(b"2")[2:])
    plane.after(5)
    assert pair.broker.hear() == stop(b"p") + counted(1, b"0") + counted(1, b"1") + passing(b"2")


def test_a_granted_frame_that_the_scanner_halts_at_is_decided(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.session.answer = lambda direction, frame: (Replace(OURS),)
    del pair.session.accounts[1]
    pair.pair.grant(account, 9, 1000, plane.clock())
    assert pair.broker.hear() == OURS


def test_a_grant_after_the_end_is_nothing(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.client.close()
    plane.turn()
    pair.pair.grant(account, 9, 1000, plane.clock())
    assert pair.broker.hear() == b""
    assert plane.memory.used == 0


def test_discarded_frames_go_nowhere(plane: Plane, pair: Opened) -> None:
    first, second = held(pair, 1, 2)
    pair.client.say(counted(1, b"0") + counted(2, b"1") + counted(1, b"2"))
    plane.turn()
    inner = pair.session.answer
    pair.session.answer = lambda direction, frame: (
        (Forward(), Discard(first)) if frame == stop(b"close") else inner(direction, frame)
    )
    pair.client.say(stop(b"close"))
    plane.turn()
    assert plane.memory.used == len(counted(2, b"1"))
    for account in (first, second):
        pair.pair.grant(account, 9, 1000, plane.clock())
    assert pair.broker.hear() == stop(b"close") + counted(2, b"1")


def test_discarding_where_nothing_was_ever_held(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Forward(), Discard(pair.session.account(1)))))
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.broker.hear() == stop(b"x")


# -- pause -----------------------------------------------------------------------------------


@both
def test_a_paused_direction_is_not_read(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    answers(pair, (b"x", (Forward(), Pause(direction, plane.clock() + 5))))
    speaker.say(stop(b"x") + passing(b"carried") + stop(b"carried") + passing(b"cut")[:3])
    plane.turn()
    speaker.say(passing(b"cut")[3:] + passing(b"unread"))
    plane.after(4.9)
    assert hearer.hear() == stop(b"x")
    plane.after(0.1)
    rest = [passing(b"carried"), stop(b"carried"), passing(b"cut"), passing(b"unread")]
    assert frames(hearer.hear()) == [stop(b"x"), *rest]
    assert plane.memory.used == 0


@both
def test_the_other_direction_is_paused_at_its_border(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    asker, _ = pair.far(direction.opposite)
    answers(pair, (b"x", (Drop(), Pause(direction, plane.clock() + 5))))
    long = passing(b"l" * 50)
    speaker.say(long[:20])
    plane.turn()
    asker.say(stop(b"x"))
    plane.turn()
    speaker.say(long[20:] + passing(b"behind"))
    plane.turn()
    assert hearer.hear() == long
    plane.after(5)
    assert hearer.hear() == long + passing(b"behind")


def test_a_pause_ends_with_the_last_of_its_reasons(plane: Plane, pair: Opened) -> None:
    answers(
        pair,
        (b"x", (Drop(), Pause(TO_CLIENT, plane.clock() + 5))),
        (b"y", (Drop(), Pause(TO_CLIENT, plane.clock() + 3))),
    )
    pair.client.say(stop(b"x") + stop(b"y"))
    plane.turn()
    pair.broker.say(passing(b"late"))
    plane.after(3)
    assert pair.client.hear() == b""
    plane.after(2)
    assert pair.client.hear() == passing(b"late")


def test_a_pause_that_is_over_before_its_border(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Pause(TO_CLIENT, plane.clock() + 5))))
    long = passing(b"l" * 50)
    pair.broker.say(long[:20])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    plane.after(10)
    pair.broker.say(long[20:] + passing(b"behind"))
    plane.turn()
    assert pair.client.hear() == long + passing(b"behind")


def test_a_pair_may_end_in_a_pause(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    pair.client.say(stop(b"x") + passing(b"carried"))
    plane.turn()
    pair.broker.close()
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_CLOSED]
    plane.after(5)


# -- block, start, resume --------------------------------------------------------------------


@both
def test_a_blocked_direction_waits_for_its_result(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    job: Job = FakeJob()
    answers(pair, (b"x", (Block(7), Start(job, 7))))
    pair.session.resumption = lambda token, result: (Replace(OURS),)
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2") + stop(b"3") + passing(b"4")[:3])
    plane.turn()
    assert plane.hooks.started == [(pair.pair, job, 7)]
    speaker.say(passing(b"4")[3:])
    plane.turn()
    assert hearer.hear() == passing(b"1")
    resume(pair, plane, 7, b"result")
    assert pair.session.resumed == [(7, b"result")]
    expected = [passing(b"1"), OURS, passing(b"2"), stop(b"3"), passing(b"4")]
    assert frames(hearer.hear()) == expected
    assert plane.memory.used == 0


@both
def test_the_other_direction_goes_on_while_one_is_blocked(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    answers(pair, (b"x", (Block(7),)))
    speaker.say(stop(b"x"))
    plane.turn()
    other, hearer = pair.far(direction.opposite)
    other.say(passing(b"other") + stop(b"way"))
    plane.turn()
    assert hearer.hear() == passing(b"other") + stop(b"way")


def test_blocks_of_one_chunk_wait_for_each_other(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"a", (Block(1),)), (b"b", (Block(2),)))
    pair.session.resumption = lambda token, result: (Replace(passing(b"%d" % token)),)
    pair.client.say(stop(b"a") + passing(b"-") + stop(b"b") + passing(b"."))
    plane.turn()
    assert len(pair.session.decided) == 1
    resume(pair, plane, 1)
    assert pair.broker.hear() == passing(b"1") + passing(b"-")
    resume(pair, plane, 2)
    assert pair.broker.hear() == passing(b"1") + passing(b"-") + passing(b"2") + passing(b".")


def test_a_result_may_block_again(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"a", (Block(1),)))
    pair.session.resumption = lambda token, result: (Block(2),) if token == 1 else (Replace(OURS),)
    pair.client.say(stop(b"a") + passing(b"behind"))
    plane.turn()
    resume(pair, plane, 1)
    assert pair.broker.hear() == b""
    resume(pair, plane, 2)
    assert pair.broker.hear() == OURS + passing(b"behind")


def test_a_collected_frame_may_block(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x" * 50, (Block(1),)))
    pair.session.resumption = lambda token, result: (Replace(OURS),)
    pair.client.say(stop(b"x" * 50)[:20])
    plane.turn()
    pair.client.say(stop(b"x" * 50)[20:] + passing(b"behind"))
    plane.turn()
    assert pair.broker.hear() == b""
    resume(pair, plane, 1)
    assert pair.broker.hear() == OURS + passing(b"behind")


def test_a_carried_collection_goes_on(plane: Plane, pair: Opened) -> None:
    """A stop frame that begins in what was carried, and goes on in what is received then."""
    answers(pair, (b"x", (Block(1),)))
    long = stop(b"l" * 100)
    pair.client.say(stop(b"x") + long[:50])
    plane.turn()
    resume(pair, plane, 1)
    pair.client.say(long[50:] + passing(b"behind"))
    plane.turn()
    assert pair.broker.hear() == long + passing(b"behind")


def test_a_blocked_direction_keeps_one_chunk_at_most(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Block(1),)))
    said = passing(b"y" * 995)
    pair.client.say(stop(b"x") + said * 150)
    plane.turn()
    assert plane.memory.used <= BUFFER
    resume(pair, plane, 1)
    plane.until(lambda: len(pair.broker.hear()) == 150 * len(said))
    assert frames(pair.broker.heard) == [said] * 150


def test_a_job_without_a_block_lets_all_pass(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Start(FakeJob(), 7))))
    pair.session.resumption = lambda token, result: (Inject(TO_CLIENT, OURS),)
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    assert pair.broker.hear() == passing(b"behind")
    resume(pair, plane, 7)
    assert pair.client.hear() == OURS


def test_a_denial_is_a_result(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Block(7),)))
    pair.client.say(stop(b"x"))
    plane.turn()
    denial = Denial(Refusal.TIMEOUT, "too slow")
    resume(pair, plane, 7, denial)
    assert pair.session.resumed == [(7, denial)]


def test_a_result_for_a_pair_that_is_over_is_dropped(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Block(7),)))
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    pair.broker.close()
    plane.turn()
    resume(pair, plane, 7)
    assert pair.session.resumed == []


def test_a_result_may_end_the_pair(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Block(7),)))
    pair.session.resumption = lambda token, result: (End(EndReason.AUTHENTICATION_FAILED, OURS),)
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    resume(pair, plane, 7)
    assert plane.hooks.reasons == [EndReason.AUTHENTICATION_FAILED]
    assert pair.client.hear() == OURS
    assert pair.broker.hear() == b""


# -- end -------------------------------------------------------------------------------------


def test_an_end_delivers_what_came_before_it(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS, "because"),)))
    pair.client.say(passing(b"before") + stop(b"x") + passing(b"behind"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.UNKNOWN_COMMAND]
    assert plane.hooks.ends[0].detail == "because"
    assert pair.broker.hear() == passing(b"before")
    assert pair.client.hear() == OURS
    assert pair.client.told_the_end
    assert pair.broker.told_the_end


def test_nothing_is_done_after_an_end(plane: Plane, pair: Opened) -> None:
    job: Job = FakeJob()
    after = (Forward(), Inject(TO_CLIENT, OURS), Block(1), Start(job, 1))
    answers(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND), *after)))
    pair.client.say(stop(b"x") + stop(b"y"))
    plane.turn()
    assert pair.broker.hear() == b""
    assert pair.client.hear() == b""
    assert plane.hooks.started == []
    assert len(pair.session.decided) == 1


def test_the_session_has_words_for_ends_of_the_plane(plane: Plane, pair: Opened) -> None:
    pair.session.words[EndReason.IDLE] = OURS
    pair.pair.end(EndReason.IDLE)
    assert pair.client.hear() == OURS


def test_no_farewell_within_a_frame(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS),)))
    pair.broker.say(passing(b"l" * 50)[:20])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == passing(b"l" * 50)[:20]
    assert pair.client.told_the_end


def test_a_farewell_goes_behind_what_is_pending(plane: Plane) -> None:
    pair = plane.open(send_buffer=8 * KIB)
    answers(pair, (b"x", (End(EndReason.UNKNOWN_COMMAND, OURS),)))
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


def test_held_frames_end_with_their_pair(plane: Plane, pair: Opened) -> None:
    held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    assert plane.memory.used
    pair.pair.end(EndReason.IDLE)
    assert plane.memory.used == 0


def test_what_waits_for_a_border_ends_with_an_action_that_ends_the_pair(
    plane: Plane, pair: Opened
) -> None:
    """The lane lingers by then: nobody else may send on it, or turn its reading off."""
    pause = Pause(TO_CLIENT, plane.clock() + 5)
    answers(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS), pause)))
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
def test_bytes_that_are_not_of_the_protocol(
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
def test_a_violation_within_a_frame_that_is_owed_has_no_farewell(
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
    def answer(direction: Direction, frame: bytes) -> Effects:
        raise PeerError("not now")

    pair.session.answer = answer
    speaker, hearer = pair.far(direction)
    speaker.say(passing(b"before") + stop() + passing(b"behind"))
    plane.turn()
    assert plane.hooks.reasons == [
        (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)[direction]
    ]
    assert hearer.hear() == passing(b"before")


@both
@pytest.mark.parametrize("way", ["resumed", "paused"])
def test_a_violation_in_what_was_carried(
    plane: Plane, pair: Opened, direction: Direction, way: str
) -> None:
    speaker, _ = pair.far(direction)
    effect = Block(1) if way == "resumed" else Pause(direction, plane.clock() + 5)
    answers(pair, (b"x", (Drop(), effect)))
    speaker.say(stop(b"x") + frame(VIOLATION))
    plane.turn()
    assert plane.hooks.ends == []
    if way == "resumed":
        resume(pair, plane, 1)
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
    pair.session.answer = crash
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


def test_a_bug_in_what_was_carried(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    pair.client.say(stop(b"x") + frame(BUG))
    plane.turn()
    plane.after(5)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert len(plane.hooks.crashes) == 1


def test_a_bug_in_a_resumption(plane: Plane, pair: Opened) -> None:
    answers(pair, (b"x", (Block(1),)))
    pair.session.resumption = crash
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    resume(pair, plane, 1)
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]


def test_a_bug_when_a_granted_frame_is_decided(plane: Plane, pair: Opened) -> None:
    (account,) = held(pair, 1)
    pair.client.say(counted(1, b"0"))
    plane.turn()
    pair.session.answer = crash
    del pair.session.accounts[1]
    pair.pair.grant(account, 9, 1000, plane.clock())
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert len(plane.hooks.crashes) == 1


class Broken(FakeSession):
    """A session that cannot even end."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.answer = crash

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        if self._where != "close":
            crash()
        return b""

    def close(self) -> None:
        """See `contract.Session`."""
        super().close()
        if self._where != "farewell":
            crash()


@pytest.mark.parametrize("where", ["farewell", "close", "both"])
def test_a_bug_at_the_end_of_a_pair_stays_there(plane: Plane, where: str) -> None:
    broken, other = plane.open(Broken(where)), plane.open()
    broken.client.say(stop())
    other.client.say(passing(b"other"))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert broken.client.told_the_end
    assert broken.broker.told_the_end
    assert other.broker.hear() == passing(b"other")
