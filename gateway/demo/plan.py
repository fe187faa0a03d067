"""What the demo's clients do: topics, rates and sizes, as frozen values.

Three tenants share the gateway. Two are modest; `noisy` imports in bursts and sends large
messages. All together stay far below one core: the demo runs beside somebody's work.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEME = "persistent://"

SUBSCRIPTION = "demo"
"""What the names of the demo's subscriptions begin with."""

READY = "ready"
COUNTS = "counts"
"""The two reports of the client process: all is open; what it counted, by topic."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One topic with its producer and its consumers.

    `rate`: messages a second while it is busy. `size`: bytes of a payload. `partitions`: 0 for a
    topic without. Several `consumers` share a subscription. With `cycle` it is busy for `busy`
    seconds at the beginning of every `cycle` seconds, and silent otherwise.
    """

    topic: str
    rate: float
    size: int
    consumers: int = 1
    partitions: int = 0
    batched: bool = False
    busy: float = 1.0
    cycle: float = 0.0

    def due(self, elapsed: float) -> int:
        """How many messages are to be sent `elapsed` seconds after the begin, in all."""
        return int(self.rate * self._busy_within(elapsed))

    def _busy_within(self, elapsed: float) -> float:
        if not self.cycle:
            return elapsed
        cycles, rest = divmod(elapsed, self.cycle)
        return cycles * self.busy + min(rest, self.busy)

    @property
    def producers(self) -> int:
        """As brokers and gateways see them: one for each partition."""
        return self.partitions or 1

    @property
    def subscribers(self) -> int:
        """As brokers and gateways see them: each consumer has one at each partition."""
        return self.consumers * (self.partitions or 1)


FLOWS = (
    Flow("persistent://shop/orders/placed", rate=150, size=400, partitions=3),
    Flow("persistent://shop/orders/emails", rate=60, size=250, consumers=2),
    Flow("persistent://metering/meters/readings", rate=400, size=120, batched=True),
    Flow("persistent://metering/billing/usage", rate=20, size=900),
    Flow("persistent://noisy/import/rows", rate=800, size=4_000, busy=3, cycle=7),
    Flow("persistent://noisy/import/files", rate=6, size=100_000),
)

MOVABLE = FLOWS[1].topic
"""The topic that the reader is told to move: two consumers share it, so most can go wrong."""


def tenants(flows: tuple[Flow, ...] = FLOWS) -> list[str]:
    """The tenants of the flows, in their order."""
    return list(dict.fromkeys(short(flow.topic).split("/")[0] for flow in flows))


def namespaces(flows: tuple[Flow, ...] = FLOWS) -> list[str]:
    """The namespaces of the flows as `tenant/namespace`, in their order."""
    return list(dict.fromkeys(short(flow.topic).rpartition("/")[0] for flow in flows))


def short(topic: str) -> str:
    """A full topic name without its scheme: `tenant/namespace/topic`."""
    return topic.removeprefix(SCHEME)
