"""The reactor: turns, bounds and its task."""

from __future__ import annotations

import gc
import os
import select
import weakref
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from gateway.plane.memory import Memory
from gateway.plane.pump import BREATH
from gateway.plane.reactor import RELIEF, Reactor
from gateway.plane.state import PlaneSettings
from gateway.wire.contract import Direction, Drop, EndReason, Pause

from .harness import BUFFER, KIB, Far, Opened, Plane, Recorder, Transmission
from .harness import unix_sockets as pair_of_sockets
from .protocol import BUG, VIOLATION, FakeSession, frame, passing, stop

# -- taking pairs over -----------------------------------------------------------------------


def test_bytes_received_during_the_opening_are_moved_first(plane: Plane) -> None:
    received = (passing(b"to") + stop(b"broker"), passing(b"to client")[:4])
    pair = plane.open(received=received)
    assert pair.broker.hear() == received[0]
    pair.broker.say(passing(b"to client")[4:])
    pair.client.say(passing(b"later"))
    plane.turn()
    assert pair.broker.hear() == received[0] + passing(b"later")
    assert pair.client.hear() == passing(b"to client")


def test_more_than_a_buffer_may_have_been_received(plane: Plane) -> None:
    received = passing(b"x" * 70_000) + stop(b"y" * 70_000) + passing(b"z" * 70_000)
    pair = plane.open(received=(received + stop(b"w" * 9)[:8], b""))
    plane.until(lambda: len(pair.broker.hear()) == len(received))
    assert pair.broker.heard == received
    pair.client.say(stop(b"w" * 9)[8:])
    plane.turn()
    assert pair.broker.hear() == received + stop(b"w" * 9)


