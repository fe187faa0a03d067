"""One listener: accept connections, run their openings, and hand the pairs to the data plane.

Each connection has one task, which runs its opening conversation. Then either the plane takes both
sockets over and the task ends, or the task sends the client a farewell.
"""

from __future__ import annotations

import errno
import math
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import structlog
import trio

from gateway.front.binding import addresses, listen
from gateway.front.connection import Connection
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.front.readiness import Readiness
from gateway.front.tracing import Tracing, opening_watch
from gateway.plane.reactor import Reactor
from gateway.plane.stream import Stream, has_records
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dialled,
    EndReason,
    Entry,
    Opened,
    Origin,
    Peer,
    Refusal,
    Refused,
    Session,
)
from gateway.wire.traced import TracedSession

ACCEPTS_AT_ONCE = 16
"""Connections accepted in a row before other tasks run. If its first frame has arrived, each takes
0.3 ms."""

SHARED_PAUSE = 0.001
"""Seconds without accepting after each connection, if processes share a listener. Without it the
process that runs would accept most of a burst. Opening a connection takes half as long."""

FAREWELLS_AT_ONCE = 1000
"""Refused clients of one listener that may read their farewell at a time. Each keeps a descriptor
until then, so in a flood all further clients are closed without a farewell."""

NO_DESCRIPTOR_PAUSE = 0.1
"""Seconds without accepting when the process has no descriptor left; others close soon."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_FULL = Denial(Refusal.TOO_MANY, "this gateway has as many connections as it may have")


class Figures(Protocol):
    """Plain counters of one listener, which telemetry reads."""

    accepted: int
    accept_failures: int
    opening: int
    open: int
    ended: dict[EndReason, int]


class Dialler(Protocol):
    """The brokers of one cluster."""

    async def dial(self, target: Address | None = None) -> tuple[Stream, Address] | Denial: ...

    def unanswered(self, stream: Stream) -> None:
        """Note that this broker accepted the connection and did not answer in time."""
        ...


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one listener. `handshake`: seconds that an opening may take. `handshake_frame`:
    largest frame of an opening, in bytes. `connections`: maximum at a time. `socket_buffer`: bytes;
    None: the kernel decides. `shared`: other processes accept on the same sockets.
    """

    name: str
    binds: tuple[Address, ...]
    handshake: float = 10.0
    handshake_frame: int = 64 * 1024
    connections: int = 10_000
    socket_buffer: int | None = None
    shared: bool = False


