"""What the admin listener answers: `/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.admin.server import Answer, Long

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gateway.admin.server import Routes

# The text format that every Prometheus understands.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(metrics: Callable[[], Iterable[bytes]], unready: Callable[[], Sequence[str]]) -> Routes:
    """Answer the routes of an admin listener.

    `metrics` gives the exposition in chunks of about a millisecond's work.
    `unready` gives the reasons why no new client should come here, a line each; none: ready.
    """
    return {
        "/livez": alive,
        "/readyz": lambda: readiness(unready()),
        "/metrics": Long(lambda: exposed(metrics())),
    }


def alive() -> Answer:
    """Whoever can answer lives."""
    return Answer(200, [b"alive\n"])


def exposed(metrics: Iterable[bytes]) -> Answer:
    """Metrics, in chunks."""
    return Answer(200, metrics, METRICS_TYPE)


def readiness(reasons: Sequence[str]) -> Answer:
    """Whether new clients should come here, or why not."""
    if not reasons:
        return Answer(200, [b"ready\n"])
    return Answer(503, [f"{reason}\n".encode() for reason in reasons])
