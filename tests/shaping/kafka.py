"""Limits of what clients of Kafka send and receive: how exact they are for each library.

One client at a time, which takes all that it gets, behind a gateway and a real broker.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.greedy import NAMES, READ, SENT, Clients
from tests.apache_kafka.limiting import passed, rules_of, topic_of
from tests.real.brokers.jars import Say
from tests.real.gateways import HOST, Gateway

from .results import Trial
from .scenarios import Unit

RATES, SHORT = (100.0, 500.0, 2000.0), (500.0,)
SECONDS = 10.0
STORED_SECONDS = 20
"""Seconds for which stored messages last, behind those of a burst."""


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on a real broker, one limit after the other."""
    broker = Kafka(folder, say)
    broker.start()
    try:
        for rate in SHORT if short else RATES:
            here = folder / f"{rate:.0f}"
            here.mkdir()
            yield from _limited(broker, rate, here)
    finally:
        broker.stop()


def _limited(broker: Kafka, rate: float, folder: Path) -> Iterator[Trial]:
    gateway = Gateway(broker, KafkaPlan(rules=rules_of(rate, folder)), folder)
    gateway.start()
    try:
        for kind in (SENT, READ):
            for name in NAMES:
                yield _trial(broker, gateway, rate, kind, name, folder)
    finally:
        gateway.stop()


def _trial(
    broker: Kafka, gateway: Gateway, rate: float, kind: str, name: str, folder: Path
) -> Trial:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    stored = int(rate * STORED_SECONDS) if kind == READ else 0
    topic = topic_of(kind, f"{BROKERS_HOST}:{broker.port}", stored)
    with Clients(broker.jars, folder).at_work(kind, name, f"{HOST}:{gateway.port}", topic):
        first, last = passed(gateway, [topic], SECONDS)
    found = (last.messages[topic] - first.messages[topic]) / (last.began - first.began)
    facts = {"passed": found, "off": found / rate - 1}
    return Trial("kafka", kind, name, "gateway", at, rate, Unit.MESSAGES.value, facts=facts)
