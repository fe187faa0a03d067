"""What another client feels of hostile ones: the round trips of its PINGs, while clients at one
address send what costs the process most.

The gateway, the brokers, the hostile clients and the honest one are processes of their own. Brokers
answer at once with answers that were made before, so that the gateway has most of the work.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import yaml

from gateway.wire.kafka.schema import api
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from gateway.wire.tubemq import methods as tubemq
from tests.hostile.peers import (
    CONNECTED,
    HOST,
    PATIENCE,
    Broker,
    Client,
    Closed,
    Script,
    Wire,
    connects,
    polite,
    respond,
)
from tests.hostile.process import CHECKOUT, until
from tests.hostile.test_tubemq import serve as serve_tubemq
from tests.playbooks_kafka import frames as kafka
from tests.playbooks_tubemq.script import ask as ask_tubemq
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn
from tests.soak import report
from tests.soak.runner import claim
from tests.support.frames import simple

HONEST = "127.0.0.9"
"""The address of the honest client. Hostile ones have another."""

SECONDS = 6.0
"""Of one load."""

SETTLING = 0.5
"""Seconds before the first round trip that counts: the load begins."""

PAUSE = 0.005
"""Seconds between two PINGs."""

P99, LONGEST = 20.0, 50.0
"""Milliseconds that are claimed, on a machine with a core to spare for the gateway."""

TOPICS = 10_000
NAMES = 9_900
PARTITIONS = 100

Hostile = Callable[[Mapping[str, int]], None]
"""Sends until its process is ended. Its argument has the gateway's ports, by name."""


class Felt(NamedTuple):
    """The round trips of the honest client, in milliseconds."""

    number: int
    median: float
    p99: float
    longest: float


# -- brokers -----------------------------------------------------------------------------------


@cache
def _list(request_id: int) -> bytes:
    """Return the answer of a broker to a request for a list."""
    names = [f"persistent://public/default/{'pub' if n % 2 else 'sec'}-{n}" for n in range(TOPICS)]
    return simple(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=request_id, topics=names)


def _pulsar(wire: Wire) -> None:
    wire.say(CONNECTED)
    with suppress(Closed):
        while True:
            command = wire.hear()
            if command.type != BaseCommand.GET_TOPICS_OF_NAMESPACE:
                respond(wire, command)
                continue
            wire.say(_list(command.getTopicsOfNamespace.request_id))


def _kafka(wire: Wire) -> None:
    with suppress(Closed):
        while True:
            size = wire._read(4)
            frame = wire._read(int.from_bytes(size))
            key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
            answer = _answer(key, version, wire.sock.getsockname()[1])
            wire.say(answer[:4] + frame[4:8] + answer[8:])


