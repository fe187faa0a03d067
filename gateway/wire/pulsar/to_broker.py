# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of a client's frames: counts SENDs, and halts at commands that need a decision.

Theory of operation
===================
`scan` goes from frame to frame by their total sizes, and never looks at a payload, unless checksums
are verified. Three things can end the walk before the chunk's end:

- a *stop frame*: the returned offset is its begin, `stop` its length;
- a header that the chunk's end truncates: the returned offset is its begin, and the caller offers
  its bytes again together with those that follow;
- a last frame that reaches beyond the chunk: its missing bytes are *owed*.

A SEND must consist of number fields alone, in less than 128 bytes, as all clients write it: the
broker's decoder lets a nested field reach beyond its message, and would then read other numbers
than a walk here. Any other SEND is a stop frame: protobuf reads it, so that it has one reading.

**Checksums.** With `checksums: verify` the CRC32C of a SEND is computed as its bytes pass. A whole
SEND with a wrong sum is a stop frame, which the session refuses. A large SEND that the chunk's end
cuts passes as it comes, and a wrong sum ends the connection before the last byte is sent: the
broker never gets the SEND.

**Large SENDs** that stop are not collected whole: the stop frame is what comes before the payload,
and after the decision `go_on` lets the payload pass. Of a producer that is not open the command
alone stops.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.account import Account
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar.canonical import find_body
from gateway.wire.pulsar.counts import SUSPICIOUS, CountChecks
from gateway.wire.pulsar.frames import (
    BROKER_ENTRY_MAGIC,
    CHECKSUM_MAGIC,
    HEAD,
    HEADER,
    KNOWN,
    LAST_TYPE_OF_ONE_BYTE,
    PASS,
    STOP,
    WITH_PAYLOAD,
    Kind,
)
from gateway.wire.pulsar.idtable import SMALL, Key, key
from gateway.wire.pulsar.metadata import find_metadata
from gateway.wire.scanner import BaseScanner

LARGEST_COMMAND = (1 << 32) - 1
"""Bytes of a command that only its size field bounds."""

_HEADER = HEADER
_STOP = STOP
_PASS = PASS
_SEND = int(Kind.SEND)
_FLOW = int(Kind.FLOW)
_LAST_TYPE = LAST_TYPE_OF_ONE_BYTE
_ENDLESS = ENDLESS
_SUSPICIOUS = SUSPICIOUS
_SMALL = SMALL
_MAGIC = CHECKSUM_MAGIC
_ENTRY = BROKER_ENTRY_MAGIC
_BARE = bytes(kind in KNOWN - WITH_PAYLOAD for kind in range(LAST_TYPE_OF_ONE_BYTE + 1))
"""1 for each known command without bytes behind it."""

_BODY = 12
"""Offset of a SEND's fields if the command's length has one byte. All known number fields take 70
bytes."""

_SEND_TAG = 50  # of the field `send` in a BaseCommand
_TYPE_TAG = 0x08  # of `BaseCommand.type`
_ID = 0x08
_PERMITS = 0x10
_NUM_MESSAGES = 0x18
"""Tags in SEND and FLOW."""

_LOW_32 = (1 << 32) - 1
_MOST_MESSAGES = (1 << 31) - 1
"""The most messages of one frame, an int32. Brokers read a larger count as negative."""

_LONGEST_FLOW = 64
"""Bytes of a FLOW that is counted: two numbers, and all that surrounds them, take 34."""

_CARRY_BOUND = 8 * 1024
"""Bytes of metadata to wait for, where counts are compared. Most has 50 bytes."""

_WAITED_FOR = 64 * 1024
"""Bytes of the largest SEND whose checksum is verified before any of its bytes pass, although the
chunk's end cuts the SEND."""

COMPARED_AT_ONCE = 128
"""SENDs that are compared in one scan, 10 µs each: other connections have their turn then."""

_COMPARED_AT_ONCE = COMPARED_AT_ONCE

_FINE = 0
_ODD = 1
_BROKEN = 2
"""What became of the fields of a SEND."""


