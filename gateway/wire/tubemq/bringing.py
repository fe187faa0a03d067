"""Reads replies that bring messages while they pass, so that half a megabyte is neither kept nor
copied.

A reply is read like this if it begins like one that was judged: as to its first two messages, that
it succeeds, and its text. Then it has to go on as servers write it: in full blocks but for the last
one, with messages and numbers, and no other text. One that does not is a violation.

`compiled.tubemq` has a twin of `Bringing`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.errors import PeerError
from gateway.wire.services import Services
from gateway.wire.tubemq import methods
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq.envelopes import body_at, varint_at
from gateway.wire.tubemq.frames import BLOCK, FIRST, MOST_BLOCKS, SIZE, TOKEN
from gateway.wire.tubemq.in_flight import Asked, InFlight
from gateway.wire.tubemq.progress import note
from gateway.wire.tubemq.scanning import START

BODY = bytes((0x08, methods.GET_MESSAGES, 0x12))
"""The body of such a reply up to the length of its message."""

_BROUGHT = 0x22
"""The tag of `GetMessageResponseB2C.messages`."""

MOST_CONSTANT = 150
"""Bytes at the beginning of a reply that are the same in the next ones. Brokers write 20."""

LONGEST_LEAD = MOST_CONSTANT + len(BODY) + 10
"""Bytes of an envelope after which a reply's messages have begun: two lengths are among them."""


class Lead(NamedTuple):
    """How replies that bring messages begin. `heads`: their envelopes up to the body's length.
    `text`: their message up to the tag of the first of the messages."""

    heads: bytes
    text: bytes


def learn_lead(envelope: bytes, message: Any) -> Lead | None:
    """Return how a reply began that brought messages; None if it is unusual."""
    text = broker.GetMessageResponseB2C(success=message.success, errCode=message.errCode)
    if message.HasField("errMsg"):
        text.errMsg = message.errMsg
    begin = text.SerializeToString() + bytes((_BROUGHT,))
    at = body_at(envelope)
    if at is None:
        return None
    lead = Lead(envelope[:at], begin)
    if len(begin) + at > MOST_CONSTANT or _begins(lead, envelope[:LONGEST_LEAD]) is None:
        return None
    return lead


class _Begun(NamedTuple):
    """An envelope that begins like the lead. `at`: where its messages begin; `end`: its end."""

    at: int
    end: int


def _begins(lead: Lead, envelope: bytes) -> _Begun | None:
    """Return where an envelope of which this much has come has its messages; None if it begins
    otherwise."""
    if not envelope.startswith(lead.heads):
        return None
    body = varint_at(envelope, len(lead.heads))
    if body is None or not envelope.startswith(BODY, body[1]):
        return None
    data = varint_at(envelope, body[1] + len(BODY))
    if data is None or sum(data) != sum(body) or not envelope.startswith(lead.text, data[1]):
        return None
    return _Begun(data[1] + len(lead.text) - 1, sum(body))


def count_brought(
    services: Services, asked: Asked, messages: int, size: int, offset: int | None, end: int
) -> None:
    """Count what a reply has brought. `size`: bytes of the messages. `offset`, `end`: see
    `progress.note`."""
    account = asked.account
    if account is not None:
        account.count(messages)
        account.bytes += size
    if asked.partition is not None:
        note(services, asked.partition, offset, end)


_TAG, _VALUE, _LENGTH = range(3)
_MOST_BYTES = (5, 10, 5)
"""Bytes that a tag, a value and a length have at most."""

_NUMBER, _LONG, _BYTES, _SHORT = 0, 1, 2, 5
"""Wire types."""

_LARGEST_TAG = 0xFFFFFFFF
"""Of a larger one protobuf in Java takes the lower 32 bits, which may be those of a text."""

_JUDGED = 3
"""`success`, `errCode` and `errMsg` have the numbers up to this one: all of them have been read."""

_OFFSET, _END = 5 << 3, 10 << 3
"""The tags of `currOffset` and `maxOffset`."""

_REQUIRED = {1 << 3: 1, 2 << 3: 2, 3 << 3 | _BYTES: 4, 4 << 3: 8}
"""The tags of a message's fields, which are all required, with a bit for each."""

