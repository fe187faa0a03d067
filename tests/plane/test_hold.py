"""Frames that wait for their account's allowance."""

from __future__ import annotations

import pytest

from gateway.plane.hold import HeldFrames
from gateway.plane.memory import Memory
from gateway.wire.contract import Account, Action


@pytest.fixture
def memory() -> Memory:
    return Memory(1024, 1 << 20)


@pytest.fixture
def held(memory: Memory) -> HeldFrames:
    return HeldFrames(memory)


@pytest.fixture
def account() -> Account:
    return Account("topic", Action.PRODUCE)


def test_a_held_frame_takes_the_allowance_away(held: HeldFrames, account: Account) -> None:
    held.put(account, b"one")
    assert account in held
    assert account.held
    assert held.take(account) is None


def test_frames_are_taken_in_their_order(held: HeldFrames, account: Account) -> None:
    for frame in (b"one", b"two", b"three"):
        held.put(account, frame)
    account.grant()
    assert [held.take(account) for _ in range(4)] == [b"one", b"two", b"three", None]
    assert account not in held


def test_held_frames_are_counted_until_they_go(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    held.put(account, b"12345")
    held.put(account, b"678")
    assert memory.used == held.size == 8
    account.grant()
    held.take(account)
    assert memory.used == held.size == 3
    held.discard(account)
    assert memory.used == held.size == 0


def test_discarding_leaves_other_accounts(
    held: HeldFrames, account: Account, memory: Memory
) -> None:
    other = Account("other", Action.PRODUCE)
    held.put(account, b"12345")
    held.put(other, b"678")
    held.discard(account)
    held.discard(account)
    other.grant()
    assert held.take(account) is None
    assert held.take(other) == b"678"
    assert memory.used == 0


def test_clearing_leaves_nothing(held: HeldFrames, account: Account, memory: Memory) -> None:
    held.put(account, b"12345")
    held.put(Account("other", Action.PRODUCE), b"678")
    held.clear()
    assert account not in held
    assert memory.used == 0
