"""Counts denied rights by tenant and topic. Clients may name any, so those without traffic share
one count.
"""

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
    """The labels by which denials are counted. `mode`: enforce or shadow."""

    listener: str
    tenant: str
    right: str
    mode: str


class DeniedTopics(Protocol):
    """Counts denials by topic."""

    def deny(self, topic: TopicName, right: str) -> None:
        """Count a denied right, if the topic has figures of its own."""


class Denials:
    """Counts denied rights, as a `witness.Witness`. A tenant is counted by name if its listener has
    histograms of it, else under `__other__`. Denials that are enforced are also counted by topic,
    if its cluster's book has figures of the topic."""

    def __init__(self) -> None:
        self.counts: Counter[DeniedTenant] = Counter()
        self._latencies: Mapping[str, ListenerLatencies] = {}
        self._books: Mapping[str, DeniedTopics] = {}

    def follow(
        self, latencies: Mapping[str, ListenerLatencies], books: Mapping[str, DeniedTopics]
    ) -> None:
        """Set which tenants and topics are counted by name: those with histograms or figures of
        their own. `latencies`: histograms by listener. `books`: by cluster."""
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
