"""Frames that wait for their account's allowance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.plane.hold import LEAST, Ages, HeldFrames
from gateway.plane.memory import Memory
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of

BOUND = 2 * LEAST
"""The bound of one queue alone."""


@pytest.fixture
def memory() -> Memory:
    return Memory(1024, 1 << 20, 2 * BOUND)


@pytest.fixture
def held(memory: Memory) -> HeldFrames:
    return HeldFrames(memory)


def producing() -> Account:
    return Account(Action.PRODUCE, subject_of("topic"))


@pytest.fixture
def account() -> Account:
    return producing()


def taken(held: HeldFrames, account: Account) -> Iterator[bytes]:
    """Take all frames that may pass."""
    while (frames := held.first(account)) is not None:
        held.passed(account, len(frames))
        yield bytes(frames)


def test_holding_a_frame_removes_the_allowance(held: HeldFrames, account: Account) -> None:
    held.put(account, b"one", 0.0)
    assert account in held
    assert account.held
    assert account.queued == 3
    assert held.first(account) is None


def test_frames_pass_in_order(held: HeldFrames, account: Account) -> None:
    for frame in (b"one", b"two", b"three"):
        held.put(account, frame, 0.0)
    account.grant()
    assert list(taken(held, account)) == [b"one", b"two", b"three"]
    assert account not in held
    assert account.queued == 0


def test_the_rest_of_an_entry_stays_first(held: HeldFrames, account: Account) -> None:
    held.put(account, b"onetwo", 1.0)
    held.put(account, b"three", 2.0)
    account.grant()
    held.passed(account, 3)
    assert held.since(account) == 1.0
    assert list(taken(held, account)) == [b"two", b"three"]


def test_the_rest_of_an_entry_is_not_copied(held: HeldFrames, account: Account) -> None:
    """A run of thousands of frames may pass frame by frame."""
    held.put(account, b"frame" * 1000, 0.0)
    account.grant()
    first = held.first(account)
    assert first is not None
    for _ in range(999):
        held.passed(account, 5)
        assert held.first(account) is first
    assert bytes(first) == b"frame"


def test_held_frames_are_counted_until_they_go(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    held.put(account, b"12345", 0.0)
    held.put(account, b"678", 0.0)
    assert memory.used == memory.held == held.size == account.queued == 8
    account.grant()
    held.passed(account, 5)
    assert memory.used == memory.held == held.size == account.queued == 3
    held.discard(account)
    assert memory.used == memory.held == held.size == account.queued == 0


def test_discarding_one_account_leaves_the_others(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    other = producing()
    held.put(account, b"12345", 0.0)
    held.put(other, b"678", 0.0)
    held.discard(account)
    held.discard(account)
    other.grant()
    assert held.first(account) is None
    assert list(taken(held, other)) == [b"678"]
    assert memory.used == 0


def test_clearing_leaves_nothing(held: HeldFrames, account: Account, memory: Memory) -> None:
    held.put(account, b"12345", 0.0)
    held.put(producing(), b"678", 0.0)
    assert len(held.clear()) == 2
    assert account not in held
    assert memory.used == memory.held == 0


def test_the_oldest_frame_has_an_age(held: HeldFrames, account: Account) -> None:
    assert held.since(account) is None
    held.put(account, b"one", 7.0)
    held.put(account, b"two", 8.0)
    assert held.since(account) == 7.0
    account.grant()
    held.passed(account, 3)
    assert held.since(account) == 8.0


# -- bounds ------------------------------------------------------------------------------------


def test_frames_behind_a_full_queue_are_discarded_until_it_is_spent(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    kept, small = b"a" * BOUND, b"b"
    held.put(account, kept, 0.0)
    held.put(account, small, 1.0)
    assert held.size == memory.held == BOUND
    account.grant()
    held.passed(account, BOUND - 1)
    held.put(account, small, 2.0)  # there is room again, but an earlier frame is missing
    assert held.size == 1
    assert not held.is_spent(account)
    account.grant()
    held.passed(account, 1)
    assert held.is_spent(account)
    assert account in held
    held.discard(account)
    assert account not in held


def test_a_first_frame_of_any_size_waits(held: HeldFrames, account: Account) -> None:
    held.put(account, b"a" * (BOUND + 1), 0.0)
    assert held.size == BOUND + 1


def test_each_account_may_queue_a_little_above_the_bound(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    memory.hold(memory.held_bound)
    held.put(account, b"a" * LEAST, 0.0)
    held.put(account, b"b", 1.0)
    account.grant()
    assert list(taken(held, account)) == [b"a" * LEAST]
    assert held.is_spent(account)


def test_thousands_of_accounts_stay_within_the_upper_bound(memory: Memory) -> None:
    """A client may open thousands of producers; their waiting frames must not stop everybody."""
    held = HeldFrames(memory)
    accounts = [producing() for _ in range(1000)]
    for account in accounts:
        held.put(account, b"a" * LEAST, 0.0)
    assert memory.held <= memory.held_most < memory.bound
    assert held.is_spent(accounts[-1])  # its next grant has the client send it again
    held.clear()
    assert memory.used == 0


def test_two_queues_get_a_third_each(held: HeldFrames, memory: Memory) -> None:
    accounts = [producing(), producing()]
    for _ in range(2 * BOUND // 1024):
        for account in accounts:
            held.put(account, bytes(1024), 0.0)
    third = 2 * BOUND / 3
    assert all(abs(account.queued - third) <= 1024 for account in accounts)


# -- when what waits came first ---------------------------------------------------------------


def test_an_empty_queue_has_no_age() -> None:
    ages = Ages()
    assert ages.first is None
    ages.put(10, 1.0)
    ages.passed(10)
    assert ages.first is None


def test_the_age_is_that_of_the_oldest_remaining_bytes() -> None:
    ages = Ages()
    ages.put(10, 1.0)
    ages.put(10, 2.0)
    ages.passed(9)
    assert ages.first == 1.0
    ages.passed(1)
    assert ages.first == 2.0
    ages.passed(100)
    assert ages.first is None


def test_bytes_sent_again_keep_their_age() -> None:
    before = Ages()
    before.put(10, 1.0)
    before.put(20, 5.0)
    before.passed(4)
    again = Ages(before.rest())
    again.put(10, 21.0)
    assert again.first == 1.0
    again.passed(6)
    assert again.first == 5.0
    again.put(20, 21.0)
    again.passed(20)
    assert again.first == 21.0, "four bytes more than had been thrown away"


def test_bytes_not_yet_sent_again_keep_their_age() -> None:
    before = Ages()
    before.put(10, 1.0)
    before.put(10, 5.0)
    again = Ages(before.rest())
    again.put(12, 21.0)
    once_more = Ages(again.rest())
    once_more.put(20, 41.0)
    assert once_more.first == 1.0
    once_more.passed(10)
    assert once_more.first == 5.0


def test_bytes_that_come_close_together_share_an_age() -> None:
    ages = Ages()
    for number in range(1000):
        ages.put(1, 1.0 + number / 1000)
    assert len(ages.rest()) <= 11
    ages.passed(500)
    assert ages.first is not None
    assert 1.3 < ages.first < 1.6
