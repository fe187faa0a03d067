"""The shaper between policy and the data plane: deadlines, grants and shadows."""

from __future__ import annotations

import pytest

from gateway.control.shaper import OBSERVED, Shaper
from gateway.plane.reactor import Reactor
from gateway.policy.limiter import OBSERVED_AT_ONCE
from gateway.policy.matching import RuleSet
from gateway.wire.account import Account, Action
from tests.plane.harness import Plane
from tests.support.subjects import subject_of
from tests.unit.policy.test_shaping import limit, rules

SUBJECT = subject_of(
    "tenant/ns/orders",
    protocol="pulsar",
    listener="clients",
    connection=7,
    host="::1",
    principal="alice",
)


@pytest.fixture
def plane() -> Plane:
    return Plane()


def producing(shaper: Shaper) -> Account:
    account = Account(Action.PRODUCE, SUBJECT)
    shaper.admit(account, again=False)
    return account


def shaping(plane: Plane, found: RuleSet) -> Shaper:
    reactor: Reactor = plane.reactor
    return Shaper(found, reactor)


def test_a_waiting_account_continues_at_the_rate(plane: Plane) -> None:
    shaper = shaping(plane, rules(limit(rate="10/s")))
    account = producing(shaper)
    passed = 0
    for _ in range(100):
        if not account.held or shaper.wants(account):
            account.messages += 1
            passed += 1
        plane.after(0.05)
    assert passed == pytest.approx(51, abs=1)
    plane.close()


def test_there_is_no_deadline_while_no_account_waits(plane: Plane) -> None:
    shaper = shaping(plane, rules(limit()))
    account = producing(shaper)
    assert shaper.wants(account)
    assert plane.reactor.deadlines.head is None
    account.messages += 1
    assert not shaper.wants(account)
    assert not shaper.wants(account)
    assert len(plane.reactor.deadlines) == 1
    shaper.release(account)
    plane.after(5.0)
    assert plane.reactor.deadlines.head is None
    plane.close()


def test_a_limit_with_a_large_debt_is_in_debt(plane: Plane) -> None:
    shaper = shaping(plane, rules(limit(rate="10/s")))
    sender, other = producing(shaper), producing(shaper)
    assert shaper.wants(sender)
    sender.count(31)
    assert not shaper.is_in_debt(other)  # not seen yet
    assert not shaper.wants(sender)
    assert shaper.is_in_debt(other)
    plane.after(3.0)
    assert not shaper.is_in_debt(other)
    plane.close()


def test_the_messages_of_a_grant_are_charged_before_the_next_grant(plane: Plane) -> None:
    shaper = shaping(plane, rules(limit(rate="1000/s")))
    waiting = [producing(shaper) for _ in range(10)]
    assert shaper.wants(waiting[0])
    waiting[0].count(1000)
    assert not any(shaper.wants(it) for it in waiting)
    passed: list[Account] = []

    def grant(account: Account, messages: int, size: int) -> None:
        account.grant(messages, size)
        account.count(1000)
        passed.append(account)

    plane.reactor.grant = grant  # type: ignore[method-assign]
    plane.after(1.5)
    assert len(passed) == 1
    plane.close()


def test_shadows_are_observed_while_there_are_any(plane: Plane) -> None:
    shaper = shaping(plane, rules(limit(rate="10/s", mode="shadow")))
    account = producing(shaper)
    for _ in range(10):
        account.messages += 100
        plane.after(1.0)
    (limits,) = shaper.shaping.limiter.limits()
    assert limits.held == pytest.approx(1000 - 100, rel=0.02)
    shaper.release(account)
    plane.after(1.0)
    assert plane.reactor.deadlines.head is None
    plane.close()


def test_observing_many_accounts_is_cut_into_turns(plane: Plane) -> None:
    """The observation of all of them is cut as a turn is, and continues."""
    shaper = shaping(plane, rules(limit(rate="10/s", mode="shadow")))
    for _ in range(3 * OBSERVED_AT_ONCE):
        producing(shaper).messages += 1
    plane.clock.now += OBSERVED
    plane.clock.step = 2 * plane.settings.turn
    parts = 0
    while (head := plane.reactor.deadlines.head) is not None and head <= plane.clock.now:
        plane.reactor.keep_deadlines()
        parts += 1
    assert parts == 4
    plane.clock.step = 1e-6
    (figures,) = shaper.figures()
    assert figures.held > 0
