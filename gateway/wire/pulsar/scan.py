"""Scanners of Pulsar frames in pure Python: count passing frames, halt at stop frames.

Theory of operation
===================
`scan` is called with the bytes of one receive. It goes from frame to frame by their total sizes,
and never looks at a payload. Three things can end the walk before the chunk's end:

- a *stop frame*: the returned offset is its begin, `stop` its length;
- a header that the chunk's end truncates: the returned offset is its begin, and the caller offers
  its bytes again together with those that follow;
- a last frame that reaches beyond the chunk: its missing bytes are *owed*, and pass unread.

SEND and MESSAGE make up nearly all frames, so they are walked without protobuf.

**Shapes** (to the broker). Nearly all SENDs of a producer differ only in the sequence id and the
total size. So the walk of one SEND yields a *shape*: an unpacker that reads, in one call, the total
size, the constant bytes from the command size to the producer id (the *key*), and the bytes of the
sequence id as one integer. If the keys are equal and the integer has the right continuation bits,
the next frame has the same layout, and so holds one message of the same producer. The key also
finds another producer with the same layout. Frames of a run are added up and counted once.
A sequence id of more than four bytes (2²⁸ and above) is walked: a shape would leave some of its
bytes unproved, and a hostile client could hide a message count there. A SEND with any field that is
not a number is a stop frame: protobuf reads it, so that it has one reading.

**Metadata** (to the client). A MESSAGE has its message count in its metadata
(`num_messages_in_batch`), behind properties of any length. For a single message most producers
write name, sequence id, publish time and no more, which the last 16 bytes prove; other metadata is
walked. Metadata that the chunk's end cuts is walked as it passes (`EntryWalk`, `MetadataWalk`), and
its messages are counted at its end. The bytes behind the command come from a producer, and a broker
hands them on unread. So they always pass, and count as one message if no count can be read. The
command itself must be canonical, as all others: clients would find another command behind a second
type. MESSAGEs of a consumer have commands of a few layouts, by the digits of their ids. The walk of
one yields a *layout*: its first twelve bytes, from the command size to the length of the message
id, which prove all but that id's digits. If they leave no room for a redelivery count, the next
command with them has none either, and its account is found by one look at `_layouts`. Layouts that
end in a count of 0 are `_zeros`: with them a command whose last byte is 0 is a first delivery too.

The loops are flat on purpose: a call costs as much as all other work for a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from gateway.errors import PeerError
from gateway.wire.account import ENDLESS, Account, Action
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.pulsar.counts import SUSPICIOUS, CountChecks
from gateway.wire.pulsar.frames import (
    CHECKSUM_MAGIC,
    COMMAND_BOUND,
    HEAD,
    HEADER,
    KNOWN,
    LAST_TYPE_OF_ONE_BYTE,
    LISTS,
    PASS,
    STOP,
    WITH_PAYLOAD,
    Kind,
    find_body,
)
from gateway.wire.pulsar.idtable import IdTable
from gateway.wire.pulsar.metadata import (
    ENTRY_BOUND,
    LARGE,
    EntryWalk,
    MetadataWalk,
    count_messages,
    entry_metadata_size,
    find_metadata,
    walk_fields,
    walk_large,
)

if TYPE_CHECKING:
    from gateway.compiled.counters import AccountTable

Accounts: TypeAlias = "IdTable[Account] | AccountTable[Account]"
"""A table that finds an account by the id of its producer or consumer."""

_head: Callable[[bytearray, int], tuple[int, int]] = HEAD.unpack_from
# Magic, checksum, metadata size, the first two bytes of the metadata.
_metadata_head: Callable[[bytearray, int], tuple[int, int, int, int]] = Struct(">HIIH").unpack_from
_size = Struct(">I").unpack_from
_layout = Struct("12s").unpack_from
_lead: Callable[[bytearray, int], tuple[int, int, int]] = Struct(">IIH").unpack_from

_MESSAGE = 0x0800 | Kind.MESSAGE
_RECEIPT = 0x0800 | Kind.SEND_RECEIPT
_LISTS = frozenset(0x0800 | kind for kind in LISTS)
"""The first two bytes of these commands."""

_ID = 0xFFFFFF80
MOST_LAYOUTS = 1024
"""Layouts of MESSAGEs that are known at a time. A consumer has one, and later another."""

_LAYOUT = 16
"""End of a layout's bytes in its frame."""

