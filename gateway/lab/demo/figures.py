"""Reads the gateway's metrics for the table: counts by topic, and rates between two scrapes.
`Witness` remembers events after which messages rightly pass more than once.

Time is an argument, in seconds; rates are per second. Partitions of a topic are added up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from gateway.lab.demo.plan import FLOWS, Flow

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_PARTITION = re.compile(r"-partition-\d+$")

_ORDERLY_ENDS = frozenset({"client_closed", "drained"})
"""End reasons after which no message is sent or delivered again."""

_FIELDS: Mapping[tuple[str, str | None], str] = {
    ("gateway_topic_messages_total", "to_broker"): "messages_in",
    ("gateway_topic_messages_total", "to_client"): "messages_out",
    ("gateway_topic_bytes_total", "to_broker"): "bytes_in",
    ("gateway_topic_bytes_total", "to_client"): "bytes_out",
    ("gateway_topic_producers", None): "producers",
    ("gateway_topic_consumers", None): "consumers",
}
"""The field to which a sample is added, by its name and its label `direction`."""


@dataclass(slots=True)
class GatewayCounts:
    """What the gateway counted for one topic since the gateway's start, and the topic's open
    producers and consumers."""

    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    producers: int = 0
    consumers: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one scrape of the gateway's metrics said. `at`: time of the scrape. `topics`: counts by
    topic. `connections`: number of open connections. `broken`: number of connections that neither
    the client nor a drain ended."""

    at: float
    topics: Mapping[str, GatewayCounts]
    connections: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages and bytes per second, and open producers and consumers, of one topic or of several
    together."""

    messages_in: float = 0.0
    messages_out: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    producers: int = 0
    consumers: int = 0


class Witness:
    """Remembers which topics moved to another broker, and which topics other clients used.

    `owners`: the broker of each topic at the last observation. `moved`: topics that changed their
    broker. `visited`: topics that had more producers or consumers than the demonstration's.
    """

    def __init__(self, flows: Sequence[Flow] = FLOWS) -> None:
        self._flows = flows
        self.owners: Mapping[str, str] = {}
        self.moved: set[str] = set()
        self.visited: set[str] = set()

    def observe(self, snapshot: Snapshot, owners: Mapping[str, str]) -> None:
        """Compare a new snapshot and the topics' present brokers with the earlier ones, and
        remember topics that moved or that other clients use. `owners`: the broker of each topic;
        empty if unknown."""
        self.moved |= {topic for topic, owner in self.owners.items() if owners.get(topic) != owner}
        self.owners = owners
        self.visited |= {flow.topic for flow in self._flows if _has_visitors(flow, snapshot)}


def _has_visitors(flow: Flow, snapshot: Snapshot) -> bool:
    seen = snapshot.topics.get(flow.topic, GatewayCounts())
    return seen.producers > flow.producers or seen.consumers > flow.subscribers


def read(exposition: str, at: float) -> Snapshot:
    """Return the snapshot that metrics in Prometheus text contain. `at`: when they were scraped."""
    families = text_string_to_metric_families(exposition)
    samples = [sample for family in families for sample in family.samples]
    return Snapshot(at, _topics(samples), _connections(samples), _broken(samples))


def without_partition(topic: str) -> str:
    """Return a topic's name without the number of a partition."""
    return _PARTITION.sub("", topic)


def rates(before: Snapshot, after: Snapshot) -> dict[str, Rates]:
    """Return the rates of each topic between two scrapes. A topic is left out if nothing passed and
    no producer or consumer is open."""
    seconds = max(after.at - before.at, 1e-3)  # two scrapes at once must not divide by zero
    by_topic = {
        topic: _rate(before.topics.get(topic, GatewayCounts()), now, seconds)
        for topic, now in after.topics.items()
    }
    return {topic: rate for topic, rate in by_topic.items() if rate != Rates()}


def total(parts: Iterable[Rates]) -> Rates:
    """Return the sum of several topics' rates."""
    parts = list(parts)
    return Rates(
        **{field.name: sum(getattr(part, field.name) for part in parts) for field in fields(Rates)}
    )


def _rate(before: GatewayCounts, now: GatewayCounts, seconds: float) -> Rates:
    return Rates(
        messages_in=(now.messages_in - before.messages_in) / seconds,
        messages_out=(now.messages_out - before.messages_out) / seconds,
        bytes_in=(now.bytes_in - before.bytes_in) / seconds,
        bytes_out=(now.bytes_out - before.bytes_out) / seconds,
        producers=now.producers,
        consumers=now.consumers,
    )


def _topics(samples: Iterable[Sample]) -> dict[str, GatewayCounts]:
    topics: dict[str, GatewayCounts] = defaultdict(GatewayCounts)
    for sample in samples:
        field = _FIELDS.get((sample.name, sample.labels.get("direction")))
        if field is not None:
            figures = topics[without_partition(sample.labels["topic"])]
            setattr(figures, field, getattr(figures, field) + int(sample.value))
    return dict(topics)


def _connections(samples: Iterable[Sample]) -> int:
    return sum(int(sample.value) for sample in samples if sample.name == "gateway_connections")


def _broken(samples: Iterable[Sample]) -> int:
    return sum(
        int(sample.value)
        for sample in samples
        if sample.name == "gateway_connections_ended_total"
        and sample.labels["reason"] not in _ORDERLY_ENDS
    )
