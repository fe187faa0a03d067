"""The gateway's metrics, as the numbers of the table: per topic, and rates between two scrapes.

Time is an argument, in seconds; rates are per second. The partitions of a topic are added up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_PARTITION = re.compile(r"-partition-\d+$")

_EVERYDAY = frozenset({"client_closed", "drained"})
"""Ends of connections after which nothing is sent or delivered again."""

_FIELDS: Mapping[tuple[str, str | None], str] = {
    ("gateway_topic_messages_total", "to_broker"): "messages_in",
    ("gateway_topic_messages_total", "to_client"): "messages_out",
    ("gateway_topic_bytes_total", "to_broker"): "bytes_in",
    ("gateway_topic_bytes_total", "to_client"): "bytes_out",
    ("gateway_topic_producers", None): "producers",
    ("gateway_topic_consumers", None): "consumers",
}
"""Where a sample is added, by its name and its label `direction`."""


@dataclass(slots=True)
class TopicFigures:
    """What the gateway counted of one topic since it started, and who is there now."""

    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    producers: int = 0
    consumers: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One scrape. `broken`: connections that ended, and not by their client's wish."""

    at: float
    topics: Mapping[str, TopicFigures]
    connections: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one topic, or of all: messages and bytes per second, and who is there."""

    messages_in: float = 0.0
    messages_out: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    producers: int = 0
    consumers: int = 0


def read(exposition: str, at: float) -> Snapshot:
    """Read what `/metrics` answered at a time."""
    families = text_string_to_metric_families(exposition)
    samples = [sample for family in families for sample in family.samples]
    return Snapshot(at, _topics(samples), _connections(samples), _broken(samples))


def whole(topic: str) -> str:
    """The topic of which this is a partition, or itself."""
    return _PARTITION.sub("", topic)


def rates(before: Snapshot, after: Snapshot) -> dict[str, Rates]:
    """What passed between two scrapes, by topic; topics without anything are left out."""
    seconds = max(after.at - before.at, 1e-3)  # two scrapes at one moment make no infinity
    found = {
        topic: _rate(before.topics.get(topic, TopicFigures()), now, seconds)
        for topic, now in after.topics.items()
    }
    return {topic: rate for topic, rate in found.items() if rate != Rates()}


def total(parts: Iterable[Rates]) -> Rates:
    """The sum of some rates."""
    parts = list(parts)
    return Rates(**{it.name: sum(getattr(part, it.name) for part in parts) for it in fields(Rates)})


def _rate(before: TopicFigures, now: TopicFigures, seconds: float) -> Rates:
    return Rates(
        messages_in=(now.messages_in - before.messages_in) / seconds,
        messages_out=(now.messages_out - before.messages_out) / seconds,
        bytes_in=(now.bytes_in - before.bytes_in) / seconds,
        bytes_out=(now.bytes_out - before.bytes_out) / seconds,
        producers=now.producers,
        consumers=now.consumers,
    )


def _topics(samples: Iterable[Sample]) -> dict[str, TopicFigures]:
    topics: dict[str, TopicFigures] = defaultdict(TopicFigures)
    for sample in samples:
        field = _FIELDS.get((sample.name, sample.labels.get("direction")))
        if field is not None:
            figures = topics[whole(sample.labels["topic"])]
            setattr(figures, field, getattr(figures, field) + int(sample.value))
    return dict(topics)


def _connections(samples: Iterable[Sample]) -> int:
    return sum(int(sample.value) for sample in samples if sample.name == "gateway_connections")


def _broken(samples: Iterable[Sample]) -> int:
    return sum(
        int(sample.value)
        for sample in samples
        if sample.name == "gateway_connections_ended_total"
        and sample.labels["reason"] not in _EVERYDAY
    )
