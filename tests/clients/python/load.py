"""Offers load at steady rates, and notes of each message when it was sent and settled.

    python -m tests.clients.python.load URL load STREAMS FILE [--tag NAME] [--size N]
        [--batch-of N] [--pending N] [--when-full block|fail] [--patience-s N] [--limit-s N]

The same command line and file as ../go/load.go and ../java/Load.java; ../loads.py explains them.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from array import array
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped, unused-ignore]

from .client import End, Reports

PENDING = 1000
"""The library's own limit."""
TICK = 0.001
"""Seconds between two checks of what is due."""
WAKE = 0.05


class Stream:
    """One producer's messages. `settled`: 0 for not yet; `codes`: 0, or the error's number."""

    def __init__(self, topic: str, rate: float, tag: str, errors: list[str]) -> None:
        self.topic, self.rate, self.tag = topic, rate, tag
        self.sent, self.settled, self.codes = array("q"), array("q"), array("q")
        self._errors = errors
        self._left = 0

    def send(self, producer: Any, asked: argparse.Namespace) -> None:
        number = len(self.sent)
        content = f"{number} {self.tag} ".encode()
        self.settled.append(0)
        self.codes.append(0)
        self.sent.append(time.time_ns())
        producer.send_async(content.ljust(asked.size), partial(self._settle, number))

    def _settle(self, number: int, result: Any, _id: Any) -> None:
        self.settled[number] = time.time_ns()
        self._left += 1
        if result != pulsar.Result.Ok:
            self.codes[number] = self._code(str(result))

    def _code(self, text: str) -> int:
        if text not in self._errors:
            self._errors.append(text)
        return self._errors.index(text) + 1

    def run(self, producer: Any, asked: argparse.Namespace, end: End) -> None:
        """Send at a steady rate, or as fast as possible; catch up as fast as possible."""
        start = time.monotonic()
        while not end.is_here():
            due = (time.monotonic() - start) * self.rate
            if len(self.sent) < due:
                self.send(producer, asked)
            else:
                time.sleep(min(WAKE, max(TICK, (len(self.sent) - due) / self.rate)))

    @property
    def is_settled(self) -> bool:
        return self._left >= len(self.sent)


def load(client: Any, asked: argparse.Namespace, end: End, say: Reports) -> None:
    errors: list[str] = []
    streams = list(_streams(asked, errors))
    producers = [_producer(client, stream.topic, asked) for stream in streams]
    say({"ready": True})
    pairs = zip(streams, producers, strict=True)
    threads = [threading.Thread(target=it.run, args=(by, asked, end)) for it, by in pairs]
    for thread in threads:
        thread.daemon = True  # a blocked thread must not keep the process alive
        thread.start()
    while not end.comes_before(time.monotonic() + WAKE):
        pass
    deadline = time.monotonic() + asked.patience_s
    while not all(it.is_settled for it in streams) and time.monotonic() < deadline:
        time.sleep(WAKE)
    write(asked.file, streams, errors)


def _streams(asked: argparse.Namespace, errors: list[str]) -> Iterator[Stream]:
    for number, text in enumerate(asked.streams.split(",")):
        topic, _, rate = text.rpartition("=")
        yield Stream(topic, float(rate), f"{asked.tag}.{number}", errors)


def _producer(client: Any, topic: str, asked: argparse.Namespace) -> Any:
    return client.create_producer(
        topic,
        block_if_queue_full=asked.when_full == "block",
        max_pending_messages=asked.pending or PENDING,
        max_pending_messages_across_partitions=50 * (asked.pending or PENDING),
        batching_enabled=asked.batch_of > 0,
        batching_max_messages=max(2, asked.batch_of),
        batching_max_publish_delay_ms=10,
    )


def write(file: Path, streams: list[Stream], errors: list[str]) -> None:
    """Write the results so far: receipts may still arrive."""
    counts = [len(stream.sent) for stream in streams]
    topics = [stream.topic for stream in streams]
    head = {"topics": topics, "counts": counts, "errors": list(errors)}
    with file.open("wb") as out:
        out.write(json.dumps(head).encode() + b"\n")
        for stream, count in zip(streams, counts, strict=True):
            for column in (stream.sent, stream.settled, stream.codes):
                column[:count].tofile(out)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("verb", choices=["load"])
    parser.add_argument("streams")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tag", default="")
    for name, default in (("size", 0), ("batch-of", 0), ("pending", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--when-full", choices=["block", "fail"], default="block")
    parser.add_argument("--patience-s", type=float, default=0)
    parser.add_argument("--limit-s", type=float, default=60)
    asked, say = parser.parse_args(), Reports()
    end = End(asked.limit_s)
    client = pulsar.Client(asked.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    load(client, asked, end, say)
    say.last({"loaded": True})


if __name__ == "__main__":
    main()