_PAYLOAD = 3 << 3 | _BYTES
_ALL = 15
_ALL_BUT_FLAG = 7

_NUMBERS = rb"\x08[\x80-\xff]{0,9}[\x00-\x7f]\x10[\x80-\xff]{0,9}[\x00-\x7f]\x1a"
_VARINT = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_NEXT = re.compile(
    rb"(\x20[\x80-\xff]{0,9}[\x00-\x7f])?\x22" + _VARINT + b"(" + _NUMBERS + _VARINT + b")",
    re.DOTALL,
)
"""Matches the rest of a message, its flag, if there is one, and the next message up to its payload,
as all servers write them."""

_OUTSIDE = -1

_WRONG = "a reply that does not go on as one that brings messages"


@lru_cache(4096)
def _value(varint: bytes) -> int:
    return sum((byte & 127) << 7 * place for place, byte in enumerate(varint))


class Bringing:
    """Reads such replies of one connection. `left`: bytes of the reply under way that have not
    passed. `lead`: how replies begin; None: that is not known yet."""

    __slots__ = (
        "_asked",
        "_block",
        "_bytes",
        "_digits",
        "_envelope",
        "_in_flight",
        "_inner",
        "_messages",
        "_offset",
        "_partition_end",
        "_payload",
        "_seen",
        "_serial",
        "_services",
        "_shift",
        "_skip",
        "_state",
        "_tag",
        "_value",
        "lead",
        "left",
    )

    def __init__(self, in_flight: InFlight, services: Services) -> None:
        self._in_flight = in_flight
        self._services = services
        self.lead: Lead | None = None
        self.left = 0

    def begin(self, chunk: bytearray, pos: int, end: int) -> int:
        """Begin with the reply at `pos`. Return where its messages begin; `pos` if it is none."""
        lead = self.lead
        if lead is None or end - pos <= FIRST:
            return pos
        token, serial, blocks, size = START.unpack_from(chunk, pos)
        asked = self._in_flight.get(serial)
        if token != TOKEN or asked is None or asked.method != methods.GET_MESSAGES:
            return pos
        first = pos + FIRST
        begun = _begins(lead, bytes(chunk[first : min(end, first + LONGEST_LEAD)]))
        if begun is None or asked.account is None or blocks > MOST_BLOCKS:
            return pos
        if blocks != -(-begun.end // BLOCK) or size != min(BLOCK, begun.end) or begun.at >= size:
            return pos
        self._asked, self._serial = asked, serial
        self._envelope = begun.end - begun.at
        self._block = size - begun.at
        self.left = self._envelope + (blocks - 1) * SIZE.size
        self._digits = 0
        self._state, self._value, self._shift = _TAG, 0, 0
        self._skip, self._inner, self._seen = 0, _OUTSIDE, 0
        self._messages = self._bytes = self._payload = self._partition_end = 0
        self._offset: int | None = None
        return first + begun.at

    def read(self, chunk: bytearray, pos: int, end: int) -> int:
        """Read on from `pos`, and return the offset up to which the reply has come. Raises
        `PeerError` if it does not go on as it must; `left` stays unchanged then."""
        begun, end = pos, min(end, pos + self.left)
        while pos < end:
            if not self._block:
                self._digit(chunk[pos])
                pos += 1
                continue
            behind = min(end, pos + self._block)
            self._read(chunk, pos, behind)
            self._block -= behind - pos
            self._envelope -= behind - pos
            pos = behind
        left = self.left - (end - begun)
        if not left:
            self._end()
        self.left = left
        return end

    def _digit(self, byte: int) -> None:
        """Read a byte of a block's length."""
        size = min(BLOCK, self._envelope)
        if byte != SIZE.pack(size)[self._digits]:
            raise PeerError(_WRONG)
        self._digits += 1
        if self._digits == SIZE.size:
            self._digits, self._block = 0, size

    def _read(self, chunk: bytearray, pos: int, end: int) -> None:
        """Read a part of the envelope."""
        while pos < end:
            if self._skip:
                step = min(self._skip, end - pos)
                self._skip -= step
                pos += step
                if not self._skip and not self._inner:
                    self._count()
                continue
            if self._state == _TAG and not self._shift:
                behind = self._run(chunk, pos, end)
                if behind > pos:
                    pos = behind
                    continue
            self._step(chunk[pos])
            pos += 1

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the messages at `pos` that are written as usual, each up to the end of its payload.
        Return the offset behind them, or `end` if a payload goes on; `pos` if none is usual."""
        inner, payload = self._inner, self._payload
        if inner != _OUTSIDE and self._seen != _ALL_BUT_FLAG:
            return pos
        begun, messages, total = pos, 0, 0
        while pos < end and (found := _NEXT.match(chunk, pos, end)):
            flag, length, begin, data = found.groups()
            if inner != (_OUTSIDE if flag is None else len(flag)):
                break
            size = _value(data)
            rest = _value(length) - len(begin) - size
            if rest <= 0 or not size:
                break
            if flag is not None:
                messages += 1
                total += payload
            payload, inner = size, rest
            pos = found.end() + size
        if pos > begun:
            self._messages += messages
            self._bytes += total
            self._seen, self._payload, self._inner = _ALL_BUT_FLAG, payload, inner
            self._skip = max(0, pos - end)
        return min(pos, end)

    def _step(self, byte: int) -> None:
        """Read one byte that is no payload."""
        if self._inner > 0:
            self._inner -= 1
        self._value |= (byte & 127) << self._shift
        self._shift += 7
        if byte > 127:
            if self._shift >= 7 * _MOST_BYTES[self._state] or not self._inner:
                raise PeerError(_WRONG)
            return
        value, self._value, self._shift = self._value, 0, 0
        if self._state == _TAG:
            self._tagged(value)
        else:
            was_value, self._state = self._state == _VALUE, _TAG
            if was_value:
                self._number(value)
            else:
                self._begin_bytes(value)
        if not self._inner and not self._skip:
            if self._state != _TAG:
                raise PeerError(_WRONG)
            self._count()

    def _tagged(self, tag: int) -> None:
        wire, number = tag & 7, tag >> 3
        if not number or tag > _LARGEST_TAG or (self._inner == _OUTSIDE and number <= _JUDGED):
            raise PeerError(_WRONG)
        self._tag = tag
        if self._inner != _OUTSIDE:
            self._seen |= _REQUIRED.get(tag, 0)
        if wire == _NUMBER:
            self._state = _VALUE
        elif wire == _BYTES:
            self._state = _LENGTH
        elif wire in (_LONG, _SHORT):
            self._pass(8 if wire == _LONG else 4)
        else:
            raise PeerError(_WRONG)

    def _number(self, value: int) -> None:
        if self._inner != _OUTSIDE:
            return
        value &= (1 << 64) - 1
        value -= (value >> 63) << 64
        if self._tag == _OFFSET:
            self._offset = value
        elif self._tag == _END:
            self._partition_end = value

    def _begin_bytes(self, size: int) -> None:
        if self._inner != _OUTSIDE:
            if self._tag == _PAYLOAD:
                self._payload = size
            self._pass(size)
        elif self._tag == _BROUGHT:
            if not size:
                raise PeerError(_WRONG)
            self._inner, self._seen = size, 0
        else:
            self._skip = size

    def _pass(self, size: int) -> None:
        """Pass bytes of a field. Those of a message are within it."""
        if self._inner != _OUTSIDE:
            if size > self._inner:
                raise PeerError(_WRONG)
            self._inner -= size
        self._skip = size

    def _count(self) -> None:
        """Count the message that ends here."""
        if self._seen != _ALL:
            raise PeerError(_WRONG)
        self._inner = _OUTSIDE
        self._messages += 1
        self._bytes += self._payload

    def _end(self) -> None:
        if self._skip or self._inner != _OUTSIDE or self._state != _TAG or self._shift:
            raise PeerError(_WRONG)
        self._in_flight.pop(self._serial, None)
        found = (self._asked, self._messages, self._bytes, self._offset, self._partition_end)
        count_brought(self._services, *found)
        del self._asked
