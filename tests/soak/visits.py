"""Clients that connect, ask something and leave: each visit is a script for one connection.

A script yields where it waits for an answer, so that many run together in one thread.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import CONNECT, HOST, PATIENCE
from tests.soak.brokers import ELSEWHERE, WRONG
from tests.support.frames import send, simple

AT_ONCE = 64

TOPICS = 5_000
"""Topics of producers: their counters are kept, which is no growth once all topics were used."""

SOURCES = 8
"""Client addresses: the ports of a single one would not last for a thousand connections a
second."""

_NO_PORT_YET = 24
"""IP_BIND_ADDRESS_NO_PORT, which Python does not define."""

_RESET = struct.pack("ii", 1, 0)

Script = Generator[None, None, None]


class Caller:
    """A client's connection. Reading blocks, so read only once the answer can be there."""

    _numbers = count()

    def __init__(self, port: int) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_IP, _NO_PORT_YET, 1)
        self.sock.bind((f"127.0.1.{1 + next(self._numbers) % SOURCES}", 0))
        self.sock.connect((HOST, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes, wanted: int) -> Generator[None, None, BaseCommand]:
        """Send a frame, and return the answer, which must be of this type."""
        self.sock.sendall(frame)
        yield
        answer = self._hear()
        assert answer.type == wanted, answer
        return answer

    def _hear(self) -> BaseCommand:
        data = b""
        while len(data) < 8 or len(data) < struct.unpack_from(">I", data)[0] + 4:
            part = self.sock.recv(4096)
            assert part, "the connection closed before the answer"
            data += part
        return BaseCommand.FromString(data[8:])

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.sock.close()


def lookup(topic: str, request_id: int) -> bytes:
    """Return a LOOKUP."""
    topic = f"persistent://public/default/{topic}"
    return simple(Kind.LOOKUP, topic=topic, request_id=request_id)


def connect(**fields: object) -> bytes:
    return simple(Kind.CONNECT, client_version="soak", protocol_version=20, **fields)


# -- scripts -----------------------------------------------------------------------------------


def asks(port: int, number: int) -> Script:
    """Look up two new topics."""
    caller = Caller(port)
    yield from caller.ask(CONNECT, Kind.CONNECTED)
    for request in range(2):
        question = lookup(f"new-{number}-{request}", request)
        answer = yield from caller.ask(question, Kind.LOOKUP_RESPONSE)
        assert answer.lookupTopicResponse.request_id == request
    caller.close()


def produces(port: int, number: int) -> Script:
    """Look up a topic, connect to its broker by its sealed name, and send a message there."""
    caller = Caller(port)
    yield from caller.ask(CONNECT, Kind.CONNECTED)
    topic = f"t-{number % TOPICS}"
    answer = yield from caller.ask(lookup(topic, 1), Kind.LOOKUP_RESPONSE)
    caller.close()
    url = answer.lookupTopicResponse.brokerServiceUrl
    caller = Caller(port)
    greeting = connect(proxy_to_broker_url=url.removeprefix("pulsar://"))
    yield from caller.ask(greeting, Kind.CONNECTED)
    opening = simple(Kind.PRODUCER, topic=topic, producer_id=1, request_id=2)
    yield from caller.ask(opening, Kind.PRODUCER_SUCCESS)
    yield from caller.ask(send(1, number), Kind.SEND_RECEIPT)
    caller.close()


def is_led_on(port: int, number: int) -> Script:
    """Look up another broker's topic: the gateway asks that broker on a connection of its own."""
    caller = Caller(port)
    yield from caller.ask(CONNECT, Kind.CONNECTED)
    answer = yield from caller.ask(lookup(f"{ELSEWHERE}-{number}", 1), Kind.LOOKUP_RESPONSE)
    assert answer.lookupTopicResponse.authoritative
    caller.close()


def is_refused(port: int, number: int) -> Script:
    """Present a wrong credential."""
    caller = Caller(port)
    wrong = connect(auth_method_name="token", auth_data=WRONG)
    yield from caller.ask(wrong, Kind.ERROR)
    caller.close()


def resets(port: int, number: int) -> Script:
    """Reset while an answer is on its way."""
    caller = Caller(port)
    yield from caller.ask(CONNECT, Kind.CONNECTED)
    caller.sock.sendall(lookup(f"{ELSEWHERE}-{number}", 1))
    caller.reset()


def says_nothing(port: int, number: int) -> Script:
    """Connect and close."""
    caller = Caller(port)
    yield
    caller.close()


@dataclass(frozen=True, slots=True)
class Kinds:
    """A script, its share of twenty visits, its listener, and how it ends there."""

    script: Callable[[int, int], Script]
    share: int
    listener: str = "passing"
    connections: int = 1
    refused: int = 0


KINDS = (
    Kinds(asks, 9),
    Kinds(produces, 3, connections=2),
    Kinds(is_led_on, 3),
    Kinds(is_refused, 1, refused=1),
    Kinds(is_refused, 1, "verifying", refused=1),
    Kinds(resets, 2),
    Kinds(says_nothing, 1),
)

MIX = [kind for kind in KINDS for _ in range(kind.share)]

REFUSED = EndReason.AUTHENTICATION_FAILED
LEFT = EndReason.CLIENT_CLOSED, EndReason.CLIENT_LOST
"""A client that resets is lost or has closed, depending on what is on its way."""


def play(scripts: Iterable[Script]) -> None:
    """Play all scripts together to their ends."""
    live = list(scripts)
    while live:
        live = [script for script in live if next(script, script) is None]


def rounds(ports: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Play some visits, and yield the numbers of connections and of refused ones."""
    for first in count(0, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        kinds = [MIX[number % len(MIX)] for number in numbers]
        play(kind.script(ports[kind.listener], n) for kind, n in zip(kinds, numbers, strict=True))
        yield sum(kind.connections for kind in kinds), sum(kind.refused for kind in kinds)


def pairs(port: int, number: int) -> list[Caller]:
    """Return this many open pairs, each with a producer."""
    callers: list[Caller] = []

    def open_one() -> Script:
        caller = Caller(port)
        callers.append(caller)
        yield from caller.ask(CONNECT, Kind.CONNECTED)
        topic = f"persistent://public/default/t-{len(callers) % TOPICS}"
        opening = simple(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
        yield from caller.ask(opening, Kind.PRODUCER_SUCCESS)

    while len(callers) < number:
        play(open_one() for _ in range(min(AT_ONCE, number - len(callers))))
    return callers


def ping(callers: Iterable[Caller]) -> None:
    """Make a round trip to the broker and back on each connection."""

    def one(caller: Caller) -> Script:
        yield from caller.ask(simple(Kind.PING), Kind.PONG)

    play(map(one, callers))
