"""How a pair carries out effects on frames and on reading."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import (
    DROP,
    Denial,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Job,
    Pause,
    Refusal,
    Replace,
)

from .harness import BUFFER, OURS, FakeJob, Opened, Plane, Transmission, both, responses, resume
from .protocol import Numbered, frames, passing, stop

TO_BROKER, TO_CLIENT = Direction


# -- what becomes of a stop frame ------------------------------------------------------------


@both
def test_forward(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", (Forward(),)))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + stop(b"x") + passing(b"2")


@both
def test_replace(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", (Replace(OURS * 3),)))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + OURS * 3 + passing(b"2")


@both
def test_replace_by_nothing(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", (Replace(b""),)))
    speaker.say(stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"2")


@both
def test_drop(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", DROP))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    assert hearer.hear() == passing(b"1") + passing(b"2")


# -- inject ----------------------------------------------------------------------------------


@both
def test_injected_frames_go_in_the_other_direction(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", (Drop(), Inject(direction.opposite, OURS))))
    speaker.say(stop(b"x"))
    plane.turn()
    assert speaker.hear() == OURS
    assert hearer.hear() == b""


@both
@pytest.mark.parametrize("behind", [False, True])
def test_injected_frames_go_in_the_same_direction(
    plane: Plane, pair: Opened, direction: Direction, behind: bool
) -> None:
    speaker, hearer = pair.far(direction)
    inject = Inject(direction, OURS)
    responses(pair, (b"x", (Forward(), inject) if behind else (inject, Forward())))
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2"))
    plane.turn()
    between = stop(b"x") + OURS if behind else OURS + stop(b"x")
    assert hearer.hear() == passing(b"1") + between + passing(b"2")


@both
@pytest.mark.parametrize("cut", [6, 50, 99])
def test_injected_frames_wait_for_a_border(
    plane: Plane, pair: Opened, direction: Direction, cut: int
) -> None:
    speaker, hearer = pair.far(direction)
    asker, _ = pair.far(direction.opposite)
    responses(
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
def test_a_border_is_found_for_any_chunking_of_the_rest(
    plane: Plane, pair: Opened, step: int
) -> None:
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
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


def test_a_carried_header_does_not_delay_an_injection(plane: Plane, pair: Opened) -> None:
    """No byte of the header was sent yet, so the sink is at a border."""
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(passing(b"2")[:3])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == OURS
    pair.broker.say(passing(b"2")[3:])
    plane.turn()
    assert pair.client.hear() == OURS + passing(b"2")


def test_a_collected_frame_does_not_delay_an_injection(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(stop(b"2" * 50)[:30])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == OURS
    pair.broker.say(stop(b"2" * 50)[30:])
    plane.turn()
    assert pair.client.hear() == OURS + stop(b"2" * 50)


def test_injected_frames_go_behind_pending_bytes(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    transmission = Transmission(pair.pair.client)
    transmission.most = 3
    pair.broker.say(passing(b"1" * 20))
    plane.reactor.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert pair.client.hear() == passing(b"1" * 20) + OURS


def test_bytes_that_wait_for_a_border_are_counted(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Inject(TO_CLIENT, OURS))))
    pair.broker.say(passing(b"l" * 40)[:10])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    assert plane.memory.used == pair.pair.kept == len(OURS)
    pair.client.close()
    plane.turn()
    assert plane.memory.used == 0


# -- pause -----------------------------------------------------------------------------------


@both
def test_a_paused_direction_is_not_read(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    responses(pair, (b"x", (Forward(), Pause(direction, plane.clock() + 5))))
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
    responses(pair, (b"x", (Drop(), Pause(direction, plane.clock() + 5))))
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
    responses(
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


def test_a_pause_may_be_over_before_its_border(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Pause(TO_CLIENT, plane.clock() + 5))))
    long = passing(b"l" * 50)
    pair.broker.say(long[:20])
    plane.turn()
    pair.client.say(stop(b"x"))
    plane.turn()
    plane.after(10)
    pair.broker.say(long[20:] + passing(b"behind"))
    plane.turn()
    assert pair.client.hear() == long + passing(b"behind")


def test_a_pair_may_end_during_a_pause(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    pair.client.say(stop(b"x") + passing(b"carried"))
    plane.turn()
    pair.broker.close()
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_CLOSED]
    plane.after(5)


# -- start, resume ---------------------------------------------------------------------------


@both
def test_bytes_pass_while_a_job_runs(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    job: Job = FakeJob()
    responses(pair, (b"x", (Drop(), pair.session.start(job, 7))))
    pair.session.resumption = lambda token, result: (Inject(direction, OURS),)
    speaker.say(passing(b"1") + stop(b"x") + passing(b"2")[:3])
    plane.turn()
    assert plane.hooks.started == [(pair.pair, job, Numbered(pair.session, 7))]
    resume(pair, plane, 7, b"result")
    speaker.say(passing(b"2")[3:])
    plane.turn()
    assert pair.session.resumed == [(7, b"result")]
    assert frames(hearer.hear()) == [passing(b"1"), OURS, passing(b"2")]
    assert plane.memory.used == 0


def test_a_collection_begun_with_carried_bytes_continues(plane: Plane, pair: Opened) -> None:
    """The stop frame begins in carried bytes and ends in bytes received later."""
    responses(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    long = stop(b"l" * 100)
    pair.client.say(stop(b"x") + long[:50])
    plane.turn()
    plane.after(5)
    pair.client.say(long[50:] + passing(b"behind"))
    plane.turn()
    assert pair.broker.hear() == long + passing(b"behind")


def test_a_paused_direction_keeps_one_chunk_at_most(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), Pause(TO_BROKER, plane.clock() + 5))))
    said = passing(b"y" * 995)
    pair.client.say(stop(b"x") + said * 150)
    plane.turn()
    assert plane.memory.used <= BUFFER
    plane.after(5)
    plane.until(lambda: len(pair.broker.hear()) == 150 * len(said))
    assert frames(pair.broker.heard) == [said] * 150


def test_frames_behind_the_start_of_a_job_pass(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 7))))
    pair.session.resumption = lambda token, result: (Inject(TO_CLIENT, OURS),)
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    assert pair.broker.hear() == passing(b"behind")
    resume(pair, plane, 7)
    assert pair.client.hear() == OURS


def test_a_denial_is_a_result(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 7))))
    pair.client.say(stop(b"x"))
    plane.turn()
    denial = Denial(Refusal.TIMEOUT, "too slow")
    resume(pair, plane, 7, denial)
    assert pair.session.resumed == [(7, denial)]


def test_a_result_that_violates_the_protocol_is_the_brokers_fault(
    plane: Plane, pair: Opened
) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 7))))

    def violation(token: int, result: bytes | Denial) -> Effects:
        raise PeerError("not of the protocol")

    pair.session.resumption = violation
    pair.client.say(stop(b"x"))
    plane.turn()
    resume(pair, plane, 7)
    assert [(end.reason, end.detail) for end in plane.hooks.ends] == [
        (EndReason.BROKER_VIOLATION, "not of the protocol")
    ]
    assert plane.hooks.crashes == []


def test_a_result_for_an_ended_pair_is_dropped(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 7))))
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    pair.broker.close()
    plane.turn()
    resume(pair, plane, 7)
    assert pair.session.resumed == []


def test_a_result_may_end_the_pair(plane: Plane, pair: Opened) -> None:
    responses(pair, (b"x", (Drop(), pair.session.start(FakeJob(), 7))))
    pair.session.resumption = lambda token, result: (End(EndReason.AUTHENTICATION_FAILED, OURS),)
    pair.client.say(stop(b"x") + passing(b"behind"))
    plane.turn()
    resume(pair, plane, 7)
    assert plane.hooks.reasons == [EndReason.AUTHENTICATION_FAILED]
    assert pair.client.hear() == OURS
    assert pair.broker.hear() == passing(b"behind")
