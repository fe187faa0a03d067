"""Totals per principal: they never fall, and are bounded."""

from __future__ import annotations

import re

import pytest

from gateway.policy.accounts import ACCOUNTS_AT_ONCE, AccountBook
from gateway.policy.principals import PrincipalBook
from gateway.telemetry.exposition import PrincipalExposition
from gateway.telemetry.figures import OTHER
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of


class Trial:
    def __init__(self, most: int = 1000) -> None:
        self.principals = PrincipalBook(most)
        self.book = AccountBook(watchers=[self.principals])

    def open(
        self, principal: str | None, action: Action = Action.PRODUCE, topic: str = "a"
    ) -> Account:
        account = self.book.open(action, subject_of(topic, principal=principal))
        account.count(3)
        account.bytes += 30
        return account

    def text(self) -> str:
        return b"".join(PrincipalExposition({"main": self.principals}).chunks()).decode()

    def value(self, family: str, principal: str, **more: str) -> float | None:
        labels = {"cluster": "main", "principal": principal} | more
        shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
        found = re.search(re.escape(f"{family}{{{shown}}} ") + r"(\S+)", self.text())
        return None if found is None else float(found[1])

    def messages(self, principal: str) -> float | None:
        family = "gateway_principal_messages_total"
        return self.value(family, principal, direction="to_broker")


def test_a_principal_is_counted_over_all_its_topics_and_after_they_close() -> None:
    trial = Trial()
    accounts = [trial.open("alice", topic=name) for name in ("a", "b")]
    trial.open("bob")
    assert trial.messages("alice") == 6
    assert trial.value("gateway_principal_producers", "alice") == 2
    for account in accounts:
        trial.book.close(account)
    assert trial.messages("alice") == 6
    assert trial.value("gateway_principal_producers", "alice") == 0
    assert trial.messages("bob") == 3


def test_directions_are_apart() -> None:
    trial = Trial()
    trial.open("alice", Action.CONSUME)
    assert trial.messages("alice") is None or trial.messages("alice") == 0
    family = "gateway_principal_bytes_total"
    assert trial.value(family, "alice", direction="to_client") == 30
    assert trial.value("gateway_principal_consumers", "alice") == 1


def test_who_has_no_name_is_in_no_row() -> None:
    trial = Trial()
    trial.book.close(trial.open(None))
    assert "principal=" not in trial.text()


def test_principals_beyond_the_bound_share_a_row() -> None:
    trial = Trial(most=2)
    accounts = [trial.open(f"p{number}") for number in range(5)]
    assert trial.messages("p0") == 3
    assert trial.messages(OTHER) == 9
    for account in accounts:
        trial.book.close(account)
    assert trial.messages(OTHER) == 9
    assert trial.value("gateway_principal_producers", OTHER) == 0


def test_a_principal_of_many_accounts_comes_in_parts_that_add_up() -> None:
    trial = Trial()
    number = ACCOUNTS_AT_ONCE + 10
    for _ in range(number):
        trial.open("alice")
    parts = list(trial.principals.principals())
    assert max(it.produced.open for it in parts) <= ACCOUNTS_AT_ONCE
    assert trial.messages("alice") == 3 * number


def test_waits_are_by_rule() -> None:
    trial = Trial()
    account = trial.open("alice")
    account.begin_wait("slow", 1.0)
    account.end_wait(3.5)
    where = {"direction": "to_broker", "rule": "slow"}
    assert trial.value("gateway_principal_waits_total", "alice", **where) == 1
    assert trial.value("gateway_principal_wait_seconds_total", "alice", **where) == 2.5


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "half \ud800"])
def test_a_name_cannot_end_its_line(name: str) -> None:
    trial = Trial()
    trial.open(name)
    lines = [it for it in trial.text().splitlines() if it.startswith("gateway_principal_messages")]
    assert len(lines) == 1
    assert lines[0].endswith("} 3")
