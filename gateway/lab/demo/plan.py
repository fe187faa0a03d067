"""The demonstration's load: topics, rates and sizes, as frozen values.

Of Pulsar three tenants share the gateway. Two send modestly; `noisy` imports in bursts and sends
large messages. Kafka has no tenants: of its three topics one would send more than a rule lets it.
The total stays far below one core, since the demonstration runs beside other work.
"""

from __future__ import annotations

from dataclasses import dataclass

PULSAR, KAFKA = "pulsar", "kafka"
"""What brokers and clients speak; the schemes of their URLs."""

SCHEME = "persistent://"

SUBSCRIPTION = "demo"
"""Prefix of the names of the demonstration's subscriptions."""

READY = "ready"
COUNTS = "counts"
"""The two reports of the client process: all clients are open; their counts by topic."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One topic with its producer and its consumers.

    `rate`: messages a second while busy. `size`: bytes of a payload. `partitions`: 0 for an
    unpartitioned topic. Several `consumers` share a subscription. With `cycle`, the flow is busy
    for the first `busy` seconds of every `cycle` seconds, and silent otherwise. `limit`: messages a
    second that a rule lets its producer send; 0 without a rule.
    """

    topic: str
    rate: float
    size: int
    consumers: int = 1
    partitions: int = 0
    batched: bool = False
    busy: float = 1.0
    cycle: float = 0.0
    limit: int = 0

    def due(self, elapsed: float) -> int:
        """Return how many messages should have been sent, in all, `elapsed` seconds after the
        start."""
        return int(self.rate * self._busy_seconds(elapsed))

    def _busy_seconds(self, elapsed: float) -> float:
        if not self.cycle:
            return elapsed
        cycles, rest = divmod(elapsed, self.cycle)
        return cycles * self.busy + min(rest, self.busy)

    @property
    def producers(self) -> int:
        """Return the number of producers that brokers see: one for each partition."""
        return self.partitions or 1

    @property
    def subscribers(self) -> int:
        """Return the number of consumers that brokers see: each consumer has one for each
        partition."""
        return self.consumers * (self.partitions or 1)


FLOWS = (
    Flow("persistent://shop/orders/placed", rate=150, size=400, partitions=3),
    Flow("persistent://shop/orders/emails", rate=60, size=250, consumers=2),
    Flow("persistent://metering/meters/readings", rate=400, size=120, batched=True),
    Flow("persistent://metering/billing/usage", rate=20, size=900),
    Flow("persistent://noisy/import/rows", rate=800, size=4_000, busy=3, cycle=7),
    Flow("persistent://noisy/import/files", rate=6, size=100_000),
)

# One member each: where a group moves a partition to another member on a busy machine, this one
# fetches again what the first had not confirmed, and the gateway counts that twice.
KAFKA_FLOWS = (
    Flow("orders", rate=150, size=400, partitions=2),
    Flow("readings", rate=400, size=120, partitions=2, batched=True),
    Flow("import", rate=800, size=1_000, limit=200),
)

FLOWS_OF = {PULSAR: FLOWS, KAFKA: KAFKA_FLOWS}
"""The flows by protocol."""

MOVABLE = FLOWS[1].topic
"""The topic that the reader is told to move: with two consumers sharing it, most can go wrong."""


def tenants(flows: tuple[Flow, ...] = FLOWS) -> list[str]:
    """Return the tenants of the flows' topics, in the order of the flows."""
    return list(dict.fromkeys(short_name(flow.topic).split("/")[0] for flow in flows))


def namespaces(flows: tuple[Flow, ...] = FLOWS) -> list[str]:
    """Return the namespaces of the flows' topics as `tenant/namespace`, in the order of the
    flows."""
    return list(dict.fromkeys(short_name(flow.topic).rpartition("/")[0] for flow in flows))


def short_name(topic: str) -> str:
    """Return a topic's name without its scheme: `tenant/namespace/topic`; for Kafka `topic`."""
    return topic.removeprefix(SCHEME)


def tenant_and_rest(topic: str) -> tuple[str, str]:
    """Return a topic's tenant, and its name without the tenant. Kafka has no tenants: rules and
    metrics use `kafka` as the tenant of all its topics."""
    tenant, slash, rest = short_name(topic).partition("/")
    return (tenant, rest) if slash else (KAFKA, tenant)
