"""Exemplars of OpenMetrics 1.0: for each bucket of the histogram of sends, the slowest send that is
remembered.

A dashboard shows exemplars as dots on the histogram, each with the send's topic and connection.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from gateway.telemetry import families
from gateway.telemetry.exposition import bucket_of, escaped
from gateway.telemetry.figures import OTHER
from gateway.telemetry.latency import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.telemetry.latency import ListenerLatencies, SlowSend, SlowSends

LONGEST = 128
"""Most characters of the names and values of an exemplar's labels, by OpenMetrics."""


class Exemplars:
    """The exemplars of one process. `latencies`: histograms by listener. All tenants without a
    histogram of their own share one."""

    def __init__(self, latencies: Mapping[str, ListenerLatencies], slow: SlowSends) -> None:
        self._latencies = latencies
        self._slow = slow

    def by_sample(self) -> dict[str, str]:
        """Return the exemplars, as texts to append to lines of the metrics. The key of each text is
        the name and labels with which its line begins."""
        exemplars: dict[str, str] = {}
        for send in self._slow.slowest():  # slowest first
            listener = send.subject.listener or ""
            known = self._latencies.get(listener)
            if known is not None:
                tenant = self._tenant(send, known)
                bucket = bisect_left(BOUNDS, send.seconds)
                sample = bucket_of(families.SEND_SECONDS, listener, tenant, bucket)
                exemplars.setdefault(sample, _exemplar(send))
        return exemplars

    def _tenant(self, send: SlowSend, known: ListenerLatencies) -> str:
        topic = send.subject.topic
        return OTHER if topic is None or topic.tenant not in known.tenants else topic.tenant


def _exemplar(send: SlowSend) -> str:
    labels = {"connection": str(send.subject.connection), "topic": send.topic}
    # Parsers of some scrapers stumble over an escaped quote here, and clients choose names.
    is_odd = escaped(send.topic) != send.topic
    if is_odd or sum(map(len, (*labels, *labels.values()))) > LONGEST:
        del labels["topic"]
    text = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f" # {{{text}}} {send.seconds} {send.at:.3f}"
