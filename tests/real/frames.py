"""The part of Pulsar's frame format that tests need.

It is independent of the gateway's own code, so that it cannot share its mistakes.

A frame is its size (4 bytes), the command's size (4 bytes), the command (protobuf), and for SEND
and MESSAGE the optional broker entry metadata, the optional checksum, the metadata's size, the
metadata and the payload.
"""

import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Self
from urllib.parse import urlsplit

Value = int | str | bytes

BROKER_ENTRY_MAGIC = 0x0E02
CHECKSUM_MAGIC = 0x0E01
CHECKSUM_SIZE = 4
VARINT, BYTES = 0, 2  # wire types of protobuf


class Kind(IntEnum):
    """Commands that tests use; each number is also that of the field that holds the command."""

    CONNECT = 2
    CONNECTED = 3
    PRODUCER = 5
    MESSAGE = 9
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PONG = 19
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    GET_TOPICS_OF_NAMESPACE = 32
    GET_TOPICS_OF_NAMESPACE_RESPONSE = 33
    TOPIC_MIGRATED = 68


class ServerError(IntEnum):
    AUTHENTICATION = 3
    AUTHORIZATION = 4
    SERVICE_NOT_READY = 6
    NOT_ALLOWED = 22


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(fields: dict[int, Value]) -> bytes:
    """Return a protobuf message of numbers and texts."""
    out = bytearray()
    for number, value in fields.items():
        if isinstance(value, int):
            out += varint(number << 3 | VARINT) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | BYTES) + varint(len(data)) + data
    return bytes(out)


def decode(data: bytes) -> dict[int, int | bytes]:
    """Return the fields of a protobuf message; of a repeated field the last."""
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == VARINT:
            fields[tag >> 3], at = _read_varint(data, at)
        else:
            size, at = _read_size(tag & 7, data, at)
            fields[tag >> 3] = data[at : at + size]
            at += size
    return fields


def _read_size(wire_type: int, data: bytes, at: int) -> tuple[int, int]:
    match wire_type:
        case 1:  # fixed, 64 bits
            return 8, at
        case 5:  # fixed, 32 bits
            return 4, at
        case _:
            return _read_varint(data, at)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def frame(kind: Kind, fields: dict[int, Value], tail: bytes = b"") -> bytes:
    """Return one whole frame; `tail` is what follows the command."""
    command = encode({1: int(kind), int(kind): encode(fields)})
    return struct.pack(">II", 4 + len(command) + len(tail), len(command)) + command + tail


def frames(stream: bytes) -> Iterator[bytes]:
    """Yield the frames in `stream`, each without its total size; the last may be cut."""
    at = 0
    while at + 4 <= len(stream):
        (size,) = struct.unpack_from(">I", stream, at)
        yield stream[at + 4 : at + 4 + size]
        at += 4 + size


def without_payload(body: bytes) -> bytes:
    """Return a frame without its payload: of a MESSAGE the command and metadata, else
    everything."""
    if len(body) < 4:
        return body
    (command_size,) = struct.unpack_from(">I", body)
    end = 4 + command_size
    if body[4:6] != bytes((0x08, Kind.MESSAGE)):
        return body
    return body[: _payload_offset(body, end)]


def _payload_offset(body: bytes, at: int) -> int:
    if body[at : at + 2] == struct.pack(">H", BROKER_ENTRY_MAGIC):
        at += 6 + _size_at(body, at + 2)
    if body[at : at + 2] == struct.pack(">H", CHECKSUM_MAGIC):
        at += 2 + CHECKSUM_SIZE
    return at + 4 + _size_at(body, at)


def _size_at(body: bytes, at: int) -> int:
    """Return a size field, 0 if the recording ends before it."""
    return int.from_bytes(body[at : at + 4]) if at + 4 <= len(body) else 0


@dataclass(frozen=True)
class Command:
    kind: int
    fields: dict[int, int | bytes]

    def text(self, number: int) -> str:
        value = self.fields.get(number, b"")
        assert isinstance(value, bytes)
        return value.decode()


class Connection:
    """A client that sends exactly what a test says, to the first address of a service URL. It shows
    what real clients hide or would not send. `tls`: for a URL with TLS. `source`: its own
    address."""

    def __init__(
        self,
        service_url: str,
        patience: float = 10,
        tls: ssl.SSLContext | None = None,
        source: str = "",
    ) -> None:
        where = urlsplit(service_url.partition(",")[0])
        assert where.hostname
        assert where.port
        to = where.hostname, where.port
        self._socket = socket.create_connection(to, patience, (source, 0) if source else None)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=where.hostname)
        self._stream = self._socket.makefile("rb")

    def send(self, kind: Kind, fields: dict[int, Value]) -> None:
        self.send_frame(frame(kind, fields))

    def send_frame(self, data: bytes) -> None:
        self._socket.sendall(data)

    def connect(self, token: str, method: str = "token", **others: str) -> Command | None:
        """Send CONNECT with a token (or what else belongs to the method); `others` are further
        texts by field name. Return the answer, None if there is none."""
        fields: dict[int, Value] = {1: "a test", 3: token.encode(), 4: 20, 5: method}
        numbers = {
            "proxy_to_broker_url": 6,
            "original_principal": 7,
            "original_auth_data": 8,
            "original_auth_method": 9,
        }
        self.send(Kind.CONNECT, fields | {numbers[name]: text for name, text in others.items()})
        return self.receive()

    def lookup(self, topic: str) -> Command | None:
        self.send(Kind.LOOKUP, {1: topic, 2: 1})
        return self.receive()

    def receive(self) -> Command | None:
        """Return the next command, or None at the end of the stream."""
        body = self.receive_frame()[4:]
        if not body:
            return None
        command = decode(body[4 : 4 + int.from_bytes(body[:4])])
        kind = command[1]
        assert isinstance(kind, int)
        inner = command.get(kind, b"")
        assert isinstance(inner, bytes)
        return Command(kind, decode(inner))

    def receive_frame(self) -> bytes:
        """Return the next whole frame; empty at the end of the stream."""
        size = self._stream.read(4)
        return size + self._stream.read(int.from_bytes(size)) if len(size) == 4 else b""

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
