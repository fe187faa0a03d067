"""Values as brokers write them, made here."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import cramjam

from gateway.pipeline.ledgers._proto import managed_ledger_pb2 as pb
from gateway.pipeline.ledgers.metadata import MAGIC, CursorInfo, LedgerInfo, Position, Range


def flushed(data: bytes) -> bytes:
    """Return zlib's stream as brokers write it: without its end."""
    packing = zlib.compressobj()
    return packing.compress(data) + packing.flush(zlib.Z_SYNC_FLUSH)


COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "NONE": bytes,
    "LZ4": lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    "ZLIB": flushed,
    "ZSTD": lambda data: bytes(cramjam.zstd.compress(data)),
    "SNAPPY": lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


CLOSED = 1_795_500_000_000


def topic_value(*ledgers: LedgerInfo) -> bytes:
    """Return the value of a topic, without compression."""
    value = pb.ManagedLedgerInfo()
    for it in ledgers:
        made = value.ledgerInfo.add(ledgerId=it.id, timestamp=it.closed_ms or 0)
        if it.entries or it.bytes:
            made.entries, made.size = it.entries, it.bytes
        if it.offloaded:
            made.offloadContext.complete = True
    return value.SerializeToString()


def cursor_value(cursor: CursorInfo, ledger: int = -1) -> bytes:
    """Return the value of a cursor, without compression. `ledger`: its own, -1 of a closed one."""
    value = pb.ManagedCursorInfo(cursorsLedgerId=ledger)
    if cursor.mark is not None:
        value.markDeleteLedgerId, value.markDeleteEntryId = cursor.mark
    for after, last in cursor.deleted:
        value.individualDeletedMessages.add(
            lowerEndpoint=pb.NestedPositionInfo(ledgerId=after.ledger, entryId=after.entry),
            upperEndpoint=pb.NestedPositionInfo(ledgerId=last.ledger, entryId=last.entry),
        )
    return value.SerializeToString()


def packed(value: bytes, kind: str, size: int | None = None) -> bytes:
    """Return a value behind the header, compressed. `size`: what it claims to be without."""
    metadata = pb.ManagedLedgerInfoMetadata(
        compressionType=pb.CompressionType.Value(kind),
        uncompressedSize=len(value) if size is None else size,
    ).SerializeToString()
    return MAGIC + len(metadata).to_bytes(4) + metadata + COMPRESSIONS[kind](value)


def closed(id: int, entries: int, bytes: int | None = None, **more: bool) -> LedgerInfo:
    """Return a closed ledger; its entries have 100 bytes each."""
    return LedgerInfo(id, entries, entries * 100 if bytes is None else bytes, CLOSED + id, **more)


def cursor(ledger: int, entry: int, *ranges: tuple[int, int, int]) -> CursorInfo:
    """Return a cursor with ranges of one ledger each: its id, after which entry, up to which."""
    deleted = tuple(Range(Position(id, a), Position(id, b)) for id, a, b in ranges)
    return CursorInfo(Position(ledger, entry), deleted)
