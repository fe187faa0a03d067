"""Requests as clients may say them: true ones, and such whose fields are repeated, moved, cut,
overlong, unknown or of another kind, in odd blocks and with odd envelopes.

All choices come from one `random.Random`.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from random import Random
from typing import Any

from google.protobuf.message import DecodeError, Message

from gateway.errors import PeerError
from gateway.wire.tubemq._proto.tubemq_broker_pb2 import SendMessageRequestP2B
from gateway.wire.tubemq.envelopes import read_request, written
from gateway.wire.tubemq.frames import HEAD, TOKEN, framed, head, whole
from gateway.wire.tubemq.methods import GET_MESSAGES, METHODS, OF_BROKER, SEND_MESSAGE
from tests.oracle.mutations import split_fields
from tests.support.frames import data, fixed, group, number, varint
from tests.unit.wire.tubemq.frames import vectors

Raw = bytes
"""A field with its tag."""

_ALL = tuple(METHODS)
_OF_MASTER = tuple(it for it in _ALL if it not in OF_BROKER)
_OF_BROKER = tuple(OF_BROKER)
_ODD_METHODS = (0, 7, 8, 9, 11, 12, 14, 19, 23, 1 << 31, (1 << 32) + SEND_MESSAGE, -1)

_NEGATIVE = (1 << 64) - 1
_NUMBERS = (0, 1, 2, 3, 31, 32, 127, 128, (1 << 31) - 1, 1 << 31, (1 << 32) + 1, 1 << 63, _NEGATIVE)
_SMALL = (-2, -1, 0, 1, 2, 31, 32, 127, 128, 1000, 1_795_168_910_952)
_TOPICS = ("demo", "demo", "demo", "orders", "secret", "__offset_history__")
_GROUPS = ("g", "g", "payroll", "vg1")
_CLIENTS = ("c", "p", "g_192.0.2.2-1-2-Pull-2.4.0")
_ODD = ("", "x" * 65, "no name", "d\u00e9mo", "demo\0", "\u0663", "a" * 1025, "demo#1", "demo:1")
_PADS = (" ", "\t", "\n", "\0", "\u00a0", "\u2003", "\x1f")
"""What a name may have around it. Java trims what is not above U+0020."""

_BITS = (":", "#", "@", " ", "-", "0", ":1", "#x:1")
"""What may stand in the text of a partition where it should not."""

_DEEP = (1, 30, 98, 99, 100, 101)
"""Levels of groups; decoders accept some hundred."""

_REAL = {
    read_request(whole(it.frame).envelope).body.method: read_request(
        whole(it.frame).envelope
    ).body.request
    for it in vectors()
    if it.is_request
}


# -- messages ------------------------------------------------------------------------------------


def _padded(name: str, noise: Random, odd: float) -> str:
    if noise.random() > odd:
        return name
    pad = noise.choice(_PADS)
    return noise.choice((pad + name, name + pad, pad + name + pad))


def _text(name: str, noise: Random, odd: float) -> str:
    """Return a text for the field of this name."""
    if noise.random() < odd / 4:
        return noise.choice(_ODD)
    if name in ("subscribeInfo", "partSubInfo"):
        return f"{noise.choice(_CLIENTS)}@{noise.choice(_GROUPS)}#{_partition(noise, odd)}"
    if name == "partitionInfo":
        return _partition(noise, odd)
    if name in ("topicName", "topicList"):
        return _padded(noise.choice(_TOPICS), noise, odd)
    if name == "groupName":
        return _padded(noise.choice(_GROUPS), noise, odd)
    return _padded(noise.choice(_CLIENTS), noise, odd)


def _partition(noise: Random, odd: float) -> str:
    id = noise.choice((1, 2, 2, 3))
    told = f"{id}:127.0.0.1:{8123 + id}#{noise.choice(_TOPICS)}:{noise.randrange(3)}"
    if noise.random() > odd:
        return told
    at, other = (
        noise.randrange(len(told)),
        noise.choice((":", "#", "@", " ", "-", "0", ":1", "#x:1")),
    )
    return told[:at] + other + told[at + noise.randrange(2) :]


def filled(message: Message, noise: Random, odd: float) -> Message:
    """Return a message with all fields that it needs, and some others."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and noise.random() < 0.4:
            continue
        if field.is_repeated:
            getattr(message, field.name).extend(
                _value(field, noise, odd) for _ in range(noise.randrange(4))
            )
        elif field.message_type is not None:
            filled(getattr(message, field.name), noise, odd)
        else:
            setattr(message, field.name, _value(field, noise, odd))
    return message


