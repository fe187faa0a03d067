"""Counts denied rights by tenant and topic. Clients may name any tenant and topic, so all those
without traffic share one count."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.telemetry.latency import ListenerLatencies
    from gateway.telemetry.witness import Ended
    from gateway.wire.subject import Caller, Subject, TopicName


class DeniedTenant(NamedTuple):
    """The labels of one count of denials. `mode`: enforce or shadow."""

    listener: str
    tenant: str
    right: str
    mode: str


class DeniedTopics(Protocol):
    """Counts denials by topic."""

    def deny(self, topic: TopicName, right: str) -> None:
        """Count that a right on a topic was denied, if the topic has figures of its own."""


class Denials:
    """Counts denied rights; it is a `witness.Witness`. A denial is counted under its tenant's name
    if the listener has histograms of this tenant, otherwise under `__other__`. An enforced denial
    is also counted by topic, if the cluster's book has figures of this topic."""

    def __init__(self) -> None:
        self.counts: Counter[DeniedTenant] = Counter()
        self._latencies: Mapping[str, ListenerLatencies] = {}
        self._books: Mapping[str, DeniedTopics] = {}

    def follow(
        self, latencies: Mapping[str, ListenerLatencies], books: Mapping[str, DeniedTopics]
    ) -> None:
        """Set which tenants and topics are counted by name: tenants that have histograms in
        `latencies` (by listener), and topics that have figures in `books` (by cluster)."""
        self._latencies, self._books = latencies, books

    def opened(self, connection: int, caller: Caller) -> None:
        """Do nothing: only denials are counted."""

    def ended(self, end: Ended) -> None:
        """Do nothing: only denials are counted."""

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Count a denied right, by tenant and topic."""
        topic, listener = subject.topic, subject.listener or ""
        if topic is None:
            return
        known = self._latencies.get(listener)
        tenant = topic.tenant if known is not None and topic.tenant in known.tenants else OTHER
        mode = "shadow" if shadow else "enforce"
        self.counts[DeniedTenant(listener, tenant, right, mode)] += 1
        book = self._books.get(subject.cluster or "")
        if book is not None and not shadow:
            book.deny(topic, right)
