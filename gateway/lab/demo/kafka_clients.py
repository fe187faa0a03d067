"""The demonstration's Kafka clients of one topic, with the library `confluent-kafka`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import confluent_kafka

from gateway.lab.demo.clients import (
    OPEN_SECONDS,
    RECEIVE_SECONDS,
    SETTLE_SECONDS,
    TICK_SECONDS,
    FlowLoad,
    OpenError,
)
from gateway.lab.demo.plan import SUBSCRIPTION, Flow

# The library's types say little: these names are for the reader.
Consumer: TypeAlias = Any
Message: TypeAlias = Any
Producer: TypeAlias = Any

PENDING = 200
"""Most messages of one producer without a receipt; at this bound it waits. The topic that a rule
limits needs a second for as many, for which the end of the demonstration waits.
"""

LINGER_MS = 50
"""How long a flow that is batched collects messages."""

HEARTBEAT_MS = 200
"""After so long a member learns that another has joined its group. The usual 3 s would be seen."""

PACKET = 100
"""Most messages that a consumer takes at once."""


class KafkaLibrary:
    """Makes the Kafka clients of each topic. Each client has connections of its own."""

    error: type[Exception] = confluent_kafka.KafkaException
    needs = "the topic"

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix("kafka://")

    def load(self, flow: Flow, run: bytes) -> KafkaLoad:
        return KafkaLoad(self._address, flow, run)

    def close(self) -> None:
        """Do nothing: the clients of different topics share nothing."""


class KafkaLoad(FlowLoad):
    """The members of one consumer group, and a producer."""

    def __init__(self, address: str, flow: Flow, run: bytes) -> None:
        super().__init__(flow, run)
        self._where = {"bootstrap.servers": address}
        self._consumers: list[Consumer] = []
        self._producer: Producer = None

    # -- opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Open all clients, and wait until each partition is assigned to a member: after a
        later rebalance, members would fetch messages twice. Raises `OpenError`."""
        group = {
            "group.id": f"{SUBSCRIPTION}-{self.flow.topic}-{self._run.decode()}",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
        for _ in range(self.flow.consumers):
            consumer = confluent_kafka.Consumer(self._where | group)
            self._consumers.append(consumer)
            consumer.subscribe([self.flow.topic])
        self._await_partitions()
        options = {
            "enable.idempotence": True,  # so that a retry is no second message
            "linger.ms": LINGER_MS if self.flow.batched else 0,
            "queue.buffering.max.messages": PENDING,
        }
        self._producer = confluent_kafka.Producer(self._where | options)
        self._producer.list_topics(self.flow.topic, OPEN_SECONDS)

    def _await_partitions(self) -> None:
        deadline = time.monotonic() + OPEN_SECONDS
        while not self._has_partitions():
            if time.monotonic() > deadline:
                raise OpenError(f"the consumers of {self.flow.topic} get no partitions")
            for consumer in self._consumers:
                self._take(consumer, TICK_SECONDS)

    def _has_partitions(self) -> bool:
        parts = [len(consumer.assignment()) for consumer in self._consumers]
        return all(parts) and sum(parts) == (self.flow.partitions or 1)

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()

    # -- threads -----------------------------------------------------------------------------

    def tasks(self, ending: threading.Event, ended: threading.Event) -> list[Callable[[], None]]:
        receivers = [partial(self._receive, consumer, ended) for consumer in self._consumers]
        return [partial(self._produce, ending), *receivers]

    def _produce(self, ending: threading.Event) -> None:
        """Send until `ending`, and wait for receipts, which are counted in this thread."""
        self._send_due(ending, partial(self._send, ending))
        self._producer.flush(SETTLE_SECONDS)

    def _send(self, ending: threading.Event, data: bytes) -> None:
        """Send a message when there is room for it; if that is not before `ending`, do not."""
        while not ending.is_set():
            try:
                with self._lock:
                    self._producer.produce(self.flow.topic, data, on_delivery=self._answered)
                    self._tally.sent += 1
            except BufferError:
                self._producer.poll(TICK_SECONDS)
            else:
                break
        self._producer.poll(0)

    def _answered(self, error: object, message: Message) -> None:
        with self._lock:
            if error is None:
                self._tally.acknowledge(message.partition(), 0)  # Kafka has no ledgers
            else:
                self._tally.failed += 1

    def _receive(self, consumer: Consumer, ended: threading.Event) -> None:
        while not ended.is_set():
            self._take(consumer, RECEIVE_SECONDS)

    def _take(self, consumer: Consumer, seconds: float) -> None:
        """Count the messages that come within some seconds, and no errors: they are temporary."""
        messages = consumer.consume(PACKET, seconds)
        with self._lock:
            for message in messages:
                if message.error() is None:
                    self._tally.receive(message.value() or b"")
