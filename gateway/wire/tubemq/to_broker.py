# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of requests: those that send a message or ask for messages pass if the connection has
an account for them, and all other requests stop.

The session authorizes the first request of each *use*: what a client sends to a topic, or asks of a
partition. It gives the scanner the bytes that name the use, and the account. The scanner reads the
later requests field by field, in the order in which all clients write them, and looks their uses
up. A request with any other field stops, and so does one with another credential than the first.

Sources: RPC.proto and BrokerService.proto of Apache InLong TubeMQ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gateway.wire import octets
from gateway.wire.tubemq import methods, scanning
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.envelopes import Request
from gateway.wire.tubemq.frames import BLOCK, FIRST, SIZE
from gateway.wire.tubemq.in_flight import MOST, Asked, InFlight
from gateway.wire.tubemq.scanning import LONGEST_LENGTH, STRIDE, BlockScanner

MOST_USES = 64
"""Uses of one connection that pass: two for each partition of which it receives, one for each topic
to which it sends."""

LONGEST_USE = 1024
"""Bytes that name a use at most. Clients and topics with usual names have 100."""

_FIRST = FIRST
_BLOCK = BLOCK
_STRIDE = STRIDE
_SIZE = SIZE.size
_LONGEST_LENGTH = LONGEST_LENGTH
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
_FLAG = 5 << 3  # then the checksum
_ADDRESS = 7 << 3
_TIME = 9 << 3 | 2  # behind that of the type
"""The tags of `SendMessageRequestP2B`, but for that of a credential."""


class Use(NamedTuple):
    """What names a use, as encoded. `call`: the method and the timeout. `names`: the client and the
    topic to which it sends; or the whole message that asks for messages. `proof`: the credential of
    a request to send, if it has one."""

    call: bytes
    names: bytes
    proof: bytes


def use_of(request: Request, message: Any) -> Use | None:
    """Return the use of a request that sends a message or asks for messages; None if the names are
    too long. `message`: the request's message."""
    body = rpc.RequestBody(method=request.body.method)
    if request.body.HasField("timeout"):
        body.timeout = request.body.timeout
    names, proof = request.body.request, b""
    if request.body.method == methods.SEND_MESSAGE:
        of_topic = {"clientId": message.clientId, "topicName": message.topicName}
        names = broker.SendMessageRequestP2B(**of_topic).SerializePartialToString()
        if message.HasField("authInfo"):
            authentication = broker.SendMessageRequestP2B(authInfo=message.authInfo)
            proof = authentication.SerializePartialToString()
    if len(names) + len(proof) > LONGEST_USE:
        return None
    return Use(body.SerializeToString(), names, proof)


