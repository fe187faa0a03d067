# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of replies: receipts and messages pass and are counted, and all other replies stop.

A receipt passes if it says only that a broker has taken a message: its text is the message's
number.

A reply that brings messages is read piece by piece while it passes, so half a megabyte is neither
kept nor copied. It passes if it succeeds, with a text that the session has read in an earlier
reply, and if its account has allowance for all of it. Then it has to go on as brokers write it: in
full blocks but for the last one, with messages and numbers, and no other text. A reply that does
not is a violation.

Sources: RPC.proto and BrokerService.proto of Apache InLong TubeMQ.
"""

from __future__ import annotations

from typing import Any

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.services import Services
from gateway.wire.tubemq import methods, scanning
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq.frames import BLOCK, FIRST, MOST_BLOCKS, TOKEN
from gateway.wire.tubemq.in_flight import Asked, InFlight
from gateway.wire.tubemq.progress import note
from gateway.wire.tubemq.scanning import LONGEST_LENGTH, BlockScanner

BROUGHT = 0x22
"""The tag of `GetMessageResponseB2C.messages`."""

LONGEST_LEAD = 160
"""Bytes of an envelope after which a reply's messages have begun: brokers need 20."""

LONGEST_TEXT = 64
"""Bytes of the text of such a reply, with what stands before it."""

LONGEST_RECEIPT = 500
"""Bytes of a receipt's envelope. Brokers write 80."""


def lead_of(message: Any) -> bytes | None:
    """Return how the messages of later replies begin that say the same: with these bytes, up to the
    tag of the first message that is brought. None if the text is unusually long."""
    said = broker.GetMessageResponseB2C(success=message.success, errCode=message.errCode)
    if message.HasField("errMsg"):
        said.errMsg = message.errMsg
    lead = said.SerializeToString() + bytes((BROUGHT,))
    return lead if len(lead) <= LONGEST_TEXT else None


def count_brought(
    services: Services, asked: Asked, messages: int, size: int, offset: int | None, end: int
) -> None:
    """Count what a reply has brought. `size`: bytes of the messages. `offset`, `end`: see
    `progress.note`."""
    account = asked.account
    if account is not None:
        account.count(messages)
        account.bytes += size
        if account.lacks(size):  # another reply like it
            account.hold()
    if asked.partition is not None:
        note(services, asked.partition, offset, end)


_TAG = 0
_VALUE = 1
_LENGTH = 2
"""What is read next."""

_NUMBER = 0
_LONG = 1
_BYTES = 2
_SHORT = 5
"""Wire types."""

_LARGEST_TAG = 0xFFFFFFFF
"""Of a larger one protobuf in Java takes the lower 32 bits, which may be those of a text."""

_JUDGED = 3
"""`success`, `errCode` and `errMsg` have the numbers up to this one: all of them have been read."""

_OFFSET = 5 << 3
_END = 10 << 3
"""The tags of `currOffset` and `maxOffset`."""

_BROUGHT_TAG = BROUGHT
_ID = 1 << 3
_CHECKSUM = 2 << 3
_PAYLOAD = 3 << 3 | 2
_FLAG = 4 << 3
"""The tags of a message's fields, which are all required."""

_ALL = 15
_ALL_BUT_FLAG = 7
"""Bits of the fields that a message has had, in the order of the tags."""

_HEADERS = 45
"""Bytes of a flag and all of the next message before its payload, at most."""

_OUTSIDE = -1  # of all messages

_TOKEN = TOKEN
_FIRST = FIRST
_MOST_BLOCKS = MOST_BLOCKS
_BLOCK = BLOCK
_LONGEST_LEAD = LONGEST_LEAD
_LONGEST_RECEIPT = LONGEST_RECEIPT
_LONGEST_LENGTH = LONGEST_LENGTH
_DIGITS = 4  # bytes of a block's length
_LOW_64 = (1 << 64) - 1

_LAST_OF_HEADER = 3 << 3
"""The last tag of `ResponseHeader`. The first is that of the status, which is 0 for a success."""

_METHOD = 1 << 3
_REPLY = 2 << 3 | 2
"""The tags of `RspResponseBody`."""

