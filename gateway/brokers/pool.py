"""The brokers to which any new connection may go, and how each of them does.

An endpoint is *healthy* after a connection to it was made, *down* after an attempt failed, and
*waiting* while the back-off after that failure runs. Before the first attempt it is neither, and
trusted. A *silent* one accepts and then says nothing, as a frozen process does: it stays healthy,
for probes cannot tell, but for a while others come first, since each client that is led there loses
all its patience. No endpoint is ever given up: where all are down, all are tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from gateway.wire.address import Address

FIRST_BACK_OFF = 0.5
"""Seconds. A broker that restarts listens again within seconds; a refused attempt is cheap."""

LONGEST_BACK_OFF = 30.0
"""Seconds. What a broker that comes back waits at most; attempts at a dead host are time-outs."""

FIRST_SILENCE = 8.0
"""Seconds that the first silence of an endpoint is remembered; about what it has cost a client."""

_MOST_DOUBLINGS = 16  # beyond the longest back-off, and far from what a float can hold


class Endpoint(NamedTuple):
    """A socket address (its host is an IP literal), and the configured address it came from."""

    address: Address
    named: Address


class EndpointStatistics(NamedTuple):
    """One endpoint at one moment. `failures`: in a row. `retry_at`: of the pool's clock."""

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
    """Endpoints in the order they were given, one for a socket address."""

    def __init__(self) -> None:
        self._members: dict[Address, _Member] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._members)

    @property
    def ready(self) -> bool:
        """At least one endpoint is healthy."""
        return any(member.healthy for member in self._members.values())

    def replace(self, endpoints: Iterable[Endpoint]) -> None:
        """These are the endpoints from now on; those that stay keep their health."""
        members: dict[Address, _Member] = {}
        for endpoint in endpoints:
            known = self._members.get(endpoint.address)
            members.setdefault(endpoint.address, known or _Member(endpoint))
        self._members = members

    def candidates(self, now: float) -> tuple[Endpoint, ...]:
        """All endpoints in the order to try them: not down, down, waiting.

        Calls take turns in each of the three, so that each endpoint gets its share whatever the
        others do. One that is down is left to probes as long as there are others: a client would
        pay for the attempt.
        """
        tiers: tuple[list[Endpoint], ...] = ([], [], [])
        for member in self._members.values():
            tiers[member.tier(now)].append(member.endpoint)
        self._turn += 1
        return tuple(endpoint for tier in tiers for endpoint in _rotated(tier, self._turn))

    def due(self, now: float, interval: float) -> tuple[Endpoint, ...]:
        """Those to probe: healthy and unheard of for `interval` seconds, or not waiting."""
        return tuple(
            member.endpoint for member in self._members.values() if now >= member.due_at(interval)
        )

    def succeeded(self, address: Address, now: float) -> bool:
        """A connection was made. Answers whether that is news."""
        member = self._members.get(address)
        if member is None:
            return False
        news = not member.healthy
        member.healthy, member.failures, member.retry_at = True, 0, -inf
        member.checked_at = now
        return news

    def failed(self, address: Address, now: float) -> bool:
        """An attempt failed. Answers whether that is news.

        While the back-off runs, further failures are the same failure: a hundred attempts that
        were under way together must not make it a hundred times longer.
        """
        member = self._members.get(address)
        if member is None or now < member.retry_at:
            return False
        news = member.failures == 0
        member.retry_at = now + _doubled(FIRST_BACK_OFF, member.failures)
        member.failures += 1
        member.healthy = False
        return news

    def silent(self, address: Address, now: float) -> bool:
        """It accepted, and did not answer. Answers whether that is news.

        Silences in a row are remembered twice as long each; one that comes as long after the last
        one as the longest of them is the first again.
        """
        member = self._members.get(address)
        if member is None or now < member.silent_until:
            return False
        if now > member.silent_until + LONGEST_BACK_OFF:
            member.silences = 0
        member.silent_until = now + _doubled(FIRST_SILENCE, member.silences)
        member.silences += 1
        return member.silences == 1

    def snapshot(self) -> tuple[EndpointStatistics, ...]:
        """How each endpoint does."""
        return tuple(
            EndpointStatistics(member.endpoint, member.healthy, member.failures, member.retry_at)
            for member in self._members.values()
        )


def _rotated(endpoints: list[Endpoint], turn: int) -> list[Endpoint]:
    start = turn % len(endpoints) if endpoints else 0
    return endpoints[start:] + endpoints[:start]


def _doubled(first: float, times: int) -> float:
    return min(LONGEST_BACK_OFF, first * 2.0 ** min(times, _MOST_DOUBLINGS))
