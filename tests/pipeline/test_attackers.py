"""Who is concerned by a rule against an attacker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from gateway.pipeline.abuse import Thresholds, findings
from gateway.pipeline.attackers import attackers
from gateway.pipeline.demo.planted import What
from gateway.pipeline.kinds import Kind
from gateway.pipeline.limits.denying import Attacker, decide, document
from tests.pipeline.samples import Month, ms, table
from tests.pipeline.test_abuse import (
    DAY_MS,
    LAST,
    NIGHT,
    SECOND_MS,
    at_home,
    came,
    failed,
    people,
)

EVENTS = [
    # It tries ten that are strange to it, and one that is at home, as two others are.
    *failed("10.1.0.0/24", 11, *people(11)),
    *at_home("10.1.0.0/24", ["someone 3", "app", "other"]),
    # Nobody is at home.
    *failed("10.2.0.0/24", 30),
    came("10.2.0.0/24", "later", LAST + DAY_MS),
    # The victim comes in; it is not at home.
    *failed("10.3.0.0/24", 40, "admin"),
    came("10.3.0.0/24", "admin", LAST + SECOND_MS),
    # New networks of a day, beside two old ones.
    *[
        came(f"10.4.{it}.0/24", "shared", NIGHT + day * DAY_MS + it)
        for day, seen in enumerate(([0], [1], [0], [0, 1, 2, 3, 4, 5, 6]))
        for it in seen
    ],
    # A mistake.
    *failed("10.5.0.0/24", 100, "fleet"),
    *at_home("10.5.0.0/24", ["fleet"]),
]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str | None, Attacker]:
    """Return all attackers by their network."""
    events = table(spark, EVENTS)
    return {it.network: it for it in attackers(events, findings(events, Thresholds()), 0)}


def test_a_mistake_is_no_attacker(found: dict[str | None, Attacker]) -> None:
    assert set(found) == {None, "10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"}


def test_those_at_home_are_told_from_those_that_were_tried(
    found: dict[str | None, Attacker],
) -> None:
    sprays = found["10.1.0.0/24"]
    assert (sprays.kind, sprays.residents) == (Kind.SPRAYING, 3)
    assert sorted(sprays.tried) == sorted(set(people(11)) - {"someone 3"})
    assert (found["10.2.0.0/24"].residents, found["10.2.0.0/24"].tried) == (0, ())
    assert (found["10.3.0.0/24"].kind, found["10.3.0.0/24"].residents) == (Kind.GUESSED, 0)


def test_new_networks_of_a_credential_are_told_from_old_ones(
    found: dict[str | None, Attacker],
) -> None:
    shared = found[None]
    assert (shared.kind, shared.networks, shared.known) == (Kind.SHARED_CREDENTIAL, 7, 2)
    assert shared.strange == tuple(f"10.4.{it}.0/24" for it in range(2, 7))


@pytest.mark.tier("test")
def test_attacks_that_were_planted_have_rules_and_mistakes_have_none(month: Month) -> None:
    events = month.lake.read("events", month.lake.state().days["events"])
    seen = attackers(events, findings(events, Thresholds()), 0)
    now = datetime.fromtimestamp(ms("2026-11-08T00:00") / 1000, UTC)
    denied, left = decide(seen, timedelta(days=28), now)
    assert left == []
    assert document(denied, enforce=False)
    storm = {it for fact in month.planted.of(What.EXPIRED_STORM) for it in fact.principals}
    planted = [What.SPRAYING, What.GUESSED, What.SHARED_CREDENTIAL]
    attacks = [fact for what in planted for fact in month.planted.of(what)]
    assert len(denied) == len(attacks)
    for it in denied:
        assert not storm & set(it.match.get("principal", ()))
        assert any(set(it.match["network"]) <= set(fact.networks) for fact in attacks)


def test_attacks_that_ended_before_are_left_out(spark: SparkSession) -> None:
    events = table(spark, failed("10.2.0.0/24", 30))
    end = NIGHT + 29 * SECOND_MS + 1
    seen = findings(events, Thresholds())
    assert [len(attackers(events, seen, it)) for it in (end - 1, end)] == [1, 0]