_MESSAGE_ID, _REDELIVERIES, _EPOCH = 0x12, 0x18, 0x28
"""Tags in MESSAGE. Brokers write fields in the order of their numbers, mostly no redelivery count
of 0, and an epoch into all commands of a consumer or none."""

_MESSAGE_IDS = tuple(0x4A000800 | size - 4 << 16 if size > 5 else -1 for size in range(132))
_RECEIPT_IDS = tuple(0x3A000800 | size - 4 << 16 if size > 5 else -1 for size in range(132))
"""Mask and proofs, by the command's size, of the next four bytes if length and id have one byte. If
they match, the command is canonical, and the fourth byte is the id. Brokers write one id, first."""

_SIZES_PROVED = len(_MESSAGE_IDS)

_words: Callable[[bytearray, int], tuple[int, int]] = Struct(">QQ").unpack_from

_SEND_BODY = 12
"""Offset of a SEND's fields if its length has one byte. All known number fields take 70 bytes."""

_SEND_PREFIX = 10
"""Bytes of a shape's key beside the producer id: command size (4), type (2), tag and length of the
command (2), tags of producer and sequence id (2)."""

_LONGEST_FLOW = 64
"""Bytes of a FLOW that is counted: two numbers, and all that surrounds them, take 34."""

_CARRY_BOUND = LARGE
"""Bytes of metadata to wait for. Larger metadata is walked as it passes. Most has 50 bytes."""

_PLAIN_HEAD = [int.from_bytes(b"\xff" + b"\x80" * (length - 1)) for length in range(9)]
_PLAIN_HEAD_PROOF = [int.from_bytes(b"\x10" + b"\x80" * (length - 1)) for length in range(9)]
"""Mask and proof of a sequence id's tag and all but the last of its bytes, by its length."""

_PLAIN_TAIL = int.from_bytes(b"\x80\xff\x80\x80\x80\x80\x80\x80")
_PLAIN_TAIL_PROOF = int.from_bytes(b"\x00\x18\x80\x80\x80\x80\x80\x00")
"""The same for the sequence id's last byte and a publish time of six bytes (years 2005 to 2109)."""


class Shape(NamedTuple):
    """How one call reads a SEND that has the same layout as an earlier SEND; see "Shapes" in this
    module's docstring."""

    unpack: Callable[[bytearray, int], tuple[Any, ...]]
    mask: int
    proof: int
    header: int  # bytes up to the end of the command
    least_total: int
    key_length: int


@lru_cache(maxsize=64)
def _shape(id_length: int, sequence_length: int) -> Shape:
    key = _SEND_PREFIX + id_length
    layouts = {
        1: (f">I{key}sB", 0x80, 0x00, key),
        2: (f">I{key}sH", 0x8080, 0x8000, key),
        # Three bytes are read together with the tag before them.
        3: (f">I{key - 1}sI", 0xFF808080, 0x10808000, key - 1),
        4: (f">I{key}sI", 0x80808080, 0x80808000, key),
    }
    layout, mask, proof, key_length = layouts[sequence_length]
    header = 4 + key + sequence_length
    return Shape(Struct(layout).unpack_from, mask, proof, header, header - 4, key_length)


_NOBODY = Account(Action.PRODUCE)

_UNSEEN: dict[bytes, Account] = {}
"""All scanners without a shape share this dict, into which nothing is put: idle pairs are many."""

_WITHOUT_PAYLOAD = KNOWN - WITH_PAYLOAD

