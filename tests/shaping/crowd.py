"""A limit of bytes that many connections share which wait for nothing: what is stored, or received.

Each connection sends as fast as it is read, whatever it is told, and is opened again when it ends.
What they send is counted at the server, and what they receive by themselves.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import yaml

from tests.apache_kafka.greedy import READ, SENT
from tests.apache_kafka.limiting import ACTIONS
from tests.real.brokers.jars import Say
from tests.support.crowd import Crowd

from .crowded import SERVERS, Server
from .results import Trial
from .scenarios import Unit

CONNECTIONS, SHORT = (1, 20, 200), (20,)
SIZE = 10_000
SIZES = {"kafka": (SIZE, 1_000_000), "pulsar": (SIZE,), "tubemq": (SIZE,)}
"""Bytes of a message: a request has one. The large ones cost ten seconds each."""

PER = {"kafka": ("topic", "principal")}
"""Of what each has the limit, if not of a topic alone."""

RATE = 100_000
RATES = {("tubemq", READ): 6_000_000}
"""Others: a reply of TubeMQ brings 330 KB, and passes whole. Each of two hundred consumers gets one
every eleven seconds."""

SECONDS, SHORT_SECONDS = 60.0, 20.0
WARM, WARM_OF = 8.0, {"pulsar": 35.0, "tubemq": 35.0}
"""Seconds before the measurement. By then the crowd has used up its burst, and its limit has earned
the permits that each consumer of Pulsar gets at its opening. TubeMQ starts a topic slowly."""


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on real servers, one crowd after the other."""
    for protocol, start in SERVERS.items():
        number = count()
        with start(folder / protocol, say) as server:
            for kind in (SENT, READ):
                for per in PER.get(protocol, ("topic",)):
                    for size in (SIZE,) if short or per != "topic" else SIZES[protocol]:
                        for connections in SHORT if short else CONNECTIONS:
                            here = folder / f"{protocol}-{next(number)}"
                            here.mkdir(parents=True)
                            seconds = SHORT_SECONDS if short else SECONDS
                            crowd = (kind, per, size, connections)
                            yield trial(server, protocol, crowd, seconds, here)


def _rules(folder: Path, per: str, rate: int) -> Path:
    rules = [
        {
            "id": kind,
            "match": {"topic": f"{kind}*"},
            "limit": {action: {"bytes": f"{rate}B/s"}},
            "per": per,
        }
        for kind, action in ACTIONS.items()
    ]
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "rules": rules}))
    return path


def trial(
    server: Server, protocol: str, what: tuple[str, str, int, int], seconds: float, folder: Path
) -> Trial:
    """Measure one crowd. `what`: which way, of what each has the limit, the bytes of a message, the
    number of connections."""
    kind, per, size, connections = what
    rate = RATES.get((protocol, kind), RATE)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    with server.gateway(_rules(folder, per, rate), folder) as gateway:
        topic = server.topic(kind)
        talk = server.sends(topic, size) if kind == SENT else server.reads(topic, size)
        crowd = Crowd(gateway.crowded, connections, talk)

        def passed() -> tuple[float, float, float]:
            found = server.stored(topic) * size if kind == SENT else crowd.received
            return time.monotonic(), found, gateway.cpu()

        start = time.monotonic()
        with crowd.at_work():
            time.sleep(WARM_OF.get(protocol, WARM))
            began, before, cpu = passed()
            time.sleep(seconds)
            ended, after, later_cpu = passed()
    found, used = (after - before) / (ended - began), (later_cpu - cpu) / (ended - began)
    facts = {"passed": found, "off": found / rate - 1, "ended": crowd.ended, "size": size}
    name = f"{kind} by {connections} per {per}"
    facts |= {"cpu": used, "ahead": after / rate - (ended - start)}
    return Trial("crowd", name, protocol, "gateway", at, rate, Unit.BYTES.value, facts=facts)