@cache
def _answer(key: int, version: int, port: int) -> bytes:
    """Return the answer of a broker, whose correlation id is written over."""
    if key == kafka.API_VERSIONS:
        ranges = [
            {"ApiKey": number, "MinVersion": known.request.first, "MaxVersion": known.request.last}
            for number in range(100)
            if (known := api(number)) is not None
        ]
        return kafka.tell(key, version, ApiKeys=ranges)
    if key == kafka.METADATA:
        partitions = [
            {"PartitionIndex": n, "LeaderId": 1, "ReplicaNodes": [1], "IsrNodes": [1]}
            for n in range(PARTITIONS)
        ]
        topics = [
            {"Name": f"{'pub' if n % 2 else 'sec'}-{n}", "Partitions": partitions}
            for n in range(TOPICS // PARTITIONS)
        ]
        brokers = [{"NodeId": 1, "Host": HOST, "Port": port}]
        return kafka.tell(key, version, Brokers=brokers, Topics=topics)
    return kafka.tell(key, version)


def _broker(name: str, started: Connection) -> None:
    """Serve as a listener's broker without end. `started`: gets its port."""
    script, opens = _SCRIPTS[name]
    started.send(Broker(script, opens).port)
    threading.Event().wait()


def _at_once(_wire: Wire) -> bool:
    return True


_SCRIPTS: Mapping[str, tuple[Script, Callable[[Wire], bool]]] = {
    "honest": (polite, connects),
    "pulsar": (_pulsar, connects),
    "kafka": (_kafka, _at_once),
    "tubemq": (serve_tubemq, _at_once),
}
"""What each listener's broker does. The honest client has a broker of its own."""


# -- hostile clients ---------------------------------------------------------------------------


def _together(number: int, work: Callable[[], None]) -> None:
    """Do some work in many threads, again and again."""

    def again() -> None:
        while True:
            with suppress(OSError, Closed, AssertionError):
                work()

    for _ in range(number):
        threading.Thread(target=again, daemon=True).start()
    threading.Event().wait()


def _read_all(sock: socket.socket) -> None:
    def read() -> None:
        with suppress(OSError):
            while sock.recv(1 << 20):
                pass

    threading.Thread(target=read, daemon=True).start()


def _repeat(port: int, first: bytes, frame: bytes, number: int) -> None:
    """Have connections send a frame as often as they can, and read whatever comes."""

    def connection() -> None:
        with socket.create_connection((HOST, port), PATIENCE) as sock:
            _read_all(sock)
            sock.sendall(first)
            while True:
                sock.sendall(frame)

    _together(number, connection)


def _pulsar_load(frame: bytes, number: int) -> Hostile:
    def load(ports: Mapping[str, int]) -> None:
        def connection() -> None:
            with Client(ports["pulsar"]).open() as client:
                _read_all(client.sock)
                while True:
                    client.sock.sendall(frame)

        _together(number, connection)

    return load


def _kafka_load(number: int, key: int, version: int, **fields: object) -> Hostile:
    def load(ports: Mapping[str, int]) -> None:
        frame = kafka.ask(key, version, 1, b"hostile", **fields)

        def connection() -> None:
            with Wire(socket.create_connection((HOST, ports["kafka"]), PATIENCE)) as wire:
                while True:
                    wire.sock.sendall(frame)
                    wire._read(int.from_bytes(wire._read(4)))

        _together(number, connection)

    return load


def _tubemq_load(number: int) -> Hostile:
    def load(ports: Mapping[str, int]) -> None:
        topics = [f"pub{n:06d}" for n in range(NAMES)]
        frame = ask_tubemq(
            tubemq.REGISTER_CONSUMER,
            1,
            clientId="c",
            groupName="g",
            hostName="h",
            topicList=topics,
            requireBound=False,
            sessionTime=0,
        )
        _repeat(ports["tubemq"], b"", frame, number)

    return load


def _http_load(name: str, number: int, first: bytes, unit: bytes) -> Hostile:
    return lambda ports: _repeat(ports[name], first, unit, number)


def _connects(name: str) -> Hostile:
    def load(ports: Mapping[str, int]) -> None:
        _together(2, lambda: socket.create_connection((HOST, ports[name])).close())

    return load


def _at_rest(_ports: Mapping[str, int]) -> None:
    threading.Event().wait()


_NAMES = [f"pub-{n:06d}" for n in range(NAMES)]
_DENIED = [f"sec-{n:06d}" for n in range(NAMES)]
_H2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
_FETCHED = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1, "SessionEpoch": -1}
_LIST = simple(Kind.GET_TOPICS_OF_NAMESPACE, request_id=1, namespace="public/default", mode=0)

LOADS: Mapping[str, Hostile] = {
    "nothing": _at_rest,
    "Pulsar: 100 connections of PINGs": _pulsar_load(64 * simple(Kind.PING), 100),
    f"Pulsar: lists of {TOPICS:,} topics, 20": _pulsar_load(_LIST, 20),
    "Pulsar: denied producers, 50": _pulsar_load(
        16 * simple(Kind.PRODUCER, topic="sec-1", producer_id=1, request_id=1), 50
    ),
    f"Kafka: metadata of {TOPICS:,} partitions, 20": _kafka_load(20, 3, 9, Topics=None),
    f"Kafka: metadata of {NAMES:,} names, 20": _kafka_load(
        20, 3, 12, Topics=[{"TopicId": bytes(16), "Name": it} for it in _NAMES]
    ),
    f"Kafka: fetch of {NAMES:,} topics, 20": _kafka_load(
        20, 1, 12, **_FETCHED, Topics=[{"Topic": it, "Partitions": []} for it in _NAMES]
    ),
    f"Kafka: offsets of {NAMES:,} denied topics, 20": _kafka_load(
        20, 2, 9, Topics=[{"Name": it, "Partitions": []} for it in _DENIED]
    ),
    f"Kafka: {NAMES:,} denied groups, 20": _kafka_load(20, 15, 5, Groups=_DENIED),
    f"TubeMQ: consumers of {NAMES:,} topics, 20": _tubemq_load(20),
    "console: HTTP/2 settings": _http_load(
        "console", 1, _H2, 4000 * (b"\0\0\6\4\0\0\0\0\0" + b"\0\3\0\0\0\x64")
    ),
    "console: requests in a row, 4": _http_load(
        "console", 4, b"", 2000 * b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
    ),
    "console: connects": _connects("console"),
    "admin: connects": _connects("admin"),
    "Pulsar: connects": _connects("pulsar"),
}
"""By what is sent; a number at the end is that of connections."""


def _send(load: str, ports: Mapping[str, int]) -> None:
    LOADS[load](ports)


# -- the honest client -------------------------------------------------------------------------


