"""Histograms by tenant, and the slowest sends."""

from __future__ import annotations

import math

import pytest

from gateway.telemetry.figures import OTHER
from gateway.telemetry.latency import (
    BOUNDS,
    MINUTES,
    SLOWEST,
    Histogram,
    ListenerLatencies,
    SlowSends,
)
from gateway.wire.account import Account, Action
from gateway.wire.subject import Caller, Subject, TopicName
from tests.support.durations import durations


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slow(clock: Clock) -> SlowSends:
    return SlowSends(clock)


def account_of(topic: str) -> Account:
    return Account(Action.PRODUCE, Subject(Caller(), TopicName("t", "t/n", topic)))


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_belongs_to_its_bucket(bound: float) -> None:
    histogram = Histogram()
    histogram.add(bound)
    histogram.add(math.nextafter(bound, math.inf))
    assert durations(histogram).pop(bound) == 1
    assert sum(histogram.counts) == 2


def test_the_longest_durations_are_counted() -> None:
    histogram = Histogram()
    histogram.add(3600.0, 2)
    assert durations(histogram) == {math.inf: 2}
    assert histogram.seconds == 7200.0


def test_tenants_beyond_the_bound_share_a_row(slow: SlowSends) -> None:
    listener = ListenerLatencies(slow, tenants=2)
    for tenant in ("a", "b", "c", "d", "a"):
        listener.of(tenant, proven=True).send.add(1.0)
    rows = {tenant: sum(it.send.counts) for tenant, it in listener.tenants.items()}
    assert rows == {"a": 2, "b": 1, OTHER: 2}


def test_a_tenant_that_a_client_invented_has_no_row(slow: SlowSends) -> None:
    listener = ListenerLatencies(slow)
    listener.of("invented", proven=False).lookup.add(1.0)
    assert list(listener.tenants) == [OTHER]
    known = listener.of("known", proven=True)
    assert listener.of("known", proven=False) is known


def test_the_slowest_sends_come_first(slow: SlowSends, clock: Clock) -> None:
    for seconds in (0.1, 0.3, 0.2):
        slow.note(account_of("topic"), seconds, clock.now)
    assert [it.seconds for it in slow.slowest()] == [0.3, 0.2, 0.1]


def test_the_slowest_sends_of_one_topic_can_be_found(slow: SlowSends, clock: Clock) -> None:
    slow.note(account_of("mine"), 0.1, clock.now)
    slow.note(account_of("yours"), 0.3, clock.now)
    assert [it.seconds for it in slow.slowest("mine")] == [0.1]


def test_only_the_slowest_of_a_minute_are_kept(slow: SlowSends, clock: Clock) -> None:
    for number in range(10 * SLOWEST):
        slow.note(account_of("topic"), (number * 7 % (10 * SLOWEST)) / 1000, clock.now)
    found = [round(it.seconds * 1000) for it in slow.slowest()]
    assert found == list(range(10 * SLOWEST - 1, 9 * SLOWEST - 1, -1))


def test_a_quick_minute_has_slowest_sends_too(slow: SlowSends, clock: Clock) -> None:
    for _ in range(SLOWEST):
        slow.note(account_of("topic"), 10.0, clock.now)
    clock.now += 60
    slow.note(account_of("topic"), 0.001, clock.now)
    assert len(slow.slowest()) == SLOWEST + 1


def test_old_sends_are_forgotten(slow: SlowSends, clock: Clock) -> None:
    slow.note(account_of("topic"), 1.0, clock.now)
    clock.now += MINUTES * 60
    assert not slow.slowest()


def test_what_is_remembered_is_bounded(slow: SlowSends, clock: Clock) -> None:
    for _ in range(100):
        for number in range(3 * SLOWEST):
            slow.note(account_of("topic"), number, clock.now)
        clock.now += 60
    clock.now -= 60
    assert len(slow.slowest()) == SLOWEST * MINUTES
