"""The demonstration's Pulsar clients of one topic, with the library `pulsar-client`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import pulsar  # type: ignore[import-untyped, unused-ignore]  # ships no types

from gateway.lab.demo.clients import OPEN_SECONDS, RECEIVE_SECONDS, FlowLoad
from gateway.lab.demo.plan import SUBSCRIPTION, Flow

# The client library has no types: these names are for the reader.
Client: TypeAlias = Any
Consumer: TypeAlias = Any
Producer: TypeAlias = Any

PENDING = 500
"""Most messages of one producer without a receipt; at this bound it waits."""

PREFETCHED = 100
"""Most messages queued in one consumer: 10 MB of the largest ones."""


class PulsarLibrary:
    """Makes the Pulsar clients of each topic. All share the connections of one client."""

    error: type[Exception] = pulsar.PulsarException
    needs = "the topic's tenant and namespace"

    def __init__(self, url: str) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
        self._client = pulsar.Client(url, logger=logger, operation_timeout_seconds=OPEN_SECONDS)

    def load(self, flow: Flow, run: bytes) -> PulsarLoad:
        return PulsarLoad(self._client, flow, run)

    def close(self) -> None:
        self._client.close()


class PulsarLoad(FlowLoad):
    """Consumers of one subscription, and a producer."""

    def __init__(self, client: Client, flow: Flow, run: bytes) -> None:
        super().__init__(flow, run)
        self._client = client
        self._consumers: list[Consumer] = []
        self._producer: Producer = None

    # -- opening -----------------------------------------------------------------------------

    def open(self) -> None:
        topic, flow = self.flow.topic, self.flow
        shared = pulsar.ConsumerType.Shared
        kind = shared if flow.consumers > 1 else pulsar.ConsumerType.Exclusive
        for _ in range(flow.consumers):
            self._consumers.append(
                self._client.subscribe(
                    topic,
                    f"{SUBSCRIPTION}-{self._run.decode()}",
                    kind,
                    receiver_queue_size=PREFETCHED,
                )
            )
        self._producer = self._client.create_producer(
            topic,
            block_if_queue_full=True,
            max_pending_messages=PENDING,
            batching_enabled=flow.batched,
        )

    def close(self) -> None:
        """Close all clients and remove their subscription, so that brokers that outlive the
        demonstration keep nothing of it."""
        self._producer.close()
        *others, last = self._consumers
        for consumer in others:
            consumer.close()
        last.unsubscribe()

    # -- threads -----------------------------------------------------------------------------

    def tasks(self, ending: threading.Event, ended: threading.Event) -> list[Callable[[], None]]:
        receivers = [partial(self._receive, consumer, ended) for consumer in self._consumers]
        return [partial(self._send_due, ending, self._send), *receivers]

    def _send(self, data: bytes) -> None:
        with self._lock:
            self._tally.sent += 1
        self._producer.send_async(data, self._answered)

    def _answered(self, result: Any, message_id: Any) -> None:
        """Count a receipt, in a thread of the client: an exception would end the process."""
        with self._lock:
            if result == pulsar.Result.Ok:
                self._tally.acknowledge(message_id.partition(), message_id.ledger_id())
            else:
                self._tally.failed += 1

    def _receive(self, consumer: Consumer, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                message = consumer.receive(int(RECEIVE_SECONDS * 1000))
            except pulsar.Timeout:
                continue
            with self._lock:
                self._tally.receive(message.data())
            # A topic that is just moving accepts no acknowledgement: the message will be
            # redelivered.
            with suppress(pulsar.PulsarException):
                consumer.acknowledge(message)
