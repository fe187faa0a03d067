"""Hostile clients use up their share of resources, and other clients notice nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import send, simple

from .peers import PATIENCE, Broker, Client, Closed, Wire, polite
from .process import Ends, Gateway, until

pytestmark = pytest.mark.tier("all")  # how long others wait: see `make soak`

MIB = 1 << 20
HONEST = "127.0.0.2"
"""The address of honest clients; hostile clients have another one."""

PING = simple(Kind.PING)
TOPIC = "persistent://public/default/t"
SECONDS = 3.0
"""Seconds for which another client sends PINGs."""

AT_LEAST = int(SECONDS / 0.1)
"""Answers in that time if none takes longer than 100 ms. An undisturbed client gets some hundreds.
"""

STALLED = 30
"""Number of clients that do not read their responses."""


@pytest.fixture(scope="module")
def bounded(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a gateway with little memory and short frame deadlines. Small kernel buffers make
    clients that do not read the gateway's concern early."""
    deadlines = {"idle": "1h", "frame": "3s", "handshake": "1m"}
    limits = {"buffered": "32MiB", "collected_frame": "6MiB"}
    more = {"limits": limits, "data_plane": {"socket_buffer": "64KiB"}}
    gateway = Gateway([broker], tmp_path_factory.mktemp("bounded"), deadlines, more=more)
    yield gateway
    gateway.serves()
    gateway.stop()


def producer(size: int) -> bytes:
    """Return a PRODUCER of this many bytes, most of them a schema."""
    schema = {"name": "s", "schema_data": b"x" * size, "type": 1}
    return simple(Kind.PRODUCER, topic=TOPIC, producer_id=1, request_id=1, schema=schema)


