"""Clients and brokers that send arbitrary bytes, well-formed or not."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from google.protobuf.message import DecodeError

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import receipt, simple

HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds until a waiting peer gives up, which fails its test: far more than anything takes, as a
busy machine must not fail a test."""

MAX_MESSAGE_SIZE = 256 * 1024
"""The value that the test broker announces: small, so that tests reach its bounds soon."""

CONNECT = simple(Kind.CONNECT, client_version="hostile", protocol_version=20)
CONNECTED = simple(
    Kind.CONNECTED,
    server_version="a test",
    protocol_version=20,
    max_message_size=MAX_MESSAGE_SIZE,
)


class Closed(Exception):  # noqa: N818
    """The peer has closed the connection."""


class Wire:
    """A connection that sends and receives whole frames or single bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, data: bytes) -> None:
        """Send all of the data; ignore a peer that is gone."""
        with suppress(OSError):
            self.sock.sendall(data)

    def drip(self, data: bytes) -> None:
        """Send the data byte by byte."""
        for at in range(len(data)):
            self.say(data[at : at + 1])

    def hear(self) -> BaseCommand:
        """Return the next frame's command. Raises `Closed`."""
        total, size = struct.unpack(">II", self._read(8))
        body = self._read(total - 4)
        try:
            return BaseCommand.FromString(body[:size])
        except DecodeError:
            raise Closed from None  # as after the end: no command follows these bytes

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = self.sock.recv(size - len(data))
            except ConnectionError:
                raise Closed from None
            if not part:
                raise Closed
            data += part
        return data

    def hear_all(self) -> list[BaseCommand]:
        """Return all frames up to the end of the connection."""
        heard = []
        with suppress(Closed):
            while True:
                heard.append(self.hear())
        return heard

    def reset(self) -> None:
        """Close by a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close in good order."""
        self.sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Script = Callable[[Wire], None]
"""What a broker does with a connection after its CONNECT."""


def listen(wire: Wire) -> None:
    """Read until the end, and send nothing."""
    wire.hear_all()


def says(data: bytes, then: Script = listen) -> Script:
    """Return a script that answers CONNECT with these bytes, and then runs `then`."""

    def script(wire: Wire) -> None:
        wire.say(data)
        then(wire)

    return script


def polite(wire: Wire) -> None:
    """Answer like a broker until the connection ends."""
    wire.say(CONNECTED)
    with suppress(Closed):
        while True:
            respond(wire, wire.hear())


def respond(wire: Wire, command: BaseCommand) -> None:
    """Send a broker's response to one command."""
    match command.type:
        case BaseCommand.PRODUCER:
            request = command.producer.request_id
            name = "a-producer"
            wire.say(simple(Kind.PRODUCER_SUCCESS, request_id=request, producer_name=name))
        case BaseCommand.SUBSCRIBE:
            wire.say(simple(Kind.SUCCESS, request_id=command.subscribe.request_id))
        case BaseCommand.CLOSE_PRODUCER:
            wire.say(simple(Kind.SUCCESS, request_id=command.close_producer.request_id))
        case BaseCommand.CLOSE_CONSUMER:
            wire.say(simple(Kind.SUCCESS, request_id=command.close_consumer.request_id))
        case BaseCommand.SEND:
            wire.say(receipt(command.send.producer_id, command.send.sequence_id))
        case BaseCommand.PING:
            wire.say(simple(Kind.PONG))
        case BaseCommand.LOOKUP:
            failed = CommandLookupTopicResponse.Failed
            request = command.lookupTopic.request_id
            wire.say(simple(Kind.LOOKUP_RESPONSE, request_id=request, response=failed, error=2))


def connects(wire: Wire) -> bool:
    """Read the first frame; return whether it is CONNECT."""
    return wire.hear().type == BaseCommand.CONNECT


class Broker:
    """Listens, and plays a script for each connection in a thread of its own. `usual`: the script,
    unless a test has another. `opens`: reads what goes before it, and returns whether it may run.
    """

    def __init__(self, usual: Script = polite, opens: Callable[[Wire], bool] = connects) -> None:
        self._usual, self._opens = usual, opens
        self._listener = socket.create_server((HOST, 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"{HOST}:{self.port}"
        self._script = usual
        self._wires: set[Wire] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def playing(self, script: Script) -> Iterator[None]:
        """Play another script for a while."""
        self._script = script
        try:
            yield
        finally:
            self._script = self._usual

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[Wire(sock)], daemon=True).start()

    def _serve(self, wire: Wire) -> None:
        with self._lock:
            self._wires.add(wire)
        try:
            with wire, suppress(Closed, OSError):
                if self._opens(wire):
                    self._script(wire)
        finally:
            with self._lock:
                self._wires.discard(wire)

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        with self._lock:
            return len(self._wires)

    def close(self) -> None:
        """Close the listener and all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Client(Wire):
    """One connection to the gateway, from the address `source`. `segment`: bytes of the largest
    one, 64 KiB on loopback unless given."""

    def __init__(
        self, port: int, receive_buffer: int = 0, source: str = HOST, segment: int = 0
    ) -> None:
        sock = socket.socket()
        if segment:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        super().__init__(sock)
        if source != HOST:
            sock.bind((source, 0))
        sock.connect((HOST, port))

    def open(self) -> Self:
        """Send CONNECT, and check that the broker accepts."""
        self.say(CONNECT)
        response = self.hear()
        assert response.type == BaseCommand.CONNECTED, response
        return self

    def produce(self, producer_id: int = 1) -> None:
        """Open a producer."""
        request = 1000 + producer_id
        topic = "persistent://public/default/t"
        self.say(simple(Kind.PRODUCER, topic=topic, producer_id=producer_id, request_id=request))
        assert self.hear().producer_success.request_id == request
