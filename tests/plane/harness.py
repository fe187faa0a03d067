"""A reactor whose turns and time belong to the test, and the far ends of its pairs."""

from __future__ import annotations

import errno
import math
import select
import socket
import struct
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from gateway.plane.lane import Lane
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.plane.state import PlaneSettings
from gateway.wire.account import Account
from gateway.wire.contract import (
    DROP,
    FORWARD,
    AfterJob,
    Denial,
    Direction,
    Effects,
    EndReason,
    Hold,
    Job,
    Refusal,
    Step,
    StepResult,
)

from .protocol import FakeSession, Numbered, counted, passing, stop

KIB = 1024
BUFFER = 64 * KIB
"""Of the reactor under test: small enough to be exceeded often."""

MOST_TURNS = 5_000
"""More than any test needs: a plane that spins is found by this."""

Reached = Callable[[], object]
Sockets = tuple[socket.socket, socket.socket]


class Clock:
    """Time that passes when a test says so, and by `step` with each look: a turn has an end."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.step = 1e-6

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class End(NamedTuple):
    """How a pair ended."""

    pair: Pair
    reason: EndReason
    detail: str


@dataclass
class Recorder:
    """The hooks of the plane: remembers what it was told."""

    started: list[tuple[Pair, Job, AfterJob]] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    crashes: list[tuple[Pair, Exception]] = field(default_factory=list)

    def start(self, pair: Pair, job: Job, then: AfterJob) -> None:
        """See `Hooks`."""
        self.started.append((pair, job, then))

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        """See `Hooks`."""
        self.ends.append(End(pair, reason, detail))

    def crashed(self, pair: Pair, error: Exception) -> None:
        """See `Hooks`."""
        self.crashes.append((pair, error))

    @property
    def reasons(self) -> list[EndReason]:
        """Of all ends, in their order."""
        return [end.reason for end in self.ends]


class Transmission:
    """Stands before a socket's `send`: each call takes at most `most` bytes, or fails, or one does
    (`fails_at`, the first is 1)."""

    def __init__(self, lane: Lane) -> None:
        self._send = lane.transmit
        self.calls = 0
        self.most: int | None = None
        self.fails_at = 0
        self.error: OSError | None = None
        lane.transmit = self

    def __call__(self, data: bytes | memoryview) -> int:
        self.calls += 1
        if self.error is not None:
            raise self.error
        if self.calls == self.fails_at:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        if self.most == 0:
            raise BlockingIOError
        return self._send(data if self.most is None else memoryview(data)[: self.most])


class Reception:
    """Stands before a socket's `recv_into`: remembers the sizes asked for, or fails."""

    def __init__(self, lane: Lane) -> None:
        self._receive_into = lane.receive_into
        self.sizes: list[int] = []
        self.error: OSError | None = None
        lane.receive_into = self

    def __call__(self, buffer: bytearray | memoryview, size: int) -> int:
        self.sizes.append(size)
        if self.error is not None:
            raise self.error
        return self._receive_into(buffer, size)


class Far:
    """The other end of a lane: a peer that says and hears what a test wants."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.heard = b""
        sock.setblocking(False)

    def say(self, data: bytes) -> None:
        """All of it at once; fails where the socket does not take it."""
        assert self.sock.send(data) == len(data)

    def hear(self, most: int = 1 << 30) -> bytes:
        """All that is there right now, and that was heard before."""
        with suppress(BlockingIOError):
            while most > 0 and (data := self.sock.recv(min(most, 1 << 20))):
                self.heard += data
                most -= len(data)
        return self.heard

    @property
    def told_the_end(self) -> bool:
        """The plane has said that no more will come."""
        self.hear()
        try:
            return self.sock.recv(1) == b""
        except BlockingIOError:
            return False

    def reset(self) -> None:
        """Close at once, with a reset where the socket is TCP."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close in good order."""
        self.sock.close()


def unix_sockets() -> Sockets:
    """Two ends whose news arrive at once."""
    return socket.socketpair()


