"""A protocol, a dialler and peers under the control of a test."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

import trio

from gateway.front.jobs import Jobs
from gateway.front.moving import Moving
from gateway.front.server import Server, ServerSettings
from gateway.front.tracing import Tracing
from gateway.listening.openings import Openings
from gateway.listening.proxied import Introduction, TrustedProxies
from gateway.listening.readiness import Readiness
from gateway.plane.reactor import Reactor
from gateway.plane.state import PlaneSettings
from gateway.plane.stream import Stream
from gateway.telemetry.figures import ListenerFigures
from gateway.telemetry.witness import Witness
from gateway.tls.sides import ServerSide
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Direction,
    EndReason,
    Opened,
    Opening,
    Origin,
    Peer,
    Receive,
    Refusal,
    Refused,
    Session,
    Step,
    StepResult,
    Transmit,
)
from tests.plane.protocol import HEAD, FakeSession, frame, passing

HELLO, WELCOME = b"hw"
"""Kinds of the frames that open a pair."""

LOOPBACK = Address("127.0.0.1", 0)
BROKER = Address("broker", 6650)
NO_BROKER = Denial(Refusal.NOT_READY, "no broker")

Opener = Callable[[Origin], Opening]


def hello(name: bytes = b"") -> bytes:
    """Return the first frame of a client."""
    return frame(HELLO, name)


def welcome(name: bytes = b"") -> bytes:
    """Return the response of a broker."""
    return frame(WELCOME, name)


def frame_length(head: bytes | bytearray) -> int:
    """See `contract.Entry`."""
    return HEAD.unpack_from(head)[0] if len(head) >= HEAD.size else 0


def greeting(session: Callable[[], Session] = FakeSession) -> Opener:
    """Return an opening that passes hello to a broker, and its welcome to the client."""

    def open(origin: Origin) -> Opening:
        said = yield Receive(Peer.CLIENT)
        if not isinstance(said, bytes):
            return refused(said)
        dialled = yield Dial()
        if not isinstance(dialled, Dialled):
            return refused(dialled)
        yield Transmit(Peer.BROKER, said)
        response = yield Receive(Peer.BROKER)
        if not isinstance(response, bytes):
            return refused(response)
        yield Transmit(Peer.CLIENT, response)
        return Opened(session())

    return open


REASONS = {
    Refusal.TIMEOUT: EndReason.HANDSHAKE_TIMEOUT,
    Refusal.TOO_MANY: EndReason.FRAME_TOO_LARGE,
    Refusal.NOT_READY: EndReason.NO_BROKER,
}


def refused(denial: StepResult) -> Refused:
    """Return the refusal of a client, with the denial's text as farewell."""
    assert isinstance(denial, Denial)
    reason = REASONS.get(denial.refusal, EndReason.CLIENT_CLOSED)
    return Refused(reason, passing(denial.text.encode()), denial.text)


@dataclass
class FakeEntry:
    """See `contract.Entry`."""

    open: Opener = field(default_factory=greeting)

    def frame_length(self, head: bytes | bytearray) -> int:
        """See `contract.Entry`."""
        return frame_length(head)

    def refuse(self, denial: Denial) -> bytes:
        """See `contract.Entry`."""
        return passing(denial.text.encode())

    def describe(self, direction: Direction, frame: bytes) -> str:
        """See `contract.Entry`."""
        return f"frame {chr(frame[4])}"


class FakeDialler:
    """A dialler whose brokers are sockets of the test.

    `denial`: result of each dial, if not None. `delay`: seconds that a dial takes. `silent`: number
    of brokers that did not answer. `headers`: with which connections were to begin.
    """

    def __init__(self) -> None:
        self.dialled: list[Address | None] = []
        self.headers: list[bytes | None] = []
        self.brokers: list[socket.socket] = []
        self.denial: Denial | None = None
        self.delay = 0.0
        self.silent = 0

    def unanswered(self, stream: Stream) -> None:
        """See `Dialler`."""
        self.silent += 1

    async def dial(
        self, target: Address | None = None, header: bytes | None = None
    ) -> tuple[socket.socket, Address] | Denial:
        """See `Dialler`."""
        self.dialled.append(target)
        self.headers.append(header)
        await trio.sleep(self.delay)
        if self.denial is not None:
            return self.denial
        near, far = socket.socketpair()
        near.setblocking(False)
        self.brokers.append(far)
        return near, target or BROKER

    def broker(self, index: int = -1) -> Talker:
        """Return the broker's end of a connection, by default of the latest one."""
        return Talker(self.brokers[index])

    def close(self) -> None:
        """Close the brokers' ends of all connections."""
        for sock in self.brokers:
            sock.close()


