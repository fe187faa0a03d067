"""Jobs that sessions start are run, and the plane gets their results."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from gateway.errors import PeerError
from gateway.front.connection import Connection
from gateway.front.conversation import Conversation
from gateway.front.jobs import Jobs
from gateway.front.leg import Leg
from gateway.front.side import JOBS_AT_ONCE, KEEP_SECONDS, MAX_CONNECTIONS
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.plane.state import PlaneSettings
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    EndReason,
    Peer,
    Receive,
    Refusal,
    Step,
    StepResult,
    Transmit,
)
from tests.plane.protocol import FakeSession, Numbered, crash

from .fakes import NO_BROKER, FakeJob, Talker, frame_length, hello, until, welcome

Steps = Generator[Step, StepResult, bytes | Denial]
BROKER = Address("broker", 6650)


@dataclass
class FakeServer:
    """The part of a server that a connection uses."""

    brokers: list[Talker] = field(default_factory=list)
    headers: list[bytes | None] = field(default_factory=list)
    ends: list[EndReason] = field(default_factory=list)
    crashes: list[Exception] = field(default_factory=list)
    denial: Denial | None = None
    silent: int = 0

    def unanswered(self, conversation: Conversation) -> None:
        """See `Server`."""
        self.silent += conversation.silent is not None

    async def reach(
        self, target: Address | None, header: bytes | None = None
    ) -> tuple[Leg, Dialled] | Denial:
        """See `Server`."""
        self.headers.append(header)
        await trio.lowlevel.checkpoint()
        if self.denial is not None:
            return self.denial
        assert target is not None
        near, far = socket.socketpair()
        near.setblocking(False)
        self.brokers.append(Talker(far))
        return Leg(near, frame_length, 1000), Dialled(target)

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None:
        """See `Server`."""
        self.ends.append(reason)
        if connection.side is not None:
            connection.side.close()

    def crashed(self, connection: Connection, error: Exception) -> None:
        """See `Server`."""
        self.crashes.append(error)


@dataclass
class World:
    """One pair, its jobs and their brokers."""

    jobs: Jobs
    server: FakeServer
    session: FakeSession
    pair: Pair
    client: Talker

    def start(self, *conversations: Callable[[], Steps]) -> None:
        """Start jobs with the tokens 0, 1, and so on."""
        for token, converse in enumerate(conversations):
            self.jobs.start(self.pair, FakeJob(converse), Numbered(self.session, token))

    async def results(self, number: int = 1) -> dict[int, bytes | Denial]:
        """Wait for this number of results; return them by token."""
        await until(lambda: len(self.session.resumed) >= number)
        return dict(self.session.resumed)

    async def responses(self, index: int, response: bytes) -> None:
        """Have the broker of one side connection receive a request and answer it."""
        await until(lambda: len(self.server.brokers) > index)
        assert await self.server.brokers[index].hear(5) == hello()
        self.server.brokers[index].say(response)

    @property
    def open_connections(self) -> int:
        """Return the number of side connections that are not closed."""
        side = _connection(self.pair).side
        assert side is not None
        return len(side)


def _connection(pair: Pair) -> Connection:
    assert isinstance(pair.owner, Connection)
    return pair.owner


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    jobs, server, session = Jobs(), FakeServer(), FakeSession()
    reactor = Reactor(jobs, PlaneSettings(idle=1e6), trio.current_time)
    jobs.reactor = reactor
    (client, far_client), (broker, far_broker) = socket.socketpair(), socket.socketpair()
    client.setblocking(False)
    broker.setblocking(False)
    connection = Connection(1, server, "client", 0.0)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        jobs.nursery = nursery
        nursery.start_soon(reactor.run)
        pair = reactor.add(client, broker, session, connection)
        yield World(jobs, server, session, pair, Talker(far_client))
        nursery.cancel_scope.cancel()
    for sock in (far_client, far_broker, *(broker.sock for broker in server.brokers)):
        sock.close()


def ask(target: Address = BROKER) -> Steps:
    """Dial, send a request, and return the broker's response."""
    dialled = yield Dial(target)
    if not isinstance(dialled, Dialled):
        assert isinstance(dialled, Denial)
        return dialled
    yield Transmit(Peer.BROKER, hello())
    response = yield Receive(Peer.BROKER)
    assert isinstance(response, bytes | Denial)
    return response


