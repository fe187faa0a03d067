"""The events of a made-up month: connections, their ends, failures, and rights that are denied.

A gateway that refuses the credential of a client it knows nothing of yet writes `unauthenticated`
with the listener, the protocol and the method alone. Where it knows the client, as when a client on
an open connection shows a new credential that is wrong, the event names principal and network
too. Both kinds are here; what is planted is of the second, or nobody could find it. The
reason is `authentication_failed` in both.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.pipeline.demo.cast import (
    GATEWAYS,
    LISTENERS,
    PROTOCOL,
    Client,
    Connections,
    listener_of,
)
from gateway.pipeline.demo.dice import dice, roughly
from gateway.pipeline.demo.plan import HOUR_MS, MINUTE_MS, SUCCESS_MS, Plan
from gateway.usage.records import VERSION, Event, EventKind, Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

FAILED = "authentication_failed"
EXPIRED = "credential_expired"
DRAINED = "drained"
"""Reasons, as in `gateway.wire.contract.EndReason`."""

_ENDS = ("client_closed", "client_closed", "client_closed", "client_lost", "idle", "broker_closed")
"""Why connections end on an ordinary day, the usual reason most often."""

_LIFE_MS = 8 * HOUR_MS
"""For how long a connection is open on average."""

_NAMELESS_AN_HOUR, _NAMED_AN_HOUR, _DENIED_AN_HOUR = 2.0, 0.3, 0.2
"""Ordinary mistakes at one gateway."""

_OPENING_MS = (20, 400)
"""How long it takes until a client is refused."""

_RUSH_MS = 30_000
"""In which all clients of a process that begins connect."""

_RULE = "deny-foreign-topics"


class _Coming(NamedTuple):
    """An event that is planned. `open_ms`: None if it is no end."""

    time_ms: int
    gw: str
    event: EventKind
    client: Client
    reason: str | None = None
    open_ms: int | None = None


class Happenings:
    """Makes the events of one span after the other."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._rng = dice(seed, "events")
        self._numbers: dict[tuple[str, str], int] = {}
        self._begun: dict[tuple[str, str], int] = {}
        planned = _planned(plan, dice(seed, "planned events"))
        coming = sorted(planned, key=lambda it: it.time_ms)
        self._coming = {gw: deque(it for it in coming if it.gw == gw) for gw in GATEWAYS}

    def events(self, span: Span, *, begins: bool, ends: bool) -> list[Event]:
        """Return the events of a span by time. `begins`, `ends`: the process does, with it."""
        self._begun.setdefault((span.gw, span.boot), span.start_ms)
        found = [*self._planned(span), *self._ordinary(span, at_work=not begins)]
        if begins:
            found += self._rush(span)
        if ends:
            found += self._drained(span)
        return sorted(found, key=lambda it: it.time_ms)

    def _planned(self, span: Span) -> Iterator[Event]:
        coming = self._coming[span.gw]
        while coming and coming[0].time_ms < span.start_ms + span.dur_ms:
            it = coming.popleft()
            yield self._event(span, it.time_ms, it.event, it.client, it.reason, it.open_ms)

    # -- ordinary days -----------------------------------------------------------------------

    def _ordinary(self, span: Span, *, at_work: bool) -> Iterator[Event]:
        if at_work:
            for it in self._there(span):
                for _ in range(roughly(self._rng, it.number * span.dur_ms / _LIFE_MS)):
                    yield from self._reconnected(span, it.client)
        hours = span.dur_ms / HOUR_MS
        for _ in range(roughly(self._rng, _NAMELESS_AN_HOUR * hours)):
            yield self._nameless(span)
        for _ in range(roughly(self._rng, _NAMED_AN_HOUR * hours)):
            at, opening = self._some_time(span), self._rng.randint(*_OPENING_MS)
            client = self._somebody(span)
            yield self._event(span, at, "unauthenticated", client, FAILED, opening)
        for _ in range(roughly(self._rng, _DENIED_AN_HOUR * hours)):
            yield self._denied(span)

    def _reconnected(self, span: Span, client: Client) -> Iterator[Event]:
        at = self._some_time(span)
        yield self._event(span, at, "ended", client, self._rng.choice(_ENDS), self._lived(span, at))
        back = min(at + self._rng.randint(50, 2_000), span.start_ms + span.dur_ms - 1)
        yield self._event(span, back, "connected", client)

    def _nameless(self, span: Span) -> Event:
        """Return the failure of a client of which nothing is known."""
        rng = self._rng
        return Event(
            v=VERSION,
            gw=span.gw,
            boot=span.boot,
            seq=1,
            time_ms=self._some_time(span),
            event="unauthenticated",
            listener=rng.choice(tuple(LISTENERS)),
            connection=self._number(span),
            proto=PROTOCOL,
            auth_method=rng.choice(("token", "basic", "none")),
            reason=FAILED,
            open_ms=rng.randint(*_OPENING_MS),
        )

    def _denied(self, span: Span) -> Event:
        """Return the denial of a right on a topic of somebody else."""
        rng, client = self._rng, self._somebody(span)
        topic = rng.choice([topic for tenant in self._plan.tenants for topic in tenant.topics])
        event = self._event(span, self._some_time(span), "denied", client)
        event.right = rng.choice(("produce", "consume", "lookup"))
        event.tenant, event.namespace, event.topic = topic.tenant, topic.namespace, topic.name
        event.rule = rng.choice((None, _RULE))
        event.shadow = rng.random() < 0.1
        return event

    # -- processes that begin and end --------------------------------------------------------

    def _rush(self, span: Span) -> Iterator[Event]:
        for it in self._there(span):
            for _ in range(it.number):
                at = span.start_ms + self._rng.randrange(min(_RUSH_MS, span.dur_ms))
                yield self._event(span, at, "connected", it.client)

    def _drained(self, span: Span) -> Iterator[Event]:
        end = span.start_ms + span.dur_ms
        for it in self._there(span):
            for _ in range(it.number):
                at = end - 1 - self._rng.randrange(min(2_000, span.dur_ms))
                yield self._event(span, at, "ended", it.client, DRAINED, self._lived(span, at))

    # -- parts -------------------------------------------------------------------------------

    def _there(self, span: Span) -> Iterator[Connections]:
        """Yield the connections of a gateway that are open all month, but those of a storm."""
        storm = self._plan.storm
        is_storm = span.start_ms < storm.end_ms and span.start_ms + span.dur_ms > storm.start_ms
        for tenant in self._plan.tenants:
            for it in tenant.connections:
                if it.client.gw == span.gw and not (
                    is_storm and it.client.principal == tenant.fleet
                ):
                    yield it

    def _somebody(self, span: Span) -> Client:
        tenants = self._plan.tenants
        clients = [it.client for t in tenants for it in t.connections if it.client.gw == span.gw]
        return self._rng.choice(clients)

    def _lived(self, span: Span, end_ms: int) -> int:
        """Return for how long a connection was open, at most as long as the process was there."""
        lived = int(self._rng.expovariate(1 / _LIFE_MS))
        return min(lived, end_ms - self._begun[span.gw, span.boot])

    def _some_time(self, span: Span) -> int:
        return span.start_ms + self._rng.randrange(span.dur_ms)

    def _number(self, span: Span) -> int:
        """Return a number for a connection of a process."""
        key = span.gw, span.boot
        self._numbers[key] = found = self._numbers.get(key, 0) + 1
        return found

    def _event(
        self,
        span: Span,
        time_ms: int,
        event: EventKind,
        client: Client,
        reason: str | None = None,
        open_ms: int | None = None,
    ) -> Event:
        is_new = event in ("connected", "unauthenticated")
        latest = self._numbers.get((span.gw, span.boot), 0)
        number = self._number(span) if is_new else self._rng.randint(1, max(1, latest))
        return Event(
            v=VERSION,
            gw=span.gw,
            boot=span.boot,
            seq=1,
            time_ms=time_ms,
            event=event,
            listener=client.listener,
            connection=number,
            proto=PROTOCOL,
            principal=client.principal,
            auth_method=client.method,
            client_net=client.network,
            client_lib=client.library,
            reason=reason,
            open_ms=open_ms,
        )