@pytest.mark.parametrize("size", [10, 3 * BUFFER])
def test_bytes_received_during_the_opening_may_pause_the_pump(plane: Plane, size: int) -> None:
    session = FakeSession()
    session.response = lambda direction, frame: (Drop(), Pause(direction, plane.clock() + 5))
    behind = b"".join(passing(b"%d" % n) for n in range(size // 10))
    pair = plane.open(session, received=(stop(b"x") + behind, b""))
    pair.client.say(passing(b"more"))
    plane.turn()
    assert pair.broker.hear() == b""
    plane.after(5)
    plane.turn()
    assert pair.broker.hear() == behind + passing(b"more")


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("kind", [VIOLATION, BUG])
def test_bytes_received_during_the_opening_may_end_the_pair(
    plane: Plane, direction: Direction, kind: int
) -> None:
    received = (frame(kind), b"") if direction is Direction.TO_BROKER else (b"", frame(kind))
    pair = plane.open(received=received)
    violation = (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)[direction]
    expected = violation if kind == VIOLATION else EndReason.INTERNAL_ERROR
    assert plane.hooks.reasons == [expected]
    assert len(plane.hooks.crashes) == (kind == BUG)
    assert pair.client.told_the_end


def test_a_peer_may_be_gone_before_its_pair_is_added(plane: Plane) -> None:
    (client, far_client), (broker, far_broker) = pair_of_sockets(), pair_of_sockets()
    ends = Far(far_client), Far(far_broker)
    client.setblocking(False)
    broker.setblocking(False)
    far_broker.close()
    session = FakeSession()
    pair = plane.reactor.add(client, broker, session, None, (passing(b"x"), b""))
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_LOST]
    plane.adopt(Opened(pair, session, *ends))


def test_a_pair_that_cannot_be_registered_ends_alone(plane: Plane) -> None:
    """The kernel bounds the number of registrations."""

    class Full:
        """An epoll that takes no more registrations."""

        def __init__(self, epoll: select.epoll) -> None:
            self.epoll = epoll

        def register(self, fd: int, mask: int) -> None:
            raise OSError(28, "No space left on device")

    real = plane.reactor._epoll
    plane.reactor._epoll = Full(real)  # type: ignore[assignment]
    pair = plane.open()
    plane.reactor._epoll = real
    assert plane.hooks.reasons == [EndReason.INTERNAL_ERROR]
    assert len(plane.hooks.crashes) == 1
    assert pair.client.told_the_end


def test_a_descriptor_number_may_be_reused(plane: Plane) -> None:
    gc.collect()  # lower numbers, which other tests have left, become free now
    first = plane.open()
    numbers = {first.pair.client.fd, first.pair.broker.fd}
    first.pair.end(EndReason.IDLE)
    plane.after(plane.settings.linger)
    second = plane.open()
    assert numbers & {second.pair.client.fd, second.pair.broker.fd}
    plane.reactor.forget(first.pair.client)
    plane.reactor.forget(first.pair.broker)
    second.client.say(passing(b"new"))
    plane.turn()
    assert second.broker.hear() == passing(b"new")


# -- turns -----------------------------------------------------------------------------------


def test_a_turn_is_bounded_in_time(plane: Plane) -> None:
    pairs = [plane.open() for _ in range(10)]
    for pair in pairs:
        pair.client.say(passing(b"x"))
    plane.clock.step = plane.settings.turn / 6
    plane.reactor.turn()
    served = [pair for pair in pairs if pair.broker.hear()]
    assert 0 < len(served) < 10
    plane.turn()
    assert all(pair.broker.hear() == passing(b"x") for pair in pairs)


def test_a_turn_that_is_cut_is_finished_before_anything_else(plane: Plane) -> None:
    """The first lanes always have events; the last ones must not starve."""
    pairs = [plane.open() for _ in range(12)]
    plane.clock.step = plane.settings.turn / 6
    for pair in pairs:
        pair.client.say(passing(b"x"))
    turns = 0
    while not all(pair.broker.hear() for pair in pairs):
        plane.reactor.turn()
        turns += 1
        assert turns <= len(pairs), "a pair starves"
        for pair in pairs:
            if pair.broker.hear():
                pair.client.say(passing(b"x"))
    plane.clock.step = 0


def test_a_cut_turn_survives_the_end_of_pairs_in_its_rest(plane: Plane) -> None:
    pairs = [plane.open() for _ in range(10)]
    for pair in pairs:
        pair.client.say(passing(b"x"))
    plane.clock.step = plane.settings.turn / 6
    plane.reactor.turn()
    plane.clock.step = 0
    for pair in pairs:
        pair.pair.end(EndReason.DRAINED)
    plane.after(plane.settings.linger)
    late = plane.open()
    late.client.say(passing(b"late"))
    plane.turn()
    assert late.broker.hear() == passing(b"late")


@pytest.mark.parametrize(
    "event", [select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP]
)
@pytest.mark.parametrize("blocked", [False, True])
def test_an_event_of_a_former_owner_does_no_harm(
    plane: Plane, pair: Opened, event: int, blocked: bool
) -> None:
    """The rest of a cut turn may name a descriptor that is another lane's by now."""
    transmission = Transmission(pair.pair.client)
    transmission.most = 0 if blocked else None
    pair.broker.say(passing(b"x"))
    plane.reactor.turn()
    pair.pair.pumps[0].pause()
    if event == select.EPOLLIN:
        pair.pair.client.reader.readable(plane.clock())
    else:
        plane.reactor.handle_other(pair.pair.client, event, plane.clock())
    transmission.most = None
    pair.pair.pumps[0].unpause(plane.clock())
    pair.client.say(passing(b"y"))
    plane.turn()
    assert pair.client.hear() == passing(b"x")
    assert pair.broker.hear() == passing(b"y")


def test_turns_are_counted(plane: Plane) -> None:
    plane.reactor.turn()
    plane.reactor.turn()
    assert plane.reactor.turns == 2


def test_due_deadlines_run_for_as_long_as_a_turn(plane: Plane) -> None:
    """Then the lanes have their turn: deferred work may be as much as immediate work."""
    kept: list[int] = []
    for number in range(20):
        plane.reactor.deadlines.add(plane.clock.now, lambda _now, n=number: kept.append(n))  # type: ignore[misc]
    plane.clock.step = plane.settings.turn / 4
    plane.reactor.keep_deadlines()
    assert 0 < len(kept) < 8
    for _ in range(20):
        plane.reactor.keep_deadlines()
    assert kept == list(range(20))


# -- memory ----------------------------------------------------------------------------------


@pytest.fixture
def tight() -> Iterator[Plane]:
    """A plane with room for some blocked chunks."""
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=2 * BUFFER))
    yield plane
    plane.close()


