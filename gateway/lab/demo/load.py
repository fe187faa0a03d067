"""The demonstration's clients: a process that produces and consumes through the gateway.

The client libraries have threads of their own, so they run in a separate process. `python -m
gateway.lab.demo.load URL` opens all clients and reports that in a line of JSON, sends until its
standard input ends, receives the remaining messages, and reports its counts in a second line. The
scheme of the URL says which clients. Standard input ends with the demonstration, however that ends:
the clients never outlive it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TextIO

from gateway.lab.demo.clients import SETTLE_SECONDS, Library, OpenError
from gateway.lab.demo.plan import COUNTS, FLOWS_OF, KAFKA, READY, Flow, short_name
from gateway.lab.demo.tally import RUN_SIZE, ClientCounts

_POLL_SECONDS = 0.01


class Load:
    """The demonstration's clients of all topics."""

    def __init__(self, library: Library, flows: Iterable[Flow]) -> None:
        run = os.urandom(RUN_SIZE // 2).hex().encode()
        self._library = library
        self._flows = [library.load(flow, run) for flow in flows]
        self._ending, self._ended = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Open the producers and consumers of all topics. Raises `OpenError`."""
        for flow in self._flows:
            try:
                flow.open()
            except self._library.error as error:
                raise OpenError(
                    f"the clients cannot open {short_name(flow.flow.topic)}: {error}; "
                    f"brokers must answer, and must have {self._library.needs}"
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
        """Stop sending, wait until messages on their way are received, and return the counts by
        topic."""
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
        """Close all clients. Lost connections are ignored, because all messages are counted by
        then."""
        with suppress(self._library.error):
            for flow in self._flows:
                flow.close()
        with suppress(self._library.error):
            self._library.close()


def library_of(url: str) -> Library:
    """Return the client library for the scheme of a service URL. Only this library is imported."""
    if url.startswith(f"{KAFKA}://"):
        from gateway.lab.demo.kafka_clients import KafkaLibrary

        return KafkaLibrary(url)
    from gateway.lab.demo.pulsar_clients import PulsarLibrary

    return PulsarLibrary(url)


def main(arguments: Sequence[str]) -> int:
    """Run the clients with the service URL that is the only argument. Return the exit status."""
    reports = _take_stdout()
    (url,) = arguments
    load = Load(library_of(url), FLOWS_OF[url.partition("://")[0]])
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
