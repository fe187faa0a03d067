"""One listener: accepts connections, runs their openings, and hands the pairs to the data plane.

Each connection has one task, which runs its opening conversation. Then either the plane takes both
sockets over and the task ends, or the task sends the client a farewell.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

import structlog
import trio

from gateway.front.connection import Connection
from gateway.front.connection_span import ConnectionSpan, dial_span
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg, Patience, endless
from gateway.front.moving import Moving
from gateway.front.tracing import Tracing, opening_watch
from gateway.listening.acceptor import Acceptor
from gateway.listening.openings import Openings
from gateway.listening.pace import Pace
from gateway.listening.proxied import Introduction, TrustedProxies, header_of
from gateway.listening.readiness import Readiness
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.plane.stream import Stream, has_records
from gateway.telemetry.witness import Ended
from gateway.tls.handshake import reason_of, shake
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
    Trace,
)
from gateway.wire.proxy_header import HeaderError
from gateway.wire.stopwatch import Durations
from gateway.wire.traced import TracedSession

if TYPE_CHECKING:  # certificates are loaded only for listeners with TLS
    from gateway.telemetry.figures import BrokerTraffic
    from gateway.telemetry.spans import Spans
    from gateway.telemetry.witness import Witness
    from gateway.tls.sides import ServerSide

FAREWELLS_AT_ONCE = 1000
"""Refused clients of one listener that may read their farewell at a time. Each keeps a descriptor
until then, so in a flood all further clients are closed without a farewell."""

_FULL = Denial(Refusal.TOO_MANY, "this gateway has as many connections as it may have")


class Figures(Protocol):
    """Plain counters of one listener, which telemetry reads."""

    accepted: int
    accept_failures: int
    opening: int
    open: int
    ended: dict[EndReason, int]

    def shaken(self, version: str, *, resumed: bool) -> None: ...

    def opened(self, library: str) -> str: ...

    def closed(self, library: str) -> None: ...

    def traffic(self, broker: str) -> BrokerTraffic: ...


class Dialler(Protocol):
    """Connects to the brokers of one cluster. `header`: the PROXY header that is sent first; None:
    the header of a connection that serves no client."""

    async def dial(
        self, target: Address | None = None, header: bytes | None = None
    ) -> tuple[Stream, Address] | Denial: ...

    def unanswered(self, stream: Stream) -> None:
        """Record that the broker at the other end of `stream` accepted the connection but did not
        respond in time."""
        ...


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one listener. `handshake`: seconds that an opening may take. `handshake_frame`:
    largest frame of an opening, in bytes. `connections`: maximum at a time. `socket_buffer`: bytes;
    None: the kernel decides. `shared`: other processes accept on the same sockets. `connects`: new
    connections per second of one address; None: unlimited. `age`: seconds, more or less, after
    which clients are moved; None: never."""

    name: str
    binds: tuple[Address, ...]
    handshake: float = 10.0
    handshake_frame: int = 64 * 1024
    connections: int = 10_000
    socket_buffer: int | None = None
    shared: bool = False
    connects: float | None = None
    age: float | None = None


