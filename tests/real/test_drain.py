"""Two gateways behind one address, rolled one after the other under load."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .balancer import Balancer
from .brokers.standalone import Standalone
from .clients import Client, fresh_topic
from .fixtures import Connect, StartGateway
from .gateways import Gateway, Plan

pytestmark = pytest.mark.gateway_only

INTERVAL = 0.002


class Load:
    """Numbered messages of one producer, and what a consumer got of them, with their ids: one that
    comes twice with the same id was delivered again, with another it was stored twice.
    """

    def __init__(self, client: Client, topic: str, **consumer: Any) -> None:
        self.sent = 0
        self.acknowledged: list[int] = []
        self.failed: list[Any] = []
        self.received: list[int] = []
        self.ids: dict[int, set[tuple[int, int, int]]] = {}
        self.longest = 0.0
        self._stop = threading.Event()
        self._consumer = client.subscribe(topic, "s", **consumer)
        self._producer = client.create_producer(topic, block_if_queue_full=True)
        self._threads = [threading.Thread(target=run) for run in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        while not self._stop.is_set():
            number, began = self.sent, time.monotonic()

            def done(result: Any, _id: Any, number: int = number, began: float = began) -> None:
                self.longest = max(self.longest, time.monotonic() - began)
                if result == client_library.Result.Ok:
                    self.acknowledged.append(number)
                else:
                    self.failed.append(result)

            self._producer.send_async(b"%d" % number, done)
            self.sent += 1
            time.sleep(INTERVAL)
        self._producer.flush()

    def _consume(self) -> None:
        while not self._stop.is_set() or len(set(self.received)) < self.sent:
            try:
                message = self._consumer.receive(timeout_millis=5000)
            except client_library.Timeout:
                return
            number, id = int(message.data()), message.message_id()
            self.received.append(number)
            self.ids.setdefault(number, set()).add(
                (id.ledger_id(), id.entry_id(), id.batch_index())
            )
            self._consumer.acknowledge(message)

    def finish(self) -> None:
        """No more messages; returns when all came, or no more come."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def pair(
    pulsar: Standalone, gateway: StartGateway, tmp_path: Path
) -> Iterator[tuple[Balancer, list[Gateway]]]:
    key = tmp_path / "seal.key"
    key.write_bytes(bytes(range(32)))
    gateways = [gateway(pulsar, Plan(key=key)) for _ in range(2)]
    balancer = Balancer([it.port for it in gateways])
    yield balancer, gateways
    balancer.close()


def test_gateways_are_rolled_and_nothing_is_lost_doubled_or_late(
    pair: tuple[Balancer, list[Gateway]], connect: Connect
) -> None:
    balancer, gateways = pair
    load = Load(connect(balancer.url), fresh_topic())
    for rolled in gateways:
        time.sleep(1)
        rolled.stop()
        time.sleep(0.5)
        rolled.start()
    time.sleep(1)
    load.finish()
    redelivered = len(load.received) - len(set(load.received))
    print(f"{load.sent} sent, longest {load.longest:.3f} s, {redelivered} delivered again")
    assert load.failed == []
    assert load.acknowledged == list(range(load.sent))
    firsts = list(dict.fromkeys(load.received))
    assert firsts == list(range(load.sent))
    assert [number for number, ids in load.ids.items() if len(ids) > 1] == []
