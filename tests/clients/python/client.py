"""A small Pulsar client on the published Python package, old versions of it too.

    client.py URL produce TOPIC COUNT [--batch] [--key] [--interval-ms N] [--limit-s N]
    client.py URL consume TOPIC SUBSCRIPTION COUNT [--type KIND] [--queue N] [--work-ms N]
        [--quiet-ms N] [--limit-s N]
    client.py URL packed TOPIC COUNT [--limit-s N]

The same command line and reports as ../go and ../java; ../programs.py explains the words.
It is run as a script, and imports nothing of ours.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import pulsar  # type: ignore[import-untyped, unused-ignore]
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEYS = 10
"""Number of different keys, used in turn."""
POLL_MS = 50
"""How often a waiting program checks if it is time to stop."""
CALLBACK_SECONDS = 5.0
"""How long the last callbacks of a producer may take."""
RECEIVE_MS = 15_000
"""How long a message may take on a busy machine."""
MOST_ERRORS = 20
KINDS = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "key_shared": pulsar.ConsumerType.KeyShared,
}
CODECS = {
    "LZ4": {"compression_type": pulsar.CompressionType.LZ4},
    "ZLIB": {"compression_type": pulsar.CompressionType.ZLib},
    "ZSTD": {"compression_type": pulsar.CompressionType.ZSTD},
    "SNAPPY": {"compression_type": pulsar.CompressionType.SNAPPY},
}
Place = tuple[int, int, int, int]
Say = Callable[[dict[str, Any]], None]


class Sent:
    """What became of the sent messages, whose content is their number."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.errors: dict[str, None] = {}
        self.longest = 0.0
        self.sent = 0
        self.settled_ones = 0

    def settled(self, number: int, took: float, result: Any) -> None:
        self.settled_ones += 1
        self.longest = max(self.longest, took)
        if result == pulsar.Result.Ok:
            self.acknowledged.add(number)
        elif len(self.errors) < MOST_ERRORS:
            self.errors[str(result)] = None

    def report(self) -> dict[str, Any]:
        return {
            "acknowledged": ranges(self.acknowledged),
            "errors": list(self.errors),
            "longest_send_ms": self.longest * 1000,
        }


class Received:
    """The received messages. One that comes again is redelivered, or was stored twice if its id
    differs. One that comes first after a later one of its key is out of order."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.redelivered = self.stored_twice = self.out_of_order = 0

    def note(self, message: Any) -> None:
        number, place = int(message.data()), _place(message.message_id())
        if number in self.places:
            self.redelivered += self.places[number] == place
            self.stored_twice += self.places[number] != place
            return
        self.places[number] = place
        key = message.topic_name(), message.partition_key()
        self.out_of_order += number < self.last.get(key, -1)
        self.last[key] = max(number, self.last.get(key, -1))

    def report(self) -> dict[str, Any]:
        return {
            "received": ranges(self.places),
            "redelivered": self.redelivered,
            "stored_twice": self.stored_twice,
            "out_of_order": self.out_of_order,
            "errors": [],
        }


def _place(id: Any) -> Place:
    return id.ledger_id(), id.entry_id(), id.partition(), id.batch_index()


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return pairs of a first and a last number, with gaps between them."""
    pairs: list[list[int]] = []
    for number in sorted(numbers):
        if pairs and pairs[-1][1] == number - 1:
            pairs[-1][1] = number
        else:
            pairs.append([number, number])
    return pairs


class End:
    """The time to stop: when told to, or when time is up.

    The signal handler sets a plain flag: an Event has a lock, and the handler runs in the thread
    that may hold it.
    """

    def __init__(self, seconds: float) -> None:
        self._is_told = False
        self._at = time.monotonic() + seconds
        faulthandler.register(signal.SIGQUIT)  # as Go and Java do by themselves
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._tell)

    def _tell(self, *_: object) -> None:
        self._is_told = True

    def is_here(self) -> bool:
        return self._is_told or time.monotonic() > self._at

    def comes_before(self, when: float) -> bool:
        while not self.is_here() and (left := when - time.monotonic()) > 0:
            time.sleep(min(left, POLL_MS / 1000))
        return self.is_here()


def produce(client: Any, asked: argparse.Namespace, end: End, say: Say) -> dict[str, Any]:
    producer = client.create_producer(
        asked.topic,
        batching_enabled=asked.batch,
        batching_max_publish_delay_ms=10,  # long enough that batches hold several messages
        block_if_queue_full=True,
    )
    say({"ready": True})
    report = Sent()
    _send_all(producer, asked, end, report)
    try:
        producer.flush()
    except pulsar.PulsarException as error:
        report.errors[repr(error)] = None
    # The last callback may still wait for the interpreter when flush() finds no pending message.
    latest = time.monotonic() + CALLBACK_SECONDS
    while report.settled_ones < report.sent and time.monotonic() < latest:
        time.sleep(POLL_MS / 1000)
    return report.report()


def _send_all(producer: Any, asked: argparse.Namespace, end: End, report: Sent) -> None:
    """Send at a steady pace, without waiting for receipts."""
    start, number = time.monotonic(), 0
    while not (asked.count and number >= asked.count):
        if end.comes_before(start + number * asked.interval_ms / 1000):
            return
        began = time.monotonic()

        def done(result: Any, _id: Any, number: int = number, began: float = began) -> None:
            report.settled(number, time.monotonic() - began, result)

        options = {"partition_key": f"key-{number % KEYS}"} if asked.key else {}
        producer.send_async(str(number).encode(), done, **options)
        number += 1
        report.sent = number