def _value(field: Any, noise: Random, odd: float) -> Any:
    if field.type == field.TYPE_STRING:
        return _text(field.name, noise, odd)
    if field.type == field.TYPE_BYTES:
        return noise.randbytes(noise.choice((0, 1, 20, 300)))
    if field.type == field.TYPE_BOOL:
        return noise.random() < 0.5
    found = noise.choice(_SMALL)
    return found if field.type == field.TYPE_INT64 else min(found, (1 << 31) - 1)


def message_of(method: int, noise: Random, odd: float) -> bytes:
    """Return an encoded message of a method: one of a real client, or a made one."""
    if method in _REAL and noise.random() < 0.2:
        return _REAL[method]
    return filled(METHODS[method].request(), noise, odd).SerializeToString()


# -- fields --------------------------------------------------------------------------------------


def mutated(content: bytes, of: type[Message] | None, noise: Random, depth: int = 0) -> bytes:
    """Return a message with some of its fields changed. `of`: what it is."""
    fields = split_fields(content)
    if fields and depth < 3 and noise.random() < 0.3:
        at = noise.randrange(len(fields))
        fields[at] = _inside(fields[at], noise, depth)
        return b"".join(fields)
    for _ in range(noise.choice((1, 1, 2))):
        _change(fields, of, noise)
    return b"".join(fields)


def _inside(field: Raw, noise: Random, depth: int) -> Raw:
    """Return a field with a change in it, if it may be a message."""
    tag = field[0]
    if tag > 127 or tag & 7 != 2 or len(field) < 3 or field[1] > 127:
        return field
    try:
        return data(tag >> 3, mutated(field[2:], None, noise, depth + 1))
    except (IndexError, KeyError, struct.error):
        return field


def _change(fields: list[Raw], of: type[Message] | None, noise: Random) -> None:
    known = [it.number for it in of.DESCRIPTOR.fields] if of is not None else [1, 2, 3, 4, 5]
    at = noise.randrange(len(fields) + 1)
    other = noise.choice(fields) if fields else b""
    which = noise.choice(known)
    match noise.randrange(12):
        case 0:  # again
            fields.insert(at, other)
        case 1:
            noise.shuffle(fields)
        case 2:
            del fields[at : at + 1]
        case 3:  # nobody knows it, or a later version does
            unknown = noise.choice((max(known) + 1, max(known) + 2, 99, (1 << 29) - 1))
            fields.insert(at, _any_field(unknown, noise))
        case 4:  # of any kind
            fields.insert(at, _any_field(which, noise))
        case 5:
            fields.insert(at, number(which, noise.choice(_NUMBERS), width=noise.choice((1, 5, 10))))
        case 6:
            fields.insert(at, data(which, _any_text(noise), width=noise.choice((1, 2, 5, 10))))
        case 7:  # its tag is overlong
            fields.insert(at, number(which, 1, tag_width=noise.choice((2, 5, 6, 10))))
        case 8 if fields:  # cut
            last = fields[-1]
            fields[-1] = last[: noise.randrange(len(last) + 1)]
        case 9:
            fields.insert(at, noise.randbytes(noise.randrange(1, 4)))
        case 10:  # packed numbers
            fields.insert(at, data(which, b"".join(varint(noise.choice(_NUMBERS)) for _ in "ab")))
        case _:
            fields.insert(at, _nested(noise.choice((which, 77)), noise.choice(_DEEP)))


def _nested(field: int, levels: int) -> Raw:
    found = b""
    for _ in range(levels):
        found = group(field, found)
    return found


def _any_field(field: int, noise: Random) -> Raw:
    match noise.randrange(6):
        case 0:
            return number(field, noise.choice(_NUMBERS))
        case 1:
            return fixed(field, noise.randbytes(4))
        case 2:
            return fixed(field, noise.randbytes(8))
        case 3:
            return group(field, number(1, 5))
        case 4:
            return varint(field << 3 | 3) + number(1, 5) + varint(field + 1 << 3 | 4)
        case _:
            return data(field, _any_text(noise))


