"""The demonstration's clients: a process that produces and consumes through the gateway.

The client library calls back from its own C++ threads, so it runs in a separate process. `python -m
gateway.lab.demo.load URL` opens all clients and reports that in a line of JSON, sends until its
standard input ends, receives the remaining messages, and reports its counts in a second line.
Standard input ends with the demonstration, however that ends: the clients never outlive it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TextIO, TypeAlias

import pulsar  # type: ignore[import-untyped, unused-ignore]  # ships no types

from gateway.lab.demo.plan import COUNTS, FLOWS, READY, SUBSCRIPTION, Flow, short_name
from gateway.lab.demo.tally import RUN_SIZE, ClientCounts, Tally, payload

# The client library has no types: these names are for the reader.
Client: TypeAlias = Any
Consumer: TypeAlias = Any
Producer: TypeAlias = Any

OPEN_SECONDS = 15
"""Seconds in which one producer or consumer must open, with the client's own retries."""

TICK_SECONDS = 0.02
"""Seconds between two checks for due messages: too short to be seen."""

RECEIVE_TIMEOUT_MS = 200
"""How long a consumer waits for a message before it checks whether to end."""

SETTLE_SECONDS = 10.0
"""For receipts, and again for deliveries, once sending has stopped. Usually milliseconds; a topic
that moves just then needs a second.
"""

PENDING = 500
"""Most messages of one producer without a receipt; at this bound it waits."""

PREFETCHED = 100
"""Most messages queued in one consumer: 10 MB of the largest ones."""

_POLL_SECONDS = 0.01


class OpenError(Exception):
    """A producer or consumer cannot be opened. The text is written for a person."""


class FlowLoad:
    """The clients of one topic, and their counts."""

    def __init__(self, flow: Flow, run: bytes) -> None:
        self.flow = flow
        self._run = run
        self._tally = Tally(run)
        self._lock = threading.Lock()
        self._consumers: list[Consumer] = []
        self._producer: Producer = None

    # -- opening -----------------------------------------------------------------------------

    def open(self, client: Client) -> None:
        """Subscribe before the producer opens, so that no message lacks a consumer."""
        topic, flow = self.flow.topic, self.flow
        shared = pulsar.ConsumerType.Shared
        kind = shared if flow.consumers > 1 else pulsar.ConsumerType.Exclusive
        for _ in range(flow.consumers):
            self._consumers.append(
                client.subscribe(
                    topic,
                    f"{SUBSCRIPTION}-{self._run.decode()}",
                    kind,
                    receiver_queue_size=PREFETCHED,
                )
            )
        self._producer = client.create_producer(
            topic,
            block_if_queue_full=True,
            max_pending_messages=PENDING,
            batching_enabled=flow.batched,
        )

    def close(self) -> None:
        """Close all, and unsubscribe: nothing stays on a permanent cluster."""
        self._producer.close()
        *others, last = self._consumers
        for consumer in others:
            consumer.close()
        last.unsubscribe()

    # -- threads -----------------------------------------------------------------------------

    def tasks(self, ending: threading.Event, ended: threading.Event) -> list[Callable[[], None]]:
        """Return functions for threads: sending until `ending`, receiving until `ended`."""

        def receiver(consumer: Consumer) -> Callable[[], None]:
            return lambda: self._receive(consumer, ended)

        return [lambda: self._send(ending), *map(receiver, self._consumers)]

    def _send(self, ending: threading.Event) -> None:
        begin = time.monotonic()
        number = 0
        while not ending.wait(TICK_SECONDS):
            due = self.flow.due(time.monotonic() - begin)
            while number < due and not ending.is_set():
                with self._lock:
                    self._tally.sent += 1
                self._producer.send_async(
                    payload(self._run, number, self.flow.size), self._answered
                )
                number += 1

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
                message = consumer.receive(RECEIVE_TIMEOUT_MS)
            except pulsar.Timeout:
                continue
            with self._lock:
                self._tally.receive(message.data())
            # A topic that is just moving accepts no acknowledgement: the message will be
            # redelivered.
            with suppress(pulsar.PulsarException):
                consumer.acknowledge(message)

    # -- counts ------------------------------------------------------------------------------

    @property
    def is_answered(self) -> bool:
        with self._lock:
            return self._tally.is_answered

    @property
    def is_complete(self) -> bool:
        with self._lock:
            return self._tally.is_complete

    def counts(self) -> ClientCounts:
        with self._lock:
            return self._tally.counts()


class Load:
    """The clients of all topics."""

    def __init__(self, url: str, flows: Iterable[Flow] = FLOWS) -> None:
        run = os.urandom(RUN_SIZE // 2).hex().encode()
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
        self._client = pulsar.Client(url, logger=logger, operation_timeout_seconds=OPEN_SECONDS)
        self._flows = [FlowLoad(flow, run) for flow in flows]
        self._ending, self._ended = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Open all producers and consumers. Raises `OpenError`."""
        for flow in self._flows:
            try:
                flow.open(self._client)
            except pulsar.PulsarException as error:
                raise OpenError(
                    f"the clients cannot open {short_name(flow.flow.topic)}: {error}; "
                    "brokers must answer, and must have the topic's tenant and namespace"
                ) from error

    def start(self) -> None:
        """Start the threads that send and receive."""
        for flow in self._flows:
            for task in flow.tasks(self._ending, self._ended):
                # Daemons, so that a hanging client does not keep the process alive.
                self._threads.append(threading.Thread(target=task, daemon=True))
        for thread in self._threads:
            thread.start()

    def finish(self) -> dict[str, ClientCounts]:
        """Stop sending, wait for messages in flight, and return the counts by topic."""
        self._ending.set()
        for ready in (lambda flow: flow.is_answered, lambda flow: flow.is_complete):
            deadline = time.monotonic() + SETTLE_SECONDS
            while not all(map(ready, self._flows)) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        self._ended.set()
        for thread in self._threads:
            thread.join(1.0)
        return {flow.flow.topic: flow.counts() for flow in self._flows}

    def close(self) -> None:
        """Close all clients; ignore lost connections, since all is counted."""
        with suppress(pulsar.PulsarException):
            for flow in self._flows:
                flow.close()
        with suppress(pulsar.PulsarException):
            self._client.close()


def main(arguments: Sequence[str]) -> int:
    """Run the clients against the service URL in `arguments`; return the exit status."""
    reports = _take_stdout()
    load = Load(arguments[0])
    try:
        load.open()
    except OpenError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the demonstration shows it
        return 1
    _report(reports, READY, True)
    load.start()
    sys.stdin.buffer.read()
    counts = load.finish()
    # Report before closing, which may take long if a connection does not answer.
    _report(reports, COUNTS, {topic: asdict(each) for topic, each in counts.items()})
    load.close()
    return 0


def _take_stdout() -> TextIO:
    """Keep standard output for reports; redirect the client library's output to standard error."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _report(reports: TextIO, name: str, value: object) -> None:
    with suppress(BrokenPipeError):  # the demonstration was killed
        print(json.dumps({name: value}), file=reports, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