class Server:
    """The server of one listener. `ids`: numbers for the connections of the process."""

    def __init__(
        self,
        settings: ServerSettings,
        entry: Entry,
        dialler: Dialler,
        reactor: Reactor,
        readiness: Readiness,
        figures: Figures,
        tracing: Tracing,
        ids: count[int],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.entry = entry
        self.figures = figures
        self._dialler = dialler
        self._reactor = reactor
        self._readiness = readiness
        self._tracing = tracing
        self._ids = ids
        self._clock = clock
        self._wall_clock = wall_clock
        self._sockets: list[socket.socket] = []
        self._addresses: tuple[Address, ...] = ()
        self._farewells = 0
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    # -- listening ---------------------------------------------------------------------------

    def listen(self, sockets: Iterable[socket.socket] = ()) -> tuple[Address, ...]:
        """Take these sockets, or bind new ones; return their addresses. Raises
        `ConfigurationError`."""
        self._sockets = list(sockets) or listen(self.settings.binds)
        self._addresses = addresses(self._sockets)
        return self._addresses

    async def serve(self) -> None:
        """Accept connections until `stop`; return when all openings have ended too."""
        async with trio.open_nursery() as nursery:
            for sock, address in zip(self._sockets, self._addresses, strict=True):
                nursery.start_soon(self._accept_all, sock, address, nursery)

    def stop(self) -> None:
        """Accept no more connections. Open ones stay open."""
        for sock in self._sockets:
            trio.lowlevel.notify_closing(sock)
            sock.close()
        self._sockets.clear()
        self._addresses = ()

    async def _accept_all(
        self, listener: socket.socket, reached: Address, nursery: trio.Nursery
    ) -> None:
        while listener.fileno() >= 0:
            try:
                await trio.lowlevel.wait_readable(listener)
                self._accept_some(listener, reached, nursery)
                if self.settings.shared:
                    await trio.sleep(SHARED_PAUSE)
            except trio.ClosedResourceError:
                return
            except OSError as error:
                if listener.fileno() < 0:
                    return
                self.figures.accept_failures += 1
                self._log.warning("accept_failed", listener=self.settings.name, reason=str(error))
                await trio.sleep(NO_DESCRIPTOR_PAUSE if error.errno in _EXHAUSTED else 0)

    def _accept_some(
        self, listener: socket.socket, reached: Address, nursery: trio.Nursery
    ) -> None:
        for _ in range(1 if self.settings.shared else ACCEPTS_AT_ONCE):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            self._prepare(sock)
            connection = Connection(next(self._ids), self, Address(*peer[:2]), self._clock())
            self.figures.accepted += 1
            self.figures.opening += 1
            nursery.start_soon(self._open, connection, sock, reached)

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.settings.socket_buffer:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, self.settings.socket_buffer)

    # -- opening -----------------------------------------------------------------------------

    async def _open(self, connection: Connection, stream: Stream, reached: Address) -> None:
        """Make a pair of an accepted stream, or refuse it. `reached`: the address that accepted."""
        leg = self.leg(stream, connection.client.host)
        origin = _origin(connection, stream, reached)
        try:
            refused = await self._converse(connection, origin, leg)
        finally:
            self.figures.opening -= 1
        if refused is not None:
            # It counts as ended before its farewell is read, so another connection has its place.
            self._record_end(connection, refused.reason, refused.detail)
            await self._close_with(leg, refused.farewell)

    async def _close_with(self, leg: Leg, farewell: bytes) -> None:
        self._farewells += 1
        try:
            await leg.close_with(farewell if self._farewells <= FAREWELLS_AT_ONCE else b"")
        finally:
            self._farewells -= 1

    async def _converse(self, connection: Connection, origin: Origin, leg: Leg) -> Refused | None:
        """Run the opening conversation; None: the plane has the pair."""
        if self.figures.opening + self.figures.open > self.settings.connections:
            return Refused(EndReason.TOO_MANY_CONNECTIONS, self.entry.refuse(_FULL))
        trace = self._tracing.trace_of(origin)
        deadline = trio.current_time() + self.settings.handshake
        watch = None if trace is None else opening_watch(self.entry, trace)
        conversation = Conversation(deadline, self.reach, leg, watch)
        try:
            outcome = await conversation.run(self.entry.open(origin))
            if isinstance(outcome, Opened):
                session = outcome.session
                if trace is not None:
                    session = TracedSession(session, trace, self.entry)
                self._attach(connection, leg, conversation.legs[Peer.BROKER], session)
                return None
        except Exception as error:
            self.crashed(connection, error)
            outcome = Refused(EndReason.INTERNAL_ERROR)
        except BaseException:  # cancelled: the gateway stops
            self._record_end(connection, EndReason.DRAINED)
            _close([leg, *conversation.reached])
            raise
        self.unanswered(conversation)
        _close(conversation.reached)
        return outcome

    def unanswered(self, conversation: Conversation) -> None:
        """Report the broker that did not answer in this conversation, so that it is avoided for a
        while."""
        if conversation.silent is not None:
            self._dialler.unanswered(conversation.silent.stream)

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """Connect to a broker, to any healthy one if `target` is None."""
        self._readiness.dialling += 1
        try:
            dialled = await self._dialler.dial(target)
        finally:
            self._readiness.dialling -= 1
        if isinstance(dialled, Denial):
            return dialled
        stream, address = dialled
        return self.leg(stream, address.host), Dialled(address)

    def leg(self, stream: Stream, host: str) -> Leg:
        """Return a leg on a connected stream."""
        share = self._reactor.memory.opening
        bound = self.settings.handshake_frame
        return Leg(stream, self.entry.frame_length, bound, share, host, self._readiness)

    def _attach(self, connection: Connection, client: Leg, broker: Leg, session: Session) -> None:
        received = (bytes(client.received), bytes(broker.received))
        expires = self._expiry(session)
        self.figures.open += 1
        self._reactor.add(client.stream, broker.stream, session, connection, received, expires)

    def _expiry(self, session: Session) -> float:
        """Return the time at which the client's credential expires, by the plane's clock."""
        if session.expires_at is None:
            return math.inf
        return self._clock() + session.expires_at - self._wall_clock()

    # -- ends --------------------------------------------------------------------------------

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None:
        """Record the end of an open pair."""
        self.figures.open -= 1
        if connection.side is not None:
            connection.side.close()
        self._record_end(connection, reason, detail)

    def _record_end(self, connection: Connection, reason: EndReason, detail: str = "") -> None:
        self.figures.ended[reason] += 1
        log = self._log.info if reason in _ORDINARY else self._log.warning
        log(
            "connection_ended",
            listener=self.settings.name,
            connection=connection.id,
            client=str(connection.client),
            reason=reason.value,
            seconds=round(self._clock() - connection.began, 3),
            **({"detail": detail} if detail else {}),
        )

    def crashed(self, connection: Connection, error: Exception) -> None:
        """Log a bug of the gateway with its traceback."""
        self._log.error(
            "internal_error",
            listener=self.settings.name,
            connection=connection.id,
            exc_info=error,
        )


_ORDINARY = frozenset(
    {
        EndReason.CLIENT_CLOSED,
        EndReason.BROKER_CLOSED,
        EndReason.CLIENT_LOST,
        EndReason.DRAINED,
        EndReason.IDLE,
    }
)
"""End reasons that are logged as information; all others are logged as warnings."""


def _origin(connection: Connection, stream: Stream, reached: Address) -> Origin:
    if not has_records(stream):
        return Origin(connection.id, connection.client.host, reached)
    shown = stream.server_name, stream.certificate
    return Origin(connection.id, connection.client.host, reached, *shown)


def _close(legs: list[Leg]) -> None:
    for leg in legs:
        leg.close()
