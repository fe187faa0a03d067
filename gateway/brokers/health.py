"""Connections to brokers, and who of them is alive. The one module of this folder with I/O.

`dial` is on the way of every client connection: a plain non-blocking connect, a cancel scope only
where that has to be waited for, and a name server only where a name is not remembered. It answers a
standard library socket, which is what the data plane owns.

`watch` runs beside it: it looks configured names up again, and probes endpoints of which no dial
has told anything lately. A probe is a TCP connection that says nothing.

What is logged are transitions (down, up, silent) and refused targets. What is told to clients holds
no address.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import inf

import trio

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.pool import FIRST_BACK_OFF, BrokerPool, Endpoint, EndpointStatistics
from gateway.brokers.resolver import Log, LookUp, Resolver
from gateway.brokers.targets import TargetList
from gateway.plane.stream import Stream
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds."""

    dial_timeout: float = 10.0
    """All attempts of one dial together. Clients give a connection 10 s (`connectionTimeoutMs`)."""

    attempt_timeout: float = 3.0
    """One attempt. A lost SYN is sent again after 1 s, so this is enough for two."""

    resolve_interval: float = 30.0
    """Between two look-ups of configured names; name servers of Kubernetes cache for as long."""

    resolve_retry: float = 2.0
    """The same where a name does not resolve: pods start before their names are known."""

    probe_interval: float = 10.0
    """After which a healthy endpoint that nobody dialled is probed; a broker logs each probe."""


DEFAULT_TIMING = Timing()

_TICK = FIRST_BACK_OFF  # no endpoint becomes due sooner than that after a failure
_FIRST_TICK = 0.01  # while no name was resolved yet: readiness waits for it

_UNREACHABLE = Denial(Refusal.NOT_READY, "the broker is not reachable")
_TLS_ALONE = Denial(Refusal.NOT_READY, "the broker speaks TLS alone, which the gateway does not")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the broker did not answer in time")

_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""Errors that say nothing about a broker: descriptors, memory or local ports are used up."""


class Failure(StrEnum):
    """Why a broker was not reached. `SILENT`: it accepted, and did not answer in time. `OWN`: the
    gateway had nothing left to connect with.
    """

    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    SILENT = "silent"
    UNRESOLVED = "unresolved"
    OWN = "own"


async def look_up(host: str) -> Sequence[str]:
    """Ask the system's resolver, in a thread. Raises `OSError`."""
    answers = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in answers]


def unheard(event: str, **values: object) -> None:
    """A log that nobody reads."""


