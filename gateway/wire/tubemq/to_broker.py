# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of requests: those that send a message or ask for messages pass if the connection has
an account for them, and all other requests stop.

The session authorizes the first request of each *use*: what a client sends to a topic, or asks of a
partition. It gives the scanner the bytes that name the use, and the account. The scanner reads the
later requests field by field, in the order in which all clients write them, and looks their uses
up. The names stand before the message that is sent, in the first block. So a message of several
blocks begins to pass when the first block has come. What follows the message is held back until it
is whole: if it named another client or topic, the server would believe that, so it is a violation.

Sources: RPC.proto and BrokerService.proto of Apache InLong TubeMQ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.tubemq import methods, scanning
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.envelopes import Request
from gateway.wire.tubemq.frames import BLOCK, FIRST, MOST_BLOCKS, SIZE, TOKEN
from gateway.wire.tubemq.in_flight import MOST, Asked, InFlight
from gateway.wire.tubemq.scanning import LONGEST_LENGTH, BlockScanner

MOST_USES = 64
"""Uses of one connection that pass: two for each partition of which it receives, one for each topic
to which it sends."""

LONGEST_USE = 1024
"""Bytes that name a use at most. Clients and topics with usual names have 100."""

LONGEST_TAIL = 4096
"""Bytes behind a message in the same request at most: numbers, a filter, a time, a credential."""

_TOKEN = TOKEN
_FIRST = FIRST
_BLOCK = BLOCK
_MOST_BLOCKS = MOST_BLOCKS
_SIZE = SIZE.size
_LONGEST_LENGTH = LONGEST_LENGTH
_LONGEST_TAIL = LONGEST_TAIL
_MOST = MOST
_SEND = methods.SEND_MESSAGE

_METHOD = 1 << 3
_TIMEOUT = 2 << 3
_REQUEST = 3 << 3 | 2
"""The tags of `RequestBody`."""

_LAST_OF_HEADER = 2 << 3
"""The last tag of `RequestHeader`."""

_CLIENT = 1 << 3 | 2
_TOPIC = 2 << 3 | 2
_PARTITION = 3 << 3
_DATA = 4 << 3 | 2
"""The tags of `SendMessageRequestP2B` up to the message."""

_NUMBER_OF_DATA = 4
_NUMBER_OF_TYPE = 8
_NUMBER_OF_TIME = 9
_NUMBER_OF_PROOF = 10
"""The numbers of its fields: those behind the message are larger than that of the message."""

_VARINT = 0
_LONG = 1
_BYTES = 2
_SHORT = 5
"""Wire types."""

_LARGEST_TAG = 0xFFFFFFFF

_WRONG = "a message to send with other fields behind it than a server expects"


class Use(NamedTuple):
    """What names a use, as encoded. `call`: the method and the timeout. `names`: the client and the
    topic to which it sends; or the whole message that asks for messages."""

    call: bytes
    names: bytes


def use_of(request: Request, message: Any) -> Use | None:
    """Return the use of a request that sends a message or asks for messages; None if the names are
    too long. `message`: the request's message."""
    body = rpc.RequestBody(method=request.body.method)
    if request.body.HasField("timeout"):
        body.timeout = request.body.timeout
    names = request.body.request
    if request.body.method == methods.SEND_MESSAGE:
        of_topic = {"clientId": message.clientId, "topicName": message.topicName}
        names = broker.SendMessageRequestP2B(**of_topic).SerializePartialToString()
    return Use(body.SerializeToString(), names) if len(names) <= LONGEST_USE else None


