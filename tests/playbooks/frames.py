"""Frames by command and fields, framed apart from the gateway's own code.

`unknown` is put behind the fields of a command: fields of later versions, or of `number` with a
value that today's enums lack.
"""

from __future__ import annotations

import struct
from typing import Any

from gateway.wire.pulsar._proto import pulsar_wire_pb2
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind

Fields = dict[str, Any]

TOPIC = "persistent://public/default/t"
NO_REQUEST = (1 << 64) - 1


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


LATER = number_field(100, 7)
"""A field of later versions."""


def raw(kind: int, body: bytes, tail: bytes = b"") -> bytes:
    """A frame of any command type. `tail`: what follows the command."""
    command = number_field(1, kind) + varint(kind << 3 | 2) + varint(len(body)) + body
    return struct.pack(">II", len(command) + len(tail) + 4, len(command)) + command + tail


def framed(command: bytes) -> bytes:
    """A frame of a command that is written by hand."""
    return struct.pack(">II", len(command) + 4, len(command)) + command


def frame(kind: Kind, /, *, unknown: bytes = b"", **fields: Any) -> bytes:
    """A frame of a known command. Fields that are messages are given as dictionaries."""
    described = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
    assert described is not None
    message = getattr(pulsar_wire_pb2, described.name)(**fields)
    return raw(kind, message.SerializePartialToString() + unknown)


def read(data: bytes) -> BaseCommand:
    """The command of one whole frame."""
    total, size = struct.unpack_from(">II", data)
    assert total == len(data) - 4
    return BaseCommand.FromString(data[8 : 8 + size])


# -- producers and consumers -------------------------------------------------------------------


def producer(id: int = 1, *, request: int = 1, topic: str = TOPIC, **fields: Any) -> bytes:
    return frame(Kind.PRODUCER, topic=topic, producer_id=id, request_id=request, **fields)


def producer_success(request: int = 1, **fields: Any) -> bytes:
    return frame(Kind.PRODUCER_SUCCESS, request_id=request, producer_name="p", **fields)


def queued(request: int = 1) -> bytes:
    return producer_success(request, producer_ready=False)


def send(id: int = 1, sequence: int = 0, *, messages: int | None = None) -> bytes:
    command = pulsar_wire_pb2.CommandSend(producer_id=id, sequence_id=sequence)
    if messages is not None:
        command.num_messages = messages
    body = command.SerializeToString()
    return raw(Kind.SEND, body, b"\x00\x00\x00\x00payload")


def receipt(id: int = 1, sequence: int = 0) -> bytes:
    return frame(Kind.SEND_RECEIPT, producer_id=id, sequence_id=sequence)


def send_error(id: int = 1, text: str = "no") -> bytes:
    code = ServerError.PersistenceError
    return frame(Kind.SEND_ERROR, producer_id=id, sequence_id=0, error=code, message=text)


def close_producer(id: int = 1, *, request: int = NO_REQUEST, **fields: Any) -> bytes:
    return frame(Kind.CLOSE_PRODUCER, producer_id=id, request_id=request, **fields)


def subscribe(id: int = 1, *, request: int = 1, topic: str = TOPIC, **fields: Any) -> bytes:
    wanted: Fields = {"topic": topic, "subscription": "s", "subType": 0}
    return frame(Kind.SUBSCRIBE, consumer_id=id, request_id=request, **wanted, **fields)


def unsubscribe(id: int = 1, *, request: int = 2) -> bytes:
    return frame(Kind.UNSUBSCRIBE, consumer_id=id, request_id=request)


def migrated(id: int, kind: int, url: str = "pulsar://unknown.example:6650") -> bytes:
    """The topic of a producer (kind 0) or consumer (kind 1) has gone to another cluster."""
    return frame(Kind.TOPIC_MIGRATED, resource_id=id, resource_type=kind, brokerServiceUrl=url)


def close_consumer(id: int = 1, *, request: int = NO_REQUEST, **fields: Any) -> bytes:
    return frame(Kind.CLOSE_CONSUMER, consumer_id=id, request_id=request, **fields)


def message(id: int = 1) -> bytes:
    entry = {"ledgerId": 1, "entryId": 1}
    body = pulsar_wire_pb2.CommandMessage(consumer_id=id, message_id=entry).SerializeToString()  # type: ignore[arg-type]
    metadata = b"\x0a\x01p\x10\x00\x18\x01"
    checksum = b"\x0e\x01\x00\x00\x00\x00"
    return raw(
        Kind.MESSAGE, body, checksum + struct.pack(">I", len(metadata)) + metadata + b"payload"
    )


# -- answers -----------------------------------------------------------------------------------


def success(request: int = 1) -> bytes:
    return frame(Kind.SUCCESS, request_id=request)


def error(
    request: int = NO_REQUEST,
    code: ServerError.ValueType = ServerError.UnknownError,
    text: str = "no",
    **fields: Any,
) -> bytes:
    return frame(Kind.ERROR, request_id=request, error=code, message=text, **fields)


# -- opening -----------------------------------------------------------------------------------


def connect(**fields: Any) -> bytes:
    """What the Python client says, and more where the test asks for it."""
    usual: Fields = {
        "client_version": "Pulsar-CPP-v4.2.0",
        "protocol_version": 20,
        "auth_method_name": "token",
        "auth_data": b"alice's token",
        "feature_flags": {"supports_auth_refresh": True, "supports_broker_entry_metadata": True},
    }
    return frame(Kind.CONNECT, **(usual | fields))


def connected(**fields: Any) -> bytes:
    usual: Fields = {"server_version": "4.2.4", "protocol_version": 21}
    return frame(Kind.CONNECTED, **(usual | fields))


def auth_challenge(data: bytes = b"PulsarAuthRefresh") -> bytes:
    return frame(Kind.AUTH_CHALLENGE, challenge={"auth_method_name": "token", "auth_data": data})


def auth_response(data: bytes, *, method: str = "token", version: str | None = None) -> bytes:
    versioned: Fields = {} if version is None else {"client_version": version}
    proof = {"auth_method_name": method, "auth_data": data}
    return frame(Kind.AUTH_RESPONSE, response=proof, **versioned)


# -- lookups -----------------------------------------------------------------------------------

LookupType = pulsar_wire_pb2.CommandLookupTopicResponse


def lookup(request: int = 1, topic: str = TOPIC, **fields: Any) -> bytes:
    return frame(Kind.LOOKUP, topic=topic, request_id=request, **fields)


def response(request: int = 1, **fields: Any) -> bytes:
    return frame(Kind.LOOKUP_RESPONSE, request_id=request, **fields)


def connect_to(url: str, request: int = 1, **fields: Any) -> bytes:
    return response(request, response=LookupType.Connect, brokerServiceUrl=url, **fields)


def redirect_to(url: str, request: int = 1, **fields: Any) -> bytes:
    return response(request, response=LookupType.Redirect, brokerServiceUrl=url, **fields)


def failed(
    request: int = 1,
    code: ServerError.ValueType = ServerError.ServiceNotReady,
    text: str = "no",
    **fields: Any,
) -> bytes:
    return response(request, response=LookupType.Failed, error=code, message=text, **fields)
