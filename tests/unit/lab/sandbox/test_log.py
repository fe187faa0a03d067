"""A topic's log by offset and position; a cursor in it, compared with a simple model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.lab.sandbox.cursor import Cursor
from gateway.lab.sandbox.log import Log, Position
from gateway.lab.sandbox.record import Record
from tests.support.examples import examples

EARLIEST, LATEST = Position(-1, -1), Position((1 << 63) - 1, (1 << 63) - 1)


def record(published: int = 0) -> Record:
    return Record(b"content", 1, False, published, b"key")


def log_of(*ledgers: int, first: int = 5) -> Log:
    """Return a log with so many entries in each ledger, whose ids are ten apart."""
    log = Log(first)
    for number, count in enumerate(ledgers):
        if number:
            log.begin_ledger(first + 10 * number)
        for _ in range(count):
            log.append(record())
    return log


def test_positions_and_offsets_are_one_to_one() -> None:
    log = log_of(2, 3, 1)
    positions = [log.position(offset) for offset in range(6)]
    assert positions == [(5, 0), (5, 1), (15, 0), (15, 1), (15, 2), (25, 0)]
    assert [log.offset(position) for position in positions] == list(range(6))
    assert [log.find(position) for position in positions] == list(range(6))


def test_a_missing_position_means_the_next_entry() -> None:
    log = log_of(2, 3)
    asked = [EARLIEST, Position(5, -1), Position(5, 9), Position(9, 0), Position(15, 9), LATEST]
    assert [log.offset(position) for position in asked] == [0, 0, 2, 2, 5, 5]
    assert [log.find(position) for position in asked] == [None] * 6


def test_an_empty_ledger_leaves_no_trace() -> None:
    log = log_of(0, 0, 1)
    assert log.position(0) == (25, 0)
    assert log.offset(Position(5, 0)) == 0


def test_evicted_entries_are_not_found() -> None:
    log = log_of(2, 2)
    for _ in range(3):
        log.evict_oldest()
    log.begin_ledger(99)
    assert len(log) == 1
    assert log.find(Position(5, 1)) is None
    assert log.offset(Position(5, 1)) == log.offset(EARLIEST) == 3
    assert log.position(2).entry <= 0


def test_an_entry_is_found_by_its_publish_time() -> None:
    log = Log(1)
    for published in (10, 20, 20, 30):
        log.append(record(published))
    assert [log.since(at) for at in (0, 10, 11, 20, 21, 31)] == [0, 0, 1, 1, 3, 4]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "take", "return", "one", "before", "forget", "reset"]),
        st.integers(0, 30),
    ),
    max_size=60,
)


@given(STEPS)
@examples(300)
def test_a_cursor_delivers_each_unacknowledged_entry_once(steps: list[tuple[str, int]]) -> None:
    log, done = Log(1), set[int]()
    cursor, out = Cursor(log, 0), set[int]()
    for step, number in steps:
        if step == "append":
            log.append(record())
        elif step == "take":
            waiting = set(range(log.first, log.end)) - done - out
            taken = cursor.take()
            assert taken == min(waiting, default=None)
            out |= {taken} if taken is not None else set()
        elif step == "return" and number in out and number not in done:
            out.remove(number)
            cursor.redeliver(number)
        elif step == "one" and number < log.end:
            cursor.acknowledge(number)
            done.add(number)
        elif step == "before" and number <= log.end:
            cursor.acknowledge_before(number)
            done |= set(range(number))
        elif step == "forget" and len(log):
            log.evict_oldest()
            cursor.trim()
            done |= set(range(log.first))
        elif step == "reset" and log.first <= number <= log.end:
            cursor.reset(number)
            done, out = set(range(number)), set()
        assert cursor.backlog == log.end - len(done)
