"""Frames as words: `FLOW 1 10` is a frame, and a broker's MESSAGE is `MESSAGE 1 m0`.

Numbers are ids of producers and consumers, `#n` are requests. The SEND with sequence id 7 has the
payload `m7`, which identifies its message everywhere, since entry ids differ between runs. Error
texts are left out because they differ between brokers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.playbooks import frames
from tests.playbooks.frames import NO_REQUEST, Fields, number_field, raw, read

SUBSCRIPTION = "s"
TYPES = {"exclusive": 0, "shared": 1, "failover": 2, "key_shared": 3}
ACCESS = {"shared": 0, "exclusive": 1, "wait": 2, "fencing": 3}
EARLIEST = -1

Places = dict[str, Fields]
"""Where the broker has stored each message, by its payload."""


# -- frames of a client ------------------------------------------------------------------------


def frame_of(words: str, topic: str, places: Places) -> bytes:
    """Return the frame for some words. All openings use `topic`, unless the words say `topic=x`."""
    name, *rest = words.split()
    plain = [word for word in rest if "=" not in word and not word.startswith("#")]
    named = dict(word.split("=") for word in rest if "=" in word)
    request = next((int(word[1:]) for word in rest if word.startswith("#")), 0)
    numbers = [int(word) for word in plain if word.isdigit()]
    named["topic"] = topic + named.get("topic", "")
    return _MADE[name](
        numbers, request, named, [word for word in plain if not word.isdigit()], places
    )


Made = Callable[[list[int], int, dict[str, str], list[str], Places], bytes]


def _producer(ids: list[int], request: int, named: Any, _: list[str], __: Places) -> bytes:
    fields: Fields = {"topic": named["topic"]}
    if "access" in named:
        fields["producer_access_mode"] = ACCESS[named["access"]]
    if "name" in named:
        fields["producer_name"] = named["name"]
    return frames.producer(ids[0], request=request, **fields)


def _send(ids: list[int], _: int, __: Any, ___: list[str], ____: Places) -> bytes:
    id, sequence = ids
    return raw(Kind.SEND, number_field(1, id) + number_field(2, sequence), published(sequence))


def published(sequence: int) -> bytes:
    """Return the metadata and payload of one message."""
    metadata = b"\x0a\x01p" + number_field(2, sequence) + number_field(3, 1)
    return struct.pack(">I", len(metadata)) + metadata + b"m%d" % sequence


def _subscribe(ids: list[int], request: int, named: Any, _: list[str], __: Places) -> bytes:
    kind = TYPES[named.get("type", "exclusive")]
    start = {"earliest": 1, "latest": 0}[named.get("start", "earliest")]
    fields: Fields = {"topic": named["topic"], "subType": kind, "initialPosition": start}
    fields["subscription"] = named.get("sub", SUBSCRIPTION)
    return frames.frame(Kind.SUBSCRIBE, consumer_id=ids[0], request_id=request, **fields)


def _flow(ids: list[int], _: int, __: Any, ___: list[str], ____: Places) -> bytes:
    return frames.frame(Kind.FLOW, consumer_id=ids[0], messagePermits=ids[1])


def _ack(ids: list[int], _: int, named: Any, payloads: list[str], places: Places) -> bytes:
    kind = 1 if "kind" in named else 0
    found = [places[payload] for payload in payloads]
    return frames.frame(Kind.ACK, consumer_id=ids[0], ack_type=kind, message_id=found)


def _seek(ids: list[int], request: int, _: Any, __: list[str], ___: Places) -> bytes:
    entry = {"ledgerId": (1 << 64) + EARLIEST, "entryId": (1 << 64) + EARLIEST}
    return frames.frame(Kind.SEEK, consumer_id=ids[0], request_id=request, message_id=entry)


def _redeliver(ids: list[int], _: int, __: Any, ___: list[str], ____: Places) -> bytes:
    return frames.frame(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=ids[0])


def _asks(make: Callable[..., bytes]) -> Made:
    return lambda ids, request, _, __, ___: make(ids[0], request=request)


_MADE: dict[str, Made] = {
    "PRODUCER": _producer,
    "SEND": _send,
    "CLOSE_PRODUCER": _asks(frames.close_producer),
    "SUBSCRIBE": _subscribe,
    "FLOW": _flow,
    "ACK": _ack,
    "SEEK": _seek,
    "REDELIVER": _redeliver,
    "UNSUBSCRIBE": _asks(frames.unsubscribe),
    "CLOSE_CONSUMER": _asks(frames.close_consumer),
}


# -- frames of a broker ------------------------------------------------------------------------


def words_of(frame: bytes, places: Places) -> str:
    """Return a broker's frame in words; empty if it concerns no producer or consumer."""
    command = read(frame)
    said = _SAID.get(command.type)
    return said(command, frame, places) if said else Kind(command.type).name


def _code(code: ServerError.ValueType) -> str:
    return ServerError.Name(code)


def _ready(command: BaseCommand, _: bytes, __: Places) -> str:
    answer = command.producer_success
    return f"PRODUCER_SUCCESS #{answer.request_id}" + ("" if answer.producer_ready else " queued")


def _success(command: BaseCommand, _: bytes, __: Places) -> str:
    return f"SUCCESS #{command.success.request_id}"


def _error(command: BaseCommand, _: bytes, __: Places) -> str:
    return f"ERROR #{command.error.request_id} {_code(command.error.error)}"


def _receipt(command: BaseCommand, _: bytes, __: Places) -> str:
    receipt = command.send_receipt
    return f"SEND_RECEIPT {receipt.producer_id} {receipt.sequence_id}"


def _send_error(command: BaseCommand, _: bytes, __: Places) -> str:
    error = command.send_error
    return f"SEND_ERROR {error.producer_id} {error.sequence_id} {_code(error.error)}"


def _closed_producer(command: BaseCommand, _: bytes, __: Places) -> str:
    assert command.close_producer.request_id == NO_REQUEST
    return f"CLOSE_PRODUCER {command.close_producer.producer_id}"


def _closed_consumer(command: BaseCommand, _: bytes, __: Places) -> str:
    assert command.close_consumer.request_id == NO_REQUEST
    return f"CLOSE_CONSUMER {command.close_consumer.consumer_id}"


def _message(command: BaseCommand, frame: bytes, places: Places) -> str:
    message = command.message
    payload = b"m" + frame.rpartition(b"m")[2]
    entry = message.message_id
    places[payload.decode()] = {"ledgerId": entry.ledgerId, "entryId": entry.entryId}
    return f"MESSAGE {message.consumer_id} {payload.decode()}"


def _end(command: BaseCommand, _: bytes, __: Places) -> str:
    return f"END_OF_TOPIC {command.reachedEndOfTopic.consumer_id}"


def _nothing(_: BaseCommand, __: bytes, ___: Places) -> str:
    return ""


_SAID: dict[int, Callable[[BaseCommand, bytes, Places], str]] = {
    Kind.PRODUCER_SUCCESS: _ready,
    Kind.SUCCESS: _success,
    Kind.ERROR: _error,
    Kind.SEND_RECEIPT: _receipt,
    Kind.SEND_ERROR: _send_error,
    Kind.CLOSE_PRODUCER: _closed_producer,
    Kind.CLOSE_CONSUMER: _closed_consumer,
    Kind.MESSAGE: _message,
    Kind.REACHED_END_OF_TOPIC: _end,
    Kind.ACTIVE_CONSUMER_CHANGE: _nothing,
    Kind.CONNECTED: _nothing,
    Kind.LOOKUP_RESPONSE: _nothing,
    Kind.PING: _nothing,
    Kind.PONG: _nothing,
}
