"""Incomplete stop frames: their room, their time, and their cost to other pairs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gateway.plane.moving import SPARING_READ
from gateway.plane.pump import BREATH
from gateway.plane.reactor import RELIEF
from gateway.plane.share import UNCLAIMED
from gateway.plane.state import PlaneSettings
from gateway.wire.contract import DROP, Direction, EndReason, Inject

from .harness import BUFFER, KIB, Opened, Plane, Reception, Sockets, Transmission, both
from .protocol import counted, passing, stop

SHARE = 4 * BUFFER
PING = passing(b"ping")
LARGE = stop(b"x" * (BUFFER - 5))
"""A frame of which four fit into the share."""


@pytest.fixture
def plane() -> Iterator[Plane]:
    bounds = PlaneSettings(buffer=BUFFER, memory=16 * BUFFER, collected=SHARE)
    plane = Plane(replace(bounds, frame=30.0, silent=1000.0, idle=1000.0))
    yield plane
    plane.close()


def begin(plane: Plane, pair: Opened, frame: bytes = LARGE, part: int = 6 * KIB) -> None:
    """Send the first bytes of a frame."""
    pair.client.say(frame[:part])
    plane.turn()


def go_on(plane: Plane, pair: Opened, frame: bytes = LARGE, part: int = 6 * KIB) -> None:
    """Send the rest of a frame."""
    pair.client.say(frame[part:])
    plane.turn()


def coming_from(address: str) -> Callable[[], Sockets]:
    """Return a maker of sockets whose far end has this address."""

    def sockets() -> Sockets:
        with socket.create_server(("127.0.0.1", 0)) as server:
            far = socket.create_connection(server.getsockname(), source_address=(address, 0))
            near, _ = server.accept()
        return near, far

    return sockets


# -- time ------------------------------------------------------------------------------------


@both
def test_a_frame_that_is_not_whole_in_time_ends_its_pair(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    speaker.say(stop(b"x" * 100)[:40])
    plane.turn()
    plane.after(plane.settings.frame - 1)
    assert plane.hooks.ends == []
    plane.after(1)
    assert plane.hooks.reasons == [EndReason.FRAME_TIMEOUT]
    who = ("client", "broker")[direction]
    assert plane.hooks.ends[0].detail == f"{who}: 40 bytes of a stop frame of 105 came in time"


def test_a_slowly_dripping_frame_gets_no_extra_time(plane: Plane, pair: Opened) -> None:
    said = stop(b"x" * 100)
    for at in range(30):
        pair.client.say(said[at : at + 1])
        plane.turn()
        plane.after(1)
    plane.after(10)
    assert plane.hooks.reasons == [EndReason.FRAME_TIMEOUT]


def test_a_frame_that_is_whole_in_time_leaves_no_deadline(plane: Plane, pair: Opened) -> None:
    before = len(plane.reactor.deadlines)
    begin(plane, pair)
    plane.after(plane.settings.frame - 1)
    go_on(plane, pair)
    assert pair.session.decided == [(Direction.TO_BROKER, LARGE)]
    plane.after(5)
    assert plane.hooks.ends == []
    assert len(plane.reactor.deadlines) == before


def test_a_second_frame_has_its_own_time(plane: Plane, pair: Opened) -> None:
    for _ in range(5):
        begin(plane, pair)
        plane.after(plane.settings.frame - 1)
        go_on(plane, pair)
        pair.broker.hear()
    assert len(pair.session.decided) == 5


def test_time_while_the_source_is_not_read_does_not_count(plane: Plane, pair: Opened) -> None:
    pump = pair.pair.pumps[Direction.TO_BROKER]
    begin(plane, pair)
    plane.after(20)
    pump.pause()
    plane.after(50)
    pump.unpause(plane.clock())
    plane.after(9)
    assert plane.hooks.ends == []
    plane.after(1)
    assert plane.hooks.reasons == [EndReason.FRAME_TIMEOUT]


def test_time_while_the_sink_is_blocked_does_not_count(plane: Plane, pair: Opened) -> None:
    transmission = Transmission(pair.pair.broker)
    transmission.most = 0
    pair.client.say(PING + LARGE[:40])
    plane.reactor.turn()
    plane.clock.now += plane.settings.stalled - 1
    plane.reactor.deadlines.expire(plane.clock.now)
    assert plane.hooks.ends == []
    transmission.most = None
    plane.turn()
    plane.after(plane.settings.frame)
    assert plane.hooks.reasons == [EndReason.FRAME_TIMEOUT]


# -- room ------------------------------------------------------------------------------------


def test_a_frame_without_room_waits_unread(plane: Plane) -> None:
    pairs = [plane.open() for _ in range(3)]
    for pair in pairs:
        begin(plane, pair)
    first, second, third = pairs
    assert not third.pair.client.reading
    assert plane.memory.collected == 3 * 6 * KIB
    third.client.say(LARGE[6 * KIB :] + PING)
    plane.turn()
    assert plane.memory.collected == 3 * 6 * KIB
    plane.after(plane.settings.frame - 1)
    go_on(plane, first)
    assert third.session.decided == [(Direction.TO_BROKER, LARGE)]
    assert third.broker.hear() == LARGE + PING
    go_on(plane, second)
    assert plane.hooks.ends == []


def test_time_spent_waiting_for_room_does_not_count(plane: Plane) -> None:
    hostile = [plane.open() for _ in range(2)]
    for pair in hostile:
        begin(plane, pair)
    honest = plane.open()
    begin(plane, honest)
    plane.after(plane.settings.frame)
    assert plane.hooks.reasons == [EndReason.FRAME_TIMEOUT] * 2
    assert not honest.pair.over
    plane.after(plane.settings.frame - 1)
    go_on(plane, honest)
    assert honest.session.decided == [(Direction.TO_BROKER, LARGE)]


def test_a_pair_that_ends_while_its_claim_waits_frees_everything(plane: Plane) -> None:
    pairs = [plane.open() for _ in range(3)]
    for pair in pairs:
        begin(plane, pair)
    assert plane.memory.unclaimed > 0
    pairs[2].pair.end(EndReason.DRAINED)
    assert (plane.memory.unclaimed, plane.memory.collecting.waiting) == (0, 0)


def test_a_pair_that_ends_right_after_its_grant_frees_everything(plane: Plane) -> None:
    pairs = [plane.open() for _ in range(3)]
    for pair in pairs:
        begin(plane, pair)
    pairs[0].pair.end(EndReason.DRAINED)
    pairs[2].pair.end(EndReason.DRAINED)
    plane.turn()
    assert plane.memory.unclaimed == 0


def test_small_frames_need_no_claim(plane: Plane) -> None:
    for _ in range(3):
        begin(plane, plane.open())
    small = stop(b"y" * (UNCLAIMED - 5))
    honest = plane.open()
    begin(plane, honest, small, 100)
    go_on(plane, honest, small, 100)
    assert honest.session.decided == [(Direction.TO_BROKER, small)]


def test_large_frames_that_arrive_whole_need_no_claim(plane: Plane) -> None:
    for _ in range(3):
        begin(plane, plane.open())
    honest = plane.open()
    honest.client.say(LARGE)
    plane.turn()
    assert honest.session.decided == [(Direction.TO_BROKER, LARGE)]


def test_one_address_leaves_room_for_others(plane: Plane) -> None:
    hostile = [plane.open(sockets=coming_from("127.0.0.1")) for _ in range(20)]
    for pair in hostile:
        pair.client.say(LARGE[:UNCLAIMED])
    plane.until(lambda: plane.memory.collected == 20 * UNCLAIMED)
    honest = plane.open(sockets=coming_from("127.0.0.2"))
    honest.client.say(LARGE[:UNCLAIMED])
    plane.until(lambda: plane.memory.collected == 21 * UNCLAIMED)
    honest.client.say(LARGE[UNCLAIMED:])
    plane.until(lambda: honest.session.decided)
    assert plane.memory.collecting.waiting == 18


def test_collected_frames_block_no_other_pair(plane: Plane) -> None:
    """The share is used up, and other pairs still have reads of the usual size."""
    innocent = plane.open()
    for number in range(2, 20):
        pair = plane.open(sockets=coming_from(f"127.0.0.{number}"))
        pair.client.say(LARGE[:UNCLAIMED])
        plane.until(lambda pair=pair: pair.pair.pumps[0]._collection)  # type: ignore[misc]
    assert plane.memory.collecting.waiting > 10
    assert plane.memory.used == 0
    reception = Reception(innocent.pair.client)
    for _ in range(20):
        innocent.client.say(PING)
        innocent.broker.heard = b""
        plane.turn()
        assert innocent.broker.hear() == PING
    assert min(reception.sizes) == BUFFER
    plane.after(RELIEF + BREATH)
    assert plane.hooks.ends == []


def test_small_reads_bound_the_bytes_that_wait_for_room(plane: Plane) -> None:
    """One receive of each frame is kept before the frame's length is known."""
    pairs = [plane.open() for _ in range(100)]
    for pair in pairs:
        pair.client.say(LARGE[: BUFFER - 1])
        plane.turn()
    most = SHARE // 4 + BUFFER + len(pairs) * SPARING_READ
    assert plane.memory.unclaimed <= most < 100 * BUFFER // 4
    innocent = plane.open()
    innocent.client.say(PING)
    plane.turn()
    assert innocent.broker.hear() == PING
    for pair in pairs:
        pair.pair.end(EndReason.DRAINED)
    assert plane.memory.ample == plane.memory.bound // 2


