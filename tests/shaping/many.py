"""Many limits at once: how much memory each costs, beside its producer."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from tests.real.brokers.jars import Say
from tests.real.clients import Client, Producer, close_client, open_client
from tests.real.gateways import Gateway, Plan
from tests.real.metrics import scrape, total
from tests.support.sandbox import Sandbox

from .results import Trial
from .scenarios import LIMITED, Limit
from .ways import ruled

SENT = 3
"""Messages of each producer: with the last one it has used up its lease, and asks again."""
FIRST = 100
REST = 1.0


def measure(folder: Path, _say: Say, *, short: bool) -> Iterator[Trial]:
    """Give each producer a topic, and so a limit, of its own."""
    count = 500 if short else 10_000
    without = _memory(PLAIN, folder / "without", count)
    under = _memory(ruled(folder, Limit(1000)), folder / "under", count)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"limits": count, "producer": without, "limited": under, "limit": under - without}
    yield Trial("limits", f"{count} limits", "python", "gateway", at, facts=facts)


PLAIN = Plan()


def _memory(plan: Plan, folder: Path, count: int) -> float:
    """Return the bytes of the process for each open producer."""
    with ExitStack() as running:
        broker = Sandbox(folder)
        folder.mkdir()
        broker.start()
        running.callback(broker.stop)
        gateway = Gateway(broker, plan, folder)
        gateway.start()
        running.callback(gateway.stop)
        client = open_client(gateway.untapped_url)
        running.callback(close_client, client)
        return _grown(gateway, client, count)


def _grown(gateway: Gateway, client: Client, count: int) -> float:
    """Measure without the first producers, which pay for what is made once."""
    kept = [_producing(client, number) for number in range(FIRST)]
    before = _resident(gateway)
    kept += [_producing(client, number) for number in range(FIRST, count)]
    time.sleep(REST)
    return (_resident(gateway) - before) / (len(kept) - FIRST)


def _producing(client: Client, number: int) -> Producer:
    """Return a producer that has sent a little."""
    producer = client.create_producer(f"persistent://public/default/{LIMITED}-{number}")
    for _ in range(SENT):
        producer.send(b"x")
    return producer


def _resident(gateway: Gateway) -> float:
    return total(scrape(gateway.metrics_url), "process_resident_memory_bytes")
