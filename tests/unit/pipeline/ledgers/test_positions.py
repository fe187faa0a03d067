"""Backlogs and held ledgers, against a model that knows each single entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.ledgers.metadata import (
    CursorInfo,
    LedgerInfo,
    Position,
    Range,
    TopicInfo,
)
from gateway.pipeline.ledgers.positions import Held, Shelf, Unread
from tests.unit.pipeline.ledgers.samples import closed, cursor

FIVES = tuple(closed(id, 5) for id in (4, 5, 6, 7))
TOPIC = TopicInfo((*FIVES, LedgerInfo(10, 0, 0)), 10)


def unread(found: CursorInfo, topic: TopicInfo = TOPIC) -> Unread:
    result = Shelf(topic).unread(found)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("found", "entries", "oldest"),
    [
        (cursor(4, -1), 20, 4),
        (cursor(4, 4), 15, 5),
        (cursor(5, 0, (5, 1, 2), (5, 3, 4), (6, 0, 1), (6, 2, 3), (7, -1, 0)), 9, 5),
        (cursor(4, 3, (4, 3, 4), (5, -1, 4)), 10, 6),
        (cursor(7, 4), 0, None),
        (cursor(10, -1), 0, None),
        (cursor(3, 99), 20, 4),
        (cursor(99, 0), 0, None),
        (cursor(4, 99), 15, 5),
        (cursor(-1, -1), 20, 4),
    ],
    ids=[
        *("nothing read", "a ledger read", "holes", "holes at the begin", "all read"),
        *("at the open ledger", "before all", "behind all", "beyond its ledger", "new"),
    ],
)
def test_a_backlog_is_what_lies_behind_the_position_without_holes(
    found: CursorInfo, entries: int, oldest: int | None
) -> None:
    result = unread(found)
    assert result.entries == entries
    assert (result.oldest and result.oldest.id) == oldest


def test_ranges_that_overlap_or_precede_the_position_count_once() -> None:
    ranges = ((4, -1, 3), (5, 0, 2), (5, 1, 2), (5, 0, 4), (5, 3, 2))
    assert unread(cursor(4, 4, *ranges)).entries == 15 - 4


def test_a_range_may_cross_ledgers() -> None:
    found = CursorInfo(Position(4, 0), (Range(Position(4, 2), Position(6, 1)),))
    assert unread(found).entries == 19 - 2 - 5 - 2


def test_entries_of_an_open_ledger_count_where_they_are_known() -> None:
    topic = TopicInfo((*FIVES, LedgerInfo(10, 3, 300)), 10, open_known=True)
    assert unread(cursor(10, 0), topic) == Unread(2, topic.ledgers[-1])


def test_without_a_position_nothing_is_known() -> None:
    shelf = Shelf(TOPIC)
    assert shelf.unread(CursorInfo(None)) is None
    assert shelf.held([cursor(4, 1), CursorInfo(None)]) is None


@pytest.mark.parametrize(
    ("cursors", "held"),
    [
        ([], []),
        ([cursor(4, -1)], [(4, 2000)]),
        ([cursor(4, -1), cursor(6, 1)], [(2, 1000), (0, 0)]),
        ([cursor(6, 1), cursor(4, -1), cursor(5, 0)], [(0, 0), (1, 500), (0, 0)]),
        ([cursor(4, -1), cursor(4, 3)], [(0, 0), (0, 0)]),
        ([cursor(4, -1), cursor(4, 4)], [(1, 500), (0, 0)]),
        ([cursor(4, -1), cursor(7, 4)], [(4, 2000), (0, 0)]),
        ([cursor(7, 4)], [(0, 0)]),
        ([cursor(3, 7), cursor(10, -1)], [(4, 2000), (0, 0)]),
        ([cursor(99, 7), cursor(10, -1)], [(0, 0), (0, 0)]),
        ([cursor(4, -1)._replace(transient=True), cursor(6, 1)], [(0, 0), (2, 1000)]),
        ([cursor(4, -1)._replace(transient=True)], [(0, 0)]),
    ],
    ids=[
        *("none", "one", "an abandoned one", "of three", "two in one ledger"),
        *("a ledger that was read to its end", "all read but one", "all read"),
        *("gone ledgers", "ledgers to come", "a reader", "a reader alone"),
    ],
)
def test_the_slowest_subscription_holds_what_no_other_needs(
    cursors: list[CursorInfo], held: list[tuple[int, int]]
) -> None:
    assert Shelf(TOPIC).held(cursors) == [Held(*it) for it in held]


# -- a model --------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(0, 6), max_size=6)
POSITIONS = st.builds(Position, st.integers(-1, 14), st.integers(-1, 8))
CURSORS = st.builds(
    CursorInfo, POSITIONS, st.lists(st.builds(Range, POSITIONS, POSITIONS), max_size=6).map(tuple)
)


def topic_of_sizes(sizes: list[int], *, is_open: bool) -> TopicInfo:
    ledgers = tuple(closed(2 * at, size) for at, size in enumerate(sizes))
    return TopicInfo(ledgers, ledgers[-1].id if is_open and ledgers else None, open_known=True)


@given(SIZES, CURSORS)
def test_a_backlog_is_what_a_set_of_entries_says(sizes: list[int], found: CursorInfo) -> None:
    topic = topic_of_sizes(sizes, is_open=False)
    assert found.mark is not None
    left = {
        Position(it.id, entry)
        for it in topic.ledgers
        for entry in range(it.entries)
        if Position(it.id, entry) > found.mark
        and not any(after < Position(it.id, entry) <= last for after, last in found.deleted)
    }
    result = unread(found, topic)
    assert result.entries == len(left)
    assert (result.oldest and result.oldest.id) == (min(left).ledger if left else None)


def kept(topic: TopicInfo, cursors: list[CursorInfo]) -> set[int]:
    """Return the ledgers that stay, by asking each ledger whether any subscription needs it, or one
    before it."""
    stays, needed = set(), False
    for it in topic.ledgers:
        last = Position(it.id, it.entries - 1)
        is_open = it.id == topic.open_ledger
        needed = needed or any(
            found.mark is not None
            and (found.mark.ledger <= it.id if is_open else found.mark < last)
            for found in cursors
        )
        if needed or is_open:
            stays.add(it.id)
    return stays


@given(SIZES.filter(all), st.lists(CURSORS, max_size=4), st.booleans())
def test_what_is_held_is_the_difference_that_a_subscription_makes(
    sizes: list[int], cursors: list[CursorInfo], is_open: bool
) -> None:
    topic = topic_of_sizes(sizes, is_open=is_open)
    held = Shelf(topic).held(cursors)
    assert held is not None
    for at, found in enumerate(held):
        without = kept(topic, cursors[:at] + cursors[at + 1 :])
        freed = kept(topic, cursors) - without
        assert found == Held(len(freed), sum(it.bytes for it in topic.ledgers if it.id in freed))
