"""What successive frames of one kind have in common on a connection.

A producer sends to the same partitions again and again, and a consumer asks for them; receipts look
alike too. So a request that was judged, and needed no change, teaches the scanner its constant
bytes. Requests that differ from it in nothing but the serial number, and in a message that is sent,
would be judged alike: they pass. A message's length changes the lengths around it, so the constant
bytes are made anew for each length (`form_of`). Connections share them.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.wire.tubemq import methods
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.envelopes import Reply, Request, varint, varint_at
from gateway.wire.tubemq.frames import BLOCK, HEAD, SIZE

MOST_BLOCKS = 3
"""Blocks of a frame that passes. Until its end has come, it is kept without a claim on memory, so
it must not be large; larger ones stop."""

STRIDE = SIZE.size + BLOCK
"""Bytes from the length of a full block to the next one."""

LARGEST = HEAD.size + MOST_BLOCKS * STRIDE
"""Bytes of such a frame."""

BEHIND_SERIAL = 8
"""Where the constant bytes of a frame begin, behind its token and its serial number."""

_BLOCKS = struct.Struct(">II")
"""Reads how many blocks a frame has, and the length of the first."""

_LONGEST = 5
"""Bytes of a length at most."""

_FORMS = 2048
"""Forms that are kept for all connections: 1 MB, and 3 MB with the longest names."""

_MOST_CONSTANT = 1024
"""Constant bytes of a frame that passes. Clients and topics with usual names have 200."""

_MOST_DIGITS = 9
"""Bytes that the three lengths around a message have at most."""

_REQUEST, _DATA = b"\x1a", b"\x22"
"""The tags of `RequestBody.request` and `SendMessageRequestP2B.data`."""


class Kind:
    """The constant bytes of requests that are alike, of which none is a length.

    `head`: the envelope before the length of its third message. `body`: that message before the
    request. `before`: the request before the message that is sent; `behind`: behind it, None if
    nothing is sent, so that the request is `before` alone.
    """

    __slots__ = ("before", "behind", "body", "head")

    def __init__(self, head: bytes, body: bytes, before: bytes, behind: bytes | None) -> None:
        self.head = head
        self.body = body
        self.before = before
        self.behind = behind

    def lead(self, data: int) -> bytes:
        """Return the envelope before a message of `data` bytes."""
        before = self.before
        if self.behind is not None:
            before += _DATA + varint(data)
        size = len(before) + data + len(self.behind or b"")
        body = self.body + _REQUEST + varint(size)
        return self.head + varint(len(body) + size) + body + before


_kind = lru_cache(_FORMS)(Kind)


class Form(NamedTuple):
    """The constant bytes of all requests of one kind and one length.

    `lead`: from `BEHIND_SERIAL` to the message that is sent. `tail`: the bytes behind it, and
    `tail_at`, where they begin. `borders`: the lengths of blocks but for the first, and where they
    stand. `length`: of the frame; `data`: of the message. All offsets are from the frame's first
    byte.
    """

    lead: bytes
    tail: bytes
    tail_at: int
    borders: tuple[tuple[bytes, int], ...]
    length: int
    data: int


@lru_cache(_FORMS)
def form_of(kind: Kind, size: int) -> Form | None:
    """Return the form of requests whose envelopes have `size` bytes. Return None if there are none
    of this size, or if a block ends within the constant bytes."""
    found = _data(kind, size)
    if found is None:
        return None
    data, lead = found
    tail = kind.behind or b""
    blocks = -(-size // BLOCK)
    behind = size - len(tail)  # where the message ends in the envelope
    if blocks > MOST_BLOCKS or len(lead) > BLOCK or behind < (blocks - 1) * BLOCK:
        return None
    head = _BLOCKS.pack(blocks, min(BLOCK, size))
    borders = tuple(
        (SIZE.pack(min(BLOCK, size - number * BLOCK)), HEAD.size + number * STRIDE)
        for number in range(1, blocks)
    )
    around = HEAD.size + blocks * SIZE.size
    return Form(head + lead, tail, around + behind, borders, around + size, data)


def _data(kind: Kind, size: int) -> tuple[int, bytes] | None:
    """Return the length of the message in an envelope of `size` bytes, and what is before it."""
    if kind.behind is None:
        lead = kind.lead(0)
        return (0, lead) if len(lead) == size else None
    most = size - len(kind.lead(0)) - len(kind.behind)
    for data in range(most, max(-1, most - _MOST_DIGITS), -1):
        lead = kind.lead(max(0, data))
        if len(lead) + data + len(kind.behind) == size:
            return data, lead
    return None


def may_become(kind: Kind, begun: bytes) -> bool:
    """Return whether a request of this kind may begin with these bytes. `begun`: the bytes that
    have come from `BEHIND_SERIAL` on, the length of the first block among them."""
    blocks, block = _BLOCKS.unpack_from(begun)
    envelope = begun[_BLOCKS.size :]
    if not (block == BLOCK if blocks > 1 else block <= BLOCK):
        return False
    if not envelope.startswith(kind.head[: len(envelope)]):
        return False
    found = varint_at(envelope, len(kind.head))
    if found is None:
        return len(envelope) < len(kind.head) + _LONGEST
    size, at = found
    form = form_of(kind, at + size)
    return form is not None and begun.startswith(form.lead[: len(begun)])


def learn_request(frame: bytes, size: int, request: Request, message: Any) -> Kind | None:
    """Return the kind of a request that sends or asks for messages; None if it is unusual or large.
    `frame`: the request as it came, which is also how the gateway writes it. `size`: bytes of its
    envelope."""
    body = rpc.RequestBody(method=request.body.method)
    if request.body.HasField("timeout"):
        body.timeout = request.body.timeout
    head = b"".join(
        varint(len(it)) + it
        for it in (request.connection.SerializeToString(), request.header.SerializeToString())
    )
    before, behind, data = request.body.request, None, 0
    if request.body.method == methods.SEND_MESSAGE:
        names = broker.SendMessageRequestP2B(
            clientId=message.clientId,
            topicName=message.topicName,
            partitionId=message.partitionId,
        ).SerializePartialToString()
        data = len(message.data)
        place = len(names) + len(_DATA) + len(varint(data))
        before, behind = names, request.body.request[place + data :]
    if len(head) + len(before) + len(behind or b"") > _MOST_CONSTANT:
        return None
    found: Kind = _kind(head, body.SerializeToString(), before, behind)
    form = form_of(found, size)
    return found if form is not None and _fits(form, frame) else None


def _fits(form: Form, frame: bytes) -> bool:
    return (
        form.length == len(frame)
        and frame.startswith(form.lead, BEHIND_SERIAL)
        and frame.startswith(form.tail, form.tail_at)
    )


_NUMBERS = ((b"\x28", "messageId"), (b"\x30", "appendTime"), (b"\x38", "appendOffset"))
"""The tags and names of the numbers in a receipt."""

_TEXT, _NO_SIGNATURE = b"\x1a", b"\x20\x00"
"""The tag of `SendMessageResponseB2P.errMsg`, and a `requireAuth` that asks for nothing."""


def learn_receipt(frame: bytes, reply: Reply, message: Any) -> re.Pattern[bytes] | None:
    """Return a pattern that matches receipts like this one from `BEHIND_SERIAL` on; None if it is
    unusual. Only their numbers may differ, and have as many digits. `frame`: the receipt of a
    message that a broker has taken, as it came."""
    assert reply.body is not None
    data, text = reply.body.data, message.errMsg.encode()
    begin = broker.SendMessageResponseB2P(success=True, errCode=message.errCode)
    lead = frame[BEHIND_SERIAL : len(frame) - len(data)]
    lead += begin.SerializePartialToString() + _TEXT + varint(len(text))
    found = re.escape(lead) + b"[0-9]{%d}" % len(text)
    if message.HasField("requireAuth"):
        found += re.escape(_NO_SIGNATURE)
    for tag, name in _NUMBERS:
        if message.HasField(name):
            digits = len(varint(getattr(message, name) % (1 << 64)))
            found += re.escape(tag) + b"[\x80-\xff]{%d}[\x00-\x7f]" % (digits - 1)
    pattern = re.compile(found)
    return pattern if pattern.fullmatch(frame, BEHIND_SERIAL) else None