# -- what is planned -----------------------------------------------------------------------------


def _planned(plan: Plan, rng: Random) -> Iterator[_Coming]:
    yield from _sprayed(plan, rng)
    yield from _guessed(plan, rng)
    yield from _stormed(plan, rng)
    for strange in plan.strange:
        there = strange.connections
        for number in range(there.number):
            begin, end = strange.start_ms + number, strange.end_ms - 1 - number
            client = there.client
            yield _Coming(begin, client.gw, "connected", client)
            yield _Coming(end, client.gw, "ended", client, "client_closed", end - begin)


def _sprayed(plan: Plan, rng: Random) -> Iterator[_Coming]:
    fact = plan.spraying
    (network,) = fact.networks
    gw = fact.gateway or GATEWAYS[0]
    pace = (fact.end_ms - fact.start_ms) // len(fact.principals)
    for number, principal in enumerate(fact.principals):
        client = Client(gw, listener_of(0), principal, "basic", network, "Pulsar-CPP-v3.7.0")
        at = fact.start_ms + number * pace + rng.randrange(pace)
        yield _Coming(at, gw, "unauthenticated", client, FAILED, rng.randint(*_OPENING_MS))


def _guessed(plan: Plan, rng: Random) -> Iterator[_Coming]:
    fact = plan.guessed
    client = plan.strange[-1].connections.client
    for _ in range(fact.number):
        at = rng.randrange(fact.start_ms, fact.end_ms - 2 * SUCCESS_MS)
        yield _Coming(at, client.gw, "unauthenticated", client, FAILED, rng.randint(*_OPENING_MS))


def _stormed(plan: Plan, rng: Random) -> Iterator[_Coming]:
    """Yield the end of all connections of a fleet, their failures minute by minute, and their
    return."""
    fact = plan.storm
    tenant = next(it for it in plan.tenants if it.name == fact.tenant)
    for it in tenant.connections:
        client = it.client
        if client.principal != tenant.fleet:
            continue
        for _ in range(it.number):
            at = fact.start_ms + rng.randrange(2_000)
            yield _Coming(at, client.gw, "ended", client, EXPIRED, 12 * HOUR_MS)
            for minute in range(fact.start_ms, fact.end_ms, MINUTE_MS):
                failed = minute + 5_000 + rng.randrange(3_000)
                opening = rng.randint(*_OPENING_MS)
                yield _Coming(failed, client.gw, "unauthenticated", client, FAILED, opening)
            yield _Coming(fact.end_ms + rng.randrange(5_000), client.gw, "connected", client)