def _read_send(data: bytearray, at: int, end: int) -> tuple[int, int, int]:
    """Return the producer's id and the number of messages in a SEND whose fields are
    `data[at:end]`, and `_FINE`. Otherwise `_ODD`: protobuf must read the SEND; or `_BROKEN`."""
    producer = 0
    messages = 1
    outcome = _ODD
    while at < end:
        tag = data[at]
        if tag & 0x87 or tag == 0:  # no number, or a tag of several bytes
            return 0, 0, _ODD
        begin = at + 1
        value, at = octets.varint(data, begin, end)
        if at <= 0:
            return 0, 0, _BROKEN
        if at - begin == octets.LONGEST_VARINT and data[at - 1] > 1:  # above 64 bits
            return 0, 0, _ODD
        if tag == _ID:
            producer = value
            outcome = _FINE
        elif tag == _NUM_MESSAGES:
            messages = value & _LOW_32
    if messages == 0 or messages > _MOST_MESSAGES:
        outcome = _ODD
    return producer, messages, outcome


class ToBrokerScanner(BaseScanner):
    """Scans frames to the broker: counts each producer's SENDs, and stops at a SEND whose producer
    is not open or has no allowance left.

    `producers`, `consumers`: the accounts of open ones, by `idtable.key`. `damaged`: the head of a
    SEND whose checksum was wrong at its end, behind which the connection ends.
    """

    __slots__ = (
        "_account",
        "_actions",
        "_checks",
        "_collected",
        "_command_bound",
        "_compared",
        "_computed",
        "_crc32c",
        "_distance",
        "_expected",
        "_head",
        "_sums",
        "consumers",
        "damaged",
        "producers",
    )

    producers: dict[Key, Account]
    consumers: dict[Key, Account]
    damaged: bytes
    _account: Account | None
    _actions: bytes
    _checks: CountChecks | None
    _collected: int
    _command_bound: int
    _compared: int
    _computed: int
    _crc32c: Callable[..., int] | None
    _distance: int
    _expected: int
    _head: bytes
    _sums: bool

    def __init__(
        self,
        actions: bytes,
        command_bound: int = LARGEST_COMMAND,
        checks: CountChecks | None = None,
        consumers: dict[Key, Account] | None = None,
        crc32c: Callable[..., int] | None = None,
        collected: int = LARGEST_COMMAND,
    ) -> None:
        """`collected`: bytes of the largest SEND that is collected whole."""
        super().__init__()
        self._actions = actions
        self._collected = collected
        self._account = None  # of the SEND whose checksum is being computed
        self._head = self.damaged = b""
        self._command_bound = command_bound
        self._checks = checks
        self._compared = 0
        self._distance = 0  # bytes of limited producers until counts are compared again
        self._crc32c = crc32c
        self._sums = False  # the checksum of the SEND that passes is being computed
        self._computed = self._expected = 0
        self.producers = {}
        self.consumers = {} if consumers is None else consumers

    def open_producer(self, producer_id: int, account: Account) -> None:
        """See `scanning.ProducerScanner`."""
        self.producers[key(producer_id)] = account

    def close_producer(self, producer_id: int) -> None:
        """See `scanning.ProducerScanner`."""
        self.producers.pop(key(producer_id), None)

    def is_damaged(self, frame: bytes) -> bool:
        """See `scanning.ProducerScanner`."""
        total, size = HEAD.unpack_from(frame)
        is_whole = total + 4 == len(frame)
        return (
            is_whole
            and self._crc32c is not None
            and self._is_damaged(bytearray(frame), 8 + size, len(frame))
        )

    def scan(self, chunk: bytearray, start: int, end: int) -> int:  # noqa: C901 - flat: the hot loop
        """See `contract.Scanner`."""
        data = chunk
        self.stop = 0
        self._compared = 0
        self.is_slow = False
        at = start + self.owed
        if self._sums:
            self._sum(chunk, start, min(at, end), at - end)
        account: Account | None = None
        known = False  # the account is that of the producer `last`
        last = 0
        while end - at >= _HEADER and not self.is_slow:
            total = octets.u32(data, at)
            size = octets.u32(data, at + 4)
            if size < 2 or size + 4 > total:
                raise PeerError(f"a frame of {total} bytes cannot hold a command of {size}")
            if size > self._command_bound:
                raise ViolationError(EndReason.FRAME_TOO_LARGE, f"a command of {size} bytes")
            kind = data[at + 9]
            command_end = at + 8 + size
            if data[at + 8] != _TYPE_TAG or kind > _LAST_TYPE:
                return self._halt(at, total)
            action = self._actions[kind]
            if action == _STOP or (total > size + 4 and _BARE[kind]):
                return self._halt(at, total)
            body = at + _BODY
            if (
                kind != _SEND
                or body > end
                or data[at + 10] != _SEND_TAG
                or data[at + 11] > 127
                or data[at + 11] + 4 != size
            ):
                body = find_body(chunk, at + 8, end, command_end)
            if body < 0:
                break
            if body == 0:
                return self._halt(at, total)
            if action == _PASS:
                at += total + 4
                continue
            if kind == _FLOW:
                if command_end > end and command_end - at <= _LONGEST_FLOW:
                    break
                if command_end - at <= _LONGEST_FLOW:
                    self._count_flow(chunk, body, command_end)
                at += total + 4
                continue
            if body != at + _BODY:
                return self._halt(at, total)
            if command_end > end:
                break
            producer, messages, outcome = _read_send(data, body, command_end)
            if outcome != _FINE:
                if outcome == _BROKEN:
                    raise PeerError("a field of SEND is cut or too long")
                return self._halt(at, total)
            if not known or producer != last:
                account = self.producers.get(producer if producer < _SMALL else key(producer))
                last = producer
                known = True
            if (
                account is None
                or account.messages >= account.messages_ceiling
                or account.bytes >= account.bytes_ceiling
            ):
                if account is None and total + 4 > self._collected:
                    return self._halt(at, command_end - at - 4)
                return self._halt_send(chunk, at, command_end, end)
            if self._crc32c is not None and not self._may_pass(chunk, at, command_end, end):
                break
            if self._checks is not None and account.messages_ceiling < _ENDLESS:
                if self._distance > 0 and messages <= _SUSPICIOUS:
                    self._distance -= total + 4
                elif not self._is_compared(chunk, at, command_end, end, account, messages):
                    break
            if self._crc32c is not None and at + 4 + total > end:
                self._account = account
                self._begin_sum(chunk, at, command_end, end)
            account.messages += messages
            account.surplus += messages - 1
            account.bytes += total + 4
            at += total + 4
        self.owed = at - end if at > end else 0
        self.skips = self.owed if self._crc32c is None else 0
        return at if at < end else end

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`. Only whole SENDs of the same producer follow; none if each must
        be compared, which the session does before the SEND waits."""
        data = chunk
        at = start
        if self._crc32c is not None:
            return at
        if account.messages_ceiling < ENDLESS and self._checks and self._checks.compares_all:
            return at
        while end - at >= _BODY:
            total = octets.u32(data, at)
            size = octets.u32(data, at + 4)
            if size < 4 or size > self._command_bound or size + 4 > total or total > end - at - 4:
                break
            if data[at + 8] != _TYPE_TAG or data[at + 9] != _SEND or data[at + 10] != _SEND_TAG:
                break
            if data[at + 11] > 127 or data[at + 11] + 4 != size:
                break
            producer, _, outcome = _read_send(data, at + _BODY, at + 8 + size)
            if outcome != _FINE or self.producers.get(key(producer)) is not account:
                break
            at += total + 4
        return at

    def _halt(self, at: int, total: int) -> int:
        self.stop = total + 4
        self.owed = self.skips = 0
        return at

    def _halt_send(self, chunk: bytearray, at: int, command_end: int, end: int) -> int:
        """Halt at a SEND, or at what comes before its payload if it is too large to be collected;
        wait if too few bytes have come to tell where that ends."""
        total = octets.u32(chunk, at)
        self._halt(at, total)
        if total + 4 <= self._collected:
            return at
        if end - command_end < 6:
            self.stop = 0
        elif octets.u16(chunk, command_end) == _ENTRY:  # which only brokers write, of any size
            self.stop = command_end + 6 - at
        else:
            place = find_metadata(chunk, command_end, at + 4 + total, end)
            self.stop = place[1] - at if place is not None else 0
        return at

    def go_on(self, head: bytes, account: Account | None) -> None:
        """Let the rest of a large SEND pass: `head`, the stop frame, is what comes before its
        payload. `account`: of its producer; None if the rest is dropped."""
        total, size = HEAD.unpack_from(head)
        self.owed = total + 4 - len(head)
        if self._crc32c is None or account is None:
            self.skips = self.owed
        else:
            self._account = account
            self._begin_sum(bytearray(head), 0, 8 + size, len(head))

    def _count_flow(self, chunk: bytearray, at: int, end: int) -> None:
        """Count the permits of a FLOW, which passes. One that has other fields than numbers, or is
        longer than clients write it, passes uncounted."""
        consumer = 0
        permits = 0
        named = False
        while at < end:
            tag = chunk[at]
            value, at = octets.varint(chunk, at + 1, end)
            if at <= 0 or tag & 0x87:
                return
            if tag == _ID:
                consumer = value
                named = True
            elif tag == _PERMITS:
                permits = value & _LOW_32
        account = self.consumers.get(key(consumer)) if named else None
        if account is not None:
            account.asked += permits

    def _is_compared(
        self,
        chunk: bytearray,
        at: int,
        command_end: int,
        here: int,
        account: Account,
        messages: int,
    ) -> bool:
        """Compare the count of the SEND at `at` with that of its batch.

        `command_end`: end of its command. `here`: end of the bytes that have come. Return False if
        these are too few; the SEND becomes a stop frame if its metadata is too large to wait for.
        """
        checks = self._checks
        assert checks is not None
        total = octets.u32(chunk, at)
        frame_end = at + 4 + total
        checks.check_beginning(chunk, command_end, min(frame_end, here))
        place = find_metadata(chunk, command_end, frame_end, here)
        if place is None:
            return False
        begin, end = place
        if here < end <= at + _CARRY_BOUND:
            return False
        if here < end:
            self._halt_send(chunk, at, command_end, here)
            return False
        checks.compare(account, messages, bytes(chunk[begin:end]))
        self.compared()
        self._compared += 1
        self.is_slow = self._compared >= _COMPARED_AT_ONCE
        return True

    def compared(self) -> None:
        """Draw the distance to the next SEND that is compared, because one was."""
        if self._checks is not None:
            self._distance = self._checks.distance()

    # -- checksums ---------------------------------------------------------------------------

    def _may_pass(self, chunk: bytearray, at: int, command_end: int, end: int) -> bool:
        """Return whether a SEND passes, as far as its checksum says. Otherwise more of its bytes
        must come first, or its sum is wrong, and it becomes a stop frame."""
        frame_end = at + 4 + octets.u32(chunk, at)
        if frame_end <= end:
            if self._is_damaged(chunk, command_end, frame_end):
                self._halt(at, frame_end - at - 4)
                return False
            return True
        return frame_end - at > _WAITED_FOR and command_end + 6 <= end

    def _begin_sum(self, chunk: bytearray, at: int, command_end: int, end: int) -> None:
        """Begin to compute the checksum of the SEND at `at`, which passes, if it has one."""
        if end - command_end >= 6 and octets.u16(chunk, command_end) == _MAGIC:
            self._expected = octets.u32(chunk, command_end + 2)
            self._computed = 0
            self._sums = True
            self._head = bytes(chunk[at:command_end])
            self._sum(chunk, command_end + 6, end, 1)

    def _is_damaged(self, chunk: bytearray, command_end: int, end: int) -> bool:
        """Return whether a SEND has a checksum that is wrong, by the rules of brokers."""
        if self._crc32c is None or end - command_end < 6:
            return False
        if octets.u16(chunk, command_end) != _MAGIC:
            return False
        computed = self._crc32c(memoryview(chunk)[command_end + 6 : end], 0)
        return computed != octets.u32(chunk, command_end + 2)

    def _sum(self, chunk: bytearray, start: int, end: int, owed: int) -> None:
        """Add bytes of the passing SEND to its sum. `owed`: how many bytes follow; if none, raises
        `PeerError` if the sum is wrong."""
        assert self._crc32c is not None
        self._computed = self._crc32c(memoryview(chunk)[start:end], self._computed)
        if owed <= 0:
            self._sums = False
            if self._computed != self._expected:
                self.damaged = self._head
                if self._account is not None:
                    self._account.damaged += 1
                raise PeerError("a SEND whose checksum is wrong")