class Talker:
    """A peer of the gateway, which waits in trio."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)

    def say(self, data: bytes) -> None:
        """Send all bytes at once."""
        assert self.sock.send(data) == len(data)

    async def hear(self, size: int) -> bytes:
        """Return `size` bytes, or fewer if the connection ends."""
        heard = b""
        while len(heard) < size and (data := await self._receive(size - len(heard))):
            heard += data
        return heard

    async def hear_all(self) -> bytes:
        """Return all bytes up to the end; raise `OSError` at a reset."""
        return await self.hear(1 << 30)

    async def _receive(self, size: int) -> bytes:
        while True:
            try:
                return self.sock.recv(min(size, 1 << 16))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.sock)

    def reset(self) -> None:
        """Close with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close with the end of the stream."""
        self.sock.close()


@dataclass
class Serving:
    """A running server with its dialler, reactor and clients."""

    server: Server
    entry: FakeEntry
    dialler: FakeDialler
    reactor: Reactor
    figures: ListenerFigures
    openings: Openings
    address: Address
    nursery: trio.Nursery
    front: trio.CancelScope
    served: trio.Event
    clients: list[Talker] = field(default_factory=list)

    def connect(self) -> Talker:
        """Return a new client connection."""
        sock = socket.socket()
        sock.settimeout(5)
        sock.connect(self.address.pair)
        self.clients.append(Talker(sock))
        return self.clients[-1]

    async def open(self, name: bytes = b"") -> tuple[Talker, Talker]:
        """Open a pair; return its client and its broker."""
        client = self.connect()
        client.say(hello(name))
        known = len(self.dialler.brokers)
        await until(lambda: len(self.dialler.brokers) > known)
        broker = self.dialler.broker()
        assert await broker.hear(len(hello(name))) == hello(name)
        broker.say(welcome(name))
        assert await client.hear(len(welcome(name))) == welcome(name)
        return client, broker

    @property
    def ended(self) -> dict[EndReason, int]:
        """Return the number of ended connections by reason, without zeros."""
        return {reason: number for reason, number in self.figures.ended.items() if number}

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of opening and of open connections."""
        return self.figures.opening, self.figures.open


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until the condition holds; check less often the longer it takes."""
    pause = 0.001
    for _ in range(60):
        if condition():
            return
        await trio.sleep(pause)
        pause = min(1.0, pause * 1.2)
    raise AssertionError("the condition never held")


@asynccontextmanager
async def serving(
    opener: Opener | None = None,
    *,
    bind: Address = LOOPBACK,
    more: tuple[Address, ...] = (),
    connections: int = 100,
    handshake: float = 10.0,
    handshake_frame: int = 64 * 1024,
    socket_buffer: int | None = None,
    shared: bool = False,
    inherited: Iterable[socket.socket] = (),
    tracing: Tracing | None = None,
    most_opening: int = 1_000,
    tls: ServerSide | None = None,
    proxies: TrustedProxies | None = None,
    introduction: Introduction | None = None,
    wall_clock: Callable[[], float] = lambda: 0.0,
    wrap: Callable[[socket.socket], socket.socket] = lambda listener: listener,
    connects: float | None = None,
    witness: Witness | None = None,
) -> AsyncIterator[Serving]:
    """Run a server with its reactor. At the end check that nothing of it is left."""
    settings = ServerSettings(
        "clients",
        (bind, *more),
        handshake,
        handshake_frame,
        connections,
        socket_buffer,
        shared,
        connects,
    )
    entry, dialler, figures, jobs = FakeEntry(), FakeDialler(), ListenerFigures(), Jobs()
    if opener is not None:
        entry.open = opener
    reactor = Reactor(jobs, PlaneSettings(buffer=1 << 16), trio.current_time)
    readiness = Readiness()
    tracing = tracing or Tracing()
    openings = Openings(most_opening)
    server = Server(
        settings,
        entry,
        dialler,
        reactor,
        readiness,
        openings,
        Moving(reactor),
        figures,
        tracing,
        count(1),
        trio.current_time,
        wall_clock,
        tls=tls,
        witness=witness,
        proxies=proxies,
        introduction=introduction,
    )
    served = trio.Event()

    async def serve() -> None:
        await server.serve()
        served.set()

    jobs.reactor = reactor
    addresses = server.listen(inherited)
    acceptor = server._acceptor
    acceptor._sockets[:] = map(wrap, acceptor._sockets)
    async with trio.open_nursery() as plane:
        jobs.nursery = plane
        plane.start_soon(reactor.run)
        plane.start_soon(readiness.run)
        async with trio.open_nursery() as front:
            front.start_soon(serve)
            running = Serving(
                server,
                entry,
                dialler,
                reactor,
                figures,
                openings,
                addresses[0],
                plane,
                front.cancel_scope,
                served,
            )
            yield running
            server.stop()
            front.cancel_scope.cancel()
        plane.cancel_scope.cancel()
    assert running.counts == (0, 0), "connections are still counted"
    assert len(openings) == 0
    assert figures.accepted == sum(figures.ended.values()), "a connection ended without a reason"
    assert reactor.memory.kept == 0
    assert len(readiness) == 0
    assert (reactor.memory.opening.taken, reactor.memory.opening.waiting) == (0, 0)
    for client in running.clients:
        client.close()
    with suppress(OSError):
        dialler.close()


Conversation = Generator[Step, StepResult, bytes | Denial]


@dataclass
class FakeJob:
    """See `contract.Job`."""

    converse: Callable[[], Conversation]
    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = Denial(Refusal.NOT_READY, "it failed")
    late: ClassVar[Denial] = Denial(Refusal.TIMEOUT, "it took too long")
