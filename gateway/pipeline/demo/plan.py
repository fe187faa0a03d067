"""When what happens in a made-up month: growth, incidents, attacks and mistakes.

Days are spread over the month by its length. What belongs to one tenant is at different times, and
hours of incidents have no damaged file (`damage`), so each can be found alone. An interval has
what is true at its begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.pipeline.demo.cast import (
    GATEWAYS,
    STORM_CLIENTS,
    Client,
    Connections,
    Tenant,
    network,
    roles_of,
)
from gateway.pipeline.demo.dice import dice
from gateway.pipeline.demo.load import DAY_MS, highest
from gateway.pipeline.demo.planted import Fact, What

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

FEWEST_DAYS = 3
"""So that there is a day before what happens, and one after it."""

NOISY_FACTOR = 10.0
LAUNCH_FACTOR = 3.0
"""More than a day's rhythm does, and less than noise, so that growth alone tells nothing."""

DAILY_GROWTH = 1.04
"""Threefold in a month: to be seen through noise and weekends."""

HEADROOM_DAYS = 10
"""After the end of the month, until the growing tenant reaches its limit."""

LIMIT_FACTOR = 1.1
"""What the limited tenant may send, as a multiple of its mean: less than it wants at noon."""

LIMITED_RULES = ("bronze-messages", "bronze-bytes")
"""Of the limited tenant; it waits longest for the first."""

GROWTH_RULE = "silver-messages"
"""Of the growing tenant, which has never waited for it yet."""

SHARED_RULE = "cluster-bytes"
"""Of the limit that all tenants of a cluster share; who suffers from a noisy one waits for it."""

SPRAYED = 60
"""Principals that are tried: many more than one site has."""

SHARED_NETWORKS = 12
"""More than anybody is in within a day."""

GUESSES = 40
"""More than a person mistypes."""

STORM_MINUTES = 60
"""As long as it takes people to renew a token everywhere."""

SUCCESS_MS = 5_000
"""Before the end of a guess: the success, which is a part of it."""

SPRAYER, GUESSER = network(0xBAD), network(0xFEED)
"""Networks that nobody else uses."""


@dataclass(frozen=True, slots=True)
class Strange:
    """Connections that are there for a time, and should not be."""

    connections: Connections
    start_ms: int
    end_ms: int


