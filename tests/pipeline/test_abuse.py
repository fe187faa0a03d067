"""Attacks on credentials, and mistakes that look like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from gateway.pipeline.abuse import MINUTE_MS, Thresholds, findings, update
from gateway.pipeline.demo.planted import Fact, What
from gateway.pipeline.kinds import Kind
from gateway.pipeline.lake import Lake
from gateway.usage.records import Event
from tests.pipeline.samples import Month, happened, ms, table

USUAL = Thresholds()
NIGHT = ms("2026-11-20T02:00")
DAY_MS = 1_440 * MINUTE_MS

SECOND_MS = 1_000


def failed(
    network: str | None, number: int, *principals: str | None, pace_ms: int = SECOND_MS
) -> list[Event]:
    """Return failures, one after the other, of each principal in turn."""
    who = principals or (None,)
    return [
        happened(
            1,
            time_ms=NIGHT + it * pace_ms,
            event="unauthenticated",
            client_net=network,
            principal=who[it % len(who)],
            reason="authentication_failed",
        )
        for it in range(number)
    ]


def came(network: str, principal: str, at_ms: int, **fields: Any) -> Event:
    return happened(1, time_ms=at_ms, client_net=network, principal=principal, **fields)


def people(number: int) -> list[str]:
    return [f"someone {it}" for it in range(number)]


def at_home(network: str, principals: Iterable[str]) -> list[Event]:
    return [came(network, it, NIGHT - DAY_MS) for it in principals]


def daily(principal: str, networks: Sequence[int]) -> list[Event]:
    """Return connections of a principal: from so many networks on each day."""
    return [
        came(f"{principal} {it}", principal, NIGHT + day * DAY_MS + it)
        for day, number in enumerate(networks)
        for it in range(number)
    ]


LAST = NIGHT + 39 * SECOND_MS
"""The last of forty failures."""

EVENTS = [
    # One network, many principals.
    *failed("sprayed", 10, *people(10)),
    *failed("a few", 9, *people(9)),
    *failed("office", 10, *people(10)),
    *at_home("office", people(10)),
    *failed("slowly", 10, *people(10), pace_ms=USUAL.pause_ms + 1),
    # Failures that name nobody.
    *failed("nameless", 30),
    *failed("nameless, fewer", 29),
    *failed("nameless, slowly", 60, pace_ms=USUAL.pause_ms + 1),
    *failed(None, 500),
    *failed("nameless, in", 40),
    came("nameless, in", "victim", LAST + SECOND_MS),
    came("nameless, in", "later", LAST + 2 * SECOND_MS),
    *failed("nameless, home", 100),
    *at_home("nameless, home", ["app"]),
    *failed("nameless, home, fewer", 99),
    *at_home("nameless, home, fewer", ["app"]),
    # One principal, one network.
    *failed("in", 40, "admin"),
    came("in", "admin", LAST + SECOND_MS),
    *failed("not in", 40, "admin"),
    *failed("too late", 40, "admin"),
    came("too late", "admin", LAST + 2 + USUAL.soon_ms),
    *failed("another", 40, "admin"),
    came("another", "guest", LAST + SECOND_MS),
    *failed("mistyped", 19, "admin"),
    came("mistyped", "admin", LAST + SECOND_MS),
    # Its clients go on with what was good before.
    *failed("home 1", 60, "fleet"),
    *failed("home 2", 40, "fleet"),
    *at_home("home 1", ["fleet"]),
    *at_home("home 2", ["fleet"]),
    came("home 2", "fleet", LAST + SECOND_MS),
    *failed("home 3", 99, "small fleet"),
    *at_home("home 3", ["small fleet"]),
    *failed("open for long", 100, "old fleet"),
    came("open for long", "old fleet", NIGHT + 5, event="ended", open_ms=DAY_MS),
    # One principal, many networks.
    *daily("shared", [1, 2, 1, 6]),
    *daily("travels", [1, 1, 1, 5]),
    *daily("mobile", [30, 30, 30, 60]),
    *daily("new", [1, 60]),
]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> list[Row]:
    """Return all findings."""
    return findings(table(spark, EVENTS), USUAL).orderBy("kind", "network", "principal").collect()


def of(found: list[Row], kind: Kind) -> list[tuple[Any, ...]]:
    columns = "principal", "network", "failures", "principals", "networks"
    assert {it.is_attack for it in found if it.kind == kind} == {kind is not Kind.EXPIRED_STORM}
    return [tuple(row[it] for it in columns) for row in found if row.kind == kind]


def test_one_network_that_tries_many_sprays(found: list[Row]) -> None:
    assert of(found, Kind.SPRAYING) == [
        (None, "nameless", 30, None, 1),
        (None, "sprayed", 10, 10, 1),
    ]


def test_many_failures_and_then_a_success_are_a_guess(found: list[Row]) -> None:
    assert of(found, Kind.GUESSED) == [
        ("admin", "in", 40, 1, 1),
        ("victim", "nameless, in", 40, 1, 1),
    ]
    (row,) = [it for it in found if it.kind == Kind.GUESSED and it.network == "in"]
    assert (row.start_ms, row.end_ms, row.day) == (NIGHT, LAST + SECOND_MS + 1, "2026-11-20")


def test_many_failures_alone_are_an_attempt(found: list[Row]) -> None:
    assert of(found, Kind.GUESSING) == [
        ("admin", "another", 40, 1, 1),
        ("admin", "not in", 40, 1, 1),
        ("admin", "too late", 40, 1, 1),
    ]


def test_many_failures_of_those_at_home_are_a_mistake(found: list[Row]) -> None:
    assert of(found, Kind.EXPIRED_STORM) == [
        ("fleet", None, 100, 1, 2),
        (None, "nameless, home", 100, None, 1),
        ("old fleet", "open for long", 100, 1, 1),
    ]


def test_many_more_networks_than_usual_share_a_credential(found: list[Row]) -> None:
    assert of(found, Kind.SHARED_CREDENTIAL) == [("shared", None, 0, 1, 6)]
    (row,) = [it for it in found if it.kind == Kind.SHARED_CREDENTIAL]
    assert (row.usual, row.day) == (1.5, "2026-11-23")
    assert row.end_ms - row.start_ms == 6


KINDS = {
    What.SPRAYING: Kind.SPRAYING,
    What.GUESSED: Kind.GUESSED,
    What.SHARED_CREDENTIAL: Kind.SHARED_CREDENTIAL,
    What.EXPIRED_STORM: Kind.EXPIRED_STORM,
}


def _is(row: Row, fact: Fact) -> bool:
    """Tell whether a finding is a planted fact: who, where from, when and how often."""
    return (
        row.kind == KINDS[fact.what]
        and row.principal in (None, *fact.principals)
        and row.network in (None, *fact.networks)
        and (row.principal or row.network) is not None
        and row.principals == len(fact.principals)
        and row.networks == len(fact.networks)
        and row.failures == fact.number
        and fact.start_ms <= row.start_ms < row.end_ms <= fact.end_ms
    )


@pytest.mark.tier("test")
def test_what_was_planted_is_found_and_nothing_else(month: Month) -> None:
    days = month.lake.state().days["events"]
    rows = update(month.lake, days, ms("2026-11-08T00:00")).collect()
    planted = [fact for what in KINDS for fact in month.planted.of(what)]
    assert len(planted) == len(rows) == 4
    for fact in planted:
        assert [_is(row, fact) for row in rows].count(True) == 1, fact
    assert month.lake.read("abuse", days).count() == len(rows)


def test_days_without_abuse_are_empty(lake: Lake) -> None:
    days = ["2026-11-20"]
    assert update(lake, days, NIGHT).collect() == []
    assert lake.state().days["abuse"] == {}
