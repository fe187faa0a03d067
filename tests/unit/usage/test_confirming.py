"""What is billed of a producer: exactly what the broker has confirmed, once that is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.usage.confirming import MOST_MARKS, Confirming, Counts
from gateway.wire.account import Account, Action


def sent(account: Account, messages: int, size: int) -> None:
    account.count(messages)
    account.bytes += size


def test_what_has_all_receipts_is_confirmed_whole() -> None:
    account, confirming = Account(Action.PRODUCE), Confirming()
    sent(account, 10, 100)
    assert confirming.confirmed(account) == Counts()
    account.receipts = 1
    assert confirming.confirmed(account) == Counts(1, 10, 100)


def test_frames_without_receipts_wait_for_them() -> None:
    account, confirming = Account(Action.PRODUCE), Confirming()
    sent(account, 10, 100)
    confirming.confirmed(account)
    sent(account, 1, 7)
    account.receipts = 1
    assert confirming.confirmed(account) == Counts(1, 10, 100)
    account.receipts = 2
    assert confirming.confirmed(account) == Counts(2, 11, 107)


def test_a_producer_that_ends_between_two_looks_is_billed_by_share() -> None:
    account, confirming = Account(Action.PRODUCE), Confirming()
    for _ in range(4):
        sent(account, 5, 50)
    confirming.confirmed(account)
    account.receipts = 3
    assert confirming.last(account) == Counts(3, 15, 150)


def test_a_producer_that_ends_without_a_receipt_is_billed_nothing() -> None:
    account, confirming = Account(Action.PRODUCE), Confirming()
    sent(account, 5, 50)
    assert confirming.last(account) == Counts()


def test_receipts_that_never_come_take_little_memory() -> None:
    account, confirming = Account(Action.PRODUCE), Confirming()
    for _ in range(10 * MOST_MARKS):
        sent(account, 1, 1)
        confirming.confirmed(account)
    assert len(confirming._marks) == MOST_MARKS
    account.receipts = account.frames
    assert confirming.confirmed(account) == Counts(*[10 * MOST_MARKS] * 3)


STEPS = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 500), st.integers(0, 5), st.booleans())
)


@given(STEPS)
def test_nothing_is_billed_before_its_receipt_and_all_of_it_after(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    account, confirming, before = Account(Action.PRODUCE), Confirming(), Counts()
    each: list[Counts] = [Counts()]
    for messages, size, receipts, looks in steps:
        sent(account, messages, size)
        each.append(Counts(account.frames, account.messages, account.bytes))
        account.receipts = min(account.frames, account.receipts + receipts)
        if looks:
            found = confirming.confirmed(account)
            most = each[account.receipts]
            assert all(
                old <= new <= bound for old, new, bound in zip(before, found, most, strict=True)
            )
            before = found
    account.receipts = account.frames
    assert confirming.last(account) == each[-1]
