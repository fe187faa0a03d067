"""The records of a snapshot: what a cluster stores of one topic, and who still has to read it.

The sources (`zookeeper`, `admin`) yield `Seen`, and `record_of` makes a record of it: a pure
function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from gateway.pipeline.ledgers.metadata import (
    CursorInfo,
    LedgerInfo,
    Refusal,
    TopicInfo,
)
from gateway.pipeline.ledgers.positions import Held, Shelf
from gateway.protocols import DEFAULT, PLUGINS

VERSION = 1
"""Of the schema."""

Count = Annotated[int, Meta(ge=0)]
Source = Literal["zookeeper", "admin"]


class Ledger(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One ledger. Entries and bytes of an open ledger may be unknown, and are 0 then."""

    id: int
    entries: Count = 0
    bytes: Count = 0
    closed_ms: Annotated[
        int | None, Meta(description="When the ledger was closed, in milliseconds since 1970 UTC.")
    ] = None
    offloaded: Annotated[bool, Meta(description="Long-term storage has the whole ledger.")] = False


class Cursor(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One subscription."""

    subscription: str
    mark_ledger: Annotated[
        int | None, Meta(description="Ledger of the position up to which all is acknowledged.")
    ] = None
    mark_entry: Annotated[
        int | None, Meta(description="Number of the position's entry in mark_ledger.")
    ] = None
    lagging: Annotated[
        bool,
        Meta(description="The position may be older than the snapshot, as the cursor is open."),
    ] = False
    transient: Annotated[
        bool,
        Meta(
            description="The subscription ends with its consumer, as those of readers do, and "
            "keeps no ledger."
        ),
    ] = False
    backlog_entries: Annotated[
        int | None, Meta(description="Entries that are not acknowledged, as far as is known.")
    ] = None
    backlog_known: Annotated[
        bool,
        Meta(description="The position and the entries of all ledgers are exact at the snapshot."),
    ] = False
    deleted_ranges: Annotated[
        int,
        Meta(ge=0, description="Number of ranges of entries acknowledged beyond the position."),
    ] = 0
    oldest_ledger: Annotated[
        int | None,
        Meta(
            description="Ledger of the oldest entry that is not acknowledged. Null: there is none, "
            "or that is not known."
        ),
    ] = None
    oldest_unread_ms: Annotated[
        int | None,
        Meta(
            description="Milliseconds since the ledger of the oldest entry that is not "
            "acknowledged was closed: the entry is at least so old. Null: there is none, or that "
            "is not known."
        ),
    ] = None
    holds_ledgers: Annotated[
        int | None,
        Meta(
            description="Ledgers that this subscription alone keeps from being deleted. Null: not "
            "known."
        ),
    ] = None
    holds_bytes: Annotated[
        int | None, Meta(description="Bytes of the ledgers that holds_ledgers counts.")
    ] = None
    refused: Annotated[str | None, Meta(description="Why the position could not be read.")] = None


class Snapshot(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is stored of one topic, or of one partition. Fields that are left out are null, 0, false
    or empty."""

    v: Annotated[int, Meta(description="Version of the schema.")]
    snap_ms: Annotated[
        int,
        Meta(
            description="Begin of the snapshot, in milliseconds since 1970 UTC; the same for all "
            "its topics."
        ),
    ]
    cluster: str
    source: Source
    tenant: str | None = None
    namespace: Annotated[str | None, Meta(description="With its tenant: acme/web.")] = None
    topic: Annotated[str, Meta(description="Whole name, without the number of a partition.")]
    partition: Annotated[str | None, Meta(description="Whole name with that number.")] = None
    ledgers: Annotated[list[Ledger], Meta(description="Oldest first.")] = []
    open_ledger: Annotated[
        int | None,
        Meta(
            description="Id of the last ledger, if the metadata do not have its end: the ledger is "
            "open, or the topic was not loaded after the ledger's end, or was terminated."
        ),
    ] = None
    open_known: Annotated[
        bool, Meta(description="The entries and bytes of the open ledger are known.")
    ] = False
    stored_bytes: Annotated[int, Meta(ge=0, description="Bytes of all ledgers.")] = 0
    stored_entries: Annotated[int, Meta(ge=0, description="Entries of all ledgers.")] = 0
    offloaded_bytes: Annotated[
        int, Meta(ge=0, description="The part of stored_bytes that long-term storage has.")
    ] = 0
    cursors: list[Cursor] = []
    refused: Annotated[str | None, Meta(description="Why the ledgers could not be read.")] = None


class Seen(NamedTuple):
    """One topic as a source saw it, by its whole name, with that of a partition."""

    name: str
    topic: TopicInfo | Refusal
    cursors: tuple[tuple[str, CursorInfo | Refusal], ...] = ()


@dataclass(slots=True)
class Walked:
    """Counts of one walk over a cluster. `vanished`: topics, cursors and namespaces that were
    listed and gone when they were read."""

    vanished: int = 0


class Taken(NamedTuple):
    """Of which snapshot a record is."""

    snap_ms: int
    cluster: str
    source: Source


def record_of(seen: Seen, taken: Taken) -> Snapshot:
    """Return the record of a topic."""
    name = PLUGINS[DEFAULT].read_topic(seen.name)
    topic = seen.topic
    if name is None and not isinstance(topic, Refusal):
        topic = Refusal("the name is not that of a topic")
    record = Snapshot(
        v=VERSION,
        snap_ms=taken.snap_ms,
        cluster=taken.cluster,
        source=taken.source,
        tenant=None if name is None else name.tenant,
        namespace=None if name is None else name.namespace,
        topic=seen.name if name is None else name.whole,
        partition=None if name is None else name.partition,
    )
    if isinstance(topic, Refusal):
        record.refused = topic.text
        record.cursors = [_position(*it) for it in seen.cursors]
    else:
        _fill(record, topic, seen.cursors)
    return record


def refusals(record: Snapshot) -> int:
    """Return how many values of a record could not be read."""
    return (record.refused is not None) + sum(it.refused is not None for it in record.cursors)


def schema() -> dict[str, object]:
    """Return the JSON Schema of the records."""
    (found,), components = msgspec.json.schema_components([Snapshot])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Snapshots of what a cluster stores, version {VERSION}",
        **found,
        "$defs": components,
    }