def _any_text(noise: Random) -> bytes:
    odd = (b"", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80")
    return noise.choice((*odd, b"secret", b" payroll", b"demo"))


# -- envelopes and frames ------------------------------------------------------------------------


def any_request(noise: Random, serial: int, node: int | None) -> bytes:
    """Return a request to the master, or to the broker with the id `node`."""
    odd = noise.choice((0.0, 0.0, 0.05, 0.3))
    fitting = _OF_MASTER if node is None else _OF_BROKER
    method = noise.choice(_ALL if noise.random() < 0.03 else fitting)
    content = message_of(method, noise, odd)
    if noise.random() < 0.45:
        content = mutated(content, METHODS[method].request, noise)
    envelope = _envelope(method, content, noise)
    return _framed(serial, envelope, noise)


def plain_request(noise: Random, serial: int) -> bytes:
    """Return a request to a broker as clients say it again and again."""
    method = noise.choice((SEND_MESSAGE, SEND_MESSAGE, GET_MESSAGES))
    message: Any = filled(METHODS[method].request(), noise, 0.0)
    if method == SEND_MESSAGE:
        message.ClearField("authInfo")
    envelope = b"".join(
        varint(len(it)) + it
        for it in (
            number(1, 0),
            number(1, 3) + number(2, 3),
            number(1, method) + number(2, 10_000) + data(3, message.SerializeToString()),
        )
    )
    return framed(serial, envelope)


def again(frame: bytes, noise: Random, serial: int) -> bytes:
    """Return a request that is like an earlier one, but for some bytes."""
    found = bytearray(frame)
    struct.pack_into(">i", found, 4, serial)
    chance = noise.random()
    if chance < 0.5:
        return bytes(found)
    if chance < 0.75:
        found = bytearray(_resent(bytes(found), noise))
        struct.pack_into(">i", found, 4, serial)
    if noise.random() < 0.6:
        at = noise.randrange(HEAD.size - 4, len(found))
        found[at] = noise.choice((noise.randrange(256), found[at] ^ 1, found[at] ^ 128))
    return bytes(found)


def _resent(frame: bytes, noise: Random) -> bytes:
    """Return a frame that sends another message, if it sends any."""
    try:
        request = read_request(whole(frame).envelope)
    except (PeerError, struct.error):
        return frame
    if request.body.method != SEND_MESSAGE:
        return frame
    message = SendMessageRequestP2B()
    try:
        message.ParseFromString(request.body.request)
    except DecodeError:
        return frame
    message.data = noise.randbytes(noise.choice((0, 1, 20, 127, 128, 300, 8100, 8192, 17_000)))
    request.body.request = message.SerializePartialToString()
    return framed(head(frame).serial, written(*request))


def _envelope(method: int, content: bytes, noise: Random) -> bytes:
    said = noise.choice(_ODD_METHODS) if noise.random() < 0.02 else method
    flag = noise.choice((0, 0, 0, 0, 0, 0, 1, 2, _NEGATIVE))
    service = 3 if method == SEND_MESSAGE else 2 if method in OF_BROKER else 1
    if noise.random() < 0.05:
        service = noise.choice((0, 1, 2, 3, 4, 5, 6, _NEGATIVE))
    patience = noise.choice((10_000, 10_000, 10_000, 0, _NEGATIVE, (1 << 63) - 1))
    parts = [
        number(1, flag),
        number(1, service) + number(2, noise.choice((1, 2, 3, 3, 3, 4))),
        number(1, said & _NEGATIVE) + number(2, patience) + data(3, content),
    ]
    if noise.random() < 0.08:
        at = noise.randrange(3)
        parts[at] = mutated(parts[at], None, noise)
    width = noise.choice((2, 5, 6, 10)) if noise.random() < 0.05 else 1
    found = b"".join(varint(len(it), width) + it for it in parts)
    if noise.random() < 0.1:
        found += noise.choice((b"\0", b"\0" * 20, noise.randbytes(5), found))
    if noise.random() < 0.01:
        found = found[: noise.randrange(len(found) + 1)]
    return found


def _framed(serial: int, envelope: bytes, noise: Random) -> bytes:
    blocks = [envelope]
    if noise.random() < 0.2:
        cuts = sorted(noise.randrange(len(envelope) + 1) for _ in range(noise.randrange(1, 6)))
        ends = [0, *cuts, len(envelope)]
        blocks = [envelope[begin:end] for begin, end in pairwise(ends)]
    count = len(blocks)
    if noise.random() < 0.01:
        count = noise.choice((0, count + 1, 3584, 3585, 1 << 30, (1 << 32) - 1))
    found = HEAD.pack(TOKEN, serial, count)
    found += b"".join(struct.pack(">I", len(it)) + it for it in blocks)
    if noise.random() < 0.015:
        torn = bytearray(found)
        torn[noise.randrange(min(20, len(torn)))] ^= 1 << noise.randrange(8)
        found = bytes(torn)
    if noise.random() < 0.01:
        found = found[: noise.randrange(len(found))]
    return found