class Hostile:
    """Connections that send most of a frame, then a byte now and then, and reconnect when the
    gateway closes them."""

    def __init__(self, port: int, number: int, frame: bytes) -> None:
        self._port = port
        self._frame = frame
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._be, daemon=True) for _ in range(number)]
        self.said = 0  # bytes sent, of all connections together
        for thread in self._threads:
            thread.start()

    def _be(self) -> None:
        while not self._stopped.wait(0.05):
            with suppress(OSError, Closed, AssertionError), Client(self._port) as client:
                client.open()
                client.sock.settimeout(0.2)
                self._say(client.sock)

    def _say(self, sock: socket.socket) -> None:
        rest = memoryview(self._frame)[:-100_000]
        while rest and not self._stopped.is_set():
            with suppress(TimeoutError):
                sent = sock.send(rest)
                rest = rest[sent:]
                self.said += sent
        while not self._stopped.wait(0.2):
            sock.send(b"x")

    def has_said_all(self) -> bool:
        """Return True if no connection takes more bytes."""
        before = self.said
        time.sleep(0.5)
        return 0 < before == self.said

    def stop(self) -> None:
        """Stop all hostile clients."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE)


@contextmanager
def besieged(gateway: Gateway, number: int, frame: bytes) -> Iterator[Hostile]:
    """Start this many hostile clients, and wait until they have sent as much as they can."""
    hostile = Hostile(gateway.ports["passing"], number, frame)
    try:
        until(hostile.has_said_all)
        yield hostile
    finally:
        hostile.stop()


def answered(client: Client) -> int:
    """Return how many PINGs, sent one after the other, are answered."""
    number, until_then = 0, time.monotonic() + SECONDS
    while time.monotonic() < until_then:
        client.say(PING)
        assert client.hear().type == BaseCommand.PONG
        number += 1
        time.sleep(0.005)
    return number


@pytest.mark.parametrize("number", [7, 100])
@pytest.mark.parametrize(
    "frame", [send(9, 1, b"x" * 5_900_000), producer(900_000)], ids=["SEND", "PRODUCER"]
)
def test_incomplete_frames_delay_no_other_client(
    bounded: Gateway, number: int, frame: bytes
) -> None:
    """The gateway must collect both kinds of frame whole: PRODUCERs, and SENDs of an unopened
    producer."""
    before = bounded.metrics().ended("passing")
    with (
        Client(bounded.ports["serving"], source=HONEST).open() as client,
        besieged(bounded, number, frame),
    ):
        assert answered(client) >= AT_LEAST
        client.produce()
        client.say(send(1, 1, b"y" * 200_000))
        assert client.hear().send_receipt.sequence_id == 1

        def ended() -> Ends:
            return bounded.metrics().ended("passing") - before

        assert until(lambda: ended()[EndReason.FRAME_TIMEOUT]), "no hostile connection was ended"
        assert not ended()[EndReason.OUT_OF_MEMORY]
        assert bounded.metrics().buffered <= 32 * MIB


def test_a_large_frame_of_another_client_gets_its_turn(bounded: Gateway) -> None:
    """The frame waits until one hostile frame reaches its deadline, not until all of them do."""
    with (
        Client(bounded.ports["serving"], source=HONEST).open() as client,
        besieged(bounded, 20, send(9, 1, b"x" * 5_900_000)),
    ):
        for _ in range(2):
            client.say(producer(900_000))
            assert client.hear().producer_success.request_id == 1


def test_a_frame_that_comes_slowly_within_the_deadline_passes(bounded: Gateway) -> None:
    """The frame comes piece by piece, as on a slow link."""
    with Client(bounded.ports["serving"], source=HONEST).open() as client:
        frame = producer(900_000)
        for at in range(0, len(frame), 100_000):
            client.say(frame[at : at + 100_000])
            time.sleep(0.1)
        assert client.hear().producer_success.request_id == 1


def test_incomplete_connects_use_little_memory(bounded: Gateway) -> None:
    """Unauthenticated clients send large CONNECTs that never become complete."""
    number = 400
    large = simple(Kind.CONNECT, client_version="x", auth_data=b"t" * 63_000)
    before = bounded.memory
    hostile = [Client(bounded.ports["passing"]) for _ in range(number)]
    try:
        for client in hostile:
            client.sock.settimeout(0.01)
            client.say(large[:62_000])
        assert until(lambda: bounded.metrics().connections("passing") == number)
        with Client(bounded.ports["serving"]).open() as client:  # from the same address
            assert answered(client) >= AT_LEAST
        token = simple(
            Kind.CONNECT, client_version="x", protocol_version=20, auth_data=b"t" * 30_000
        )
        with Client(bounded.ports["serving"], source=HONEST) as client:
            client.say(token)
            assert client.hear().type == BaseCommand.CONNECTED
        assert bounded.memory - before < number * len(large) // 2
    finally:
        for client in hostile:
            client.close()
    assert until(lambda: bounded.metrics().connections("passing") == 0)


def asking(gateway: Gateway) -> Client:
    """Return a client that sends requests which the gateway refuses itself, until it is no longer
    read."""
    topic = "persistent://pulsar/x/" + "y" * 1000
    ask = simple(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
    client = Client(gateway.ports["passing"]).open()
    client.sock.settimeout(0.5)
    with suppress(TimeoutError):
        while True:
            client.sock.sendall(ask * 50)
    return client


def patient(wire: Wire) -> None:
    """Act as a broker that waits long for the next request."""
    wire.sock.settimeout(10 * PATIENCE)
    polite(wire)


def is_calm(gateway: Gateway) -> bool:
    """Return True if the number of buffered bytes no longer changes."""
    before = gateway.metrics().buffered
    time.sleep(0.5)
    return gateway.metrics().buffered == before


def test_unread_answers_delay_no_other_client(bounded: Gateway, broker: Broker) -> None:
    with broker.playing(patient), ThreadPoolExecutor(STALLED) as pool:
        hostile = list(pool.map(lambda _: asking(bounded), range(STALLED)))
    try:
        assert until(lambda: bounded.metrics().buffered > STALLED * 1000)
        assert until(lambda: is_calm(bounded))
        with Client(bounded.ports["serving"], source=HONEST).open() as client:
            assert answered(client) >= AT_LEAST
        assert not bounded.metrics().ended("passing")[EndReason.OUT_OF_MEMORY]
    finally:
        for client in hostile:
            client.close()