def _fill(
    record: Snapshot, topic: TopicInfo, cursors: tuple[tuple[str, CursorInfo | Refusal], ...]
) -> None:
    record.ledgers = [_ledger(it) for it in topic.ledgers]
    record.open_ledger, record.open_known = topic.open_ledger, topic.open_known
    record.stored_bytes = sum(it.bytes for it in topic.ledgers)
    record.stored_entries = sum(it.entries for it in topic.ledgers)
    record.offloaded_bytes = sum(it.bytes for it in topic.ledgers if it.offloaded)
    shelf = Shelf(topic)
    held = _held(shelf, [cursor for _, cursor in cursors])
    is_whole = topic.open_ledger is None or topic.open_known
    for (name, cursor), holds in zip(cursors, held, strict=True):
        made = _position(name, cursor)
        if holds is not None:
            made.holds_ledgers, made.holds_bytes = holds
        if isinstance(cursor, CursorInfo) and (unread := shelf.unread(cursor)) is not None:
            made.backlog_entries = unread.entries
            made.backlog_known = is_whole and not cursor.lagging
            made.oldest_ledger = None if unread.oldest is None else unread.oldest.id
            made.oldest_unread_ms = _age(unread.oldest, record.snap_ms)
        record.cursors.append(made)


def _held(shelf: Shelf, cursors: list[CursorInfo | Refusal]) -> list[Held] | list[None]:
    """Return what each cursor holds. One that could not be read may need any ledger."""
    known = [it for it in cursors if isinstance(it, CursorInfo)]
    held = shelf.held(known) if len(known) == len(cursors) else None
    return [None] * len(cursors) if held is None else held


def _position(name: str, cursor: CursorInfo | Refusal) -> Cursor:
    if isinstance(cursor, Refusal):
        return Cursor(subscription=name, refused=cursor.text)
    return Cursor(
        subscription=name,
        mark_ledger=None if cursor.mark is None else cursor.mark.ledger,
        mark_entry=None if cursor.mark is None else cursor.mark.entry,
        lagging=cursor.lagging,
        transient=cursor.transient,
        deleted_ranges=len(cursor.deleted),
    )


def _ledger(it: LedgerInfo) -> Ledger:
    return Ledger(
        id=it.id,
        entries=it.entries,
        bytes=it.bytes,
        closed_ms=it.closed_ms,
        offloaded=it.offloaded,
    )


def _age(ledger: LedgerInfo | None, now_ms: int) -> int | None:
    if ledger is None or ledger.closed_ms is None:
        return None
    return max(0, now_ms - ledger.closed_ms)
