"""The usage records of an interval: sends, deliveries, connections and latencies of a cast.

Deliveries follow sends: each subscription gets what was sent, some of it an interval later. Sums of
a record agree: peaks lie above the average and below the sum, and what was sent is what was
confirmed and what the broker refused.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gateway.pipeline.demo.cast import PROTOCOL, Client, Tenant, Topic, Window
from gateway.pipeline.demo.dice import dice, roughly
from gateway.pipeline.demo.durations import histogram
from gateway.pipeline.demo.load import DAY_MS, rhythm
from gateway.pipeline.demo.plan import HOUR_MS, LIMIT_FACTOR, LIMITED_RULES, SHARED_RULE
from gateway.usage.records import VERSION, Span, Usage, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gateway.pipeline.demo.plan import Plan
    from gateway.usage.records import What

_NOISE = 0.15
"""Standard deviation of the logarithm of a load, from one interval to the next."""

_SLOWER: dict[What, float] = {"send": 12.0, "own": 2.0, "lookup": 3.0, "first_message": 4.0}
"""Factors of durations beside a noisy neighbour: the broker is late more than the gateway."""

_ERRORS, _REFUSALS = 0.003, 0.003
"""Shares of records of sends with some entries that the broker, or a rule, refused."""

_LATE = 0.03
"""Share of messages that are delivered an interval later."""

_OVERHEAD = 60
"""Bytes of an entry beside its messages: the command and the metadata."""

_IDLE_AT_MS = 6 * HOUR_MS
_IDLE_MESSAGES = 3

_UNNUMBERED = 1
"""Records get their number when they are written."""


class Opened(NamedTuple):
    """How many connections were opened in a span, by listener and by tenant."""

    listeners: Counter[str]
    tenants: Counter[str]


class Traffic:
    """Makes the records of one interval after the other."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._rng = dice(seed, "traffic")
        self._backlog: dict[tuple[str, str], int] = defaultdict(int)
        self._numbers = {it.client: it.number for t in plan.tenants for it in t.connections}

    def records(
        self, spans: Sequence[Span], opened: Mapping[Span, Opened]
    ) -> dict[Span, list[Usage]]:
        """Return the records of an interval. `spans`: of all processes in it. `opened`: of each."""
        found: dict[Span, list[Usage]] = {span: [] for span in spans}
        entries: dict[Span, Counter[str]] = {span: Counter() for span in spans}
        for tenant in self._plan.tenants:
            for span, record in self._of(tenant, spans):
                found[span].append(record)
                if record.op == "send":
                    entries[span][tenant.name] += record.entries
        for span in spans:
            found[span] += self._connections(span)
            found[span] += self._latencies(span, entries[span], opened[span])
        return found

    # -- messages ----------------------------------------------------------------------------

    def _of(self, tenant: Tenant, spans: Sequence[Span]) -> Iterator[tuple[Span, Usage]]:
        now = spans[0].start_ms
        load = rhythm(tenant, now) * self._plan.factor(tenant.name, now)
        for topic in tenant.topics:
            sent = 0
            for client, share in topic.senders:
                for span in _spans_at(client.gw, spans):
                    record = self._send(tenant, topic, client, span, load * share, share)
                    if record is not None:
                        sent += record.msgs
                        yield span, record
            for subscription, client in topic.receivers:
                yield from self._deliver(topic, subscription, client, spans, sent)
        if not tenant.topics:
            yield from self._idle(tenant, spans)

    def _send(
        self, tenant: Tenant, topic: Topic, client: Client, span: Span, load: float, share: float
    ) -> Usage | None:
        """Return what a client sent to a topic. `load`: of the usual rate of all its clients."""
        open_ms = topic.window.overlap_ms(span.start_ms, span.dur_ms)
        seconds = open_ms / 1000
        usual = topic.rate * 60 / topic.window.minutes * seconds
        rng = self._rng
        wanted = roughly(rng, usual * load * rng.lognormvariate(0.0, _NOISE))
        if not wanted:
            return None
        is_limited = tenant.name == self._plan.limited.tenant
        messages = min(wanted, int(usual * share * LIMIT_FACTOR)) if is_limited else wanted
        record = self._messages("send", topic, client, span, messages, seconds)
        record.sent_msgs, record.sent_bytes = record.msgs, record.bytes_wire
        if is_limited and wanted > messages:
            self._throttle(record, LIMITED_RULES, min(1.0, wanted / (messages + 1) - 1))
        noisy = self._plan.noise(span.start_ms)
        if noisy and (tenant.name in noisy.victims or tenant.name == noisy.tenant):
            self._throttle(record, (SHARED_RULE,), rng.uniform(0.1, 0.4))
        if rng.random() < _ERRORS:
            record.errors = rng.randint(1, 3)
            record.sent_msgs += record.errors * topic.batch
            record.sent_bytes += record.errors * (topic.batch * topic.size + _OVERHEAD)
        if rng.random() < _REFUSALS:
            record.refused = rng.randint(1, 5)
        return record

    def _deliver(
        self,
        topic: Topic,
        subscription: str,
        client: Client,
        spans: Sequence[Span],
        sent: int,
    ) -> Iterator[tuple[Span, Usage]]:
        key = topic.name, subscription
        waiting = self._backlog[key] + sent
        ready = waiting - int(sent * self._rng.random() * _LATE)
        self._backlog[key] = waiting - ready
        own = _spans_at(client.gw, spans)
        lengths = sum(it.dur_ms for it in own)
        for span in own:
            part = ready if span is own[-1] else ready * span.dur_ms // lengths
            ready -= part
            if part:
                seconds = (topic.window.overlap_ms(span.start_ms, span.dur_ms) or 1000) / 1000
                record = self._messages("deliver", topic, client, span, part, seconds)
                record.subscription = subscription
                yield span, record

    def _messages(
        self, op: str, topic: Topic, client: Client, span: Span, messages: int, seconds: float
    ) -> Usage:
        """Return a record of messages in `seconds` of a span."""
        rng = self._rng
        entries = min(messages, max(1, math.ceil(messages / topic.batch * rng.uniform(1.0, 1.1))))
        size = roughly(rng, messages * topic.size * rng.uniform(0.9, 1.1)) + entries * _OVERHEAD
        most = messages / max(seconds, 1.0) * rng.uniform(1.3, 3.0)
        peak = min(messages, max(1, math.ceil(most)))
        return Usage(
            v=VERSION,
            gw=span.gw,
            boot=span.boot,
            seq=_UNNUMBERED,
            start_ms=span.start_ms,
            dur_ms=span.dur_ms,
            op=op,  # type: ignore[arg-type]
            proto=PROTOCOL,
            listener=client.listener,
            cluster=client.cluster,
            tenant=topic.tenant,
            namespace=topic.namespace,
            topic=topic.name,
            principal=client.principal,
            auth_method=client.method,
            client_net=client.network,
            client_lib=client.library,
            msgs=messages,
            entries=entries,
            bytes_wire=size,
            peak_msgs_1s=peak,
            peak_bytes_1s=size * peak // messages,
            clients=self._numbers.get(client, 1),
        )

    def _throttle(self, record: Usage, rules: Sequence[str], share: float) -> None:
        """Let a share of the entries wait for rules, the first of them longest."""
        waits = {it.rule: it for it in record.throttles}
        for number, rule in enumerate(rules, 1):
            count = max(1, int(record.entries * share / number))
            ms = max(1, int(count * self._rng.uniform(20, 120) / number**2))
            waits[rule] = Wait(rule, count, min(ms, record.dur_ms * record.clients // number))
        record.throttles = sorted(waits.values(), key=lambda it: (-it.ms, it.rule))
        record.throttle_count = sum(it.count for it in record.throttles)
        record.throttle_ms = sum(it.ms for it in record.throttles)
        record.held_bytes_max = max(record.held_bytes_max, record.peak_bytes_1s)

    def _idle(self, tenant: Tenant, spans: Sequence[Span]) -> Iterator[tuple[Span, Usage]]:
        """Yield the only messages of an idle tenant's day."""
        client = tenant.connections[0].client
        for span in _spans_at(client.gw, spans):
            if span.start_ms % DAY_MS == _IDLE_AT_MS:
                topic = _topic_of_idle(tenant)
                record = self._messages("send", topic, client, span, _IDLE_MESSAGES, 60.0)
                record.sent_msgs, record.sent_bytes = record.msgs, record.bytes_wire
                yield span, record

    # -- connections and durations -----------------------------------------------------------

    def _connections(self, span: Span) -> Iterator[Usage]:
        plan = self._plan
        away = plan.storm.start_ms, plan.storm.end_ms
        for tenant in plan.tenants:
            for it in tenant.connections:
                open_ms = span.dur_ms
                if it.client.principal == tenant.fleet:
                    open_ms -= _common_ms(span, *away)
                if it.client.gw == span.gw and open_ms > 0:
                    yield self._connected(it.client, it.number, span, open_ms)
        for strange in plan.strange:
            there = strange.connections
            open_ms = _common_ms(span, strange.start_ms, strange.end_ms)
            if there.client.gw == span.gw and open_ms > 0:
                yield self._connected(there.client, there.number, span, open_ms)

    def _connected(self, client: Client, number: int, span: Span, open_ms: int) -> Usage:
        missing = int(self._rng.random() * 500)  # somebody reconnects
        return Usage(
            v=VERSION,
            gw=span.gw,
            boot=span.boot,
            seq=_UNNUMBERED,
            start_ms=span.start_ms,
            dur_ms=span.dur_ms,
            op="connect",
            proto=PROTOCOL,
            listener=client.listener,
            cluster=client.cluster,
            principal=client.principal,
            auth_method=client.method,
            client_net=client.network,
            client_lib=client.library,
            clients=number,
            open_ms=max(1, number * open_ms - missing),
        )

    def _latencies(self, span: Span, entries: Counter[str], opened: Opened) -> Iterator[Usage]:
        noisy = self._plan.noise(span.start_ms)
        for listener, number in opened.listeners.items():
            yield from self._latency(span, listener, None, "connect", number)
        for tenant in self._plan.tenants:
            name = tenant.name
            is_slow = noisy is not None and (name in noisy.victims or name == noisy.tenant)
            counted: dict[What, int] = {
                "send": entries[name],
                "own": entries[name],
                "lookup": opened.tenants[name] * len(tenant.topics),
                "first_message": opened.tenants[name],
            }
            for what, number in counted.items():
                slower = _SLOWER[what] if is_slow else 1.0
                yield from self._latency(span, tenant.listener, name, what, number, slower)

    def _latency(
        self,
        span: Span,
        listener: str,
        tenant: str | None,
        what: What,
        number: int,
        slower: float = 1.0,
    ) -> Iterator[Usage]:
        if not number:
            return
        counts, sum_us = histogram(self._rng, what, number, slower)
        total = sum(counts)
        if total:
            yield Usage(
                v=VERSION,
                gw=span.gw,
                boot=span.boot,
                seq=_UNNUMBERED,
                start_ms=span.start_ms,
                dur_ms=span.dur_ms,
                op="latency",
                listener=listener,
                tenant=tenant,
                lat_what=what,
                lat_bucket=counts,
                lat_count=total,
                lat_sum_us=sum_us,
            )


def _spans_at(gw: str, spans: Sequence[Span]) -> list[Span]:
    return [it for it in spans if it.gw == gw]


def _common_ms(span: Span, start_ms: int, end_ms: int) -> int:
    begin, end = max(span.start_ms, start_ms), min(span.start_ms + span.dur_ms, end_ms)
    return max(0, end - begin)


def _topic_of_idle(tenant: Tenant) -> Topic:
    namespace = f"{tenant.name}/web"
    name = f"persistent://{namespace}/orders"
    return Topic(tenant.name, namespace, name, 0.0, 200, 1, Window(), (), ())
