"""Accounts that the first use of a topic opens."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from gateway.wire import first_use
from gateway.wire.account import Account, Action
from gateway.wire.budget import Budget, Quota
from gateway.wire.first_use import CLOSED_AT_ONCE, Accounts
from gateway.wire.subject import Subject
from tests.playbooks.services import FakeServices
from tests.support.subjects import subject_of


class House:
    """The accounts of one connection, by number."""

    def __init__(self, number: int = 0) -> None:
        self.services: Any = FakeServices()
        self.accounts = Accounts[int](self.services, Quota(Budget(), "client"), 100)
        self.table: dict[int, Account] = {}
        for key in range(number):
            self.opens(key)

    def opens(self, key: int) -> Account:
        subject: Subject = subject_of("persistent://public/default/x")
        account = self.accounts.admit(Action.PRODUCE, subject)
        assert isinstance(account, Account)
        self.accounts.keep(self.table, key, account)
        return account

    def sweeps(self) -> list[int]:
        """Sweep once; return how many accounts each step has closed."""
        closed = [len(self.accounts.close_idle(()))]
        while self.accounts.is_sweeping:
            closed.append(len(self.accounts.close_idle(())))
        return closed


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_sweep_looks_at_some_accounts_in_each_step(steps: int) -> None:
    house = House(steps * CLOSED_AT_ONCE)
    assert house.sweeps() == [0] * steps
    assert house.sweeps() == [CLOSED_AT_ONCE] * steps
    assert (len(house.accounts), house.table) == (0, {})


def test_an_account_that_counts_within_a_sweep_stays() -> None:
    house = House(2 * CLOSED_AT_ONCE)
    house.sweeps()
    last = house.table[2 * CLOSED_AT_ONCE - 1]
    house.accounts.close_idle(())
    last.add(1, 10)
    house.accounts.close_idle(())
    assert list(house.accounts) == [last]


def test_a_sweep_looks_once_at_each_account_whatever_happens_meanwhile() -> None:
    house = House(2 * CLOSED_AT_ONCE)
    house.accounts.close_idle(())
    for key in range(CLOSED_AT_ONCE, CLOSED_AT_ONCE + 10):
        house.accounts.withdraw(house.table[key])
    newcomer = house.opens(-1)
    while house.accounts.is_sweeping:
        assert house.accounts.close_idle(()) == []
    assert newcomer in house.accounts
    assert house.sweeps()[0] == CLOSED_AT_ONCE
    assert list(house.accounts) == [newcomer], "it was looked at once"


def test_an_account_that_is_busy_stays() -> None:
    house = House(3)
    house.sweeps()
    busy = house.table[1]
    house.accounts.close_idle([busy, None])
    assert list(house.accounts) == [busy]


def lines_of_withdrawing(house: House) -> int:
    """Return how many lines of the module run for one account that is withdrawn."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename == first_use.__file__ else None

    account = house.table[len(house.table) - 1]
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        house.accounts.withdraw(account)
    finally:
        sys.settrace(before)
    assert house.services.released == [account]
    return lines


def test_withdrawing_one_account_takes_the_same_work_however_many_there_are() -> None:
    assert lines_of_withdrawing(House(3)) == lines_of_withdrawing(House(3000)) > 0


def test_an_account_is_withdrawn_once() -> None:
    house = House(1)
    account = house.table[0]
    house.accounts.withdraw(account)
    house.accounts.withdraw(account)
    assert house.services.released == [account]
