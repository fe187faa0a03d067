"""Connects to brokers, and watches their health. This is the only module of the package with I/O.

`dial` runs for every client connection. It is a plain non-blocking connect, with a cancel scope
only if the connect has to wait, and with a look-up only if the name is not cached. It returns a
socket of the standard library, which the data plane needs.

`watch` runs at the same time: it resolves configured names again, and probes endpoints that were
not dialled recently. A probe opens a connection, completes the TLS handshake if the broker speaks
TLS, and sends no data.

If brokers expect a PROXY header, each connection begins with one, even if it is TLS. It is the
header that the caller passes, or one that stands for no client. In this module a header is bytes.

Events for the log are changes of an endpoint (down, up, silent), and refused targets. Texts for
clients contain no address.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

import trio

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.pool import FIRST_BACK_OFF, BrokerPool, Endpoint, EndpointStatistics
from gateway.brokers.resolver import Log, LookUp, Resolver, no_log
from gateway.brokers.targets import TargetList
from gateway.plane.stream import Stream
from gateway.tls.handshake import reason_of, shake
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal

if TYPE_CHECKING:  # certificates are loaded only where brokers speak TLS
    from gateway.tls.sides import ClientSide


@dataclass(frozen=True, slots=True)
class Timing:
    """Timeouts and intervals of connecting, resolving and probing, in seconds."""

    dial_timeout: float = 10.0
    """For all attempts of one dial together. Clients wait 10 s (`connectionTimeoutMs`)."""

    attempt_timeout: float = 3.0
    """For one attempt. A lost SYN is sent again after 1 s, so this is enough for two SYNs."""

    resolve_interval: float = 30.0
    """Between two look-ups of configured names; name servers of Kubernetes cache for as long."""

    resolve_retry: float = 2.0
    """Between two look-ups while a name does not resolve, or none of its addresses is reached: pods
    start before their names resolve, and come back with other addresses."""

    probe_interval: float = 10.0
    """Between two probes of a healthy endpoint that is not dialled; a broker logs each probe."""


DEFAULT_TIMING = Timing()

_TICK = FIRST_BACK_OFF  # no endpoint is due for a probe sooner after a failure
_FIRST_TICK = 0.01  # until the first name is resolved: readiness depends on that probe

_UNREACHABLE = Denial(Refusal.NOT_READY, "the broker is not reachable")
_NO_TLS = Denial(Refusal.NOT_READY, "the broker requires TLS, which is not configured")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the broker did not answer in time")

_OWN_ERRORS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL}
)
"""Errors that say nothing about a broker: the gateway has no descriptors, memory or local ports
left."""


class Failure(StrEnum):
    """Why a connection to a broker failed. `SILENT`: the broker accepted the connection, and did
    not respond in time. `TLS`: the TLS handshake failed. `OWN`: the gateway had no descriptors,
    memory or ports left for the connection."""

    REFUSED = "refused"
    TLS = "tls"
    TIMED_OUT = "timed_out"
    SILENT = "silent"
    UNRESOLVED = "unresolved"
    OWN = "own"


async def look_up(host: str) -> Sequence[str]:
    """Return the IP addresses of a host, by the system's resolver, in a thread. Raises
    `OSError`."""
    answers = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in answers]


class Brokers:
    """The brokers of one cluster.

    `addresses`: the configured addresses, each of which accepts any new connection. `targets`:
    which other addresses may be dialled by name. `learned`: is told the hosts and IP addresses of
    configured brokers, and of brokers to which a connection succeeded. `socket_buffer`: the size of
    the kernel's buffers in bytes; None: as the kernel chooses. `header`: the first bytes of
    connections that are for no client, such as probes. `inside_tls`: headers are sent after the TLS
    handshake, not before it.
    """

    def __init__(
        self,
        cluster: str,
        addresses: Sequence[Address],
        targets: TargetList,
        learned: LearnedHosts,
        timing: Timing = DEFAULT_TIMING,
        *,
        tls: ClientSide | None = None,
        socket_buffer: int | None = None,
        header: bytes = b"",
        inside_tls: bool = False,
        clock: Callable[[], float] = trio.current_time,
        look_up: LookUp = look_up,
        log: Log = no_log,
    ) -> None:
        self._addresses = tuple(addresses)
        self._targets = targets
        self._learned = learned
        self._timing = timing
        self._tls = tls
        self._socket_buffer = socket_buffer
        self._header = header
        self._inside_tls = inside_tls
        self._clock = clock
        self._log = log
        self._pool = BrokerPool()
        self._endpoints: dict[Address, tuple[Endpoint, ...]] = dict.fromkeys(self._addresses, ())
        # Two resolvers, so that names which clients ask for never evict configured ones.
        self._resolver = Resolver(look_up, clock, log)
        self._target_resolver = Resolver(look_up, clock, log)
        self._is_missing = trio.Event()  # an endpoint is down that was not before
        self._is_exhausted = False  # the last attempts failed for want of resources
        self._failures = dict.fromkeys(Failure, 0)
        self._none = Denial(Refusal.NOT_READY, f'no broker of cluster "{cluster}" is reachable')
        learned.learn(*(address.host for address in self._addresses))

    @property
    def ready(self) -> bool:
        """Return True if at least one endpoint is healthy: the last connection to it succeeded."""
        return self._pool.ready

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """Return the state of each endpoint."""
        return self._pool.statistics()

    def failures(self) -> dict[Failure, int]:
        """Return how many connections and look-ups failed since the start, by cause."""
        unresolved = self._resolver.failures + self._target_resolver.failures
        return self._failures | {Failure.UNRESOLVED: unresolved}

    # -- dialling --

    async def dial(
        self, target: Address | None = None, header: bytes | None = None
    ) -> tuple[Stream, Address] | Denial:
        """Connect to `target`, or to any broker if it is None. `header`: the first bytes of the
        connection; None: the header of connections that are for no client.

        Return a connected non-blocking stream with TCP_NODELAY, which the caller must close, and
        the address with the name by which it was dialled, because TLS verifies that name
        (`getpeername` has the IP address). Return a denial if no connection succeeds.
        """
        deadline = self._clock() + self._timing.dial_timeout
        header = self._header if header is None else header
        if target is None:
            return await self._dial_any(header, deadline)
        return await self._dial_target(target, header, deadline)

    async def _dial_any(self, header: bytes, deadline: float) -> tuple[Stream, Address] | Denial:
        if not self._pool:
            with trio.move_on_after(self._timing.dial_timeout):
                await self._resolve()
        tried: set[Address] = set()
        for is_again in (False, True):
            if is_again:
                await self._renew(deadline)
            for endpoint in self._pool.candidates(self._clock()):
                if endpoint.address not in tried:
                    tried.add(endpoint.address)
                    stream = await self._attempt(*endpoint, header, deadline)
                    if stream is not None:
                        return stream, endpoint.named
        return self._none

    async def _dial_target(
        self, target: Address, header: bytes, deadline: float
    ) -> tuple[Stream, Address] | Denial:
        if target.tls and self._tls is None:
            return _NO_TLS
        refused = self._targets.check_name(target.host, target.port)
        if refused is not None:
            self._log_refused(target, ())
            return refused
        ips = await self._target_ips(target.host)
        if ips is None:
            return _TOO_SLOW
        dialled = await self._dial_ips(target, ips, header, deadline)
        if dialled is not None:
            return dialled
        renewed: tuple[str, ...] = ()
        with trio.move_on_after(max(0.0, deadline - self._clock())):
            renewed = await self._resolver_of(target.host).renew(target.host, ips)
        others = [ip for ip in renewed if ip not in ips]
        if others:
            dialled = await self._dial_ips(target, others, header, deadline)
        if dialled is not None:
            return dialled
        return _TOO_SLOW if self._clock() >= deadline else _UNREACHABLE

    async def _dial_ips(
        self, target: Address, ips: Sequence[str], header: bytes, deadline: float
    ) -> tuple[Stream, Address] | Denial | None:
        """Connect to one of a target's IP addresses. Return None if none is reached."""
        allowed = self._allowed(target, ips)
        if isinstance(allowed, Denial):
            return allowed
        for ip in allowed:
            stream = await self._attempt(Address(ip, target.port), target, header, deadline)
            if stream is not None:
                self._learned.learn_dialled(target.host, *ips)
                return stream, target
        return None

    def _resolver_of(self, host: str) -> Resolver:
        is_configured = any(host == address.host for address in self._addresses)
        return self._resolver if is_configured else self._target_resolver

    async def _target_ips(self, host: str) -> Sequence[str] | None:
        """Return the IP addresses of a host, or None if the look-up takes too long."""
        resolver = self._resolver_of(host)
        ips = resolver.cached(host)
        if ips is None:
            with trio.move_on_after(self._timing.dial_timeout):
                ips = await resolver.resolve(host)
        return ips

    def _allowed(self, target: Address, ips: Sequence[str]) -> list[str] | Denial:
        denials = [self._targets.check(target.host, ip, target.port) for ip in ips]
        refused = next((denial for denial in denials if denial), None)
        if refused is None:
            return list(ips)
        self._log_refused(target, ips)
        return [ip for ip, denial in zip(ips, denials, strict=True) if not denial] or refused

    def _log_refused(self, target: Address, ips: Sequence[str]) -> None:
        allowed = self._targets.describe()
        self._log("target_refused", broker=str(target), ips=ips, allowed=allowed)

    async def _attempt(
        self, address: Address, named: Address, header: bytes, deadline: float
    ) -> Stream | None:
        """Connect and record the result in the pool. Return None if that fails.

        `named`: the broker's address as it is named, which says whether it speaks TLS.
        """
        allotted = min(deadline - self._clock(), self._timing.attempt_timeout)
        if allotted <= 0:
            return None
        stream: Stream | None
        try:
            stream, connected = start_connecting(address, self._socket_buffer)
            if named.tls or not connected or header:
                stream = await self._finish(stream, named, header, allotted)
        except OSError as error:
            self._record_error(address, error)
            return None
        if stream is None:
            self._record_timeout(address, allotted)
            return None
        self._is_exhausted = False
        if self._pool.record_success(address, self._clock()):
            self._log("broker_up", broker=str(address))
        return stream

    async def _finish(
        self, sock: socket.socket, named: Address, header: bytes, allotted: float
    ) -> Stream | None:
        """Wait until the socket is connected, has sent its header, and has its TLS handshake behind
        it if the broker speaks TLS. Return None if that takes longer than allotted."""
        with trio.move_on_after(allotted):
            await finish_connecting(sock)
            if named.tls and self._inside_tls:
                stream = await self._secured(sock, named.host)
                await _send(stream, header)
                return stream
            await _send(sock, header)
            return await self._secured(sock, named.host) if named.tls else sock
        return None

    async def _secured(self, sock: socket.socket, host: str) -> Stream:
        assert self._tls is not None, "only clusters with TLS have brokers with TLS"
        stream = self._tls.stream(sock, host)
        try:
            await shake(stream)
        except BaseException:
            stream.close()
            raise
        return stream

    def _record_timeout(self, address: Address, allotted: float) -> None:
        self._failures[Failure.TIMED_OUT] += 1
        if allotted >= self._timing.attempt_timeout:  # a shorter attempt says nothing about health
            self._record_down(address, "timed out")

    def _record_error(self, address: Address, error: OSError) -> None:
        is_own = error.errno in _OWN_ERRORS and not isinstance(error, ssl.SSLError)
        is_tls = isinstance(error, ssl.SSLError)
        self._failures[Failure.OWN if is_own else Failure.TLS if is_tls else Failure.REFUSED] += 1
        if not is_own:
            self._record_down(address, reason_of(error))
        elif not self._is_exhausted:
            self._is_exhausted = True
            self._log("resources_exhausted", broker=str(address), error=error.strerror)

    def _record_down(self, address: Address, error: str) -> None:
        if self._pool.record_failure(address, self._clock()):
            self._is_missing.set()
            self._log("broker_down", broker=str(address), error=error)

    def unanswered(self, stream: Stream) -> None:
        """Record that the broker accepted this connection, but did not respond on it in time."""
        self._failures[Failure.SILENT] += 1
        try:
            address = Address(*stream.getpeername()[:2])
        except OSError:  # the connection is gone by now
            return
        if self._pool.record_silence(address, self._clock()):
            self._log("broker_silent", broker=str(address))

    # -- watching --

    async def watch(self) -> None:
        """Keep the endpoints and their health up to date, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_resolved)
            nursery.start_soon(self._keep_probed)

    async def _keep_resolved(self) -> None:
        while True:
            await self._resolve()
            if self._pool.misses_any:
                await self._renew(inf)
            failing = any(self._resolver.is_failing(address.host) for address in self._addresses)
            is_soon = failing or self._pool.misses_any
            timing = self._timing
            with trio.move_on_after(timing.resolve_retry if is_soon else timing.resolve_interval):
                await self._is_missing.wait()
            self._is_missing = trio.Event()

    async def _keep_probed(self) -> None:
        while True:
            async with trio.open_nursery() as nursery:
                for endpoint in self._pool.due(self._clock(), self._timing.probe_interval):
                    nursery.start_soon(self._probe, endpoint)
            await trio.sleep(_TICK if self._pool else _FIRST_TICK)

    async def _probe(self, endpoint: Endpoint) -> None:
        stream = await self._attempt(*endpoint, self._header, inf)
        if stream is not None:
            stream.close()

    async def _resolve(self) -> None:
        async with trio.open_nursery() as nursery:
            for address in self._addresses:
                nursery.start_soon(self._resolve_one, address)

    async def _resolve_one(self, address: Address) -> None:
        """Resolve one configured address; if that fails, keep its endpoints."""
        self._adopt(address, await self._resolver.resolve(address.host))

    async def _renew(self, deadline: float) -> None:
        """Resolve the configured addresses again whose endpoints are not reached."""
        with trio.move_on_after(max(0.0, deadline - self._clock())):
            async with trio.open_nursery() as nursery:
                for address in self._addresses:
                    nursery.start_soon(self._renew_one, address)

    async def _renew_one(self, address: Address) -> None:
        known = [endpoint.address.host for endpoint in self._endpoints[address]]
        if not self._pool.reaches_any(self._endpoints[address]):
            self._adopt(address, await self._resolver.renew(address.host, known))

    def _adopt(self, address: Address, ips: Sequence[str]) -> None:
        if not ips:
            return
        self._learned.learn(address.host, *ips)
        self._endpoints[address] = tuple(Endpoint(Address(ip, address.port), address) for ip in ips)
        self._pool.replace(chain.from_iterable(self._endpoints.values()))


async def connect(address: Address) -> socket.socket:
    """Return a connected non-blocking socket with TCP_NODELAY. The address's host must be an IP
    literal.

    Raises `OSError`. Afterwards the socket is not registered in trio's epoll, so another poller may
    use it.
    """
    sock, connected = start_connecting(address)
    if not connected:
        await finish_connecting(sock)
    return sock


def start_connecting(
    address: Address, socket_buffer: int | None = None
) -> tuple[socket.socket, bool]:
    """Start to connect, as `connect` does. Return the socket, and whether it is connected already.

    Raises `OSError`.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    try:
        if socket_buffer:  # set before the handshake, which negotiates the window
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, socket_buffer)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = sock.connect_ex(address.pair)
        if code == errno.EINPROGRESS:
            # A broker on this machine, as with a sidecar, has answered by now. Asking again costs
            # 1 to 2 us, waiting costs 30 to 50.
            code = sock.connect_ex(address.pair)
        if code != errno.EALREADY:
            _raise_if_error(code)
    except BaseException:
        sock.close()
        raise
    return sock, code == 0


async def finish_connecting(sock: socket.socket) -> None:
    """Wait until the socket is connected. Raises `OSError` if connecting fails, and closes the
    socket then."""
    try:
        await trio.lowlevel.wait_writable(sock)
        _raise_if_error(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except BaseException:
        sock.close()
        raise


async def _send(stream: Stream, header: bytes) -> None:
    """Send all bytes. If that raises (`OSError`), the stream is closed."""
    rest = memoryview(header)
    try:
        while rest:
            try:
                rest = rest[stream.send(rest) :]
            except BlockingIOError:  # rare: a new socket has room for kilobytes
                await trio.lowlevel.wait_writable(stream.fileno())
    except BaseException:
        stream.close()
        raise


def _raise_if_error(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))