class Brokers:
    """The brokers of one cluster.

    `addresses`: as configured, any of them takes any new connection. `targets` bounds what else
    may be dialled by name. `learned` is told of hosts and addresses that are brokers: configured
    ones, and those that were connected to. `socket_buffer`: of the kernel, in bytes; None: it tunes
    them.
    """

    def __init__(
        self,
        cluster: str,
        addresses: Sequence[Address],
        targets: TargetList,
        learned: LearnedHosts,
        timing: Timing = DEFAULT_TIMING,
        *,
        socket_buffer: int | None = None,
        clock: Callable[[], float] = trio.current_time,
        look_up: LookUp = look_up,
        log: Log = unheard,
    ) -> None:
        self._addresses = tuple(addresses)
        self._targets = targets
        self._learned = learned
        self._timing = timing
        self._socket_buffer = socket_buffer
        self._clock = clock
        self._log = log
        self._pool = BrokerPool()
        self._endpoints: dict[Address, tuple[Endpoint, ...]] = dict.fromkeys(self._addresses, ())
        # Two resolvers, so that names which clients lead to never evict configured ones.
        self._resolver = Resolver(look_up, clock, log)
        self._target_resolver = Resolver(look_up, clock, log)
        self._starved = False
        self._failures = dict.fromkeys(Failure, 0)
        self._none = Denial(Refusal.NOT_READY, f'no broker of cluster "{cluster}" is reachable')
        learned.learn(*(address.host for address in self._addresses))

    @property
    def ready(self) -> bool:
        """At least one endpoint is healthy; never before one was connected to."""
        return self._pool.ready

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """How each endpoint does."""
        return self._pool.snapshot()

    def failures(self) -> dict[Failure, int]:
        """How often what went wrong, since the start."""
        unresolved = self._resolver.failures + self._target_resolver.failures
        return self._failures | {Failure.UNRESOLVED: unresolved}

    # -- dialling --

    async def dial(self, target: Address | None = None) -> tuple[socket.socket, Address] | Denial:
        """Connect to `target`, or to any broker.

        Answers a connected non-blocking socket with TCP_NODELAY, which the caller closes, and the
        address as it was named (TLS verifies that name; `getpeername` tells the IP address).
        """
        deadline = self._clock() + self._timing.dial_timeout
        if target is None:
            return await self._dial_any(deadline)
        return await self._dial_target(target, deadline)

    async def _dial_any(self, deadline: float) -> tuple[socket.socket, Address] | Denial:
        if not self._pool:
            with trio.move_on_after(self._timing.dial_timeout):
                await self._resolve()
        for endpoint in self._pool.candidates(self._clock()):
            sock = await self._attempt(endpoint.address, deadline)
            if sock is not None:
                return sock, endpoint.named
        return self._none

    async def _dial_target(
        self, target: Address, deadline: float
    ) -> tuple[socket.socket, Address] | Denial:
        if target.tls:
            return _TLS_ALONE
        refused = self._targets.check_name(target.host, target.port)
        if refused is not None:
            self._tell_refused(target, ())
            return refused
        ips = await self._target_ips(target.host)
        if ips is None:
            return _TOO_SLOW
        allowed = self._allowed(target, ips)
        if isinstance(allowed, Denial):
            return allowed
        for ip in allowed:
            sock = await self._attempt(Address(ip, target.port), deadline)
            if sock is not None:
                self._learned.reached(target.host, *ips)
                return sock, target
        return _TOO_SLOW if self._clock() >= deadline else _UNREACHABLE

    async def _target_ips(self, host: str) -> Sequence[str] | None:
        """What a host resolves to; None: nobody says so in time."""
        configured = any(host == address.host for address in self._addresses)
        resolver = self._resolver if configured else self._target_resolver
        ips = resolver.remembered(host)
        if ips is None:
            with trio.move_on_after(self._timing.dial_timeout):
                ips = await resolver.resolve(host)
        return ips

    def _allowed(self, target: Address, ips: Sequence[str]) -> list[str] | Denial:
        denials = [self._targets.check(target.host, ip, target.port) for ip in ips]
        refused = next((denial for denial in denials if denial), None)
        if refused is None:
            return list(ips)
        self._tell_refused(target, ips)
        return [ip for ip, denial in zip(ips, denials, strict=True) if not denial] or refused

    def _tell_refused(self, target: Address, ips: Sequence[str]) -> None:
        """`ips`: what was looked up, if anything was."""
        allowed = self._targets.describe()
        self._log("target_refused", broker=str(target), ips=ips, allowed=allowed)

    async def _attempt(self, address: Address, deadline: float) -> socket.socket | None:
        """Connect, and remember how that went."""
        allotted = min(deadline - self._clock(), self._timing.attempt_timeout)
        if allotted <= 0:
            return None
        try:
            sock, connected = begin(address, self._socket_buffer)
            if not connected:
                with trio.move_on_after(allotted) as scope:
                    await finish(sock)
                if scope.cancelled_caught:
                    self._timed_out(address, allotted)
                    return None
        except OSError as error:
            self._failed(address, error)
            return None
        self._is_up(address)
        return sock

    def _timed_out(self, address: Address, allotted: float) -> None:
        self._failures[Failure.TIMED_OUT] += 1
        if allotted >= self._timing.attempt_timeout:  # else it had less time than a broker is due
            self._is_down(address, "timed out")

    def _failed(self, address: Address, error: OSError) -> None:
        ours = error.errno in _OURS
        self._failures[Failure.OWN if ours else Failure.REFUSED] += 1
        if not ours:
            self._is_down(address, error.strerror or str(error))
        elif not self._starved:
            self._starved = True
            self._log("resources_exhausted", broker=str(address), error=error.strerror)

    def unanswered(self, stream: Stream) -> None:
        """A broker accepted this connection, and did not answer what was said on it in time."""
        self._failures[Failure.SILENT] += 1
        try:
            address = Address(*stream.getpeername()[:2])
        except OSError:  # gone by now
            return
        if self._pool.silent(address, self._clock()):
            self._log("broker_silent", broker=str(address))

    def _is_up(self, address: Address) -> None:
        self._starved = False
        if self._pool.succeeded(address, self._clock()):
            self._log("broker_up", broker=str(address))

    def _is_down(self, address: Address, error: str) -> None:
        if self._pool.failed(address, self._clock()):
            self._log("broker_down", broker=str(address), error=error)

    # -- watching --

    async def watch(self) -> None:
        """Keep endpoints and their health up to date, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_resolved)
            nursery.start_soon(self._keep_probed)

    async def _keep_resolved(self) -> None:
        while True:
            await self._resolve()
            failing = any(self._resolver.failing(address.host) for address in self._addresses)
            timing = self._timing
            await trio.sleep(timing.resolve_retry if failing else timing.resolve_interval)

    async def _keep_probed(self) -> None:
        while True:
            async with trio.open_nursery() as nursery:
                for endpoint in self._pool.due(self._clock(), self._timing.probe_interval):
                    nursery.start_soon(self._probe, endpoint.address)
            await trio.sleep(_TICK if self._pool else _FIRST_TICK)

    async def _probe(self, address: Address) -> None:
        sock = await self._attempt(address, inf)
        if sock is not None:
            sock.close()

    async def _resolve(self) -> None:
        async with trio.open_nursery() as nursery:
            for address in self._addresses:
                nursery.start_soon(self._resolve_one, address)

    async def _resolve_one(self, address: Address) -> None:
        """Look one configured address up; where that fails its endpoints stay."""
        ips = await self._resolver.resolve(address.host)
        if not ips:
            return
        self._learned.learn(address.host, *ips)
        self._endpoints[address] = tuple(Endpoint(Address(ip, address.port), address) for ip in ips)
        self._pool.replace(chain.from_iterable(self._endpoints.values()))


async def connect(address: Address) -> socket.socket:
    """A connected non-blocking socket with TCP_NODELAY. The host must be an IP literal.

    Raises `OSError`. trio's epoll is left with nothing armed for the socket, so another poller
    may have it.
    """
    sock, connected = begin(address)
    if not connected:
        await finish(sock)
    return sock


def begin(address: Address, socket_buffer: int | None = None) -> tuple[socket.socket, bool]:
    """Begin to connect as `connect` does; answers whether that is done. Raises `OSError`."""
    sock = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    try:
        if socket_buffer:  # before it connects: the window is agreed upon then
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, socket_buffer)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = sock.connect_ex(address.pair)
        if code == errno.EINPROGRESS:
            # A broker on this machine, as a sidecar's is, has answered meanwhile. To ask costs
            # 1 to 2 us, to wait for it 30 to 50.
            code = sock.connect_ex(address.pair)
        if code != errno.EALREADY:
            _raise_unless_none(code)
    except BaseException:
        sock.close()
        raise
    return sock, code == 0


async def finish(sock: socket.socket) -> None:
    """Wait until what was begun is done. Raises `OSError`, and closes the socket when it raises."""
    try:
        await trio.lowlevel.wait_writable(sock)
        _raise_unless_none(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except BaseException:
        sock.close()
        raise


def _raise_unless_none(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))