_SEND = methods.SEND_MESSAGE
_GET = methods.GET_MESSAGES

_TAKEN = b"\x08\x01\x10\xc8\x01"
"""The beginning of a receipt: success, and the code 200."""

_TEXT = 3 << 3 | 2
_ASKS = 4 << 3
_NUMBER_OF_MESSAGE = 5 << 3
_OFFSET_OF_MESSAGE = 7 << 3
"""The tags behind these: a text, whether the client has to authenticate, and three numbers."""

_DIGIT_0 = 0x30
_DIGIT_9 = 0x39

_WRONG = "a reply that does not go on as one that brings messages"


class ToClientScanner(BlockScanner):
    """Scans replies, see the module. `in_flight`: the requests that wait for replies. `lead`: how
    replies begin that bring messages, see `lead_of`; None: that is not known yet. `left`: bytes of
    the reply under way that have not passed."""

    __slots__ = (
        "_asked",
        "_block",
        "_bytes",
        "_digits",
        "_envelope",
        "_has_offset",
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

    lead: bytes | None
    left: int
    _asked: Asked | None
    _block: int
    _bytes: int
    _digits: int
    _envelope: int
    _has_offset: bool
    _in_flight: InFlight
    _inner: int
    _messages: int
    _offset: int
    _partition_end: int
    _payload: int
    _seen: int
    _serial: int
    _services: Services
    _shift: int
    _skip: int
    _state: int
    _tag: int
    _value: int

    def __init__(self, largest: int, in_flight: InFlight, services: Services) -> None:
        super().__init__(largest)
        self._in_flight = in_flight
        self._services = services
        self.lead = None
        self.left = 0
        self._asked = None

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        if 0 < end - start <= self.left:  # usual: all of it is of the same reply
            self.stop = 0
            self._read_on(chunk, start, end)
            self.owed = self.left
            return end
        return BlockScanner.scan(self, chunk, start, end)

    @property
    def passing(self) -> Any:
        """Return the account of the reply that passes; None if none does."""
        return None if self._asked is None else self._asked.account

    def finish(self) -> None:
        """Count the messages that have come of a reply that does not end any more."""
        passing = self.passing
        if passing is not None and self._messages > 0:
            passing.count(self._messages)
            passing.bytes += self._bytes
        self._asked = None

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        begun = -1
        while pos > begun and (self.left == 0 or pos < end):
            begun = pos
            if self.left == 0:
                pos = self._begin(chunk, pos, end)
            if self.left > 0:
                pos = self._read_on(chunk, pos, end)
        return pos

    def _rest(self) -> int:
        """See `BlockScanner`."""
        return self.left

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`."""
        data = chunk
        size = octets.u32(data, pos + 12)
        if octets.u32(data, pos) != _TOKEN or end - pos >= _FIRST + size:
            return False
        asked = self._in_flight.get(octets.i32(data, pos + 4))
        if asked is None or asked.account is None:
            return False
        if asked.method == _SEND:
            return octets.u32(data, pos + 8) == 1 and size <= _LONGEST_RECEIPT
        return asked.method == _GET and self.lead is not None and end - pos < _FIRST + _LONGEST_LEAD

    def _begin(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the receipt at `pos`, or the part of a reply before its messages, and return the
        offset behind it; `pos` if it is neither."""
        data = chunk
        if end - pos <= _FIRST or octets.u32(data, pos) != _TOKEN:
            return pos
        serial = octets.i32(data, pos + 4)
        asked = self._in_flight.get(serial)
        if asked is None or asked.account is None:
            return pos
        first = pos + _FIRST
        blocks = octets.u32(data, pos + 8)
        size = octets.u32(data, pos + 12)
        method = asked.method
        begin, envelope_end = _body(data, first, end, method)
        if begin <= 0 or blocks > _MOST_BLOCKS:
            return pos
        whole = envelope_end - first
        full = whole if whole < _BLOCK else _BLOCK
        if blocks != (whole + _BLOCK - 1) // _BLOCK or size != full:
            return pos
        if method == _SEND:
            if blocks != 1 or envelope_end > end or not _is_receipt(data, begin, envelope_end):
                return pos
            del self._in_flight[serial]
            asked.account.receipts += 1
            return envelope_end
        lead = self.lead
        least = whole if blocks == 1 else (blocks - 1) * _BLOCK
        if method != _GET or lead is None or asked.account.lacks(least):
            return pos
        behind = begin + len(lead)
        if behind > end or behind - first > size or not octets.same(data, begin, behind, lead):
            return pos
        # The tag of the first message is read once more, as those of all messages are.
        behind -= 1
        self._asked = asked
        self._serial = serial
        self._envelope = envelope_end - behind
        self._block = size - (behind - first)
        self.left = self._envelope + (blocks - 1) * _DIGITS
        self._digits = self._shift = self._value = self._skip = self._seen = 0
        self._state = _TAG
        self._inner = _OUTSIDE
        self._messages = self._bytes = self._payload = 0
        self._offset = self._partition_end = 0
        self._has_offset = False
        return behind

    def _read_on(self, chunk: bytearray, pos: int, end: int) -> int:
        """Read on from `pos`, and return the offset up to which the reply has come. Raises
        `PeerError` if it does not go on as it must; `left` stays unchanged then."""
        data = chunk
        begun = pos
        if end > pos + self.left:
            end = pos + self.left
        while pos < end:
            if self._block == 0:
                size = self._envelope if self._envelope < _BLOCK else _BLOCK
                if data[pos] != size >> 8 * (_DIGITS - 1 - self._digits) & 255:
                    raise PeerError(_WRONG)
                pos += 1
                self._digits += 1
                if self._digits == _DIGITS:
                    self._digits = 0
                    self._block = size
                continue
            behind = end if end - pos < self._block else pos + self._block
            self._read(chunk, pos, behind)
            self._block -= behind - pos
            self._envelope -= behind - pos
            pos = behind
        left = self.left - (end - begun)
        if left == 0:
            self._end()
        self.left = left
        return end

    def _read(self, chunk: bytearray, pos: int, end: int) -> None:
        """Read a part of the envelope."""
        data = chunk
        while pos < end:
            if self._skip > 0:
                step = self._skip if self._skip < end - pos else end - pos
                self._skip -= step
                pos += step
                if self._skip == 0 and self._inner == 0:
                    self._count()
                continue
            if self._state == _TAG and self._shift == 0 and end - pos >= _HEADERS:
                behind = self._usual(chunk, pos, end)
                if behind > pos:
                    pos = behind
                    continue
            self._step(data[pos])
            pos += 1

    def _usual(  # noqa: C901 - flat: it runs for each message
        self, chunk: bytearray, pos: int, end: int
    ) -> int:
        """Pass the messages at `pos` that are written as usual, each up to the end of its payload.
        Return the offset behind them, or `end` if a payload goes on; `pos` if none is usual. At
        least `_HEADERS` bytes have come."""
        data = chunk
        inner = self._inner
        payload = self._payload
        if inner != _OUTSIDE and self._seen != _ALL_BUT_FLAG:
            return pos
        at = pos
        messages = total = 0
        while end - at >= _HEADERS:
            place = at
            if inner != _OUTSIDE:
                if data[place] != _FLAG:
                    break
                _, place = octets.varint(data, place + 1, end)
                if place - at != inner:
                    break
            if data[place] != _BROUGHT_TAG:
                break
            length, first = octets.varint(data, place + 1, end)
            if first <= 0 or first > place + 6 or data[first] != _ID:
                break
            _, place = octets.varint(data, first + 1, end)
            if place <= 0 or data[place] != _CHECKSUM:
                break
            _, place = octets.varint(data, place + 1, end)
            if place <= 0 or data[place] != _PAYLOAD:
                break
            size, behind = octets.varint(data, place + 1, end)
            if behind <= 0 or behind > place + 6 or size == 0 or size > length:
                break
            rest = length - (behind - first) - size
            if rest <= 0:
                break
            if inner != _OUTSIDE:
                messages += 1
                total += payload
            payload = size
            inner = rest
            at = behind + size
        if at > pos:
            self._messages += messages
            self._bytes += total
            self._seen = _ALL_BUT_FLAG
            self._payload = payload
            self._inner = inner
            self._skip = at - end if at > end else 0
        return at if at < end else end

    def _step(self, byte: int) -> None:
        """Read one byte that is no payload."""
        if self._inner > 0:
            self._inner -= 1
        bits = byte & 127
        if self._shift < 64:
            self._value |= bits << self._shift & _LOW_64
        self._shift += 7
        if byte > 127:
            if self._shift >= (70 if self._state == _VALUE else 35) or self._inner == 0:
                raise PeerError(_WRONG)
            return
        value = self._value
        self._value = self._shift = 0
        state = self._state
        self._state = _TAG
        if state == _TAG:
            self._tagged(value)
        elif state == _LENGTH:
            self._begin_bytes(value)
        elif self._inner == _OUTSIDE:
            self._number(value)
        if self._inner == 0 and self._skip == 0:
            if self._state != _TAG:
                raise PeerError(_WRONG)
            self._count()

    def _tagged(self, tag: int) -> None:
        wire = tag & 7
        number = tag >> 3
        if number == 0 or tag > _LARGEST_TAG or (self._inner == _OUTSIDE and number <= _JUDGED):
            raise PeerError(_WRONG)
        self._tag = tag
        if self._inner != _OUTSIDE:
            if tag == _ID:
                self._seen |= 1
            elif tag == _CHECKSUM:
                self._seen |= 2
            elif tag == _PAYLOAD:
                self._seen |= 4
            elif tag == _FLAG:
                self._seen |= 8
        if wire == _NUMBER:
            self._state = _VALUE
        elif wire == _BYTES:
            self._state = _LENGTH
        elif wire == _LONG:
            self._pass(8)
        elif wire == _SHORT:
            self._pass(4)
        else:
            raise PeerError(_WRONG)

    def _number(self, value: int) -> None:
        number = octets.signed(value)
        if self._tag == _OFFSET:
            self._offset = number
            self._has_offset = True
        elif self._tag == _END:
            self._partition_end = number

    def _begin_bytes(self, size: int) -> None:
        if self._inner != _OUTSIDE:
            if self._tag == _PAYLOAD:
                self._payload = size
            self._pass(size)
        elif self._tag == _BROUGHT_TAG:
            if size == 0:
                raise PeerError(_WRONG)
            self._inner = size
            self._seen = 0
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
        asked = self._asked
        assert asked is not None
        self._asked = None
        self._in_flight.pop(self._serial, None)
        offset = self._offset if self._has_offset else None
        count_brought(
            self._services, asked, self._messages, self._bytes, offset, self._partition_end
        )


def _body(data: bytearray, first: int, end: int, method: int) -> tuple[int, int]:
    """Return where the message begins of the reply whose envelope begins at `first`, and where the
    envelope ends, as if it had one block. The first is 0 if it is no success of this method, is not
    written as brokers do, or has not come so far."""
    header, at = scanning.heads(data, first, end, _LAST_OF_HEADER)
    if at < header + 2 or data[header] != _METHOD or data[header + 1] != 0:
        return 0, 0
    size, begin = octets.varint(data, at, end)
    if begin <= 0 or begin > at + _LONGEST_LENGTH or begin + 3 > end:
        return 0, 0
    envelope_end = begin + size
    if data[begin] != _METHOD or data[begin + 1] != method or data[begin + 2] != _REPLY:
        return 0, 0
    return scanning.rest(data, begin + 3, end, envelope_end), envelope_end


def _is_receipt(data: bytearray, at: int, end: int) -> bool:
    """Return whether the message between two offsets is a receipt that says nothing else."""
    behind = at + len(_TAKEN)
    if behind > end or not octets.same(data, at, behind, _TAKEN):
        return False
    begin, at = scanning.text(data, behind, end, _TEXT)
    if at <= 0 or not _are_digits(data, begin, at):
        return False
    if at + 1 < end and data[at] == _ASKS:
        if data[at + 1] != 0:
            return False
        at += 2
    return scanning.numbers(data, at, end, _NUMBER_OF_MESSAGE, _OFFSET_OF_MESSAGE) == end


def _are_digits(data: bytearray, at: int, end: int) -> bool:
    while at < end:
        if data[at] < _DIGIT_0 or data[at] > _DIGIT_9:
            return False
        at += 1
    return True