class ToBrokerScanner(BlockScanner):
    """Scans requests, see the module. `in_flight`: takes the requests that pass."""

    __slots__ = ("_account", "_asked", "_call", "_in_flight", "_names", "_proof", "_sends", "_uses")

    _account: Any
    _asked: Asked | None
    _call: bytes
    _in_flight: Any  # `InFlight`
    _names: bytes
    _proof: bytes
    _sends: bool
    _uses: dict[tuple[bytes, bytes], tuple[Use, Asked]]

    def __init__(self, largest: int, in_flight: InFlight) -> None:
        super().__init__(largest)
        self._in_flight = in_flight
        self._uses = {}
        self.forget()

    def learn(self, use: Use, asked: Asked) -> None:
        """Have requests of a use pass from now on. `asked`: the account, and what the requests wait
        for, without a time."""
        self._uses.pop(use[:2], None)
        while len(self._uses) >= MOST_USES:
            del self._uses[next(iter(self._uses))]
        self._uses[use[:2]] = use, asked
        self._turn_to(use, asked)

    def forget(self) -> None:
        """Have the next requests authorized."""
        self._uses = {}
        self._asked = self._account = None
        self._call = self._names = self._proof = b""
        self._sends = False

    def _turn_to(self, use: Use, asked: Asked) -> None:
        """Have the next request compared with this use before another is looked up."""
        self._call, self._names, self._proof = use
        self._asked = asked
        self._account = asked.account
        self._sends = asked.method == _SEND

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        if self._asked is None:
            return pos
        behind = self._pass(chunk, pos, end)
        while behind > pos:
            pos = behind
            behind = self._pass(chunk, pos, end)
        return pos

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`."""
        if self._asked is None:
            return False
        behind = scanning.frame_end(chunk, pos, end)
        return behind < 0 or behind > end

    def _pass(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the frame at `pos`, and return the offset behind it; `pos` if it does not pass."""
        data = chunk
        first = pos + _FIRST
        if end <= first:
            return pos
        behind = scanning.frame_end(data, pos, end)
        if behind <= 0 or behind > end:
            return pos
        more = octets.u32(data, pos + 8) - 1
        # All but the message that is sent, and what follows that, stands in the first block. So
        # offsets are as in an envelope of one block, which `lengths` bytes within interrupt.
        lengths = more * _SIZE
        envelope_end = behind - lengths
        edge = behind if more == 0 else first + _BLOCK
        _, at = scanning.heads(data, first, edge, _LAST_OF_HEADER)
        call = 0 if at <= 0 else scanning.rest(data, at, edge, envelope_end)
        call_end = 0 if call <= 0 else scanning.numbers(data, call, edge, _METHOD, _TIMEOUT)
        if call_end <= call or call_end >= edge or data[call_end] != _REQUEST:
            return pos
        names = scanning.rest(data, call_end + 1, edge, envelope_end)
        if names <= 0:
            return pos
        size = 0
        names_end = behind
        if data[call + 1] == _SEND:
            names_end, at, size = _sent(data, names, edge)
            at += size + lengths
            if names_end <= 0 or at < first + more * _STRIDE:
                return pos
            at = _behind_texts(data, at, behind)
            if at <= 0:
                return pos
        elif more > 0:
            return pos
        else:
            at = behind
        is_last = octets.same(data, call, call_end, self._call) and octets.same(
            data, names, names_end, self._names
        )
        if not is_last and not self._find(chunk, call, call_end, names, names_end):
            return pos
        if not octets.same(data, at, behind, self._proof):
            return pos
        return behind if self._counts(octets.i32(data, pos + 4), size) else pos

    def _find(self, chunk: bytearray, call: int, call_end: int, names: int, names_end: int) -> bool:
        """Turn to the use that is named by these bytes; return whether it is known."""
        data = chunk
        named = (octets.piece(data, call, call_end), octets.piece(data, names, names_end))
        found = self._uses.get(named)
        if found is None:
            return False
        self._turn_to(*found)
        return True

    def _counts(self, serial: int, size: int) -> bool:
        """Count a request of the last use, and note it as in flight; return whether it may pass.
        `size`: bytes of the message that it sends."""
        account = self._account
        in_flight = self._in_flight
        if account.is_held() or account.queued or serial in in_flight or len(in_flight) >= _MOST:
            return False
        if self._sends:
            account.add(1, size)
        in_flight[serial] = self._asked
        return True


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


def _behind_texts(data: bytearray, at: int, end: int) -> int:
    """Return the offset behind the three numbers and up to two texts that follow a message at `at`;
    0 if a number is missing, or a text is not ASCII."""
    tag = _FLAG
    while tag <= _ADDRESS:
        behind = scanning.numbers(data, at, end, tag, tag)
        if behind <= at:
            return 0
        at = behind
        tag += 1 << 3
    while at < end and tag <= _TIME:
        begin, behind = scanning.text(data, at, end, tag | 2)
        if behind > 0:
            if not _is_ascii(data, begin, behind):
                return 0
            at = behind
        tag += 1 << 3
    return at


def _is_ascii(data: bytearray, at: int, end: int) -> bool:
    """Return whether a text is ASCII; others are decoded by the session."""
    while at < end:
        if data[at] > 127:
            return False
        at += 1
    return True
