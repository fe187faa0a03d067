"""One listener: accepts, has each connection opened, and hands the pair to the plane.

The life of a connection here is one task: opening conversation, then either the plane takes both
sockets over and the task ends, or the client is told why not.
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

from gateway.front.binding import addresses, listening
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
"""Accepted in a row before others run. Each may have sent its first frame, and takes 0.3 ms
then."""

SHARED_PAUSE = 0.001
"""Seconds without accepting after each connection, where processes share a listener. Who runs would
have most of a burst otherwise, for as long as it lasts; to open a connection takes half as long."""

PARTING_AT_ONCE = 1000
"""Refused clients of one listener that may read why at a time. Each keeps a descriptor meanwhile,
so the others of a flood are just closed."""

NO_DESCRIPTOR_PAUSE = 0.1
"""Seconds without accepting when the process has no descriptor left: some come back soon."""

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
        """Who is at the other end accepted, and did not answer in time."""
        ...


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Seconds and bytes. `connections`: at most so many of one listener at a time. `shared`: other
    processes accept there too, and are to have their part.
    """

    name: str
    binds: tuple[Address, ...]
    handshake: float = 10.0
    handshake_frame: int = 64 * 1024
    connections: int = 10_000
    socket_buffer: int | None = None
    shared: bool = False


class Server:
    """See the module. `ids` numbers the connections of a process."""

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
        self._parting = 0
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    # -- listening ---------------------------------------------------------------------------

    def listen(self, sockets: Iterable[socket.socket] = ()) -> tuple[Address, ...]:
        """Listen on these, or bind; answers the addresses. Raises `ConfigurationError`."""
        self._sockets = list(sockets) or listening(self.settings.binds)
        self._addresses = addresses(self._sockets)
        return self._addresses

    async def serve(self) -> None:
        """Accept until `stop`. The connections' tasks end with their openings."""
        async with trio.open_nursery() as nursery:
            for sock, address in zip(self._sockets, self._addresses, strict=True):
                nursery.start_soon(self._accept_all, sock, address, nursery)

    def stop(self) -> None:
        """Accept no more. What is open stays open."""
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
        """Make a pair of an accepted stream, or say farewell. `reached`: where it was accepted."""
        leg = self.leg(stream, connection.client.host)
        origin = _origin(connection, stream, reached)
        try:
            refused = await self._converse(connection, origin, leg)
        finally:
            self.figures.opening -= 1
        if refused is not None:
            # Not among the connections any more: while it reads why, another one has its place.
            self._ended(connection, refused.reason, refused.detail)
            await self._part(leg, refused.farewell)

    async def _part(self, leg: Leg, farewell: bytes) -> None:
        self._parting += 1
        try:
            await leg.part(farewell if self._parting <= PARTING_AT_ONCE else b"")
        finally:
            self._parting -= 1

    async def _converse(self, connection: Connection, origin: Origin, leg: Leg) -> Refused | None:
        """Have the opening conversation; None: the plane has the pair."""
        if self.figures.opening + self.figures.open > self.settings.connections:
            return Refused(EndReason.TOO_MANY_CONNECTIONS, self.entry.refuse(_FULL))
        trace = self._tracing.of(origin)
        deadline = trio.current_time() + self.settings.handshake
        watch = None if trace is None else opening_watch(self.entry, trace)
        conversation = Conversation(deadline, self.reach, leg, watch)
        try:
            outcome = await conversation.run(self.entry.open(origin))
            if isinstance(outcome, Opened):
                session = outcome.session
                if trace is not None:
                    session = TracedSession(session, trace, self.entry)
                self._opened(connection, leg, conversation.legs[Peer.BROKER], session)
                return None
        except Exception as error:
            self.crashed(connection, error)
            outcome = Refused(EndReason.INTERNAL_ERROR)
        except BaseException:  # cancelled: the gateway stops
            self._ended(connection, EndReason.DRAINED)
            _close([leg, *conversation.reached])
            raise
        self.unanswered(conversation)
        _close(conversation.reached)
        return outcome

    def unanswered(self, conversation: Conversation) -> None:
        """After a conversation: a broker that kept silent in it is left alone for a while."""
        if conversation.silent is not None:
            self._dialler.unanswered(conversation.silent.stream)

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """Connect to a broker, any healthy one where `target` is None."""
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
        """Return the leg of a conversation on a connected stream."""
        share = self._reactor.memory.opening
        bound = self.settings.handshake_frame
        return Leg(stream, self.entry.frame_length, bound, share, host, self._readiness)

    def _opened(self, connection: Connection, client: Leg, broker: Leg, session: Session) -> None:
        received = (bytes(client.received), bytes(broker.received))
        expires = self._expiry(session)
        self.figures.open += 1
        self._reactor.add(client.stream, broker.stream, session, connection, received, expires)

    def _expiry(self, session: Session) -> float:
        """When a verified client is no longer who it was, by the plane's clock."""
        if session.expires_at is None:
            return math.inf
        return self._clock() + session.expires_at - self._wall_clock()

    # -- ends --------------------------------------------------------------------------------

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None:
        """An open pair is over."""
        self.figures.open -= 1
        if connection.side is not None:
            connection.side.close()
        self._ended(connection, reason, detail)

    def _ended(self, connection: Connection, reason: EndReason, detail: str = "") -> None:
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
        """A bug of ours; the log has its traceback."""
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
"""Ends that happen every day; the others are worth a warning."""


def _origin(connection: Connection, stream: Stream, reached: Address) -> Origin:
    if not has_records(stream):
        return Origin(connection.id, connection.client.host, reached)
    shown = stream.server_name, stream.certificate
    return Origin(connection.id, connection.client.host, reached, *shown)


def _close(legs: list[Leg]) -> None:
    for leg in legs:
        leg.close()
