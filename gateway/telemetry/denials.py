"""Denied rights by tenant and topic. Clients name any: those without traffic are one."""

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
    """What denials are counted by here. `mode`: enforce or shadow."""

    listener: str
    tenant: str
    right: str
    mode: str


class DeniedTopics(Protocol):
    """Counts denials by topic."""

    def deny(self, topic: TopicName, right: str) -> None:
        """Count that a client lacked a right, if the topic has figures of its own."""


class Denials:
    """Counts denials; see `witness.Witness`. A tenant is told apart where a listener has histograms
    of it, a topic where its cluster's book has figures of it, which is told of real denials alone.
    """

    def __init__(self) -> None:
        self.counts: Counter[DeniedTenant] = Counter()
        self._latencies: Mapping[str, ListenerLatencies] = {}
        self._books: Mapping[str, DeniedTopics] = {}

    def follow(
        self, latencies: Mapping[str, ListenerLatencies], books: Mapping[str, DeniedTopics]
    ) -> None:
        """Tell apart what these know, by listener and by cluster."""
        self._latencies, self._books = latencies, books

    def opened(self, connection: int, caller: Caller) -> None:
        """See `witness.Witness`."""

    def ended(self, it: Ended) -> None:
        """See `witness.Witness`."""

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """See `witness.Witness`."""
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
