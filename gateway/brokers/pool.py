"""The endpoints that may take any new connection, and the health of each.

An endpoint is *healthy* after a successful connection, *down* after a failed attempt, and *waiting*
during the back-off after that failure. Before the first attempt an endpoint is neither healthy nor
down, and is tried as if it were healthy. A *silent* endpoint accepts connections and then does not
respond, as a frozen process does. It still counts as healthy, because probes cannot detect the
silence. But other endpoints are tried before it for a while, because each client that is connected
to a silent endpoint waits until its own timeout. No endpoint is ever given up: if all are down, all
are tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from gateway.wire.address import Address

FIRST_BACK_OFF = 0.5
"""Seconds. A restarting broker listens again within seconds, and a refused attempt is cheap."""

LONGEST_BACK_OFF = 30.0
"""Seconds: the longest delay until a returning broker is noticed. Attempts at a dead host time
out."""

FIRST_SILENCE = 8.0
"""Seconds for which the first silence of an endpoint counts: about what it cost the client."""

_MOST_DOUBLINGS = 16  # beyond the longest back-off, and far below what overflows a float


class Endpoint(NamedTuple):
    """A socket address, whose host is an IP literal, and the configured address that resolved to
    it."""

    address: Address
    named: Address


class EndpointStatistics(NamedTuple):
    """The state of one endpoint at one moment. `failures`: how many attempts have failed since the
    last success. `retry_at`: the time at which the back-off ends, by the pool's clock."""

    endpoint: Endpoint
    healthy: bool
    failures: int
    retry_at: float


@dataclass(slots=True)
class _Member:
    endpoint: Endpoint
    healthy: bool = False
    failures: int = 0
    retry_at: float = -inf
    checked_at: float = -inf
    silences: int = 0
    silent_until: float = -inf

    def tier(self, now: float) -> int:
        if now < self.silent_until:
            return 2
        if not self.failures:
            return 0
        return 1 if now >= self.retry_at else 2

    def due_at(self, interval: float) -> float:
        return self.checked_at + interval if self.healthy else self.retry_at


class BrokerPool:
    """The endpoints of a cluster and their health, in the order in which they were given. There is
    one endpoint for each socket address."""

    def __init__(self) -> None:
        self._members: dict[Address, _Member] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._members)

    @property
    def ready(self) -> bool:
        """Return True if at least one endpoint is healthy."""
        return any(member.healthy for member in self._members.values())

    def replace(self, endpoints: Iterable[Endpoint]) -> None:
        """Replace all endpoints. An endpoint that the pool had before keeps its health."""
        members: dict[Address, _Member] = {}
        for endpoint in endpoints:
            known = self._members.get(endpoint.address)
            members.setdefault(endpoint.address, known or _Member(endpoint))
        self._members = members

    def reaches_any(self, endpoints: Iterable[Endpoint]) -> bool:
        """Return True if one of these endpoints is healthy."""
        known = (self._members.get(endpoint.address) for endpoint in endpoints)
        return any(member is not None and member.healthy for member in known)

    @property
    def misses_any(self) -> bool:
        """Return True if a configured address has endpoints, and all of them are down."""
        down: dict[Address, bool] = {}
        for member in self._members.values():
            named = member.endpoint.named
            down[named] = down.get(named, True) and bool(member.failures)
        return any(down.values())

    def candidates(self, now: float) -> tuple[Endpoint, ...]:
        """Return all endpoints in the order in which to try them: first those that are not down,
        then those whose back-off after a failure is over, and last those in a back-off and those
        that are silent.

        Each of these groups is rotated from call to call, so that its endpoints are tried equally
        often, whatever the other groups do. While some endpoints are healthy, an endpoint that is
        down is tried only by probes, because a client would have to wait for the attempt.
        """
        tiers: tuple[list[Endpoint], ...] = ([], [], [])
        for member in self._members.values():
            tiers[member.tier(now)].append(member.endpoint)
        self._turn += 1
        return tuple(endpoint for tier in tiers for endpoint in _rotated(tier, self._turn))

    def due(self, now: float, interval: float) -> tuple[Endpoint, ...]:
        """Return the endpoints to probe: healthy endpoints whose last check was at least `interval`
        seconds ago, and other endpoints whose back-off is over."""
        return tuple(
            member.endpoint for member in self._members.values() if now >= member.due_at(interval)
        )

    def record_success(self, address: Address, now: float) -> bool:
        """Record a successful connection. Return True if the endpoint was not healthy before."""
        member = self._members.get(address)
        if member is None:
            return False
        is_news = not member.healthy
        member.healthy, member.failures, member.retry_at = True, 0, -inf
        member.checked_at = now
        return is_news

    def record_failure(self, address: Address, now: float) -> bool:
        """Record a failed attempt. Return True if it is the first failure since a success.

        A failure during the back-off is not counted: a hundred concurrent attempts must not make
        the back-off a hundred times longer.
        """
        member = self._members.get(address)
        if member is None or now < member.retry_at:
            return False
        member.retry_at = now + _doubled(FIRST_BACK_OFF, member.failures)
        member.failures += 1
        member.healthy = False
        return member.failures == 1

    def record_silence(self, address: Address, now: float) -> bool:
        """Record that the broker accepted a connection, but did not respond on it. Return True if
        this silence is the first of a series.

        After each silence of a series, the endpoint counts as silent for twice as long as after the
        previous silence. If more than `LONGEST_BACK_OFF` has passed since the endpoint last counted
        as silent, a new series begins.
        """
        member = self._members.get(address)
        if member is None or now < member.silent_until:
            return False
        if now > member.silent_until + LONGEST_BACK_OFF:
            member.silences = 0
        member.silent_until = now + _doubled(FIRST_SILENCE, member.silences)
        member.silences += 1
        return member.silences == 1

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """Return the state of each endpoint."""
        return tuple(
            EndpointStatistics(member.endpoint, member.healthy, member.failures, member.retry_at)
            for member in self._members.values()
        )


def _rotated(endpoints: list[Endpoint], turn: int) -> list[Endpoint]:
    start = turn % len(endpoints) if endpoints else 0
    return endpoints[start:] + endpoints[:start]


def _doubled(first: float, times: int) -> float:
    return min(LONGEST_BACK_OFF, first * 2.0 ** min(times, _MOST_DOUBLINGS))