def _honest(port: int, seconds: float, felt: Connection) -> None:
    """Measure round trips. `felt`: gets them."""
    trips: list[float] = []
    with Client(port, source=HONEST).open() as client:
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            began = time.perf_counter()
            client.say(simple(Kind.PING))
            assert client.hear().type == BaseCommand.PONG
            trips.append(1000 * (time.perf_counter() - began))
            time.sleep(PAUSE)
    trips.sort()
    felt.send(Felt(len(trips), trips[len(trips) // 2], trips[int(0.99 * len(trips))], trips[-1]))


# -- the part ----------------------------------------------------------------------------------


def run(folder: Path, loads: Iterable[str] = LOADS, seconds: float = SECONDS) -> list[Row]:
    """Measure these loads, one after the other, each at a gateway and at brokers of its own: a
    broker that was flooded has work for seconds, and would take the gateway's core."""
    return [Row(load, _felt(load, folder, seconds)) for load in loads]


class Row(NamedTuple):
    """What the honest client felt of a load."""

    load: str
    felt: Felt


@contextmanager
def _brokers() -> Iterator[Mapping[str, int]]:
    """Run a broker for each listener, and yield their ports."""
    with ExitStack() as stack:
        brokers: dict[str, int] = {}
        for name in _SCRIPTS:
            ours, theirs = multiprocessing.Pipe()
            stack.enter_context(_process(_broker, name, theirs))
            brokers[name] = ours.recv()
        yield brokers


def _felt(load: str, folder: Path, seconds: float) -> Felt:
    ours, theirs = multiprocessing.Pipe()
    with _brokers() as brokers, _gateway(folder, brokers) as ports, _process(_send, load, ports):
        time.sleep(SETTLING)
        with _process(_honest, ports["honest"], seconds, theirs) as honest:
            claim(ours.poll(seconds + PATIENCE), "the honest client got no answers")
            felt: Felt = ours.recv()
            honest.join()
    return felt


@contextmanager
def _process(target: Callable[..., None], *arguments: object) -> Iterator[BaseProcess]:
    """Run a function in a process of its own, which ends with the block."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=target, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@contextmanager
def _gateway(folder: Path, brokers: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Run a gateway that is closed but for some topics, and yield its ports."""
    names = (*brokers, "console", "admin", "of kafka", "of tubemq")
    ports = dict(zip(names, free_ports(HOST, len(names)), strict=True))
    (folder / "token").write_text(secrets.token_hex(16))
    rules = [
        {"id": "pub", "match": {"topic": "*pub*"}, "allow": ["produce", "consume"]},
        {"id": "groups", "match": {"subscription": "g*"}, "allow": ["consume"]},
    ]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"version": 1, "rules": rules}))
    settings = {
        "version": 1,
        "listeners": [_listener(name, ports) for name in brokers],
        "clusters": {
            name: {
                "brokers": f"{_protocol(name)}://{HOST}:{port}",
                "targets": {"networks": [f"{HOST}/32"], "ports": [port]},
            }
            for name, port in brokers.items()
        },
        "rules": ["rules.yaml"],
        "admin": {"bind": f"{HOST}:{ports['admin']}"},
        "console": {"bind": f"{HOST}:{ports['console']}", "token_file": "token"},
        "log": {"level": "error"},
    }
    file, log = folder / "gateway.yaml", folder / "gateway.log"
    file.write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "gateway", "run", str(file)]
    process = spawn(command, log, os.environ | {"PYTHONPATH": str(CHECKOUT)})
    try:
        claim(until(partial(_listens, ports["pulsar"])), f"no gateway: {log.read_text()[-2000:]}")
        yield ports
    finally:
        end(process, 0, signal.SIGKILL)


def _listener(name: str, ports: Mapping[str, int]) -> Mapping[str, object]:
    listener: dict[str, object] = {
        "name": name,
        "protocol": _protocol(name),
        "bind": f"{HOST}:{ports[name]}",
        "cluster": name,
        "access": "closed",
    }
    if _protocol(name) == "pulsar":
        return listener | {"unknown": "mask"}
    first = ports[f"of {name}"]
    return listener | {"advertise": {"ports": {"host": HOST, "ids": "1", "first_port": first}}}


def _protocol(listener: str) -> str:
    return "pulsar" if listener == "honest" else listener


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def table(rows: list[Row]) -> str:
    """Return the table. Claims its bounds."""
    head = ("hostile clients send", "round trips", "median, ms", "p99, ms", "longest, ms")
    cells = [(load, *(f"{it:,.1f}" if it % 1 else f"{it:,}" for it in felt)) for load, felt in rows]
    text = report.table(head, cells)
    slow = [load for load, felt in rows if felt.p99 > P99 or felt.longest > LONGEST]
    claim(not slow, f"others wait for {', '.join(slow)}:\n{text}")
    return text
