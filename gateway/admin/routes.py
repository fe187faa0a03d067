"""The routes of the admin listener: `/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.admin.server import Answer, Long

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gateway.admin.server import Routes

# The text format that every version of Prometheus understands.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(metrics: Callable[[], Iterable[bytes]], unready: Callable[[], Sequence[str]]) -> Routes:
    """Return the routes of an admin listener.

    `metrics` yields the exposition in chunks of about a millisecond's work. `unready` returns the
    reasons why no new client should come here, a line each; none means ready.
    """
    return {
        "/livez": alive,
        "/readyz": lambda: readiness(unready()),
        "/metrics": Long(lambda: exposed(metrics())),
    }


def alive() -> Answer:
    """Report liveness: the gateway is alive if it can answer."""
    return Answer(200, [b"alive\n"])


def exposed(metrics: Iterable[bytes]) -> Answer:
    """Return an answer with metrics in chunks."""
    return Answer(200, metrics, METRICS_TYPE)


def readiness(reasons: Sequence[str]) -> Answer:
    """Return 200 if new clients should come here, else 503 with the reasons."""
    if not reasons:
        return Answer(200, [b"ready\n"])
    return Answer(503, [f"{reason}\n".encode() for reason in reasons])