async def test_side_connections_begin_as_that_of_the_client() -> None:
    async with a_world() as world:
        _connection(world.pair).header = b"whose it is"
        world.start(ask)
        await world.responses(0, welcome())
        await world.results()
        assert world.server.headers == [b"whose it is"]


async def test_a_result_reaches_the_session() -> None:
    async with a_world() as world:
        world.start(ask)
        await world.responses(0, welcome(b"0"))
        assert await world.results() == {0: welcome(b"0")}
        assert world.server.crashes == []


async def test_a_denial_reaches_the_session() -> None:
    async with a_world() as world:
        world.server.denial = NO_BROKER
        world.start(ask)
        assert await world.results() == {0: NO_BROKER}


async def test_a_connection_serves_one_job_after_the_other() -> None:
    async with a_world() as world:
        for token in range(3):
            world.jobs.start(world.pair, FakeJob(ask), Numbered(world.session, token))
            await world.responses(0, welcome(b"%d" % token))
            await world.results(token + 1)
        assert await world.results() == {n: welcome(b"%d" % n) for n in range(3)}
        assert len(world.server.brokers) == 1


async def test_a_connection_that_the_broker_closed_is_not_used() -> None:
    async with a_world() as world:
        world.start(ask)
        await world.responses(0, welcome())
        await world.results(1)
        world.server.brokers[0].close()
        world.jobs.start(world.pair, FakeJob(ask), Numbered(world.session, 1))
        await world.responses(1, welcome(b"again"))
        assert (await world.results(2))[1] == welcome(b"again")


FAILED = FakeJob.failed


async def test_a_broker_that_violates_its_protocol_fails_the_job_alone() -> None:
    def converse() -> Steps:
        yield Dial(BROKER)
        raise PeerError("nonsense")

    async with a_world() as world:
        world.start(converse)
        assert await world.results() == {0: FAILED}
        assert world.server.crashes == []
        assert world.open_connections == 0
        assert not world.pair.over


async def test_a_bug_in_a_job_is_reported_and_fails_the_job_alone() -> None:
    def converse() -> Steps:
        yield Dial(BROKER)
        raise RuntimeError("a bug")

    async with a_world() as world:
        world.start(converse)
        await world.results(1)
        world.jobs.start(world.pair, FakeJob(ask), Numbered(world.session, 1))
        await world.responses(1, welcome())
        results = await world.results(2)
        assert results == {0: FAILED, 1: welcome()}
        assert [type(error) for error in world.server.crashes] == [RuntimeError]
        assert world.open_connections == 1


async def test_a_job_of_a_silent_broker_fails_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with a_world() as world:
        began = trio.current_time()
        world.start(ask)
        result = (await world.results())[0]
        assert isinstance(result, Denial)
        assert result.refusal is Refusal.TIMEOUT
        assert trio.current_time() - began >= FakeJob.patience
        assert world.server.silent == 1
        assert world.open_connections == 0


async def test_only_some_jobs_run_at_once_and_the_others_wait() -> None:
    async with a_world() as world:
        number = JOBS_AT_ONCE + 3
        world.start(*[ask] * number)
        await until(lambda: len(world.server.brokers) == JOBS_AT_ONCE)
        await trio.testing.wait_all_tasks_blocked()
        assert len(world.server.brokers) == JOBS_AT_ONCE
        for index in range(JOBS_AT_ONCE):
            await world.responses(index, welcome())
        for index in range(number - JOBS_AT_ONCE):
            await until(lambda index=index: len(world.session.resumed) > index)  # type: ignore[misc]
        # The other jobs use the connections that are open already.
        async with trio.open_nursery() as nursery:
            for broker in world.server.brokers:
                nursery.start_soon(_answer_always, broker)
            assert set(await world.results(number)) == set(range(number))
            nursery.cancel_scope.cancel()
        assert len(world.server.brokers) == JOBS_AT_ONCE


