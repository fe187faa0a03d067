"""The demo's clients: a process that produces and consumes through the gateway.

The client library has threads of its own in C++ and calls back from them, so it has a process of
its own too. `python -m gateway.demo.load URL` opens everything, says so in a line of JSON, sends
until its standard input ends, receives what is left, and says in a second line what it counted.
Standard input ends with the demo, however that ends: the clients never outlive it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TextIO, TypeAlias

import pulsar  # type: ignore[import-untyped, unused-ignore]  # ships no types

from gateway.demo.plan import COUNTS, FLOWS, READY, SUBSCRIPTION, Flow, short
from gateway.demo.tally import RUN_SIZE, Counts, Tally, payload

# The client has no types of its own: these names only tell the reader what is meant.
Client: TypeAlias = Any
Consumer: TypeAlias = Any
Producer: TypeAlias = Any

OPEN_SECONDS = 15
"""For one producer or consumer to open: the client tries again within it."""

TICK = 0.02
"""Seconds between two looks at what is due. Small beside what a person sees."""

SILENCE_MS = 200
"""How long a consumer waits for a message before it looks whether it is to end."""

SETTLE_SECONDS = 10.0
"""For receipts, and again for deliveries, once no more is sent. Usually milliseconds; a topic that
moves at that moment needs a second."""

PENDING = 500
"""Messages of one producer without a receipt; a producer waits beyond it."""

PREFETCHED = 100
"""Messages that wait in one consumer. With the largest ones 10 MB."""

_LOOK = 0.01


class OpenError(Exception):
    """A producer or consumer could not be opened. The text is written for a person."""


class FlowLoad:
    """The clients of one topic, and what they count."""

    def __init__(self, flow: Flow, run: bytes) -> None:
        self.flow = flow
        self._run = run
        self._tally = Tally(run)
        self._lock = threading.Lock()
        self._consumers: list[Consumer] = []
        self._producer: Producer = None

    # -- opening -----------------------------------------------------------------------------

    def open(self, client: Client) -> None:
        """Subscribe, then be ready to send: nothing is sent that nobody gets."""
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
        """The last consumer takes the subscription along: on a lasting cluster nothing stays."""
        self._producer.close()
        *others, last = self._consumers
        for consumer in others:
            consumer.close()
        last.unsubscribe()

    # -- threads -----------------------------------------------------------------------------

    def tasks(self, ending: threading.Event, ended: threading.Event) -> list[Callable[[], None]]:
        """What runs in threads: sending until `ending`, receiving until `ended`."""

        def receiver(consumer: Consumer) -> Callable[[], None]:
            return lambda: self._receive(consumer, ended)

        return [lambda: self._send(ending), *map(receiver, self._consumers)]

    def _send(self, ending: threading.Event) -> None:
        begin = time.monotonic()
        number = 0
        while not ending.wait(TICK):
            due = self.flow.due(time.monotonic() - begin)
            while number < due and not ending.is_set():
                with self._lock:
                    self._tally.sent += 1
                self._producer.send_async(
                    payload(self._run, number, self.flow.size), self._answered
                )
                number += 1

    def _answered(self, result: Any, message_id: Any) -> None:
        """Called from a thread of the client, which an exception would end with the process."""
        with self._lock:
            if result == pulsar.Result.Ok:
                self._tally.acknowledge(message_id.partition(), message_id.ledger_id())
            else:
                self._tally.failed += 1

    def _receive(self, consumer: Consumer, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                message = consumer.receive(SILENCE_MS)
            except pulsar.Timeout:
                continue
            with self._lock:
                self._tally.receive(message.data())
            # A topic that moves just now takes no acknowledgement: the message comes again.
            with suppress(pulsar.PulsarException):
                consumer.acknowledge(message)

    # -- what it counted ---------------------------------------------------------------------

    @property
    def is_answered(self) -> bool:
        with self._lock:
            return self._tally.is_answered

    @property
    def is_complete(self) -> bool:
        with self._lock:
            return self._tally.is_complete

    def counts(self) -> Counts:
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
                    f"the clients cannot open {short(flow.flow.topic)}: {error}; "
                    "brokers must answer, and your own must have its tenant and namespace"
                ) from error

    def start(self) -> None:
        """Send and receive, in threads."""
        for flow in self._flows:
            for task in flow.tasks(self._ending, self._ended):
                # Daemons: a client that hangs keeps nobody from ending.
                self._threads.append(threading.Thread(target=task, daemon=True))
        for thread in self._threads:
            thread.start()

    def finish(self) -> dict[str, Counts]:
        """Send no more and wait for what is on its way; answers what was counted, by topic."""
        self._ending.set()
        for ready in (lambda flow: flow.is_answered, lambda flow: flow.is_complete):
            deadline = time.monotonic() + SETTLE_SECONDS
            while not all(map(ready, self._flows)) and time.monotonic() < deadline:
                time.sleep(_LOOK)
        self._ended.set()
        for thread in self._threads:
            thread.join(1.0)
        return {flow.flow.topic: flow.counts() for flow in self._flows}

    def close(self) -> None:
        """Close all clients. A connection that is lost is no reason to fail: all is counted."""
        with suppress(pulsar.PulsarException):
            for flow in self._flows:
                flow.close()
        with suppress(pulsar.PulsarException):
            self._client.close()


def main(arguments: Sequence[str]) -> int:
    """Run the clients against the service URL in `arguments`; answers the exit status."""
    tell = _reports()
    load = Load(arguments[0])
    try:
        load.open()
    except OpenError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the demo shows it
        return 1
    _tell(tell, READY, True)
    load.start()
    sys.stdin.buffer.read()
    counts = load.finish()
    # Told before the clients close, which may take long where a connection does not answer.
    _tell(tell, COUNTS, {topic: each.as_json() for topic, each in counts.items()})
    load.close()
    return 0


def _reports() -> TextIO:
    """Keep standard output for reports: the client library's own words go to standard error."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _tell(reports: TextIO, name: str, value: object) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more: the demo was killed
        print(json.dumps({name: value}), file=reports, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
