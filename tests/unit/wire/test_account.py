"""Accounts: counters, ceilings, and allowance."""

from __future__ import annotations

import pytest

from gateway.wire.account import Account, Action
from gateway.wire.counters import ENDLESS
from tests.support.subjects import subject_of


@pytest.fixture
def account() -> Account:
    return Account(Action.PRODUCE, subject_of("a topic"))


def test_an_account_has_its_generation() -> None:
    assert Account(Action.PRODUCE, subject_of("t"), generation=7).generation == 7


def test_an_account_has_the_topic_of_its_subject(account: Account) -> None:
    assert account.topic == "persistent://public/default/a topic"
    assert Account(Action.CONSUME).topic == ""


def test_a_new_account_has_no_limits(account: Account) -> None:
    account.messages = account.bytes = 1 << 60
    assert not account.held


def test_a_held_account_needs_allowance_of_messages_and_bytes(account: Account) -> None:
    account.messages, account.bytes = 5, 100
    account.hold()
    held = [account.held]
    account.grant(messages=1, size=0)
    held.append(account.held)
    account.grant(messages=0, size=1)
    assert [*held, account.held] == [True, True, False]


def test_debt_is_paid_before_a_frame_passes(account: Account) -> None:
    account.messages_ceiling, account.messages = 3, 10
    account.grant(messages=7)
    held = account.held
    account.grant(messages=1)
    assert (held, account.held) == (True, False)


def test_holding_forgives_no_debt(account: Account) -> None:
    account.messages_ceiling, account.messages = 3, 10
    account.hold()
    assert account.messages_ceiling == 3


def test_an_endless_grant_leaves_the_ceilings_endless(account: Account) -> None:
    account.grant()
    assert (account.messages_ceiling, account.bytes_ceiling) == (ENDLESS, ENDLESS)


def test_frames_and_outstanding_follow_from_the_counters(account: Account) -> None:
    account.messages, account.surplus, account.receipts = 60, 49, 4
    assert (account.frames, account.outstanding) == (11, 7)
