# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of a broker's frames: counts MESSAGEs and receipts, and halts at commands that need a
decision.

Theory of operation
===================
A MESSAGE has its message count in its metadata (`num_messages_in_batch`), among fields in any order
and of any length. So the scanner reads a MESSAGE part by part, and may end its walk between two
fields; what it has read by then are a few numbers, and the next call goes on from there. The parts
behind the command, each of which may be absent:

    [0x0e02][size][broker entry metadata] [0x0e01][CRC32C] [size][metadata] [payload]

Brokers read the command, but hand on unread what is behind it, which producers wrote. So the
command must be canonical, while nothing behind it is a violation: what cannot be read counts as one
message, and the last count that could be read is taken, as in protobuf.

The most work for one frame is bounded: after `HEADS` bytes of tags, lengths and numbers the rest of
the metadata is not read. Clients write the number of messages before properties or without any.

**Checksums.** With `checksums: verify` the CRC32C of a MESSAGE is computed as its bytes pass, and
damaged MESSAGEs are counted. They pass all the same: the consumer verifies them too, and would miss
a message that was withheld.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.account import Account
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar.canonical import find_body
from gateway.wire.pulsar.frames import (
    BROKER_ENTRY_MAGIC,
    CHECKSUM_MAGIC,
    COMMAND_BOUND,
    HEADER,
    KNOWN,
    LAST_TYPE_OF_ONE_BYTE,
    LISTS,
    PASS,
    WITH_PAYLOAD,
    Kind,
)
from gateway.wire.pulsar.idtable import SMALL, Key, key
from gateway.wire.scanner import BaseScanner

LARGEST_COMMAND = (1 << 32) - 1
"""Bytes of a command that only its size field bounds."""

_HEADER = HEADER
_PASS = PASS
_MESSAGE = int(Kind.MESSAGE)
_RECEIPT = int(Kind.SEND_RECEIPT)
_LAST_TYPE = LAST_TYPE_OF_ONE_BYTE
_SMALL = SMALL
_ENDLESS = ENDLESS
_CHECKSUM = CHECKSUM_MAGIC
_ENTRY = BROKER_ENTRY_MAGIC
_COMMAND_BOUND = COMMAND_BOUND
_BARE = bytes(kind in KNOWN - WITH_PAYLOAD for kind in range(LAST_TYPE_OF_ONE_BYTE + 1))
_LISTS = bytes(kind in LISTS for kind in range(LAST_TYPE_OF_ONE_BYTE + 1))
"""1 for each known command without bytes behind it; for each that lists topics."""

_TYPE_TAG = 0x08  # of `BaseCommand.type`
_ID = 0x08
_REDELIVERIES = 0x18
"""Tags in MESSAGE and SEND_RECEIPT."""

_NUM_MESSAGES = 11 << 3  # in MessageMetadata
_LOW_32 = (1 << 32) - 1
_MOST_MESSAGES = (1 << 31) - 1
"""The most messages of one frame, an int32."""

_BODY = 12
"""Offset of a command's fields if its length has one byte."""

_LEAST = 6
"""Bytes of the shortest MESSAGE command: its type, a tag, a length, and a tag and a byte of an
id."""

HEADS = 8 * 1024
"""Bytes of tags, lengths and numbers to walk in one MESSAGE, which takes 0.1 ms (1 to 2 ms in
Python). 2,500 properties have as many."""

_HEADS = HEADS

_READ = 8 * 1024
"""Bytes of a command's fields that are read. Ids and redeliveries come first; acknowledgement sets
of huge batches have some kilobytes."""

_BORDER = 0
_ENTRY_HEAD = 1
_SKIPPED = 2
_CHECKSUM_HEAD = 3
_SIZE = 4
_METADATA = 5
_PAYLOAD = 6
"""The part of a MESSAGE that is read next; `_BORDER`: a frame begins. `_SKIPPED`: broker entry
metadata."""


def _read_ids(data: bytearray, at: int, end: int) -> tuple[int, int, bool]:
    """Return the id in the fields `data[at:end]` of a command, the number of redeliveries, and
    whether there is an id. Of several the last one counts, as in protobuf."""
    id = 0
    redeliveries = 0
    has_id = False
    if end > at + _READ:
        end = at + _READ
    while at < end:
        tag, at = octets.varint(data, at, end)
        if at <= 0:
            break
        wire = tag & 7
        if wire == 0 or wire == 2:
            value, at = octets.varint(data, at, end)
            if at <= 0:
                break
            if wire == 2:
                if value > end - at:
                    break
                at += value
            elif tag & _LOW_32 == _ID:
                id = value
                has_id = True
            elif tag & _LOW_32 == _REDELIVERIES:
                redeliveries = value
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            break
    return id, redeliveries, has_id