LARGEST_COMMAND = (1 << 32) - 1
"""Bytes of a command that only its size field bounds."""


class _FrameScanner:
    """The part that both directions share: owed bytes, and stop frames."""

    __slots__ = ("_actions", "owed", "stop")

    def __init__(self, actions: tuple[int, ...]) -> None:
        self._actions = actions
        self.owed = 0
        self.stop = 0

    @property
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self.owed

    def _halt(self, pos: int, total: int) -> int:
        self.stop = total + 4
        return pos


class ToBrokerScanner(_FrameScanner):
    """Scans frames to the broker: counts each producer's SENDs, and stops at a SEND whose producer
    is not open or has no allowance left."""

    __slots__ = (
        "_account",
        "_checks",
        "_command_bound",
        "_consumers",
        "_distance",
        "_key",
        "_producers",
        "_seen",
        "_shape",
    )

    def __init__(
        self,
        actions: tuple[int, ...],
        command_bound: int = LARGEST_COMMAND,
        checks: CountChecks | None = None,
        consumers: Accounts | None = None,
    ) -> None:
        super().__init__(actions)
        self._consumers = IdTable[Account]() if consumers is None else consumers
        self._command_bound = command_bound
        self._checks = checks
        self._distance = 0  # bytes of limited producers until counts are compared again
        self._producers: Accounts = IdTable()
        self._shape: Shape | None = None
        self._key = b""
        self._account = _NOBODY
        self._seen = _UNSEEN

    def open_producer(self, producer_id: int, account: Account) -> None:
        """See `scanning.ProducerScanner`."""
        self.close_producer(producer_id)
        self._producers.put(producer_id, account)

    def close_producer(self, producer_id: int) -> None:
        """See `scanning.ProducerScanner`."""
        if self._producers.pop(producer_id) is not None:
            self._shape = None
            self._account = _NOBODY
            self._seen = _UNSEEN

    def is_damaged(self, frame: bytes) -> bool:
        """See `scanning.ProducerScanner`."""
        return False

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        self.stop = 0
        pos = start + self.owed
        while pos < end:
            if self._shape is not None:
                pos = self._run(chunk, pos, end, self._shape)
                if pos >= end:
                    break
            after = self._frame(chunk, pos, end)
            if after == pos:
                self.owed = 0
                return pos
            pos = after
        self.owed = pos - end
        return end

    def _run(self, chunk: bytearray, pos: int, end: int, shape: Shape) -> int:
        """Pass frames of one producer and shape. Flat: the hottest loop of the gateway."""
        unpack, mask, proof, header, least, _ = shape
        account, key = self._account, self._key
        left = account.messages_ceiling - account.messages
        begin, last = pos, end - header
        if account.bytes_ceiling - account.bytes <= last - pos:
            last = pos + account.bytes_ceiling - account.bytes - 1
        compared = self._checks is not None and account.messages_ceiling < ENDLESS
        if compared:
            last = min(last, pos + self._distance - 1)
        frames = 0
        while pos <= last and frames < left:
            total, found, sequence = unpack(chunk, pos)
            if found != key or sequence & mask != proof or total < least:
                account.messages += frames
                account.bytes += pos - begin
                if compared:
                    self._distance -= pos - begin
                if found not in self._seen:
                    return pos
                mix = self._mix if self._checks is None else self._mix_checked
                return mix(chunk, pos, end, shape)
            frames += 1
            pos += total + 4
        account.messages += frames
        account.bytes += pos - begin
        if compared:
            self._distance -= pos - begin
        return pos

    def _mix(self, chunk: bytearray, pos: int, end: int, shape: Shape) -> int:
        """Pass frames of one shape and several producers."""
        unpack, mask, proof, header, least, _ = shape
        last = end - header
        seen = self._seen.get
        while pos <= last:
            total, found, sequence = unpack(chunk, pos)
            account = seen(found)
            if account is None or sequence & mask != proof or total < least:
                break
            if (
                account.messages >= account.messages_ceiling
                or account.bytes >= account.bytes_ceiling
            ):
                break
            total += 4
            account.messages += 1
            account.bytes += total
            pos += total
        return pos

    def _mix_checked(self, chunk: bytearray, pos: int, end: int, shape: Shape) -> int:
        """Do the same if counts are compared. Apart from `_mix`, because the loop is hot."""
        unpack, mask, proof, header, least, _ = shape
        last = end - header
        seen = self._seen.get
        distance = self._distance
        while pos <= last:
            total, found, sequence = unpack(chunk, pos)
            account = seen(found)
            if account is None or sequence & mask != proof or total < least or account.held:
                break
            total += 4
            if account.messages_ceiling < ENDLESS:
                if distance <= 0:
                    break
                distance -= total
            account.messages += 1
            account.bytes += total
            pos += total
        self._distance = distance
        return pos

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`. Only whole SENDs of one producer and shape follow; none if each
        must be compared, which the session does before it waits."""
        pos = start
        if self._shape is None or account is not self._account:
            return pos
        if account.messages_ceiling < ENDLESS and self._checks and self._checks.compares_all:
            return pos
        unpack, mask, proof, header, least, _ = self._shape
        key, last = self._key, end - header
        while pos <= last:
            total, found, sequence = unpack(chunk, pos)
            if found != key or sequence & mask != proof or not least <= total <= end - pos - 4:
                break
            pos += total + 4
        return pos

    def _frame(self, chunk: bytearray, pos: int, end: int) -> int:
        """Scan one frame of any kind. Return the offset behind it, or `pos` to halt or wait."""
        if end - pos < HEADER:
            return pos
        total, size = _head(chunk, pos)
        if size < 2 or size + 4 > total:
            raise PeerError(f"a frame of {total} bytes cannot hold a command of {size}")
        if size > self._command_bound:
            raise ViolationError(EndReason.FRAME_TOO_LARGE, f"a command of {size} bytes")
        kind = chunk[pos + 9]
        if chunk[pos + 8] != 0x08 or kind > LAST_TYPE_OF_ONE_BYTE:
            return self._halt(pos, total)
        action = self._actions[kind]
        if action == STOP or (total > size + 4 and kind in _WITHOUT_PAYLOAD):
            return self._halt(pos, total)
        command_end = pos + 8 + size
        body = find_body(chunk, pos + 8, end, command_end)
        if body < 0:
            return pos
        if not body:
            return self._halt(pos, total)
        if action == PASS:
            return pos + total + 4
        if kind == Kind.FLOW:
            return self._flow(chunk, pos, end, body, command_end)
        if body != pos + _SEND_BODY:
            return self._halt(pos, total)
        return pos if command_end > end else self._send(chunk, pos, total, command_end, end)

    def _flow(self, chunk: bytearray, pos: int, here: int, body: int, end: int) -> int:
        """Count the permits of a FLOW, and let it pass. `here`: end of the bytes that have come;
        `end`: end of the command. A longer command than clients write passes uncounted."""
        if end > here and end - pos <= _LONGEST_FLOW:
            return pos
        if end - pos <= _LONGEST_FLOW:
            account = self._consumers.get(walk_fields(chunk, body, end, 0x08, -1)[1])
            if account is not None:
                account.asked += walk_fields(chunk, body, end, 0x10, 0)[1] & 0xFFFFFFFF
        return int(pos + 4 + _size(chunk, pos)[0])

    def _send(  # noqa: C901 - flat, as all that is done for each frame
        self, chunk: bytearray, pos: int, total: int, end: int, here: int
    ) -> int:
        """Count a SEND of number fields only, with tags of one byte, in less than 128 bytes.

        Clients write no others. The broker's decoder lets a nested field reach beyond its message,
        and would then read other numbers than a walk here. `end`: of the command; `here`: end of
        the bytes that have come.
        """
        producer, messages, sequence_at, at = -1, 1, 0, pos + _SEND_BODY
        fields = 0
        while at < end:
            tag = chunk[at]
            at += 1
            fields += 1
            if tag & 0x87 or not tag:
                return self._halt(pos, total)
            if tag == 0x10:
                sequence_at = at
            value = shift = 0
            byte = 128
            while byte > 127:
                if at >= end or shift > 63:
                    raise PeerError("a field of SEND is cut or too long")
                byte = chunk[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
            if tag == 0x08:
                producer = value
            elif tag == 0x18:
                messages = value & 0xFFFFFFFF
        if not 0 < messages < 1 << 31:  # brokers read no count, or a negative one
            return self._halt(pos, total)
        account = self._producers.get(producer)
        if account is None:
            return self._halt(pos, total)
        # Plain: a producer id and a sequence id, in this order, and no more.
        if fields == 2 and sequence_at > pos + _SEND_BODY + 1 and end - sequence_at <= 4:
            self._learn(chunk, pos, sequence_at, end, account)
        else:
            self._shape = None
        if account.held:
            return self._halt(pos, total)
        if self._checks is not None and account.messages_ceiling < ENDLESS:
            if self._distance > 0 and messages <= SUSPICIOUS:
                self._distance -= total + 4
            elif not self._is_compared(chunk, pos, (end, here), account, messages):
                return pos
        account.messages += messages
        account.surplus += messages - 1
        account.bytes += total + 4
        return pos + total + 4

    def _is_compared(
        self, chunk: bytearray, pos: int, ends: tuple[int, int], account: Account, messages: int
    ) -> bool:
        """Compare the count of the SEND at `pos` with that of its batch.

        `ends`: of its command, and of the bytes that have come. Return False if these are too few;
        the SEND becomes a stop frame if its metadata is too large to wait for.
        """
        assert self._checks is not None
        command_end, here = ends
        total = _size(chunk, pos)[0]
        frame_end = pos + 4 + total
        self._checks.check_beginning(chunk, command_end, min(frame_end, here))
        found = find_metadata(chunk, command_end, frame_end, here)
        if found is None:
            return False
        begin, end = found
        if here < end <= pos + _CARRY_BOUND:
            return False
        self._distance = self._checks.distance()
        if here < end:
            self._halt(pos, total)
            return False
        self._checks.compare(account, messages, bytes(chunk[begin:end]))
        return True

    def _learn(
        self, chunk: bytearray, pos: int, sequence_at: int, end: int, account: Account
    ) -> None:
        """Remember the shape of a plain SEND."""
        shape = _shape(sequence_at - pos - _SEND_BODY - 2, end - sequence_at)
        if shape is not self._shape:
            self._shape, self._seen = shape, {}
        self._account = account
        self._key = bytes(chunk[pos + 4 : pos + 4 + shape.key_length])
        self._seen[self._key] = account


class ToClientScanner(_FrameScanner):
    """Scans frames to the client: counts each consumer's MESSAGEs and each producer's receipts.
    Frames of unknown consumers and producers are forwarded too."""

    __slots__ = (
        "_command_bound",
        "_consumers",
        "_layouts",
        "_producers",
        "_walk",
        "_zeros",
        "unknown",
    )

    def __init__(
        self,
        actions: tuple[int, ...],
        unknown: Account,
        command_bound: int = LARGEST_COMMAND,
        consumers: Accounts | None = None,
    ) -> None:
        super().__init__(actions)
        self._command_bound = command_bound
        self._consumers = IdTable[Account]() if consumers is None else consumers
        self._producers: Accounts = IdTable()
        self._layouts = self._zeros = _UNSEEN
        self.unknown = unknown
        self._walk: EntryWalk | MetadataWalk | None = None

    def open_consumer(self, consumer_id: int, account: Account) -> None:
        """See `scanning.ConsumerScanner`."""
        self._consumers.put(consumer_id, account)
        self._layouts = self._zeros = _UNSEEN

    def close_consumer(self, consumer_id: int) -> None:
        """See `scanning.ConsumerScanner`."""
        self._consumers.pop(consumer_id)
        self._layouts = self._zeros = _UNSEEN

    def open_producer(self, producer_id: int, account: Account) -> None:
        """See `scanning.ConsumerScanner`."""
        self._producers.put(producer_id, account)

    def close_producer(self, producer_id: int) -> None:
        """See `scanning.ConsumerScanner`."""
        self._producers.pop(producer_id)

    def scan(self, chunk: bytearray, start: int, end: int) -> int:  # noqa: C901
        """See `contract.Scanner`. Flat on purpose."""
        self.stop = 0
        if self._walk is not None:
            self._walk = self._walk.feed(chunk, start, end)
        pos = start + self.owed
        last = end - HEADER
        layouts, zeros = self._layouts, self._zeros
        while pos <= last:
            total, size, lead = _lead(chunk, pos)
            if size < 2 or size + 4 > total:
                raise PeerError(f"a frame of {total} bytes cannot hold a command of {size}")
            at = pos + 8 + size
            if lead == _MESSAGE:
                frame_end = pos + 4 + total
                if at + 12 <= end:
                    magic, _, length, first = _metadata_head(chunk, at)
                else:
                    magic = length = first = 0
                begin = at + 10
                metadata_end = begin + length
                if magic != CHECKSUM_MAGIC or metadata_end > frame_end:
                    if not 5 < size <= COMMAND_BOUND:
                        _refuse(Kind.MESSAGE, size)
                    found = find_metadata(chunk, at, frame_end, end)
                    if found is None:
                        if entry_metadata_size(chunk, at, end) > ENTRY_BOUND:
                            self._skip_entry(chunk, pos, at, frame_end, end)
                            pos = frame_end
                        break
                    begin, metadata_end = found
                    first = 0
                    account = None  # there may be less than a layout
                else:
                    layout = _layout(chunk, pos + 4)[0]
                    account = layouts.get(layout)
                    if account is None and not chunk[at - 1]:
                        account = zeros.get(layout)
                if account is None:
                    waits = end < metadata_end <= pos + _CARRY_BOUND
                    account = self._consumer(chunk, pos, at, passes=not waits)
                    layouts, zeros = self._layouts, self._zeros
                if metadata_end > end:
                    if metadata_end - pos > _CARRY_BOUND:
                        walk = MetadataWalk(metadata_end - begin, account.count)
                        self._walk = walk.feed(chunk, begin, end)
                        account.bytes += total + 4
                        pos = frame_end
                    break
                # A single message of most producers: name, sequence id, time, and no more.
                length = metadata_end - begin - 10 - (first & 127)  # of the sequence id, if plain
                if first & 0xFF80 == 0x0A00 and 0 < length < 8:
                    head, tail = _words(chunk, metadata_end - 16)
                else:
                    head = tail = 0
                if (
                    tail & _PLAIN_TAIL == _PLAIN_TAIL_PROOF
                    and head & _PLAIN_HEAD[length] == _PLAIN_HEAD_PROOF[length]
                ):
                    account.messages += 1
                else:
                    messages = count_messages(chunk, begin, metadata_end)
                    account.messages += messages
                    account.surplus += messages - 1
                account.bytes += total + 4
                pos = frame_end
                continue
            if lead == _RECEIPT:
                if at > end:
                    if size > COMMAND_BOUND:
                        _refuse(Kind.SEND_RECEIPT, size)
                    break
                if (
                    5 < size < _SIZES_PROVED
                    and total == size + 4
                    and _size(chunk, pos + 10)[0] & _ID == _RECEIPT_IDS[size]
                ):
                    producer = self._producers.small.get(chunk[pos + 13])
                else:
                    producer = self._acknowledged(chunk, pos, total, size)
                if producer is not None:
                    producer.receipts += 1
            else:
                body = 0
                if lead >> 8 == 0x08 and not lead & 0x80 and self._actions[lead & 0x7F] == PASS:
                    body = find_body(chunk, pos + 8, end, at)
                if body < 0:
                    break
                if not body or (at < pos + 4 + total and lead & 0x7F in _WITHOUT_PAYLOAD):
                    if size > self._command_bound and lead not in _LISTS:
                        text = f"a command of {size} bytes"
                        raise ViolationError(EndReason.FRAME_TOO_LARGE, text)
                    self.owed = 0
                    return self._halt(pos, total)
            pos += total + 4
        self.owed = pos - end if pos > end else 0
        return pos if pos < end else end

    def _consumer(self, chunk: bytearray, pos: int, at: int, *, passes: bool) -> Account:
        """Return the account of the MESSAGE at `pos`, whose command ends at `at`, and learn its
        layout. If it passes now, count whether it was delivered before."""
        size = at - pos - 8
        if not 5 < size <= COMMAND_BOUND:
            _refuse(Kind.MESSAGE, size)
        usual = size < _SIZES_PROVED and _size(chunk, pos + 10)[0] & _ID == _MESSAGE_IDS[size]
        consumer = chunk[pos + 13] if usual else id_of(chunk, pos + 8, at)
        account = self._consumers.get(consumer)
        if account is None:
            return self.unknown
        if usual and pos + _LAYOUT <= at and chunk[pos + 14] == _MESSAGE_ID:
            rest = pos + _LAYOUT + chunk[pos + 15]
            layout = bytes(chunk[pos + 4 : pos + _LAYOUT])
            if rest == at or (rest < at and chunk[rest] == _EPOCH):
                self._layouts = _learned(self._layouts, layout, account)
                return account
            if rest == at - 2 and chunk[rest] == _REDELIVERIES and not chunk[rest + 1]:
                self._zeros = _learned(self._zeros, layout, account)
                return account
        body = pos + 12 if usual else find_body(chunk, pos + 8, at, at)
        if at - pos <= LARGE and walk_fields(chunk, body, at, _REDELIVERIES, 0)[1]:
            account.redelivered += passes
        return account

    def _skip_entry(self, chunk: bytearray, pos: int, at: int, frame_end: int, end: int) -> None:
        """Begin to skip the broker entry metadata behind the command of the MESSAGE at `pos`."""
        account = self._consumer(chunk, pos, at, passes=True)
        size = entry_metadata_size(chunk, at, end)
        self._walk = EntryWalk(size, frame_end - at, account.count).feed(chunk, at, end)
        account.bytes += frame_end - pos

    def _acknowledged(self, chunk: bytearray, pos: int, total: int, size: int) -> Account | None:
        """Return the account of the SEND_RECEIPT at `pos`, in any encoding."""
        if total != size + 4:
            raise PeerError(f"a SEND_RECEIPT with {total - size - 4} bytes behind it")
        if size > COMMAND_BOUND:
            _refuse(Kind.SEND_RECEIPT, size)
        return self._producers.get(id_of(chunk, pos + 8, pos + 8 + size))


def _learned(
    layouts: dict[bytes, Account], layout: bytes, account: Account
) -> dict[bytes, Account]:
    """Return the layouts with one more, or that alone where there are too many."""
    if layouts is _UNSEEN or len(layouts) >= MOST_LAYOUTS:
        layouts = {}
    layouts[layout] = account
    return layouts


def _refuse(kind: Kind, size: int) -> NoReturn:
    raise PeerError(f"a {kind.name} with a command of {size} bytes")


def id_of(chunk: bytearray, command: int, end: int) -> int:
    """Return the number in field 1 of the whole command at `chunk[command:end]`, which is the id of
    the command's producer or consumer; -1 if the command has no such field.

    Raises `PeerError` if the command is not canonical.
    """
    body = find_body(chunk, command, end, end)
    if not body:
        raise PeerError("a command that is not its type and the field of that type alone")
    walk = walk_large if end - body > LARGE else walk_fields
    return walk(chunk, body, end, 0x08, -1)[1]