def test_a_frame_larger_than_the_share_is_collected_alone(plane: Plane) -> None:
    pair = plane.open()
    frame = stop(b"x" * 2 * SHARE)
    for at in range(0, len(frame), 32 * KIB):
        pair.client.say(frame[at : at + 32 * KIB])
        plane.turn()
    assert [len(decided) for _, decided in pair.session.decided] == [len(frame)]


def test_bytes_received_during_the_opening_wait_for_room_too(plane: Plane) -> None:
    holders = [plane.open() for _ in range(2)]
    for pair in holders:
        begin(plane, pair)
    behind = b"".join(counted(1, b"%d" % n) for n in range(5))
    late = plane.open(received=(LARGE[:-5], b""))
    late.session.account(1)
    late.client.say(LARGE[-5:] + behind)
    plane.turn()
    assert late.session.decided == []
    go_on(plane, holders[0])
    assert late.broker.hear() == LARGE + behind


def test_a_frame_completed_by_carried_bytes_is_decided(plane: Plane) -> None:
    """A carried chunk may hold the rest of the frame."""
    holders = [plane.open() for _ in range(2)]
    for pair in holders:
        begin(plane, pair)
    frame = stop(b"y" * 2 * BUFFER)
    late = plane.open(received=(frame + PING, b""))
    assert late.session.decided == []
    go_on(plane, holders[0])
    go_on(plane, holders[1])
    assert late.broker.hear() == frame + PING


# -- peers that do not read ------------------------------------------------------------------


def test_unread_answers_leave_room_for_others() -> None:
    """While memory is more than half full, few bytes waiting for a peer stop its being read."""
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=16 * BUFFER))
    response = passing(b"no" * 1000)

    def told(direction: Direction, frame: bytes) -> tuple[object, ...]:
        return (*DROP, Inject(Direction.TO_CLIENT, response))

    for _ in range(50):
        hostile = plane.open(send_buffer=4 * KIB)
        hostile.session.response = told  # type: ignore[assignment]
        for _ in range(100):
            try:
                hostile.client.say(stop(b"may I?") * 10)
            except BlockingIOError:
                break
            plane.turn()
    assert plane.memory.used <= plane.memory.bound
    innocent = plane.open()
    innocent.client.say(PING)
    plane.turn()
    assert innocent.broker.hear() == PING
    assert plane.hooks.ends == []
    plane.close()
