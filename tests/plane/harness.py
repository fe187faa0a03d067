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
from typing import Any, NamedTuple

import pytest

from gateway.plane.lane import Lane, RecordLane
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
"""Buffer of the reactor under test, in bytes: small enough to be exceeded often."""

MOST_TURNS = 5_000
"""More turns than any test needs: a plane that takes more is spinning."""

Reached = Callable[[], object]
Sockets = tuple[socket.socket, socket.socket]


class Clock:
    """Time that passes when a test says so, and by `step` with each call, so that turns end."""

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
    """The hooks of the plane: records the calls."""

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
        """Return the reasons of all ends, in order."""
        return [end.reason for end in self.ends]


class Altered:
    """Stands in place of a lane's stream, to have a method of it do something else."""

    def __init__(self, lane: Lane) -> None:
        self._stream = lane.stream
        instead: Any = self
        lane.stream = instead
        lane.plain = False  # its methods are called
        if isinstance(lane, RecordLane):
            lane._records = instead

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Transmission(Altered):
    """Calls of `send` take at most `most` bytes, or fail with `error`, or one call fails
    (`fails_at`; the first is 1)."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(lane)
        self.calls = 0
        self.most: int | None = None
        self.fails_at = 0
        self.error: OSError | None = None

    def send(self, data: bytes | memoryview) -> int:
        self.calls += 1
        if self.error is not None:
            raise self.error
        if self.calls == self.fails_at:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        if self.most == 0:
            raise BlockingIOError
        return self._stream.send(data if self.most is None else memoryview(data)[: self.most])


class Reception(Altered):
    """Records the sizes that `recv_into` is asked for and returns, or fails."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(lane)
        self.sizes: list[int] = []
        self.counts: list[int] = []
        self.error: OSError | None = None

    def recv_into(self, buffer: bytearray | memoryview, size: int) -> int:
        self.sizes.append(size)
        if self.error is not None:
            raise self.error
        count = self._stream.recv_into(buffer, size)
        self.counts.append(count)
        return count


class Far:
    """The far end of a lane: a peer that sends and receives what a test wants."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.heard = b""
        sock.setblocking(False)

    def say(self, data: bytes) -> None:
        """Send all bytes at once; fails if the socket does not take them."""
        assert self.sock.send(data) == len(data)

    def hear(self, most: int = 1 << 30) -> bytes:
        """Receive what is there now. Return all bytes received so far."""
        with suppress(BlockingIOError):
            while most > 0 and (data := self.sock.recv(min(most, 1 << 20))):
                self.heard += data
                most -= len(data)
        return self.heard

    @property
    def told_the_end(self) -> bool:
        """Return whether the plane has shut down sending."""
        self.hear()
        try:
            return self.sock.recv(1) == b""
        except BlockingIOError:
            return False

    def reset(self) -> None:
        """Close at once, with a reset if the socket is TCP."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close without a reset."""
        self.sock.close()


def unix_sockets() -> Sockets:
    """Return two ends whose bytes arrive at once."""
    return socket.socketpair()


def tcp_sockets() -> Sockets:
    """Return two TCP ends, near and far; the far one has small buffers that are full soon."""
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
    """One pair with its session and its far ends."""

    pair: Pair
    session: FakeSession
    client: Far
    broker: Far

    def far(self, direction: Direction) -> tuple[Far, Far]:
        """Return the sending and the receiving far end of this direction."""
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
        """Open a pair in the plane."""
        session = session or FakeSession()
        (client, far_client), (broker, far_broker) = sockets(), sockets()
        for sock in (client, broker):
            sock.setblocking(False)
            if send_buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        pair = self.reactor.add(client, broker, session, None, received, expires)
        return self.adopt(Opened(pair, session, Far(far_client), Far(far_broker)))

    def adopt(self, opened: Opened) -> Opened:
        """Also close a pair that a test opened itself."""
        self._opened.append(opened)
        return opened

    def turn(self) -> None:
        """Take turns until nothing is left to do; fails if that does not end."""
        for _ in range(MOST_TURNS):
            self.reactor.deadlines.expire(self.clock.now)
            if self.woken(0):
                self.reactor.turn()
            elif not self._is_due():
                return
        raise AssertionError("the reactor spins")

    def woken(self, patience: float) -> bool:
        """Return whether the plane's task would wake up within `patience` seconds."""
        return bool(select.select([self.reactor._epoll.fileno()], [], [], patience)[0])

    def until(self, reached: Reached) -> None:
        """Take turns until `reached()` is true: TCP events may take a moment."""
        for _ in range(MOST_TURNS):
            if reached():
                return
            self.reactor.deadlines.expire(self.clock.now)
            if self.woken(0 if self._is_due() else 0.01):
                self.reactor.turn()
        raise AssertionError("the expected state was not reached")

    def _is_due(self) -> bool:
        """Return whether a deadline is due."""
        return (self.reactor.deadlines.head or math.inf) <= self.clock.now

    def after(self, seconds: float) -> None:
        """Let time pass, and handle what is due by then."""
        self.clock.now += seconds
        self.turn()

    def forget(self, opened: Opened) -> None:
        """Drop the records of an ended pair."""
        self._opened.remove(opened)
        self.hooks.ends.clear()

    # -- the end of each test ----------------------------------------------------------------

    def close(self) -> None:
        """End all pairs, and check that nothing of them is left."""
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
        assert self.memory.kept == 0, "bytes of ended pairs are still counted"
        assert self.memory.unclaimed == 0, "bytes of ended pairs wait for claims"
        assert (self.memory.collecting.taken, self.memory.collecting.waiting) == (0, 0)
        assert not self.woken(0), "a descriptor is still registered"
        self.reactor._epoll.close()


def resume(opened: Opened, plane: Plane, number: int, result: bytes | Denial = b"") -> None:
    """Pass the result of a finished job."""
    plane.reactor.resume(opened.pair, Numbered(opened.session, number), result)
    plane.turn()


both = pytest.mark.parametrize("direction", list(Direction))

OURS = passing(b"ours")
"""A frame of the gateway's own."""


class FakeJob:
    """A job that must not be carried out."""

    patience = 10.0
    failed = Denial(Refusal.NOT_READY, "it failed")
    late = Denial(Refusal.TIMEOUT, "it took too long")

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `Job`."""
        raise AssertionError("nobody should")


def responses(pair: Opened, *effects: tuple[bytes, Effects]) -> None:
    """Decide stop frames by their bodies; forward all others."""
    table = {stop(body): chosen for body, chosen in effects}
    pair.session.response = lambda direction, frame: table.get(frame, FORWARD)


def held(pair: Opened, *ids: int) -> list[Account]:
    """Return accounts without allowance, whose frames the session holds."""
    accounts = [pair.session.account(id) for id in ids]
    for account in accounts:
        account.hold()

    def response(direction: Direction, frame: bytes) -> Effects:
        account = pair.session.accounts.get(frame[5])
        if frame[4] != counted(0)[4]:
            return FORWARD
        return DROP if account is None else (Hold(account),)

    pair.session.response = response
    return accounts
