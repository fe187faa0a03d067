"""A limit of bytes that many connections share which wait for nothing: what is stored, or received.

Each connection sends requests as fast as they are taken, whatever responses say, and is opened
again when it ends. What they send is measured at the broker.
"""

import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import crc32c
import yaml

from gateway.wire.kafka.walk import unsigned
from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.greedy import READ, SENT
from tests.apache_kafka.limiting import ACTIONS, topic_of
from tests.apache_kafka.test_attacks import Client
from tests.playbooks_kafka.frames import ask
from tests.real.brokers.jars import Say
from tests.real.gateways import HOST, Gateway

from .results import Trial
from .scenarios import Unit

CONNECTIONS, SHORT = (1, 20, 200), (20,)
SIZES = (10_000, 1_000_000)
"""Bytes of a batch: a request, and a response, has one. The large ones cost ten seconds each."""

RATE = 100_000
SECONDS, SHORT_SECONDS = 60.0, 20.0
WARM = 5.0
"""Seconds in which a burst is used up."""

PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on a real broker, one crowd after the other."""
    broker = Kafka(folder, say)
    broker.start()
    try:
        number = count()
        for kind in (SENT, READ):
            for size in SIZES[:1] if short else SIZES:
                for connections in SHORT if short else CONNECTIONS:
                    here = folder / f"{next(number)}"
                    here.mkdir()
                    seconds = SHORT_SECONDS if short else SECONDS
                    yield _trial(broker, kind, size, connections, seconds, here)
    finally:
        broker.stop()


def _rules(folder: Path) -> Path:
    rules = [
        {
            "id": kind,
            "match": {"topic": f"{kind}*"},
            "limit": {action: {"bytes": f"{RATE}B/s"}},
            "per": "topic",
        }
        for kind, action in ACTIONS.items()
    ]
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "rules": rules}))
    return path


def _trial(
    broker: Kafka, kind: str, size: int, connections: int, seconds: float, folder: Path
) -> Trial:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    batch = batch_of(size)
    topic = topic_of(kind, f"{BROKERS_HOST}:{broker.port}")
    gateway = Gateway(broker, KafkaPlan(rules=_rules(folder)), folder)
    gateway.start()
    try:
        with closing(Client(broker.port, BROKERS_HOST)) as direct:
            if kind == READ:
                assert not _stored(direct, topic, batch)["ErrorCode"]
            frame = _produce(topic, batch) if kind == SENT else _fetch(topic)
            crowd = Crowd(gateway.port, connections, frame)

            def passed() -> tuple[float, float]:
                found = size * _end_of(direct, topic) if kind == SENT else crowd.received
                return time.monotonic(), found

            with crowd.at_work():
                time.sleep(WARM)
                began, before = passed()
                time.sleep(seconds)
                ended, after = passed()
    finally:
        gateway.stop()
    found = (after - before) / (ended - began)
    facts = {"passed": found, "off": found / RATE - 1, "ended": crowd.ended, "size": size}
    name = f"{kind} by {connections}"
    return Trial("crowd", name, "kafka", "gateway", at, RATE, Unit.BYTES.value, facts=facts)


def batch_of(size: int) -> bytes:
    """Return a batch of one message, of `size` bytes in all (KIP-98)."""
    for payload in range(size, 0, -1):
        record = b"\0\0\0\1" + unsigned(2 * payload) + bytes(payload) + b"\0"
        fields = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1)
        fields += unsigned(2 * len(record)) + record
        if len(fields) + 21 == size:
            break
    checked = struct.pack(">ibI", -1, 2, crc32c.crc32c(fields)) + fields
    return struct.pack(">qi", 0, len(checked)) + checked


def _produce(topic: str, batch: bytes) -> bytes:
    data = [{"Name": topic, "PartitionData": [{"Index": 0, "Records": batch}]}]
    return ask(PRODUCE, 9, 1, Acks=1, TimeoutMs=30_000, TopicData=data)


def _stored(direct: Client, topic: str, batch: bytes) -> Any:
    data = [{"Name": topic, "PartitionData": [{"Index": 0, "Records": batch}]}]
    response = direct(PRODUCE, 9, Acks=1, TimeoutMs=30_000, TopicData=data)
    return response["Responses"][0]["PartitionResponses"][0]


def _fetch(topic: str) -> bytes:
    """Return a request for all that is stored, from the beginning, in no session."""
    partition = {"PartitionMaxBytes": 50 << 20, "CurrentLeaderEpoch": -1}
    fields = {"MaxWaitMs": 100, "MinBytes": 1, "MaxBytes": 50 << 20, "SessionEpoch": -1}
    return ask(FETCH, 12, 1, Topics=[{"Topic": topic, "Partitions": [partition]}], **fields)


def _end_of(direct: Client, topic: str) -> int:
    wanted = [{"Name": topic, "Partitions": [{"Timestamp": -1, "CurrentLeaderEpoch": -1}]}]
    response = direct(LIST_OFFSETS, 7, ReplicaId=-1, Topics=wanted)
    end: int = response["Topics"][0]["Partitions"][0]["Offset"]
    return end


class Crowd:
    """Connections that send a frame without end, after a `greeting`. `received`: bytes of all
    responses. `ended`: how many connections the gateway has ended."""

    def __init__(self, port: int, connections: int, frame: bytes, greeting: bytes = b"") -> None:
        self.received = self.ended = 0
        self._address = HOST, port
        self._frame, self._greeting = frame, greeting
        self._ends = threading.Event()
        self._selector = selectors.DefaultSelector()
        for _ in range(connections):
            self._open()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send and receive until the block ends."""
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()
            for key in tuple(self._selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def _open(self) -> None:
        made = socket.create_connection(self._address)
        made.setblocking(False)
        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        self._selector.register(made, both, bytearray(self._greeting))

    def _work(self) -> None:
        while not self._ends.is_set():
            for key, events in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    self._move(key.fileobj, key.data, events)
                except (OSError, EOFError):
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.ended += 1
                    self._open()

    def _move(self, on: socket.socket, unsent: bytearray, events: int) -> None:
        if events & selectors.EVENT_READ:
            data = on.recv(1 << 20)
            if not data:
                raise EOFError
            self.received += len(data)
        if events & selectors.EVENT_WRITE:
            if not unsent:
                unsent += self._frame
            del unsent[: on.send(unsent)]
