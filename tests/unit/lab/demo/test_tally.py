"""The clients' counts, whatever the order of messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lab.demo import tally
from gateway.lab.demo.tally import ClientCounts, SequenceSet, Tally, number_of, payload

RUN = b"01234567"


def _numbers(added: Iterable[int]) -> SequenceSet:
    numbers = SequenceSet()
    for number in added:
        numbers.add(number)
    return numbers


# -- payloads --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 16, 17, 4000])
def test_a_payload_knows_its_number(size: int) -> None:
    data = payload(RUN, 12, size)
    assert number_of(RUN, data) == 12
    assert len(data) == max(size, 16)


def test_a_foreign_message_has_no_number() -> None:
    assert number_of(RUN, b"hello") is None
    assert number_of(RUN, payload(b"another.", 12, 100)) is None


# -- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_each_number_is_new_once_in_any_order(order: tuple[int, ...]) -> None:
    numbers = SequenceSet()
    assert [numbers.add(number) for number in order] == [True] * 4
    assert [numbers.add(number) for number in order] == [False] * 4
    assert (numbers.count, numbers.below, numbers.ahead) == (4, 4, set())


@given(st.lists(st.integers(0, 50)))
def test_a_sequence_set_counts_like_a_set(added: list[int]) -> None:
    assert _numbers(added).count == len(set(added))


def test_an_old_gap_is_given_up_and_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "AHEAD", 10)
    numbers = _numbers(number for number in range(1000) if number not in (100, 500))
    assert numbers.count == 998
    assert numbers.missing == 2
    assert len(numbers.ahead) <= 10


# -- tallies ---------------------------------------------------------------------------------


def _run(sent: int, received: Iterable[int]) -> Tally:
    found = Tally(RUN)
    found.sent = sent
    for _ in range(sent):
        found.acknowledge(-1, 7)
    for number in received:
        found.receive(payload(RUN, number, 20))
    return found


def test_a_good_run_has_every_message_once() -> None:
    found = _run(3, [0, 2, 1])
    assert found.is_answered
    assert found.is_complete
    assert found.counts() == ClientCounts(3, 3, 0, received=3, distinct=3, foreign=0, moved=False)
    assert (found.counts().lost, found.counts().doubled) == (0, 0)


def test_lost_and_doubled_messages_are_told_apart() -> None:
    counts = _run(4, [0, 1, 1, 1, 3]).counts()
    assert (counts.received, counts.distinct, counts.lost, counts.doubled) == (5, 3, 1, 2)


def test_foreign_messages_are_not_repeats() -> None:
    found = _run(2, [0])
    found.receive(b"hello")
    assert not found.is_complete
    assert (found.counts().foreign, found.counts().doubled, found.counts().lost) == (1, 0, 1)


def test_an_unanswered_send_is_not_complete() -> None:
    found = _run(2, [])
    found.sent += 1
    assert not found.is_answered
    found.failed += 1
    assert found.is_answered


def test_only_a_new_ledger_of_a_partition_is_a_move() -> None:
    found = Tally(RUN)
    found.acknowledge(0, 7)
    found.acknowledge(1, 8)
    found.acknowledge(0, 7)
    assert not found.counts().moved
    found.acknowledge(1, 9)
    assert found.counts().moved