def tcp_sockets() -> Sockets:
    """Two ends with resets and windows. The far one's are small, to be full soon."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.socket()
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            far.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        far.connect(server.getsockname())
        near, _ = server.accept()
    for sock in (near, far):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return near, far


@dataclass
class Opened:
    """One pair, and what a test does with it."""

    pair: Pair
    session: FakeSession
    client: Far
    broker: Far

    def far(self, direction: Direction) -> tuple[Far, Far]:
        """Who speaks and who hears in this direction."""
        ends = self.client, self.broker
        return ends if direction is Direction.TO_BROKER else ends[::-1]


class Plane:
    """One reactor with its recorder and its clock."""

    def __init__(self, settings: PlaneSettings | None = None) -> None:
        self.clock = Clock()
        self.hooks = Recorder()
        self.settings = settings or PlaneSettings(buffer=BUFFER, memory=1 << 24)
        self.reactor = Reactor(self.hooks, self.settings, self.clock)
        self.memory = self.reactor.memory
        self._opened: list[Opened] = []

    # -- what a test does --------------------------------------------------------------------

    def open(
        self,
        session: FakeSession | None = None,
        sockets: Callable[[], Sockets] = unix_sockets,
        received: tuple[bytes, bytes] = (b"", b""),
        send_buffer: int | None = None,
        expires: float = math.inf,
    ) -> Opened:
        """A pair that the plane has taken over."""
        session = session or FakeSession()
        (client, far_client), (broker, far_broker) = sockets(), sockets()
        for sock in (client, broker):
            sock.setblocking(False)
            if send_buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        pair = self.reactor.add(client, broker, session, None, received, expires)
        return self.adopt(Opened(pair, session, Far(far_client), Far(far_broker)))

    def adopt(self, opened: Opened) -> Opened:
        """See to the end of a pair that a test opened by itself."""
        self._opened.append(opened)
        return opened

    def turn(self) -> None:
        """All that there is to do now; fails where it has no end."""
        for _ in range(MOST_TURNS):
            self.reactor.deadlines.expire(self.clock.now)
            if self.woken(0):
                self.reactor.turn()
            elif not self._is_due():
                return
        raise AssertionError("the reactor spins")

    def woken(self, patience: float) -> bool:
        """Whether the plane's task would wake up."""
        return bool(select.select([self.reactor._epoll.fileno()], [], [], patience)[0])

    def until(self, reached: Reached) -> None:
        """Turns until something is so: news of TCP may take a moment."""
        for _ in range(MOST_TURNS):
            if reached():
                return
            self.reactor.deadlines.expire(self.clock.now)
            if self.woken(0 if self._is_due() else 0.01):
                self.reactor.turn()
        raise AssertionError("it never came to that")

    def _is_due(self) -> bool:
        """Whether the plane has left something for its next turn."""
        return (self.reactor.deadlines.head or math.inf) <= self.clock.now

    def after(self, seconds: float) -> None:
        """Let time pass, and do what is due by then."""
        self.clock.now += seconds
        self.turn()

    def forget(self, opened: Opened) -> None:
        """Keep nothing of a pair that is over."""
        self._opened.remove(opened)
        self.hooks.ends.clear()

    # -- the end of each test ----------------------------------------------------------------

    def close(self) -> None:
        """End all pairs, and see that nothing of them is left."""
        for opened in self._opened:
            opened.pair.end(EndReason.DRAINED)
        self.reactor.deadlines.expire(self.clock.now + 1000.0)
        for opened in self._opened:
            opened.client.close()
            opened.broker.close()
            assert opened.session.closed == 1, "a session is closed once"
        ended = [end.pair for end in self.hooks.ends]
        assert len(set(ended)) == len(ended) == len(self._opened), "a pair ends once"
        assert not self.reactor.pairs
        assert not self.reactor._lanes, "a lane was not closed"
        assert self.memory.kept == 0, "bytes of pairs that are over are still counted"
        assert self.memory.unclaimed == 0, "bytes of pairs that are over wait for claims"
        assert (self.memory.collecting.taken, self.memory.collecting.waiting) == (0, 0)
        assert not self.woken(0), "a descriptor is still registered"
        self.reactor._epoll.close()


def resume(opened: Opened, plane: Plane, number: int, result: bytes | Denial = b"") -> None:
    """A job is done."""
    plane.reactor.resume(opened.pair, Numbered(opened.session, number), result)
    plane.turn()


both = pytest.mark.parametrize("direction", list(Direction))

OURS = passing(b"ours")
"""A frame of the gateway's own."""


class FakeJob:
    """Nobody converses here."""

    patience = 10.0
    failed = Denial(Refusal.NOT_READY, "it failed")
    late = Denial(Refusal.TIMEOUT, "it took too long")

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `Job`."""
        raise AssertionError("nobody should")


def answers(pair: Opened, *effects: tuple[bytes, Effects]) -> None:
    """Have stop frames decided by their bodies; all others go on."""
    table = {stop(body): chosen for body, chosen in effects}
    pair.session.answer = lambda direction, frame: table.get(frame, FORWARD)


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
