"""Records of topics."""

from __future__ import annotations

import msgspec

from gateway.pipeline.ledgers.metadata import CursorInfo, LedgerInfo, Refusal, TopicInfo
from gateway.pipeline.ledgers.snapshot import (
    Seen,
    Snapshot,
    Taken,
    record_of,
    refusals,
    schema,
)
from tests.unit.pipeline.ledgers.samples import CLOSED, closed, cursor

TAKEN = Taken(CLOSED + 60_000, "main", "zookeeper")
LEDGERS = (closed(4, 5, offloaded=True), closed(5, 5), LedgerInfo(10, 0, 0))
TOPIC = TopicInfo(LEDGERS, 10)
WHOLE = TopicInfo(LEDGERS[:-1])
NAME = "persistent://acme/web/clicks"


def record(
    topic: TopicInfo | Refusal = WHOLE,
    *cursors: CursorInfo | Refusal,
    name: str = NAME,
) -> Snapshot:
    named = tuple((f"s{at}", it) for at, it in enumerate(cursors))
    return record_of(Seen(name, topic, named), TAKEN)


def test_a_record_names_its_topic_and_snapshot() -> None:
    made = record()
    assert (made.tenant, made.namespace, made.topic, made.partition) == (
        *("acme", "acme/web"),
        *(NAME, None),
    )
    assert (made.snap_ms, made.cluster, made.source) == TAKEN


def test_a_partition_has_both_names() -> None:
    made = record(name=f"{NAME}-partition-3")
    assert (made.topic, made.partition) == (NAME, f"{NAME}-partition-3")


def test_ledgers_are_summed_up() -> None:
    made = record(TOPIC)
    assert (made.stored_bytes, made.stored_entries, made.offloaded_bytes) == (1000, 10, 500)
    assert [it.id for it in made.ledgers] == [4, 5, 10]
    assert (made.open_ledger, made.open_known) == (10, False)


def test_a_subscription_has_its_backlog_its_age_and_what_it_holds() -> None:
    made = record(WHOLE, cursor(4, 1, (4, 2, 3)), cursor(5, 4)).cursors[0]
    assert (made.subscription, made.mark_ledger, made.mark_entry) == ("s0", 4, 1)
    assert (made.backlog_entries, made.backlog_known, made.deleted_ranges) == (7, True, 1)
    assert made.oldest_unread_ms == 60_000 - 4
    assert (made.holds_ledgers, made.holds_bytes) == (2, 1000)


def test_a_backlog_is_known_only_with_the_position_and_all_ledgers() -> None:
    now, old = cursor(4, 1), cursor(4, 1)._replace(lagging=True)
    cases = [(WHOLE, now), (WHOLE, old), (TOPIC, now), (TOPIC._replace(open_known=True), now)]
    made = [record(topic, it).cursors[0] for topic, it in cases]
    assert [it.backlog_known for it in made] == [True, False, False, True]
    assert [it.lagging for it in made] == [False, True, False, False]
    assert {it.backlog_entries for it in made} == {8}


def test_an_age_is_unknown_where_nothing_is_unread_or_its_ledger_is_open() -> None:
    written = TopicInfo((*LEDGERS[:2], LedgerInfo(10, 3, 300)), 10, open_known=True)
    made = record(written, cursor(5, 4), cursor(10, 2))
    assert [it.backlog_entries for it in made.cursors] == [3, 0]
    assert [it.oldest_unread_ms for it in made.cursors] == [None, None]


def test_an_age_is_never_negative() -> None:
    ledger = closed(4, 5)._replace(closed_ms=TAKEN.snap_ms + 5)
    assert record(TopicInfo((ledger,)), cursor(4, 0)).cursors[0].oldest_unread_ms == 0


def test_what_a_refused_cursor_holds_is_unknown_and_so_is_what_others_hold() -> None:
    made = record(WHOLE, cursor(4, 1), Refusal("torn"))
    assert [it.refused for it in made.cursors] == [None, "torn"]
    assert [it.holds_bytes for it in made.cursors] == [None, None]
    assert [it.backlog_entries for it in made.cursors] == [8, None]
    assert refusals(made) == 1


def test_a_refused_topic_keeps_its_positions() -> None:
    made = record(Refusal("torn"), cursor(4, 1), Refusal("torn too"))
    assert (made.refused, made.stored_bytes, made.ledgers) == ("torn", 0, [])
    assert (made.cursors[0].mark_ledger, made.cursors[0].backlog_known) == (4, False)
    assert refusals(made) == 2


def test_a_name_of_no_topic_is_refused_and_kept() -> None:
    made = record(name="persistent://acme/web//")
    assert (made.topic, made.tenant) == ("persistent://acme/web//", None)
    assert made.refused == "the name is not that of a topic"


def test_records_are_read_as_they_were_written() -> None:
    made = record(TOPIC, cursor(4, 1), Refusal("torn"))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Snapshot) == made


def test_the_schema_describes_the_records() -> None:
    definitions = schema()["$defs"]
    assert isinstance(definitions, dict)
    assert set(definitions) == {"Snapshot", "Ledger", "Cursor"}
    assert set(definitions["Cursor"]["properties"]) == set(fields_of_cursors())


def fields_of_cursors() -> tuple[str, ...]:
    return type(record(WHOLE, cursor(4, 1)).cursors[0]).__struct_fields__
