"""Many limits at once: what each of them costs in memory, beside the producer that it is for."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.real.brokers.jars import Say
from tests.real.clients import close_client, open_client
from tests.real.gateways import Gateway, Plan
from tests.real.metrics import scrape, total
from tests.support.sandbox import Sandbox

from .results import Trial
from .scenarios import LIMITED, Limit
from .ways import ruled

SENT = 3
"""Messages that each producer sends: with the last it has used up its lease, and asks again."""
REST = 1.0


def measure(folder: Path, _say: Say, *, short: bool) -> Iterator[Trial]:
    """Each producer has a topic, so a limit, of its own."""
    count = 500 if short else 10_000
    broker = Sandbox(folder)
    broker.start()
    try:
        without = _memory(broker, PLAIN, folder / "without", count)
        under = _memory(broker, ruled(folder, Limit(1000)), folder / "under", count)
    finally:
        broker.stop()
    at = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"limits": count, "producer": without, "limited": under, "limit": under - without}
    yield Trial("limits", f"{count} limits", "python", "gateway", at, facts=facts)


PLAIN = Plan()


def _memory(broker: Sandbox, plan: Plan, folder: Path, count: int) -> float:
    """Bytes of the process for each producer that is open."""
    gateway = Gateway(broker, plan, folder)
    gateway.start()
    client = open_client(gateway.untapped_url)
    try:
        # What is made once must not count as a producer's.
        _produce(client, 50, folder.name + "-first")
        before = _resident(gateway)
        kept = _produce(client, count, folder.name)
        time.sleep(REST)
        grown = _resident(gateway) - before
        assert len(kept) == count
        return grown / count
    finally:
        close_client(client)
        gateway.stop()


def _produce(client: Any, count: int, name: str) -> Sequence[Any]:
    """Open producers, and have each send a little."""
    topics = [f"persistent://public/default/{LIMITED}-{name}-{at}" for at in range(count)]
    receipts = SimpleQueue[Any]()
    producers = [client.create_producer(topic) for topic in topics]
    for producer in producers:
        for _ in range(SENT):
            producer.send_async(b"x", lambda result, _id: receipts.put(result))
    for _ in range(SENT * count):
        receipts.get(timeout=30)
    return producers


def _resident(gateway: Gateway) -> float:
    return total(scrape(gateway.metrics_url), "process_resident_memory_bytes")