def stall(plane: Plane, size: int = 60_000) -> Opened:
    """A pair whose broker does not read: most of one chunk is pending."""
    pair = plane.open(send_buffer=4 * KIB)
    pair.client.say(passing(b"x" * (size - 5)))
    plane.turn()
    return pair


def stalled(plane: Plane) -> list[Opened]:
    """Return as many stalled pairs as fill the plane's memory."""
    pairs = []
    while not plane.memory.full:
        pairs.append(stall(plane))
    return pairs


def test_reading_stops_at_the_memory_bound_and_resumes(tight: Plane) -> None:
    innocent = tight.open()
    pairs = stalled(tight)
    for _ in range(3):
        innocent.client.say(passing(b"y"))
        tight.after(BREATH)
        assert innocent.broker.hear() == b""
    for pair in pairs:
        tight.until(lambda pair=pair: len(pair.broker.hear()) == 60_000)  # type: ignore[misc]
    assert tight.memory.used == 0
    tight.after(BREATH)
    assert innocent.broker.hear() == passing(b"y") * 3
    tight.after(RELIEF)
    assert tight.hooks.ends == []


def test_the_bound_is_exceeded_by_one_chunk_at_most(tight: Plane) -> None:
    for _ in range(10):
        stall(tight)
    assert tight.memory.used <= tight.memory.bound + BUFFER


def test_many_peers_that_do_not_read_block_no_other_pair() -> None:
    """Small reads let them share the second half of the memory."""
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=8 * BUFFER))
    innocent = plane.open()
    pairs = [stall(plane) for _ in range(40)]
    assert plane.memory.bound // 2 < plane.memory.used <= plane.memory.bound
    innocent.client.say(passing(b"y"))
    plane.turn()
    assert innocent.broker.hear() == passing(b"y")
    for pair in pairs:
        plane.until(lambda pair=pair: len(pair.broker.hear()) == 60_000)  # type: ignore[misc]
    assert plane.memory.used == 0
    plane.close()


def test_those_who_keep_most_go_if_memory_stays_full(tight: Plane) -> None:
    """Peers that never read would otherwise stop all others."""
    innocent = tight.open()
    small = stall(tight, 20_000)
    large = stalled(tight)
    innocent.client.say(passing(b"y"))
    tight.after(BREATH)
    tight.after(RELIEF)
    assert tight.hooks.reasons == [EndReason.OUT_OF_MEMORY]
    assert tight.hooks.ends[0].pair in [pair.pair for pair in large]
    tight.after(BREATH)
    assert innocent.broker.hear() == passing(b"y")
    assert not small.pair.over


def test_no_pair_ends_if_memory_was_not_full_all_the_time(tight: Plane) -> None:
    innocent = tight.open()
    pairs = stalled(tight)
    innocent.client.say(passing(b"y"))
    tight.after(BREATH)
    tight.until(lambda: len(pairs[0].broker.hear()) == 60_000)
    tight.after(BREATH)
    assert innocent.broker.hear() == passing(b"y")
    stalled(tight)
    innocent.client.say(passing(b"z"))
    tight.after(RELIEF - BREATH)
    assert tight.hooks.ends == []


# -- deadlines -------------------------------------------------------------------------------


