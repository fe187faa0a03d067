"""Traffic that goes on while something happens, and what became of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import confluent_kafka

from tests.apache_kafka.working import PATIENCE_S
from tests.real.clients import wait_until

RATE = 500
"""Messages a second: enough for each request to have several."""


class Traffic:
    """A context in which numbered messages go to all partitions of a topic, and a group gets them.

    `into`: the topic in which an application answers each message by one of its own, which the
    group gets instead. `known`: settings by which clients say who they are.
    """

    def __init__(
        self,
        address: str,
        topic: str,
        into: str | None = None,
        known: Mapping[str, str] | None = None,
    ) -> None:
        self._where: dict[str, Any] = {"bootstrap.servers": address, **(known or {})}
        self._topic = topic
        self._into = into or topic
        self._ends = threading.Event()
        self.sent = 0
        self.failed: list[str] = []
        self.received: Counter[bytes] = Counter()
        self._threads = [
            threading.Thread(target=it, daemon=True) for it in (self._send, self._receive)
        ]

    def __enter__(self) -> Self:
        for it in self._threads:
            it.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()

    def _send(self) -> None:
        producer = confluent_kafka.Producer(self._where | {"enable.idempotence": True})

        def done(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                self.failed.append(str(error))

        while not self._ends.is_set():
            producer.produce(self._topic, b"%d" % self.sent, on_delivery=done)
            self.sent += 1
            producer.poll(1 / RATE)
        if producer.flush(2 * PATIENCE_S):
            self.failed.append("messages were not delivered")

    def _receive(self) -> None:
        group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(self._where | group)
        consumer.subscribe([self._into])
        until = float("inf")
        while time.monotonic() < until:
            for it in consumer.consume(1000, 0.2):
                if not it.error():
                    self.received[it.value() or b""] += 1
            if not self._threads[0].is_alive():
                until = min(until, time.monotonic() + PATIENCE_S)
                if len(self.received) >= self.sent:
                    break
        consumer.close()

    def go_on(self) -> None:
        """Return when messages of the next second are received."""
        reached = self.sent + RATE
        wait_until(lambda: len(self.received) >= reached)

    def end(self) -> None:
        """Send no more, and return when all is received."""
        self._ends.set()
        for it in self._threads:
            it.join()

    @property
    def lost_and_doubled(self) -> tuple[int, int]:
        """Return how many messages nobody got, and how many came again."""
        lost = self.sent - len(self.received)
        return lost, sum(count - 1 for count in self.received.values())