def consume(client: Any, asked: argparse.Namespace, end: End, say: Say) -> dict[str, Any]:
    earliest = pulsar.InitialPosition.Earliest
    consumer = client.subscribe(
        asked.topic,
        asked.subscription,
        KINDS[asked.type],
        initial_position=earliest,
        receiver_queue_size=asked.queue,
    )
    say({"ready": True})
    report, complete = Received(), 0.0
    while not end.is_here() and not (complete and time.monotonic() > complete):
        try:
            # Without a queue the consumer requests each message, and such a wait has no timeout.
            message = consumer.receive(*([POLL_MS] if asked.queue else []))
        except pulsar.Timeout:
            continue
        report.note(message)
        consumer.acknowledge(message)
        if asked.count and not complete and len(report.places) >= asked.count:
            complete = time.monotonic() + asked.quiet_ms / 1000 * bool(asked.queue)
        time.sleep(asked.work_ms / 1000)
    return report.report()


def packed(client: Any, asked: argparse.Namespace, end: End, say: Say) -> dict[str, Any]:
    """Send messages in each way that the library can pack them, on a topic for each way."""
    say({"ready": True})
    with tempfile.TemporaryDirectory() as folder:
        keys = _keys(Path(folder))
        ways = _ways(keys)
        seen = {
            name: _exchanged(client, f"{asked.topic}-{number}", way, asked.count, keys)
            for number, (name, way) in enumerate(ways.items())
        }
    return {"seen": seen}


def _ways(keys: Any) -> dict[str, dict[str, Any]]:
    """Return the options of a producer."""
    batched, single = {"batching_enabled": True}, {"batching_enabled": False}
    by_key = {"batching_type": pulsar.BatchingType.KeyBased}
    ways: dict[str, dict[str, Any]] = {"batched": batched, "batched by key": batched | by_key}
    for name, codec in CODECS.items():
        ways |= {name: single | codec, f"{name} batched": batched | codec}
    sealed = {"encryption_key": "tests", "crypto_key_reader": keys}
    ways |= {"sealed": single | sealed, "sealed batched": batched | sealed}
    sealed |= CODECS["LZ4"]
    return ways | {"sealed LZ4": single | sealed, "sealed LZ4 batched": batched | sealed}


def _exchanged(client: Any, topic: str, way: dict[str, Any], count: int, keys: Any) -> list[int]:
    """Send the numbers at once, so that they can be one batch, and receive them."""
    consumer = client.subscribe(topic, "s", crypto_key_reader=keys)
    producer = client.create_producer(topic, batching_max_publish_delay_ms=100, **way)
    for number in range(count):
        producer.send_async(str(number).encode(), None, partition_key="one")
    producer.flush()
    numbers = []
    for _ in range(count):
        message = consumer.receive(RECEIVE_MS)
        numbers.append(int(message.data()))
        consumer.acknowledge(message)
    return numbers


def _keys(folder: Path) -> Any:
    """Return a key pair for encrypting and decrypting messages."""
    made = rsa.generate_private_key(65537, 2048)
    public, private = folder / "public.pem", folder / "private.pem"
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(made.public_key().public_bytes(serialization.Encoding.PEM, kind))
    private.write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pulsar.CryptoKeyReader(str(public), str(private))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    verbs = parser.add_subparsers(required=True)
    actions = {"produce": produce, "consume": consume, "packed": packed}
    producing, consuming, packing = (verbs.add_parser(name) for name in actions)
    for verb, action in zip((producing, consuming, packing), actions.values(), strict=True):
        verb.set_defaults(run=action)
        verb.add_argument("topic")
    consuming.add_argument("subscription")
    packing.add_argument("--size", type=int, default=0)  # as in the other clients
    for verb in (producing, consuming, packing):
        verb.add_argument("count", type=int)
        verb.add_argument("--limit-s", type=float, default=60)
        verb.add_argument("--token")
        verb.add_argument("--token-file")
        for file in ("--trust", "--certificate", "--private-key"):
            verb.add_argument(file)
        verb.add_argument("--tls-credential", action="store_true")
    producing.add_argument("--batch", action="store_true")
    producing.add_argument("--key", action="store_true")
    producing.add_argument("--interval-ms", type=float, default=0)
    consuming.add_argument("--type", choices=KINDS, default="exclusive")
    consuming.add_argument("--queue", type=int, default=1000)
    consuming.add_argument("--work-ms", type=float, default=0)
    consuming.add_argument("--quiet-ms", type=float, default=500)
    return parser


def connect(asked: argparse.Namespace) -> Any:
    options: dict[str, Any] = {"logger": pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)}
    if asked.trust:
        options |= {"tls_trust_certs_file_path": asked.trust, "tls_validate_hostname": True}
    if asked.token:
        options["authentication"] = pulsar.AuthenticationToken(asked.token)
    elif asked.token_file:
        options["authentication"] = pulsar.AuthenticationToken(Path(asked.token_file).read_text)
    elif asked.tls_credential:
        pair = asked.certificate, asked.private_key
        options["authentication"] = pulsar.AuthenticationTLS(*pair)
    elif asked.certificate:
        options["tls_certificate_file_path"] = asked.certificate
        options["tls_private_key_file_path"] = asked.private_key
    return pulsar.Client(asked.url, **options)


class Reports:
    """Standard output for reports. The library's own logger, which uses it too, is redirected."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def __call__(self, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=self._out, flush=True)

    def last(self, what: dict[str, Any]) -> NoReturn:
        """Print, and end the process at once: a client with unsent messages would take long to
        close, and the library can abort while the interpreter takes it down."""
        self(what)
        os._exit(0)


def main() -> None:
    asked, say = parser().parse_args(), Reports()
    end = End(asked.limit_s)
    client = connect(asked)
    report = asked.run(client, asked, end, say)
    client.close()
    say.last(report)


if __name__ == "__main__":
    main()