def test_an_idle_pair_ends(plane: Plane, pair: Opened) -> None:
    idle = plane.settings.idle
    plane.after(idle - 1)
    assert plane.hooks.ends == []
    plane.after(1)
    assert plane.hooks.reasons == [EndReason.IDLE]


@pytest.mark.parametrize("direction", list(Direction))
def test_a_pair_that_moves_bytes_is_not_idle(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    idle = plane.settings.idle
    for _ in range(5):
        speaker.say(passing(b"x"))
        plane.turn()
        plane.after(plane.settings.silent * 0.9)
        pair.far(direction.opposite)[0].say(passing(b"y"))
        plane.turn()
    assert plane.hooks.ends == []
    plane.after(idle)
    assert plane.hooks.reasons == [EndReason.IDLE]


def test_the_idle_check_does_not_loop_at_its_deadline() -> None:
    """Sums and differences of times round differently, which must not matter at the deadline."""
    plane = Plane(PlaneSettings(idle=0.1))
    plane.clock.step = 0
    for _ in range(200):
        plane.clock.now += 1e6 / 3
        plane.open()
        plane.clock.now += plane.settings.idle
        plane.reactor.deadlines.expire(plane.clock.now)
    assert len(plane.hooks.ends) == 200
    plane.close()


def test_a_pair_ends_when_its_credential_expires(plane: Plane) -> None:
    idle = plane.settings.idle
    session = FakeSession()
    session.words[EndReason.CREDENTIAL_EXPIRED] = passing(b"expired")
    pair = plane.open(session, expires=plane.clock() + 2.5 * idle)
    for _ in range(4):
        plane.after(0.6 * idle)
        for peer in (pair.client, pair.broker):
            peer.say(passing(b"x"))
        plane.turn()
    assert plane.hooks.ends == []
    plane.after(0.2 * idle)
    assert plane.hooks.reasons == [EndReason.CREDENTIAL_EXPIRED]
    assert plane.hooks.ends[0].detail == "the credential has expired"
    assert pair.client.hear().endswith(passing(b"expired"))


@pytest.mark.parametrize("expires", [-5.0, 0.0])
def test_a_credential_may_have_expired_already(plane: Plane, expires: float) -> None:
    plane.open(expires=plane.clock() + expires)
    plane.turn()
    assert plane.hooks.reasons == [EndReason.CREDENTIAL_EXPIRED]


def test_deadlines_do_not_keep_an_ended_pair_in_memory(plane: Plane) -> None:
    """A credential may be valid for a year, so its deadline must not keep the pair."""
    pair = plane.open(expires=plane.clock() + 1e8)
    client, broker, session = pair.client, pair.broker, weakref.ref(pair.session)
    pair.client.say(passing(b"x"))
    plane.turn()
    pair.pair.end(EndReason.DRAINED)
    plane.after(plane.settings.linger)
    assert len(plane.reactor.deadlines) <= 1
    plane.forget(pair)
    del pair
    gc.collect()
    assert session() is None
    plane.after(plane.settings.idle)
    assert len(plane.reactor.deadlines) == 0
    client.close()
    broker.close()


@pytest.mark.parametrize("by_client", [True, False])
def test_an_ended_pair_is_freed_without_garbage_collection(plane: Plane, by_client: bool) -> None:
    """A collection walks through all open pairs."""
    gc.disable()
    try:
        pair = plane.open()
        session = weakref.ref(pair.pair.session)
        pair.client.say(passing(b"x"))
        plane.turn()
        if by_client:
            pair.client.close()
            plane.turn()
        else:
            pair.pair.end(EndReason.DRAINED)
        plane.after(plane.settings.linger)
        plane.forget(pair)
        pair.client.close()
        pair.broker.close()
        del pair
        plane.hooks.ends.clear()
        assert session() is None
    finally:
        gc.enable()


# -- in trio ---------------------------------------------------------------------------------


class Running:
    """A reactor in its task, and far ends that wait for their bytes."""

    def __init__(self, settings: PlaneSettings | None = None) -> None:
        self.hooks = Recorder()
        settings = settings or PlaneSettings(buffer=BUFFER)
        self.reactor = Reactor(self.hooks, settings, trio.current_time)
        self.session = FakeSession()

    def open(self) -> tuple[trio.SocketStream, trio.SocketStream]:
        """Open a pair. Return its far ends: client, broker."""
        (client, far_client), (broker, far_broker) = pair_of_sockets(), pair_of_sockets()
        client.setblocking(False)
        broker.setblocking(False)
        self.reactor.add(client, broker, self.session)
        streams = [
            trio.SocketStream(trio.socket.from_stdlib_socket(far))
            for far in (far_client, far_broker)
        ]
        return streams[0], streams[1]


async def receive(stream: trio.SocketStream, size: int) -> bytes:
    """Receive exactly this many bytes."""
    received = b""
    while len(received) < size:
        received += await stream.receive_some(size - len(received))
    return received


async def test_the_task_moves_bytes() -> None:
    running = Running()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.reactor.run)
        client, broker = running.open()
        for n in range(20):
            said = passing(b"%d" % n)
            await client.send_all(said)
            assert await receive(broker, len(said)) == said
            await broker.send_all(said)
            assert await receive(client, len(said)) == said
        await client.aclose()
        assert await broker.receive_some(1) == b""
        await broker.aclose()
        nursery.cancel_scope.cancel()
    assert running.hooks.reasons == [EndReason.CLIENT_CLOSED]