class ToClientScanner(BaseScanner):
    """Scans frames to the client: counts each consumer's MESSAGEs and each producer's receipts.
    Frames of unknown consumers and producers are forwarded too.

    `consumers`, `producers`: the accounts of open ones, by `idtable.key`. `unknown`: the account of
    all other consumers.
    """

    __slots__ = (
        "_account",
        "_actions",
        "_command_bound",
        "_computed",
        "_crc32c",
        "_expected",
        "_heads",
        "_messages",
        "_part",
        "_rest",
        "_skip",
        "_sums",
        "consumers",
        "producers",
        "unknown",
    )

    consumers: dict[Key, Account]
    producers: dict[Key, Account]
    unknown: Account
    _account: Account
    _actions: bytes
    _command_bound: int
    _computed: int
    _crc32c: Callable[..., int] | None
    _expected: int
    _heads: int
    _messages: int
    _part: int
    _rest: int
    _skip: int
    _sums: bool

    def __init__(
        self,
        actions: bytes,
        unknown: Account,
        command_bound: int = LARGEST_COMMAND,
        consumers: dict[Key, Account] | None = None,
        crc32c: Callable[..., int] | None = None,
    ) -> None:
        super().__init__()
        self._actions = actions
        self._command_bound = command_bound
        self.unknown = self._account = unknown
        self.producers = {}
        self.consumers = {} if consumers is None else consumers
        self._crc32c = crc32c
        self._sums = False  # the checksum of the MESSAGE that passes is being computed
        self._computed = self._expected = 0
        # Of the MESSAGE that passes: what is read next, bytes of the frame that did not pass, bytes
        # of its metadata that were not read, of which the next `_skip` need not be, and what the
        # metadata has said so far.
        self._part = _BORDER
        self._rest = self._skip = self._heads = 0
        self._messages = 1

    def open_consumer(self, consumer_id: int, account: Account) -> None:
        """See `scanning.ConsumerScanner`."""
        self.consumers[key(consumer_id)] = account

    def close_consumer(self, consumer_id: int) -> None:
        """See `scanning.ConsumerScanner`."""
        self.consumers.pop(key(consumer_id), None)

    def open_producer(self, producer_id: int, account: Account) -> None:
        """See `scanning.ConsumerScanner`."""
        self.producers[key(producer_id)] = account

    def close_producer(self, producer_id: int) -> None:
        """See `scanning.ConsumerScanner`."""
        self.producers.pop(key(producer_id), None)

    def scan(self, chunk: bytearray, start: int, end: int) -> int:  # noqa: C901 - flat: the hot loop
        """See `contract.Scanner`."""
        data = chunk
        self.stop = 0
        summed = start  # up to where bytes are in the sum of the MESSAGE that passes
        part = self._part
        frame_end = start + self.owed
        at = frame_end if part == _BORDER else start + self.skips
        rest = self._rest
        skip = self._skip
        heads = self._heads
        messages = self._messages
        account = self._account
        sums = self._sums
        known = False  # the account is that of the consumer `last`
        last = 0
        producer: Account | None = None
        known_producer = False
        last_producer = 0
        if sums and part == _BORDER and at <= end:
            self._sum(chunk, start, at)
            self._compare(account)
            sums = False
        while True:
            if part == _BORDER:
                if end - at < _HEADER:
                    break
                total = octets.u32(data, at)
                size = octets.u32(data, at + 4)
                if size < 2 or size + 4 > total:
                    raise PeerError(f"a frame of {total} bytes cannot hold a command of {size}")
                kind = data[at + 9]
                command_end = at + 8 + size
                frame_end = at + 4 + total
                is_plain = data[at + 8] == _TYPE_TAG and kind <= _LAST_TYPE
                if not is_plain or (kind != _MESSAGE and kind != _RECEIPT):
                    body = 0
                    if is_plain and self._actions[kind] == _PASS:
                        body = find_body(chunk, at + 8, end, command_end)
                    if body < 0:
                        break
                    if body == 0 or (command_end < frame_end and _BARE[kind]):
                        if size > self._command_bound and not (is_plain and _LISTS[kind]):
                            text = f"a command of {size} bytes"
                            raise ViolationError(EndReason.FRAME_TOO_LARGE, text)
                        self.stop = total + 4
                        break
                    at = frame_end
                    if at >= end:
                        break
                    continue
                if size > _COMMAND_BOUND or (size < _LEAST and kind == _MESSAGE):
                    raise PeerError(f"a command {kind} of {size} bytes")
                if kind == _RECEIPT and total != size + 4:
                    raise PeerError(f"a SEND_RECEIPT with {total - size - 4} bytes behind it")
                if command_end > end:
                    break
                body = at + _BODY
                if (
                    size < 4
                    or data[at + 10] != (kind << 3 | 2)
                    or data[at + 11] + 4 != size
                    or data[at + 11] > 127
                ):
                    body = find_body(chunk, at + 8, end, command_end)
                if body == 0:
                    text = "a command that is not its type and the field of that type alone"
                    raise PeerError(text)
                id, redeliveries, has_id = _read_ids(data, body, command_end)
                if kind == _RECEIPT:
                    if has_id and (id != last_producer or not known_producer):
                        producer = self.producers.get(id if id < _SMALL else key(id))
                        last_producer = id
                        known_producer = True
                    if has_id and producer is not None:
                        producer.receipts += 1
                    at = frame_end
                    continue
                if not known or not has_id or id != last:
                    account = self.unknown
                    if has_id:
                        account = self.consumers.get(id if id < _SMALL else key(id)) or account
                    known = has_id
                    last = id
                if redeliveries != 0 and account is not self.unknown:
                    account.redelivered += 1
                account.bytes += total + 4
                at = command_end
                messages = 1
                heads = _HEADS
                part = _ENTRY_HEAD
            if part == _ENTRY_HEAD:
                if frame_end - at < 6:
                    part = _PAYLOAD
                elif end - at < 6:
                    break
                elif octets.u16(data, at) == _ENTRY:
                    skip = octets.u32(data, at + 2)
                    skip += 6
                    part = _SKIPPED
                    if skip > frame_end - at:
                        skip = 0
                        part = _PAYLOAD
                else:
                    part = _CHECKSUM_HEAD
            if part == _SKIPPED:
                if skip > end - at:
                    skip -= end - at
                    at = end
                    break
                at += skip
                skip = 0
                part = _CHECKSUM_HEAD
            if part == _CHECKSUM_HEAD:
                if frame_end - at < 6:
                    part = _PAYLOAD
                elif end - at < 6:
                    break
                else:
                    if octets.u16(data, at) == _CHECKSUM:
                        if self._crc32c is not None:
                            self._expected = octets.u32(data, at + 2)
                            self._computed = 0
                            sums = True
                            summed = at + 6
                        at += 6
                    part = _SIZE
            if part == _SIZE:
                if frame_end - at < 4:
                    part = _PAYLOAD
                elif end - at < 4:
                    break
                else:
                    rest = octets.u32(data, at)
                    at += 4
                    part = _METADATA
                    if rest > frame_end - at:
                        part = _PAYLOAD
            if part == _METADATA:
                metadata_end = at + rest
                here = metadata_end if metadata_end < end else end
                if skip > 0:
                    at += skip
                    skip = 0
                while at < here:
                    # Most fields have a tag of a byte, and a length or number of a byte.
                    tag = data[at]
                    if tag & 0x85 == 0 and here - at > 1 and data[at + 1] < 128 and heads >= 2:
                        value = data[at + 1]
                        heads -= 2
                        at += 2
                        if tag & 7 == 2:
                            at = at + value if value <= metadata_end - at else metadata_end
                            continue
                        if tag == _NUM_MESSAGES:
                            messages = value
                        continue
                    begin = at
                    tag, at = octets.varint(data, at, here)
                    wire = tag & 7
                    value = 0
                    if at > 0:
                        if wire == 0 or wire == 2:
                            value, at = octets.varint(data, at, here)
                        elif wire == 1:
                            value = 8
                        elif wire == 5:
                            value = 4
                        else:
                            at = 0
                    if at < 0 and here < metadata_end:
                        at = begin  # the chunk's end cuts the field
                        break
                    heads -= at - begin
                    if at <= 0 or heads < 0:
                        at = metadata_end  # nothing more can be read
                        break
                    if wire != 0:
                        if value > metadata_end - at:
                            at = metadata_end
                        else:
                            at += value
                    elif tag & _LOW_32 == _NUM_MESSAGES:
                        messages = value & _LOW_32
                rest = metadata_end - at
                if at > end:
                    skip = at - end
                    rest = metadata_end - end
                    at = end
                if rest > 0:
                    break
                part = _PAYLOAD
            if part == _PAYLOAD:
                if messages == 0 or messages > _MOST_MESSAGES:
                    messages = 1
                if account.messages < _ENDLESS:
                    account.messages += messages
                    account.surplus += messages - 1
                messages = 1
                at = frame_end
                part = _BORDER
                if sums and at <= end:
                    self._sum(chunk, summed, at)
                    self._compare(account)
                    sums = False
                if at >= end:
                    break
        cleared = at if at < end else end
        if sums and summed < cleared:
            self._sum(chunk, summed, cleared)
        self.owed = (at if part == _BORDER else frame_end) - cleared
        self.skips = at - cleared
        if part == _BORDER and self._crc32c is not None:
            self.skips = 0
        self._part = part
        self._rest = rest
        self._skip = skip
        self._heads = heads
        self._messages = messages
        self._account = account
        self._sums = sums
        return cleared

    def _sum(self, chunk: bytearray, start: int, end: int) -> None:
        """Add bytes of the passing MESSAGE to its sum."""
        assert self._crc32c is not None
        self._computed = self._crc32c(memoryview(chunk)[start:end], self._computed)

    def _compare(self, account: Account) -> None:
        """Count the MESSAGE that has passed if its sum is wrong."""
        if self._computed != self._expected:
            account.damaged += 1