async def _answer_always(broker: Talker) -> None:
    while await broker.hear(5):
        broker.say(welcome())


async def test_chases_from_broker_to_broker_keep_few_connections() -> None:
    """Twenty redirects of one lookup must not keep twenty connections until its chase ends."""
    hops = 20

    def chase(number: int) -> Steps:
        response: bytes | Denial = b""
        for hop in range(hops):
            response = yield from ask(Address(f"broker-{number}", hop))
        return response

    async with a_world() as world:
        world.start(*[lambda number=number: chase(number) for number in range(JOBS_AT_ONCE)])
        most = 0
        async with trio.open_nursery() as nursery:
            for index in range(JOBS_AT_ONCE * hops):
                await until(lambda index=index: len(world.server.brokers) > index)  # type: ignore[misc]
                nursery.start_soon(_answer_always, world.server.brokers[index])
                most = max(most, world.open_connections)
            assert set(await world.results(JOBS_AT_ONCE)) == set(range(JOBS_AT_ONCE))
            nursery.cancel_scope.cancel()
        assert most <= MAX_CONNECTIONS
        assert len(world.server.brokers) == JOBS_AT_ONCE * hops


async def test_waiting_jobs_have_the_same_deadline_as_running_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with a_world() as world:
        began = trio.current_time()
        world.start(*[ask] * (3 * JOBS_AT_ONCE))
        results = await world.results(3 * JOBS_AT_ONCE)
        assert all(isinstance(result, Denial) for result in results.values())
        assert trio.current_time() - began < 2 * FakeJob.patience


async def test_no_job_runs_for_a_pair_that_is_over() -> None:
    async with a_world() as world:
        world.start(*[ask] * (JOBS_AT_ONCE + 3))
        world.client.close()
        await until(lambda: world.server.ends)
        await trio.testing.wait_all_tasks_blocked()
        for broker in world.server.brokers:
            broker.say(welcome())
        await until(lambda: world.open_connections == 0)
        assert world.session.resumed == []
        world.start(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert len(world.server.brokers) <= JOBS_AT_ONCE


async def test_unused_connections_are_closed_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with a_world() as world:
        world.start(ask)
        await world.responses(0, welcome())
        await world.results()
        assert world.open_connections == 1
        await trio.sleep(KEEP_SECONDS / 2)
        assert world.open_connections == 1
        await trio.sleep(KEEP_SECONDS / 2 + 1)
        assert world.open_connections == 0
        assert await world.server.brokers[0].hear_all() == b""


async def test_unused_connections_are_closed_with_their_pair() -> None:
    async with a_world() as world:
        world.start(ask)
        await world.responses(0, welcome())
        await world.results()
        world.client.close()
        assert await world.server.brokers[0].hear_all() == b""


async def test_the_server_gets_ends_and_crashes() -> None:
    async with a_world() as world:
        world.session.resumption = crash
        world.start(ask)
        await world.responses(0, welcome())
        await until(lambda: world.server.ends)
        assert world.server.ends == [EndReason.INTERNAL_ERROR]
        assert [type(error) for error in world.server.crashes] == [RuntimeError]


@pytest.mark.parametrize("busy", [False, True])
async def test_cancelled_jobs_close_their_connections(busy: bool) -> None:
    async with a_world() as world:
        world.start(ask)
        await until(lambda: world.server.brokers)
        if not busy:
            await world.responses(0, welcome())
            await world.results()
    assert await world.server.brokers[0].hear(0) == b""
    assert world.open_connections == 0