class ToBrokerScanner(BlockScanner):
    """Scans requests, see the module. `in_flight`: takes the requests that pass. `verifies`: the
    gateway verifies credentials, so a request that may have one stops."""

    __slots__ = (
        "_account",
        "_asked",
        "_block",
        "_call",
        "_in_flight",
        "_instead",
        "_left",
        "_names",
        "_sending",
        "_serial",
        "_size",
        "_tail",
        "_uses",
        "_verifies",
    )

    _account: Any
    _asked: Asked | None
    _block: int  # bytes of the block that have not come
    _call: bytes
    _in_flight: Any  # `InFlight`
    _instead: bytes
    _left: int  # bytes of the message that have not come
    _names: bytes
    _sending: Asked | None  # what a message of several blocks waits for
    _serial: int
    _size: int  # bytes of that message
    _tail: int  # bytes behind it
    _uses: dict[tuple[bytes, bytes], tuple[Use, Asked, bytes]]
    _verifies: bool

    def __init__(self, largest: int, in_flight: InFlight, *, verifies: bool = False) -> None:
        super().__init__(largest)
        self._in_flight = in_flight
        self._verifies = verifies
        self._block = self._left = self._tail = self._serial = self._size = 0
        self._sending = None
        self.forget()

    def learn(self, use: Use, asked: Asked, instead: bytes = b"") -> None:
        """Have requests of a use pass from now on. `asked`: the account, and what the requests wait
        for, without a time. `instead`: overwrites the names, which are as long; empty: they
        stay."""
        self._uses.pop(use, None)
        while len(self._uses) >= MOST_USES:
            del self._uses[next(iter(self._uses))]
        self._uses[use] = use, asked, instead
        self._turn_to(use, asked, instead)

    def forget(self) -> None:
        """Have the next requests authorized."""
        self._uses = {}
        self._asked = self._account = None
        self._call = self._names = self._instead = b""

    def _turn_to(self, use: Use, asked: Asked, instead: bytes) -> None:
        """Have the next request compared with this use before another is looked up."""
        self._call, self._names = use
        self._instead = instead
        self._asked = asked
        self._account = asked.account

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        if self._tail > 0:
            pos = self._go_on(chunk, pos, end)
        while self._tail == 0 and self._asked is not None:
            behind = self._pass(chunk, pos, end)
            if behind == pos:
                break
            pos = behind
            if self._tail > 0:
                pos = self._go_on(chunk, pos, end)
        return pos

    def _rest(self) -> int:
        """See `BlockScanner`."""
        rest = self._left + self._tail
        if rest > self._block:
            rest += (rest - self._block + _BLOCK - 1) // _BLOCK * _SIZE
        return rest

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`."""
        data = chunk
        size = octets.u32(data, pos + 12)
        blocks = octets.u32(data, pos + 8)
        return (
            self._asked is not None
            and octets.u32(data, pos) == _TOKEN
            and 0 < blocks <= _MOST_BLOCKS
            and size <= _BLOCK
            and end < pos + _FIRST + size
        )

    def _pass(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the frame at `pos`, or its part before a message of several blocks. Return the
        offset behind it; `pos` if it does not pass."""
        data = chunk
        call, envelope_end = _call_at(data, pos, end)
        if call <= 0:
            return pos
        blocks = octets.u32(data, pos + 8)
        edge = pos + _FIRST + octets.u32(data, pos + 12)  # of the first block
        call_end = scanning.numbers(data, call, edge, _METHOD, _TIMEOUT)
        if call_end <= call or call_end >= edge or data[call_end] != _REQUEST:
            return pos
        names = scanning.rest(data, call_end + 1, edge, envelope_end)
        if names <= 0:
            return pos
        sent = 0
        tail = 0
        names_end = edge
        begin = edge
        if data[call + 1] == _SEND:
            names_end, begin, sent = _sent(data, names, edge)
            tail = envelope_end - begin - sent
            if names_end <= 0 or tail <= 0 or tail > _LONGEST_TAIL:
                return pos
        if (blocks > 1 and (tail == 0 or self._verifies)) or (
            blocks == 1 and tail > 0 and not self._is_tail(data, edge - tail, edge)
        ):
            return pos
        if not self._find(chunk, call, call_end, names, names_end):
            return pos
        serial = octets.i32(data, pos + 4)
        account = self._account
        gets = tail == 0 and not account.is_endless  # few of these may be in flight
        in_flight = self._in_flight
        waits = gets or account.lacks(sent) or account.queued
        if waits or serial in in_flight or len(in_flight) >= _MOST:
            return pos
        if blocks == 1:
            if self._instead:
                chunk[names:edge] = self._instead
            in_flight[serial] = self._asked
            if tail > 0:
                account.add(1, sent)
            return edge
        self._sending = self._asked
        self._serial = serial
        self._size = self._left = sent
        self._block = edge - begin
        self._tail = tail
        return begin

    def _find(self, chunk: bytearray, call: int, call_end: int, names: int, names_end: int) -> bool:
        """Turn to the use that is named by these bytes; return whether it is known."""
        data = chunk
        if octets.same(data, call, call_end, self._call) and octets.same(
            data, names, names_end, self._names
        ):
            return True
        named = (octets.piece(data, call, call_end), octets.piece(data, names, names_end))
        found = self._uses.get(named)
        if found is None:
            return False
        self._turn_to(*found)
        return True

    def _go_on(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the rest of a message of several blocks, and what is behind it. Return the offset up
        to which that has come; at least the length of a block, and all behind the message, come at
        once. Raises `PeerError` if a block is not full, or other fields follow."""
        data = chunk
        while self._left > 0:
            if self._block == 0:
                if end - pos < _SIZE:
                    return pos
                self._block = self._next_block(octets.u32(data, pos))
                pos += _SIZE
            step = self._left if self._left < self._block else self._block
            if step > end - pos:
                step = end - pos
            if step == 0:
                return pos
            self._left -= step
            self._block -= step
            pos += step
        tail = self._tail
        here = tail if tail < self._block else self._block
        behind = pos + tail + (_SIZE if here < tail else 0)
        if behind > end:
            return pos
        if here == tail:
            if not self._is_tail(data, pos, behind):
                raise PeerError(_WRONG)
        else:
            self._next_block(octets.u32(data, pos + here))
            joined = bytearray(
                octets.piece(data, pos, pos + here) + octets.piece(data, pos + here + _SIZE, behind)
            )
            if not self._is_tail(joined, 0, tail):
                raise PeerError(_WRONG)
        self._end()
        return behind

    def _end(self) -> None:
        """Count a message of several blocks that is whole, and note it as in flight. Raises
        `PeerError` if another request got its serial number meanwhile."""
        if self._serial in self._in_flight:
            raise PeerError(f"a second request {self._serial}, while the first has no reply")
        self._block = self._tail = 0
        self._in_flight[self._serial] = self._sending
        self.finish()

    @property
    def passing(self) -> Any:
        """Return the account of the message of several blocks that passes; None if none does."""
        return None if self._sending is None else self._sending.account

    def finish(self) -> None:
        """Count what has come of a message of several blocks, at its end or when the connection
        ends."""
        sending = self._sending
        if sending is not None and sending.account is not None:
            sending.account.add(1, self._size - self._left)
        self._sending = None

    def _next_block(self, size: int) -> int:
        """Return the length of the next block, which begins with `size`. Raises `PeerError` if it
        is another."""
        rest = self._left + self._tail - self._block
        if size != (rest if rest < _BLOCK else _BLOCK):
            raise PeerError("a message to send whose blocks are not full")
        return size

    def _is_tail(self, data: bytearray, at: int, end: int) -> bool:
        """Return whether the bytes behind a message are fields that do not name anything: all
        numbers of fields are larger than that of the message."""
        while at < end:
            tag, at = octets.varint(data, at, end)
            if at <= 0 or tag > _LARGEST_TAG or tag >> 3 <= _NUMBER_OF_DATA:
                return False
            if tag >> 3 == _NUMBER_OF_PROOF and self._verifies:
                return False
            begin, at = _behind_value(data, at, end, tag & 7)
            if at <= 0:
                return False
            is_text = tag >> 3 == _NUMBER_OF_TYPE or tag >> 3 == _NUMBER_OF_TIME
            if is_text and not _is_text(data, begin, at):
                return False
        return True


def _call_at(data: bytearray, pos: int, end: int) -> tuple[int, int]:
    """Return where the method stands in the frame at `pos`, and the end of its envelope, as if the
    first block went on. The first is 0 if the first block has not come whole, the frame is not in
    full blocks, or anything but numbers stands before the method."""
    first = pos + _FIRST
    if end <= first or octets.u32(data, pos) != _TOKEN:
        return 0, 0
    blocks = octets.u32(data, pos + 8)
    size = octets.u32(data, pos + 12)
    if size > end - first or size > _BLOCK or blocks > _MOST_BLOCKS:
        return 0, 0
    _, at = scanning.heads(data, first, first + size, _LAST_OF_HEADER)
    if at <= 0:
        return 0, 0
    length, call = octets.varint(data, at, first + size)
    if call <= 0 or call > at + _LONGEST_LENGTH:
        return 0, 0
    whole = call + length - first
    if blocks != (whole + _BLOCK - 1) // _BLOCK or size != (whole if whole < _BLOCK else _BLOCK):
        return 0, 0
    return call, call + length


def _sent(data: bytearray, at: int, end: int) -> tuple[int, int, int]:
    """Return where the names end in the request at `at`, which sends a message; where the message
    begins; and its length. The first is 0 if other fields stand there."""
    _, at = scanning.text(data, at, end, _CLIENT)
    if at <= 0:
        return 0, 0, 0
    _, names_end = scanning.text(data, at, end, _TOPIC)
    if names_end <= 0:
        return 0, 0, 0
    at = scanning.numbers(data, names_end, end, _PARTITION, _PARTITION)
    if at <= names_end or at >= end or data[at] != _DATA:
        return 0, 0, 0
    size, begin = octets.varint(data, at + 1, end)
    if begin <= 0 or begin > at + 1 + _LONGEST_LENGTH:
        return 0, 0, 0
    return names_end, begin, size


def _behind_value(data: bytearray, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return where the value at `at` of a field of this wire type begins, and where it ends. The
    second is 0 if it ends beyond `end`, or has no such type."""
    begin = at
    if wire == _VARINT:
        _, at = octets.varint(data, at, end)
    elif wire == _BYTES:
        size, begin = scanning.sized(data, at, end)
        at = begin + size if begin > 0 else 0
    elif wire == _LONG:
        at += 8
    elif wire == _SHORT:
        at += 4
    else:
        return 0, 0
    if at <= 0 or at > end:
        return 0, 0
    return begin, at


def _is_text(data: bytearray, at: int, end: int) -> bool:
    """Return whether a text is UTF-8; each peer would read another one differently."""
    place = at
    while place < end and data[place] < 128:
        place += 1
    if place == end:
        return True
    try:
        octets.piece(data, at, end).decode()
    except UnicodeDecodeError:
        return False
    return True
