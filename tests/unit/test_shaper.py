"""Between policy and the data plane: who is limited, and when those who wait go on."""

from __future__ import annotations

import pytest

from gateway.plane.reactor import Reactor
from gateway.policy.matching import RuleSet
from gateway.shaper import Shaper
from gateway.wire.contract import Account, Action
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


def test_who_waits_goes_on_at_the_rate(plane: Plane) -> None:
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


def test_while_nobody_waits_nothing_is_to_be_done(plane: Plane) -> None:
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


def test_shadows_are_looked_at_while_there_are_any(plane: Plane) -> None:
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