class Server:
    """The server of one listener. `ids`: yields the ids of connections in this process. `tls`:
    makes the TLS streams of clients; None: plain sockets. `proxies`: the trusted proxies, which
    state clients' addresses. `introduction`: makes the PROXY headers for brokers; None: brokers get
    none. `connects`, `dials`: histograms of how long openings and dials take; None: nobody reads
    them. `witness`: gets each connection that opens or ends. `spans`: gets a span of each opening,
    and of each dial for a redirected lookup."""

    def __init__(
        self,
        settings: ServerSettings,
        entry: Entry,
        dialler: Dialler,
        reactor: Reactor,
        readiness: Readiness,
        openings: Openings,
        moving: Moving,
        figures: Figures,
        tracing: Tracing,
        ids: count[int],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        *,
        tls: ServerSide | None = None,
        witness: Witness | None = None,
        proxies: TrustedProxies | None = None,
        introduction: Introduction | None = None,
        connects: Durations | None = None,
        dials: Durations | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.settings = settings
        self.entry = entry
        self.figures = figures
        self._dialler = dialler
        self._reactor = reactor
        self._readiness = readiness
        self._openings = openings
        self._moving = moving
        self._tracing = tracing
        self._ids = ids
        self._tls = tls
        self._witness = witness
        self._proxies = TrustedProxies() if proxies is None else proxies
        self._introduction = introduction
        self._connects = connects
        self._dials = dials
        self._spans = spans
        self._clock = clock
        self._wall_clock = wall_clock
        self._pace = Pace(settings.connects)
        self._acceptor = Acceptor(
            settings.name,
            openings,
            self._arrived,
            figures,
            shared=settings.shared,
            socket_buffer=settings.socket_buffer,
        )
        self._farewells = 0
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    # -- listening ---------------------------------------------------------------------------

    def listen(self, sockets: Iterable[socket.socket] = ()) -> tuple[Address, ...]:
        """Listen on these sockets; if there are none, bind new sockets at the configured addresses.
        Return the addresses of the sockets. Raises `ConfigurationError` if an address cannot be
        bound."""
        return self._acceptor.listen(self.settings.binds, sockets)

    async def serve(self) -> None:
        """Accept connections until `stop` is called. Return when all openings have ended too."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self._acceptor.serve()

    def stop(self) -> None:
        """Accept no more connections. Connections that are open are not closed."""
        self._acceptor.stop()

    def _arrived(self, sock: socket.socket, client: Address, reached: Address) -> None:
        connection = Connection(next(self._ids), self, client, self._clock())
        if self._spans is not None:
            connection.span = ConnectionSpan(self._clock)
        self.figures.opening += 1
        self._openings.begin(connection.id, client.host)
        self._nursery.start_soon(self._open, connection, sock, reached)

    # -- opening -----------------------------------------------------------------------------

    async def _open(self, connection: Connection, sock: socket.socket, reached: Address) -> None:
        """Make a pair of an accepted socket, or refuse it. `reached`: the address that accepted."""
        deadline = trio.current_time() + self.settings.handshake
        leg: Leg | None = None
        try:
            secured: Stream | Refused | None = await self._announced(connection, sock, deadline)
            if secured is None:
                self._note_destination(connection, sock)
                secured = await self._admitted(connection, sock, deadline)
            if isinstance(secured, Refused):
                outcome: Refused | Pair = secured
            else:
                patience = partial(self._openings.waiting, connection.id)
                leg = self.leg(secured, connection.client.host, patience)
                origin = _origin(connection, secured, reached)
                outcome = await self._converse(connection, origin, leg, deadline)
        finally:
            self.figures.opening -= 1
            self._openings.end(connection.id)
        if not isinstance(outcome, Refused):
            self._keep_unknown(connection, outcome)
            return
        connection.caller = outcome.caller
        # It counts as ended before its farewell is read, so another connection has its place.
        self._record_end(connection, outcome.reason, outcome.detail)
        if leg is not None:
            await self._close_with(leg, outcome.farewell)

    def _keep_unknown(self, connection: Connection, pair: Pair) -> None:
        """Count an open pair as unauthenticated until its client is known."""
        session = pair.session
        if not session.is_known and not pair.over:
            end = partial(pair.end, EndReason.HANDSHAKE_TIMEOUT, detail=_UNKNOWN)
            host = connection.client.host
            self._openings.keep(connection.id, host, lambda: session.is_known, end)

    async def _admitted(
        self, connection: Connection, sock: socket.socket, deadline: float
    ) -> Stream | Refused:
        """Return the stream over an accepted socket, unless its address connects too often."""
        if self._pace.may_connect(connection.client.host, trio.current_time()):
            return await self._secured(connection, sock, deadline)
        sock.close()
        return Refused(EndReason.TOO_MANY_CONNECTS, detail="of one address in a second")

    async def _announced(
        self, connection: Connection, sock: socket.socket, deadline: float
    ) -> Refused | None:
        """Take the header of a trusted proxy, and the client's address from it; None: go on. A peer
        that sends none may be any, so it is sent nothing."""
        if not self._proxies.include(connection.client.host):
            return None
        refused = Refused(EndReason.CLIENT_CLOSED)
        try:
            with trio.CancelScope(deadline=deadline) as scope:
                waiting = partial(self._openings.waiting, connection.id, scope)
                header = await header_of(sock, self._readiness.readable, waiting)
                if header is not None:
                    connection.client = header.source or connection.client
                    self._openings.attribute(connection.id, connection.client.host)
                    connection.destination = header.destination
                    return None
            if scope.cancelled_caught:
                refused = Refused(EndReason.CLIENT_VIOLATION, detail=_NO_HEADER)
        except HeaderError as error:
            refused = Refused(EndReason.CLIENT_VIOLATION, detail=str(error))
        except OSError:
            pass  # the peer is gone
        except BaseException:
            self._record_end(connection, EndReason.DRAINED)
            sock.close()
            raise
        sock.close()
        return refused

    def _note_destination(self, connection: Connection, sock: socket.socket) -> None:
        """Note the address that the client connected to, if brokers get PROXY headers and no proxy
        has stated it. The listener itself may have all addresses."""
        if self._introduction is not None and connection.destination is None:
            connection.destination = Address(*sock.getsockname()[:2])

    async def _secured(
        self, connection: Connection, sock: socket.socket, deadline: float
    ) -> Stream | Refused:
        """Return the stream over an accepted socket, after its TLS handshake if the listener has
        TLS. A client that is refused before its handshake is sent nothing it could read."""
        if self._tls is None:
            return sock
        stream = self._tls.stream(sock)
        began, span = self._clock(), connection.span
        refused = Refused(EndReason.TOO_MANY_CONNECTIONS)
        try:
            if not self._is_full:
                with trio.CancelScope(deadline=deadline) as scope:
                    waiting = partial(self._openings.waiting, connection.id, scope)
                    await shake(stream, self._readiness.readable, waiting)
                    connection.tls = stream.version
                    self.figures.shaken(stream.version or "", resumed=stream.resumed)
                    if span is not None:
                        span.shaken(began)
                    return stream
                if scope.cancelled_caught:
                    refused = Refused(EndReason.HANDSHAKE_TIMEOUT)
        except OSError as error:
            refused = Refused(EndReason.TLS_FAILED, detail=reason_of(error))
        except BaseException:
            self._record_end(connection, EndReason.DRAINED)
            stream.close()
            raise
        if span is not None:
            span.shaken(began, refused.reason.value)
        stream.close()
        return refused

    @property
    def _is_full(self) -> bool:
        return self.figures.opening + self.figures.open > self.settings.connections

    async def _close_with(self, leg: Leg, farewell: bytes) -> None:
        self._farewells += 1
        try:
            await leg.close_with(farewell if self._farewells <= FAREWELLS_AT_ONCE else b"")
        finally:
            self._farewells -= 1

    async def _converse(
        self, connection: Connection, origin: Origin, leg: Leg, deadline: float
    ) -> Refused | Pair:
        """Run the opening conversation; return the pair, which the plane has, or why there is
        none."""
        if self._tls is None and self._is_full:  # with TLS it has its place from its handshake on
            return Refused(EndReason.TOO_MANY_CONNECTIONS, self.entry.refuse(_FULL))
        trace = self._tracing.trace_of(origin)
        watch = None if trace is None else opening_watch(self.entry, trace)
        if connection.span is not None:
            watch = connection.span.watching(watch)

        async def reach(target: Address | None) -> tuple[Leg, Dialled] | Denial:
            self._openings.end(connection.id)  # brokers are dialled for authenticated clients
            self._introduce(connection, leg.stream, conversation.principal)
            return await self._reach_first(connection, target)

        conversation = Conversation(deadline, reach, leg, watch)
        try:
            outcome = await conversation.run(self.entry.open(origin))
            if isinstance(outcome, Opened):
                session = self._traced(outcome.session, connection, trace)
                return self._attach(connection, leg, conversation.legs[Peer.BROKER], session)
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

    def _traced(self, session: Session, connection: Connection, trace: Trace | None) -> Session:
        """Return the session, wrapped to trace its frames if this connection is traced."""
        if trace is None:
            trace = self._tracing.trace_of_principal(session.caller.principal, connection.id)
        return session if trace is None else TracedSession(session, trace, self.entry)

    def _introduce(self, connection: Connection, stream: Stream, principal: str | None) -> None:
        """Set the header with which connections to brokers for this client begin."""
        if self._introduction is not None and connection.destination is not None:
            connection.header = self._introduction.header(
                connection.client, connection.destination, stream, principal
            )

    async def _reach_first(
        self, connection: Connection, target: Address | None
    ) -> tuple[Leg, Dialled] | Denial:
        """Connect an opening to a broker."""
        span, began = connection.span, self._clock()
        if span is not None:
            span.known()
        reached = await self._reach(target, connection.header)
        if not isinstance(reached, Denial):
            connection.broker = reached[1].address
        if span is not None:
            span.dialled(began, target, reached if isinstance(reached, Denial) else reached[1])
        return reached

    def unanswered(self, conversation: Conversation) -> None:
        """Report the broker that did not respond in time in this conversation, if there is one, so
        that new connections avoid it for a while."""
        if conversation.silent is not None:
            self._dialler.unanswered(conversation.silent.stream)

    async def reach(
        self, target: Address | None, header: bytes | None = None
    ) -> tuple[Leg, Dialled] | Denial:
        """Connect to the broker `target`; None: to any healthy broker. Return a `Leg`, which reads
        and writes the connection, and the broker's address; or a denial. `header`: the PROXY header
        that is sent first; None: the header of a connection that serves no client."""
        began = self._clock()
        reached = await self._reach(target, header)
        if self._spans is not None:
            result = reached if isinstance(reached, Denial) else reached[1]
            self._spans(dial_span(began, self._clock(), target, result))
        return reached

    async def _reach(
        self, target: Address | None, header: bytes | None
    ) -> tuple[Leg, Dialled] | Denial:
        self._readiness.dialling += 1
        began = self._clock()
        try:
            dialled = await self._dialler.dial(target, header)
        finally:
            self._readiness.dialling -= 1
        if isinstance(dialled, Denial):
            return dialled
        if self._dials is not None:
            self._dials.add(self._clock() - began)
        stream, address = dialled
        return self.leg(stream, address.host), Dialled(address)

    def leg(self, stream: Stream, host: str, patience: Patience = endless) -> Leg:
        """Return a `Leg`, which receives frames from a connected stream and sends bytes on it, for
        a conversation. `host`: the peer's address. `patience`: called for each wait for the peer;
        it may cancel the wait before the conversation's deadline."""
        share = self._reactor.memory.opening
        bound = self.settings.handshake_frame
        ready = self._readiness
        return Leg(stream, self.entry.frame_length, bound, share, host, ready, patience)

    def _attach(self, connection: Connection, client: Leg, broker: Leg, session: Session) -> Pair:
        connection.caller = session.caller
        received = (bytes(client.received), bytes(broker.received))
        expires = self._expiry(session)
        self.figures.open += 1
        connection.library = self.figures.opened(session.caller.library or "")
        if self._connects is not None:
            self._connects.add(self._clock() - connection.began)
        self._tell_span(connection, "")
        if self._witness is not None:
            self._witness.opened(connection.id, session.caller)
        connection.traffic = traffic = self.figures.traffic(str(connection.broker))
        traffic.open += 1
        moved = traffic.to_broker, traffic.to_client
        streams = client.stream, broker.stream
        pair = self._reactor.add(*streams, session, connection, received, expires, moved)
        if session.moves_at is not None:
            self._moving.add(pair, session.moves_at - self._wall_clock())
        if self.settings.age is not None:
            self._moving.age(pair, self.settings.age)
        return pair

    def _tell_span(self, connection: Connection, error: str, detail: str = "") -> None:
        """Pass the span of an opening on, when it is over."""
        span, connection.span = connection.span, None
        if span is not None and self._spans is not None:
            attributes = connection.attributes | {"gateway.listener": self.settings.name}
            if detail:
                attributes["gateway.detail"] = detail
            self._spans(span.span(connection.began, error, attributes))

    def _expiry(self, session: Session) -> float:
        """Return the time at which the client's credential expires, by the plane's clock."""
        if session.expires_at is None:
            return math.inf
        return self._clock() + session.expires_at - self._wall_clock()

    # -- ends --------------------------------------------------------------------------------

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None:
        """Record that an open pair has ended, and why."""
        self._openings.end(connection.id)
        self.figures.open -= 1
        self.figures.closed(connection.library)
        if connection.traffic is not None:
            connection.traffic.open -= 1
        if connection.side is not None:
            connection.side.close()
        self._record_end(connection, reason, detail)

    def _record_end(self, connection: Connection, reason: EndReason, detail: str = "") -> None:
        self.figures.ended[reason] += 1
        seconds = self._clock() - connection.began
        self._tell_span(connection, reason.value, detail)
        if self._witness is not None:
            known = self.settings.name, connection.id, str(connection.client), connection.caller
            self._witness.ended(Ended(*known, reason, seconds, detail))
        principal = connection.caller and connection.caller.principal
        log = self._log.info if reason in _ORDINARY else self._log.warning
        log(
            "connection_ended",
            listener=self.settings.name,
            connection=connection.id,
            client=str(connection.client),
            reason=reason.value,
            seconds=round(seconds, 3),
            **({"principal": principal} if principal else {}),
            **({"detail": detail} if detail else {}),
        )

    def crashed(self, connection: Connection, error: Exception) -> None:
        """Log the exception, with its traceback, by which a bug of the gateway ended a
        connection."""
        self._log.error(
            "internal_error",
            listener=self.settings.name,
            connection=connection.id,
            exc_info=error,
        )


_UNKNOWN = "gave way to another before it was authenticated"

_NO_HEADER = "no whole PROXY header came in time"

_ORDINARY = frozenset(
    {
        EndReason.CLIENT_CLOSED,
        EndReason.BROKER_CLOSED,
        EndReason.CLIENT_LOST,
        EndReason.DRAINED,
        EndReason.IDLE,
        EndReason.OPERATOR_CLOSED,
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
