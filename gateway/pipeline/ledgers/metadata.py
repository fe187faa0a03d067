"""Decodes what a metadata store holds about a topic: its ledgers, and its cursors.

A value is a protobuf, `ManagedLedgerInfo` of a topic and `ManagedCursorInfo` of a cursor
(proto/managed_ledger.proto), or the same compressed behind a header:

    0x4778   size of the metadata   metadata               compressed protobuf
    2 bytes  4 bytes, big endian    Managed…InfoMetadata   the rest

The metadata names the compression and the size without it. LZ4 and SNAPPY are blocks without a
frame, ZSTD is a frame, ZLIB has zlib's header and is flushed without an end. A plain value cannot
begin with these two bytes: 0x47 would be a field of wire type 7, which protobuf does not have.
Brokers compress only what is larger than a threshold, so both forms stand side by side. (Layout:
MetaStoreImpl of Pulsar 4; the rest as seen of 4.2.4.)

Values come from outside. One that cannot be decoded, or is larger than the bounds here, becomes a
`Refusal`; nothing is raised.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import cramjam
from google.protobuf.message import DecodeError

from gateway.pipeline.ledgers._proto import managed_ledger_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.message import Message

MAGIC = b"\x47\x78"
"""The first bytes of a compressed value."""

_HEADER = len(MAGIC) + 4

LARGEST = 64 << 20
"""Bytes of a value without its compression. Brokers let ZooKeeper take 10 MB of one value at most
(`jute.maxbuffer`), and these values shrink to a third; beyond 64 MB a size is a lie."""

MOST = 1_000_000
"""Ledgers of a topic, and ranges of a cursor. An object takes some 100 bytes here, the smallest
message on the wire four: without this bound 64 MB could become several GB."""

LARGEST_NUMBER = (1 << 63) - 1
"""Of sums too: brokers, and what reads the records, count in signed 64 bits."""

_Message = TypeVar("_Message", bound="Message")


class Refusal(NamedTuple):
    """Why a value could not be used, for a person."""

    text: str


class Position(NamedTuple):
    """An entry of a ledger. `entry` is -1 before the first one."""

    ledger: int
    entry: int


class Range(NamedTuple):
    """Entries after `after`, up to and with `last`."""

    after: Position
    last: Position


class LedgerInfo(NamedTuple):
    """One ledger of a topic. `closed_ms`: since 1970 UTC; None: not known, or it is open.
    `offloaded`: long-term storage has all of it."""

    id: int
    entries: int
    bytes: int
    closed_ms: int | None = None
    offloaded: bool = False


class TopicInfo(NamedTuple):
    """The ledgers of a topic, oldest first. `open_ledger`: the last one, if nobody has noted its
    end: it is written, or the topic was not loaded or was terminated since; None: there is none.
    `open_known`: its entries and bytes are those of now."""

    ledgers: tuple[LedgerInfo, ...]
    open_ledger: int | None = None
    open_known: bool = False


class CursorInfo(NamedTuple):
    """The position of a subscription. `mark`: all entries up to it are acknowledged; None: not
    known. `deleted`: what was acknowledged beyond it. `lagging`: the position is older than now,
    because the cursor is open and keeps it in a ledger of its own: the value has it as it was when
    that ledger was begun, without ranges. `transient`: it ends with its consumer, as those of
    readers do; no ledger is kept for it."""

    mark: Position | None
    deleted: tuple[Range, ...] = ()
    lagging: bool = False
    transient: bool = False


def topic_of(value: bytes) -> TopicInfo | Refusal:
    """Return the ledgers of a topic from its value. An empty value is a topic without ledgers."""
    found = _decoded(value, pb.ManagedLedgerInfo, pb.ManagedLedgerInfoMetadata)
    if isinstance(found, Refusal):
        return found
    if len(found.ledgerInfo) > MOST:
        return Refusal(f"{len(found.ledgerInfo)} ledgers: more than {MOST}")
    ledgers = tuple(map(_ledger, found.ledgerInfo))
    open_ledger = _open_ledger(ledgers)
    # Entries and bytes are noted when the next ledger is begun, or when the topic is loaded.
    return checked(TopicInfo(ledgers, open_ledger, open_known=False))


def cursor_of(value: bytes) -> CursorInfo | Refusal:
    """Return the position of a cursor from its value."""
    found = _decoded(value, pb.ManagedCursorInfo, pb.ManagedCursorInfoMetadata)
    if isinstance(found, Refusal):
        return found
    if len(found.individualDeletedMessages) > MOST:
        return Refusal(f"{len(found.individualDeletedMessages)} ranges: more than {MOST}")
    has_mark = found.HasField("markDeleteLedgerId") and found.HasField("markDeleteEntryId")
    return CursorInfo(
        Position(found.markDeleteLedgerId, found.markDeleteEntryId) if has_mark else None,
        tuple(map(_range, found.individualDeletedMessages)),
        lagging=found.cursorsLedgerId >= 0,
    )


def checked(topic: TopicInfo) -> TopicInfo | Refusal:
    """Return the topic; a refusal if its ledgers are not what a broker writes."""
    ledgers = topic.ledgers
    if any(min(it.id, it.entries, it.bytes, it.closed_ms or 0) < 0 for it in ledgers):
        return Refusal("a ledger with a negative number")
    if any(one.id >= other.id for one, other in pairwise(ledgers)):
        return Refusal("ledgers that are not in order")
    sums = sum(it.bytes for it in ledgers), sum(it.entries for it in ledgers)
    if max(sums) > LARGEST_NUMBER:
        return Refusal("ledgers with more bytes or entries than 64 bits count")
    return topic


def _ledger(info: pb.ManagedLedgerInfo.LedgerInfo) -> LedgerInfo:
    offloaded = info.offloadContext.complete
    return LedgerInfo(info.ledgerId, info.entries, info.size, info.timestamp or None, offloaded)


def _open_ledger(ledgers: tuple[LedgerInfo, ...]) -> int | None:
    """Return the last ledger, unless something says that it was closed."""
    if not ledgers:
        return None
    last = ledgers[-1]
    is_open = last.closed_ms is None and not last.entries and not last.bytes
    return last.id if is_open else None


def _range(found: pb.MessageRange) -> Range:
    lower, upper = found.lowerEndpoint, found.upperEndpoint
    return Range(Position(lower.ledgerId, lower.entryId), Position(upper.ledgerId, upper.entryId))


# -- the value -----------------------------------------------------------------------------------


def _decoded(
    value: bytes,
    kind: type[_Message],
    metadata: type[pb.ManagedLedgerInfoMetadata | pb.ManagedCursorInfoMetadata],
) -> _Message | Refusal:
    if len(value) > LARGEST:
        return Refusal(f"{len(value)} bytes: more than {LARGEST}")
    plain = _unpacked(value, metadata) if value.startswith(MAGIC) else value
    if isinstance(plain, Refusal):
        return plain
    found = _parsed(plain, kind)
    return Refusal(f"no {kind.DESCRIPTOR.name}: {_begin(value)}") if found is None else found


def _parsed(data: bytes, kind: type[_Message]) -> _Message | None:
    """Return the message; None: these bytes are none, or one without what it must have."""
    try:
        found = kind.FromString(data)
    except (DecodeError, UnicodeDecodeError):
        return None
    return found if found.IsInitialized() else None


def _unpacked(
    value: bytes, kind: type[pb.ManagedLedgerInfoMetadata | pb.ManagedCursorInfoMetadata]
) -> bytes | Refusal:
    """Return the protobuf of a compressed value."""
    end = _HEADER + int.from_bytes(value[len(MAGIC) : _HEADER])
    if not _HEADER < end <= len(value):
        return Refusal(f"a compressed value that is torn in its header: {_begin(value)}")
    metadata = _parsed(value[_HEADER:end], kind)
    if metadata is None:
        return Refusal(f"a compressed value that names no compression known here: {_begin(value)}")
    size = metadata.uncompressedSize
    if not 0 <= size <= LARGEST:
        return Refusal(f"a compressed value that claims {size} bytes: more than {LARGEST}")
    packed = memoryview(value)[end:]
    name = pb.CompressionType.Name(metadata.compressionType)
    found = _expanded(name, packed, size)
    if found is None or len(found) != size:
        return Refusal(f"{len(packed)} bytes that are no {size} bytes under {name}")
    return found


def _expanded(name: str, packed: memoryview, size: int) -> bytes | None:
    """Return what was compressed; None: it was not, or has more bytes than it claims."""
    if name == "NONE":
        return bytes(packed)
    if name == "ZLIB":
        return _inflated(packed, size)
    # Some of these take no empty buffer.
    room = bytearray(size or 1)
    try:
        written = _INTO[name](packed, room)
    except cramjam.DecompressionError:
        return None
    return bytes(memoryview(room)[:written])


def _inflated(packed: memoryview, size: int) -> bytes | None:
    """Return what was deflated, with a byte more than `size` if there is more. Brokers flush the
    stream and do not end it, so that its size alone tells that it is whole."""
    try:
        return zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error:
        return None


def _lz4(packed: memoryview, room: bytearray) -> int:
    return cramjam.lz4.decompress_block_into(packed, room)


def _zstd(packed: memoryview, room: bytearray) -> int:
    return cramjam.zstd.decompress_into(packed, room)


def _snappy(packed: memoryview, room: bytearray) -> int:
    return cramjam.snappy.decompress_raw_into(packed, room)


_INTO: Mapping[str, Callable[[memoryview, bytearray], int]] = {
    "LZ4": _lz4,
    "ZSTD": _zstd,
    "SNAPPY": _snappy,
}
"""Each writes into room of a fixed size, and so bounds what it makes of a lie."""


def _begin(value: bytes) -> str:
    """Return the first bytes of a value, for a person who looks for it."""
    return f"{len(value)} bytes that begin with {value[:16].hex() or 'nothing'}"
