"""The routes of the admin listener: liveness, readiness, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.admin.server import Answer, Long, Representation
from gateway.telemetry import open_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gateway.admin.server import Routes

# The text format that every version of Prometheus understands.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


METRICS, TOPICS = "/metrics", "/metrics/topics"
"""The paths of metrics: of the process, listeners and tenants; and of topics, which are many."""


STARTING = "starting"
"""Why a gateway is not ready whose listeners have not been open yet."""


def routes(
    metrics: Mapping[str, Callable[[], Iterable[bytes]]],
    started: Callable[[], bool],
    unready: Callable[[], Sequence[str]],
    exemplars: Callable[[], Mapping[str, str]] = dict,
) -> Routes:
    """Return the routes of an admin listener.

    `metrics`: for each path, a function that yields the metrics as text, in chunks that take about
    a millisecond each. `started`: returns whether all listeners have been open. `unready`: returns
    the reasons why no new client should connect, one line each; no reasons: the gateway is ready.
    `exemplars`: see `open_metrics.converted`.
    """
    return {
        "/startupz": lambda: readiness([] if started() else [STARTING]),
        "/livez": alive,
        "/readyz": lambda: readiness(unready()),
        **{path: _long(write, exemplars) for path, write in metrics.items()},
    }


def _long(write: Callable[[], Iterable[bytes]], exemplars: Callable[[], Mapping[str, str]]) -> Long:
    return Long(lambda: exposed(write(), exemplars))


def alive() -> Answer:
    """Return status 200: if the gateway can respond, it is alive."""
    return Answer(200, [b"alive\n"])


def exposed(metrics: Iterable[bytes], exemplars: Callable[[], Mapping[str, str]] = dict) -> Answer:
    """Return a response with metrics in chunks, as Prometheus text or, for clients that accept it,
    as OpenMetrics."""

    def convert(chunks: Iterable[bytes]) -> Iterator[bytes]:
        return open_metrics.converted(chunks, exemplars())

    kind = Representation(open_metrics.MEDIA_TYPE, open_metrics.CONTENT_TYPE, convert)
    return Answer(200, metrics, METRICS_TYPE, otherwise=kind)


def readiness(reasons: Sequence[str]) -> Answer:
    """Return status 200 if there are no reasons; otherwise status 503 with the reasons why no new
    client should connect."""
    if not reasons:
        return Answer(200, [b"ready\n"])
    return Answer(503, [f"{reason}\n".encode() for reason in reasons])
