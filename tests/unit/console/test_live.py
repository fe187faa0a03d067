"""Rates of the last second: exact, of all parts, and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.console.live import LONGEST, SHOWN, TOPICS_AT_ONCE, Live
from gateway.console.quantiles import quantile
from gateway.policy.accounts import ACCOUNTS_AT_ONCE
from gateway.telemetry.latency import BOUNDS, Histogram
from gateway.wire.account import Action
from tests.unit.console.world import World, passed

ORDERS = "persistent://acme/web/orders"


def looked(live: Live, now: float) -> dict[str, Any]:
    for _ in live.look(now, 3):
        pass
    return live.second


def test_a_rate_is_what_came_since_the_last_look_by_its_time() -> None:
    world = World()
    live = world.facts.live
    producer, consumer = world.open(ORDERS), world.open(ORDERS, Action.CONSUME)
    passed(producer, 100, 1000)
    assert looked(live, 0.0) == {}
    passed(producer, 30, 600)
    passed(consumer, 10, 200)
    second = looked(live, 2.0)
    rates = {
        "to_broker": {"messages": 15.0, "bytes": 300.0},
        "to_client": {"messages": 5.0, "bytes": 100.0},
    }
    assert second["now"].items() >= rates.items()
    assert second["now"]["connections"] == 3
    (tenant,), (topic,) = second["tenants"], second["topics"]
    assert tenant["tenant"] == "acme"
    assert topic["topic"] == ORDERS
    for row in (tenant, topic):
        assert row.items() >= rates.items()
        assert (row["producers"], row["consumers"]) == (1, 1)


def test_a_topic_of_many_accounts_is_one_row() -> None:
    world = World()
    accounts = [world.open(ORDERS) for _ in range(ACCOUNTS_AT_ONCE + 10)]
    looked(world.facts.live, 0.0)
    for account in accounts:
        passed(account, 1, 10)
    (row,) = looked(world.facts.live, 1.0)["topics"]
    assert row["to_broker"] == {"messages": len(accounts), "bytes": 10.0 * len(accounts)}
    assert row["producers"] == len(accounts)


def test_a_topic_that_is_new_counts_and_one_that_is_gone_does_not() -> None:
    world = World()
    live = world.facts.live
    looked(live, 0.0)
    account = world.open(ORDERS)
    passed(account, 5, 50)
    world.book.close(account)
    assert looked(live, 1.0)["now"]["to_broker"]["messages"] == 5
    assert looked(live, 2.0)["topics"] == []


def test_the_busiest_are_told_and_no_more_than_people_read() -> None:
    world = World()
    accounts = [world.open(f"persistent://t{n}/n/topic") for n in range(SHOWN + 20)]
    looked(world.facts.live, 0.0)
    for number, account in enumerate(accounts):
        passed(account, 1, number + 1)
    second = looked(world.facts.live, 1.0)
    for what in ("tenants", "topics"):
        sizes = [row["to_broker"]["bytes"] for row in second[what]]
        assert len(sizes) == SHOWN
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] == SHOWN + 20


def test_who_waits_is_told_by_rule() -> None:
    world = World()
    account, idle = world.open(ORDERS), world.open("persistent://acme/web/idle")
    for each in (account, idle):
        each.begin_wait("r", 0.0)
        each.end_wait(1.0)
    looked(world.facts.live, 0.0)
    account.begin_wait("r", 5.0)
    account.end_wait(5.5)
    account.queued = 700
    (held,) = looked(world.facts.live, 1.0)["held"]
    assert held == {
        "topic": ORDERS,
        "tenant": "acme",
        "direction": "to_broker",
        "rule": "r",
        "bytes": 700,
        "waits": 1,
        "wait_seconds": 0.5,
    }


def test_of_many_who_wait_the_longest_are_told() -> None:
    world = World()
    accounts = [world.open(f"persistent://t/n/{number}") for number in range(1000)]
    looked(world.facts.live, 0.0)
    for number, account in enumerate(accounts):
        account.begin_wait("r", 0.0)
        account.end_wait(1.0 + number)
    held = looked(world.facts.live, 1.0)["held"]
    assert [it["wait_seconds"] for it in held] == [1000.0 - number for number in range(SHOWN)]


def test_a_pause_is_no_long_second() -> None:
    live = World().facts.live
    looked(live, 0.0)
    assert looked(live, 1.0) != {}
    assert looked(live, 1.1 + LONGEST) == {}
    assert looked(live, 2.1 + LONGEST) != {}
    live.forget()
    assert live.second == {}
    assert looked(live, 3.1 + LONGEST) == {}


def test_ten_thousand_topics_are_looked_at_in_slices() -> None:
    world = World()
    for number in range(10_000):
        world.open(f"persistent://t{number % 9}/n/{number}")
    live = world.facts.live
    assert sum(1 for _ in live.look(0.0, 0)) == 10_000 // TOPICS_AT_ONCE
    assert sum(1 for _ in live.look(1.0, 0)) == 2 * 10_000 // TOPICS_AT_ONCE


def test_a_thousand_tenants_are_added_up_in_slices() -> None:
    world = World()
    for number in range(1_000):
        world.open(f"persistent://t{number}/n/a")
    live = world.facts.live
    looked(live, 0.0)
    assert sum(1 for _ in live.look(1.0, 0)) == 3 * 1_000 // TOPICS_AT_ONCE
    assert len(live.second["tenants"]) == SHOWN


# -- quantiles -------------------------------------------------------------------------------------


def test_quantiles_lie_in_the_bucket_of_their_duration() -> None:
    histogram = Histogram()
    for seconds in (0.002, 0.002, 0.002, 0.2):
        histogram.add(seconds)
    median, longest = quantile(histogram.counts, 0.5), quantile(histogram.counts, 1.0)
    assert median is not None
    assert longest is not None
    assert 0.001 < median <= 0.0025
    assert 0.1 < longest <= 0.25


@pytest.mark.parametrize(("seconds", "told"), [(1e9, BOUNDS[-1]), (BOUNDS[0], BOUNDS[0])])
def test_quantiles_end_at_the_bounds(seconds: float, told: float) -> None:
    histogram = Histogram()
    histogram.add(seconds)
    assert quantile(histogram.counts, 1.0) == told


def test_nothing_has_no_quantile() -> None:
    assert quantile(Histogram().counts, 0.5) is None