class Plan:
    """What happens in a month to a cast. `first_ms`: its begin, in milliseconds since 1970."""

    def __init__(self, tenants: Sequence[Tenant], first_ms: int, days: int, seed: int) -> None:
        self.tenants = tenants
        self.first_ms, self.days = first_ms, days
        self.end_ms = first_ms + days * DAY_MS
        self.roles = roles_of(len(tenants))
        self._rng = dice(seed, "plan")
        self.noisy = tuple(self._noisy())
        self.launch = self._launch()
        self.growth = self._growth()
        self.limited = self._limited()
        self.storm = self._storm()
        self.spraying = self._spraying()
        self.shared = self._shared()
        self.guessed = self._guessed()
        self.strange = (*self._strange_shared(), self._strange_guessed())

    def day(self, of_thirty: int, at_least: int = 1) -> int:
        """Return the begin of a day, given by its index in a month of thirty."""
        return self.first_ms + max(at_least, of_thirty * self.days // 30) * DAY_MS

    def facts(self) -> list[Fact]:
        """Return all facts but those of files."""
        alone = (self.launch, self.growth, self.limited, self.storm)
        idle = Fact(What.IDLE, self.first_ms, self.end_ms, self.tenants[self.roles.idle].name)
        return [*self.noisy, *alone, self.spraying, self.shared, self.guessed, idle]

    def factor(self, tenant: str, now_ms: int) -> float:
        """Return by what the load of a tenant is multiplied."""
        found = 1.0
        for it in self.noisy:
            if tenant == it.tenant and it.start_ms <= now_ms < it.end_ms:
                found *= NOISY_FACTOR
        if tenant == self.launch.tenant and now_ms >= self.launch.start_ms:
            found *= LAUNCH_FACTOR
        if tenant == self.growth.tenant:
            found *= DAILY_GROWTH ** ((now_ms - self.first_ms) // DAY_MS)
        return found

    def noise(self, now_ms: int) -> Fact | None:
        """Return the noisy neighbour of this time."""
        return next((it for it in self.noisy if it.start_ms <= now_ms < it.end_ms), None)

    # -- load --------------------------------------------------------------------------------

    def _noisy(self) -> Iterator[Fact]:
        times = ((self.day(8), 14 * 60, 90), (self.day(19, 2), 10 * 60, 70))
        for rank, (day, minute, minutes) in zip(self.roles.noisy, times, strict=True):
            tenant = self.tenants[rank]
            start = day + minute * MINUTE_MS
            yield Fact(
                What.NOISY_NEIGHBOUR,
                start,
                start + minutes * MINUTE_MS,
                tenant.name,
                victims=tuple(
                    it.name
                    for it in self.tenants
                    if it.topics and it.listener == tenant.listener and it is not tenant
                ),
                rules=(SHARED_RULE,),
                factor=NOISY_FACTOR,
            )

    def _launch(self) -> Fact:
        start = self.day(15) + 9 * HOUR_MS
        tenant = self.tenants[self.roles.launching]
        return Fact(What.LAUNCH, start, self.end_ms, tenant.name, factor=LAUNCH_FACTOR)

    def _growth(self) -> Fact:
        tenant = self.tenants[self.roles.growing]
        reached = self.end_ms + HEADROOM_DAYS * DAY_MS
        limit = highest(tenant) * DAILY_GROWTH ** (self.days + HEADROOM_DAYS)
        return Fact(
            What.GROWTH,
            self.first_ms,
            self.end_ms,
            tenant.name,
            rules=(GROWTH_RULE,),
            factor=DAILY_GROWTH,
            limit=limit,
            reached_ms=reached,
        )

    def _limited(self) -> Fact:
        tenant = self.tenants[self.roles.limited]
        return Fact(
            What.LIMITED,
            self.first_ms,
            self.end_ms,
            tenant.name,
            rules=LIMITED_RULES,
            limit=tenant.rate * LIMIT_FACTOR,
        )

    # -- clients -----------------------------------------------------------------------------

    def _storm(self) -> Fact:
        tenant = self.tenants[self.roles.storm]
        fleet = [it for it in tenant.connections if it.client.principal == tenant.fleet]
        assert tenant.fleet is not None
        start = self.day(11) + 16 * HOUR_MS
        return Fact(
            What.EXPIRED_STORM,
            start,
            start + STORM_MINUTES * MINUTE_MS,
            tenant.name,
            principals=(tenant.fleet,),
            networks=tuple(it.client.network for it in fleet),
            gateway=fleet[0].client.gw,
            number=STORM_CLIENTS * STORM_MINUTES,
        )

    def _spraying(self) -> Fact:
        """Some of the principals that are tried exist."""
        real = sorted({it.client.principal for t in self.tenants for it in t.connections})
        tried = self._rng.sample(real, min(len(real), SPRAYED // 3))
        tried += [f"user-{it:02}" for it in range(1, 1 + SPRAYED - len(tried))]
        self._rng.shuffle(tried)
        start = self.day(5) + 2 * HOUR_MS + 17 * MINUTE_MS
        return Fact(
            What.SPRAYING,
            start,
            start + 4 * MINUTE_MS,
            principals=tuple(tried),
            networks=(SPRAYER,),
            gateway=GATEWAYS[0],
            number=SPRAYED,
        )

    def _shared(self) -> Fact:
        usual = self._of(self.roles.shared)
        networks = tuple(network(0x500 + it) for it in range(SHARED_NETWORKS - 1))
        start = self.day(23, 2)
        return Fact(
            What.SHARED_CREDENTIAL,
            start,
            start + DAY_MS,
            self.tenants[self.roles.shared].name,
            principals=(usual.principal,),
            networks=(usual.network, *networks),
        )

    def _guessed(self) -> Fact:
        start = self.day(26, 2) + 22 * HOUR_MS + 5 * MINUTE_MS
        return Fact(
            What.GUESSED,
            start,
            start + 10 * MINUTE_MS,
            self.tenants[self.roles.guessed].name,
            principals=(self._of(self.roles.guessed).principal,),
            networks=(GUESSER,),
            gateway=GATEWAYS[1],
            number=GUESSES,
        )

    def _strange_shared(self) -> Iterator[Strange]:
        fact, usual = self.shared, self._of(self.roles.shared)
        for number, it in enumerate(fact.networks[1:]):
            gw = GATEWAYS[number % len(GATEWAYS)]
            there = Connections(tenant_of(fact), usual._replace(gw=gw, network=it), 2)
            yield Strange(there, fact.start_ms, fact.end_ms)

    def _strange_guessed(self) -> Strange:
        """Return who is in after the last failure, for an hour; the fact ends just after that."""
        fact = self.guessed
        client = self._of(self.roles.guessed)._replace(gw=GATEWAYS[1], network=GUESSER)
        there = Connections(tenant_of(fact), client, 1)
        begin = fact.end_ms - SUCCESS_MS
        return Strange(there, begin, begin + HOUR_MS)

    def _of(self, rank: int) -> Client:
        return self.tenants[rank].connections[0].client


def tenant_of(fact: Fact) -> str:
    """Return the tenant of a fact that has one."""
    assert fact.tenant is not None
    return fact.tenant
