"""A small Pulsar client on the published Python package, for tests of older versions of it.

    client.py URL produce TOPIC COUNT [--batch] [--key] [--interval-ms N] [--limit-s N]
    client.py URL consume TOPIC SUBSCRIPTION COUNT [--type KIND] [--quiet-ms N] [--limit-s N]

The same command line and the same reports as ../go and ../java; it imports nothing of ours.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pulsar  # type: ignore[import-untyped, unused-ignore]

KEYS = 10
"""How many keys the messages have in turn."""
POLL_MS = 50
"""How often somebody who waits looks whether it is time to stop."""

KINDS = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "key_shared": pulsar.ConsumerType.KeyShared,
}


def produce(client: Any, asked: argparse.Namespace, is_over: Callable[[], bool]) -> Any:
    producer = client.create_producer(
        asked.topic,
        batching_enabled=asked.batch,
        batching_max_publish_delay_ms=10,  # long enough that batches hold several messages
        block_if_queue_full=True,
    )
    say({"ready": True})
    acknowledged: set[int] = set()
    errors: set[str] = set()
    longest = [0.0]
    start = time.monotonic()
    number = 0
    while asked.count == 0 or number < asked.count:
        due = start + number * asked.interval_ms / 1000
        while (left := due - time.monotonic()) > 0 and not is_over():
            time.sleep(min(left, POLL_MS / 1000))
        if is_over():
            break
        began = time.monotonic()

        def settled(result: Any, _id: Any, number: int = number, began: float = began) -> None:
            longest[0] = max(longest[0], time.monotonic() - began)
            if result == pulsar.Result.Ok:
                acknowledged.add(number)
            else:
                errors.add(str(result))

        key = {"partition_key": f"key-{number % KEYS}"} if asked.key else {}
        producer.send_async(b"%d" % number, settled, **key)
        number += 1
    producer.flush()
    return {
        "acknowledged": ranges(acknowledged),
        "errors": sorted(errors),
        "longest_send_ms": longest[0] * 1000,
    }


class Received:
    """What came: where each message is stored, and which was the last of its key and partition."""

    def __init__(self) -> None:
        self.ids: dict[int, tuple[int, ...]] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.redelivered = self.stored_twice = self.out_of_order = 0

    def note(self, message: Any) -> None:
        number, id = int(message.data()), message.message_id()
        found = (id.ledger_id(), id.entry_id(), id.partition(), id.batch_index())
        if number in self.ids:
            same = self.ids[number] == found
            self.redelivered += same
            self.stored_twice += not same
            return
        self.ids[number] = found
        place = message.topic_name(), message.partition_key()
        self.out_of_order += number < self.last.get(place, -1)
        self.last[place] = max(number, self.last.get(place, -1))


def consume(client: Any, asked: argparse.Namespace, is_over: Callable[[], bool]) -> Any:
    consumer = client.subscribe(
        asked.topic,
        asked.subscription,
        KINDS[asked.type],
        initial_position=pulsar.InitialPosition.Earliest,
    )
    say({"ready": True})
    report = Received()
    complete = 0.0
    while not is_over() and not (complete and time.monotonic() - complete > asked.quiet_ms / 1000):
        try:
            message = consumer.receive(POLL_MS)
        except pulsar.Timeout:
            continue
        report.note(message)
        consumer.acknowledge(message)
        if not complete and 0 < asked.count <= len(report.ids):
            complete = time.monotonic()
    return {
        "received": ranges(report.ids),
        "redelivered": report.redelivered,
        "stored_twice": report.stored_twice,
        "out_of_order": report.out_of_order,
        "errors": [],
    }


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Pairs of a first and a last one, with gaps between them."""
    pairs: list[list[int]] = []
    for number in sorted(numbers):
        if pairs and pairs[-1][1] == number - 1:
            pairs[-1][1] = number
        else:
            pairs.append([number, number])
    return pairs


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    verbs = parser.add_subparsers(required=True)
    producing, consuming = verbs.add_parser("produce"), verbs.add_parser("consume")
    producing.set_defaults(run=produce)
    consuming.set_defaults(run=consume)
    producing.add_argument("topic")
    consuming.add_argument("topic")
    consuming.add_argument("subscription")
    for verb in (producing, consuming):
        verb.add_argument("count", type=int)
        verb.add_argument("--limit-s", type=int, default=60)
    producing.add_argument("--batch", action="store_true")
    producing.add_argument("--key", action="store_true")
    producing.add_argument("--interval-ms", type=int, default=0)
    consuming.add_argument("--type", choices=KINDS, default="exclusive")
    consuming.add_argument("--quiet-ms", type=int, default=500)
    return parser.parse_args(words)


def main() -> None:
    asked = options(sys.argv[1:])
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: told.set())
    end = time.monotonic() + asked.limit_s
    client = pulsar.Client(asked.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    say(asked.run(client, asked, lambda: told.is_set() or time.monotonic() > end))
    client.close()


# The library logs to the standard output, which is for reports alone.
_REPORTS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(what: object) -> None:
    """Prints one line of JSON at once."""
    print(json.dumps(what), file=_REPORTS, flush=True)


if __name__ == "__main__":
    main()