async def test_the_rest_of_a_cut_turn_needs_no_new_event() -> None:
    running = Running(PlaneSettings(buffer=BUFFER, turn=0.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.reactor.run)
        pairs = [running.open() for _ in range(10)]
        for client, _ in pairs:
            await client.send_all(passing(b"x"))
        for _, broker in pairs:
            assert await receive(broker, 6) == passing(b"x")
        nursery.cancel_scope.cancel()
    for pair in pairs:
        for stream in pair:
            await stream.aclose()


async def test_the_task_calls_due_deadlines(autojump_clock: trio.testing.MockClock) -> None:
    running = Running()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.reactor.run)
        await trio.sleep(1)
        client, broker = running.open()
        assert await client.receive_some(1) == b""
        assert running.hooks.reasons == [EndReason.IDLE]
        assert trio.current_time() >= 1 + running.reactor.settings.idle
        nursery.cancel_scope.cancel()
    await client.aclose()
    await broker.aclose()


async def test_an_earlier_deadline_wakes_the_task(autojump_clock: trio.testing.MockClock) -> None:
    running = Running()
    called: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.reactor.run)
        running.reactor.deadlines.add(trio.current_time() + 1000, called.append)
        await trio.sleep(1)
        running.reactor.deadlines.add(trio.current_time() + 1, called.append)
        await trio.sleep(2)
        assert len(called) == 1
        nursery.cancel_scope.cancel()


async def test_closing_ends_all_pairs() -> None:
    running = Running()
    running.session.words[EndReason.DRAINED] = passing(b"bye")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.reactor.run)
        pairs = [running.open() for _ in range(3)]
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert running.hooks.reasons == [EndReason.DRAINED] * 3
    assert running.reactor._lanes == {}
    assert running.reactor.memory.used == 0
    for client, broker in pairs:
        assert await receive(client, 8) == passing(b"bye")
        assert await client.receive_some(1) == b""
        assert await broker.receive_some(1) == b""
        await client.aclose()
        await broker.aclose()


async def test_closing_wakes_the_task_that_waits_for_the_epoll() -> None:
    """The epoll's descriptor is soon another file's, and trio must not wait for that one."""
    running = Running()
    descriptor = running.reactor._epoll.fileno()

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(descriptor)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        running.reactor.close()


@pytest.mark.parametrize("made", [Memory, Reactor])
def test_what_was_not_made_closes_no_descriptor_of_others(made: type[object]) -> None:
    made.__new__(made)
    os.fstat(0)
