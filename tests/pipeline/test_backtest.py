"""What limits would have held."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from gateway.pipeline.backtest import backtest, intervals
from gateway.pipeline.limits.buckets import Bucket, Held, Untried, buckets
from gateway.pipeline.limits.deciding import What
from gateway.policy.rules import Rule
from gateway.usage.records import Usage
from tests.pipeline.samples import table, used

SECONDS = 10


def sent(
    tenant: str, amounts: Sequence[int], *, peaks: Sequence[int] = (), throttle_count: int = 0
) -> list[Usage]:
    """Return intervals of a tenant, one after the other; 0 is one without traffic."""
    begin = used(1).start_ms
    return [
        used(
            number + 1,
            tenant=tenant,
            start_ms=begin + number * SECONDS * 1000,
            sent_msgs=amount,
            peak_msgs_1s=peaks[number] if peaks else 0,
            throttle_count=throttle_count,
        )
        for number, amount in enumerate(amounts)
        if amount
    ]


def bucket(rule: str, *tenants: str, rate: float = 100, burst: float = 100) -> Bucket:
    return Bucket(rule, What.PUBLISH_MESSAGES, tenants, rate, burst)


RANDOM = random.Random(16)
TRAFFIC = {
    f"t-{number}": [RANDOM.choice((0, 0, 300, 900, 1_100, 2_500, 4_000)) for _ in range(300)]
    for number in range(4)
}


def filled(amounts: Sequence[int], rate: float) -> list[float]:
    """Return how full a bucket is after each interval with traffic, step by step."""
    found, full = [], 0.0
    for amount in amounts:
        full = max(0.0, full - rate * SECONDS) if not amount else full
        if amount:
            full = max(0.0, full + amount - rate * SECONDS)
            found.append(full)
    return found


def test_a_bucket_is_as_full_as_step_by_step(spark: SparkSession) -> None:
    usage = table(spark, [it for name, all in TRAFFIC.items() for it in sent(name, all)])
    tried = [bucket("all"), bucket("one", "t-1", rate=130)]
    rows = intervals(usage, tried).orderBy("bucket", "tenant", "start_ms").collect()
    for name, amounts in TRAFFIC.items():
        found = [it.filled for it in rows if (it.bucket, it.tenant) == (0, name)]
        assert found == pytest.approx(filled(amounts, 100))
    found = [it.filled for it in rows if it.bucket == 1]
    assert found == pytest.approx(filled(TRAFFIC["t-1"], 130))


@pytest.fixture(scope="module")
def held(spark: SparkSession) -> dict[str, Held]:
    """Return what limits of 100/s with a burst of 100 would have held."""
    records = [
        *sent("fits", [1_000, 1_000, 1_000]),
        # 20 s of 200/s: half a second until the burst is used up, then all waits, and 1,900 more
        # wait at the end: for 19 s.
        *sent("twice", [2_000, 2_000]),
        # The same, but behind it something comes, which has to wait too.
        *sent("later", [2_000, 2_000, 500, 500, 0, 500]),
        # One second of 400: 200 wait, for two seconds.
        *sent("peaks", [500, 500], peaks=[400, 150]),
        *sent("waited", [900, 900], throttle_count=1),
    ]
    tried = [bucket(it, it) for it in ("fits", "twice", "later", "peaks", "waited", "nobody")]
    return {it.rule: it for it in backtest(table(spark, records), tried)}


def test_what_fits_is_not_held(held: dict[str, Held]) -> None:
    nothing = (0, 0.0, 0.0, None, 0.0)
    for rule, number, amount in (("fits", 3, 3_000), ("nobody", 0, 0)):
        it = held[rule]
        assert (it.intervals, it.amount) == (number, amount)
        assert (it.exceeded, it.beyond, it.seconds, it.worst_day, it.worst_seconds) == nothing


@pytest.mark.tier("test")
def test_what_comes_above_the_rate_waits_until_it_has_drained(held: dict[str, Held]) -> None:
    it = held["twice"]
    assert (it.intervals, it.exceeded) == (2, 2)
    # The even flow fills the burst in one second.
    assert it.beyond == pytest.approx(1_800 + 2_000)
    assert it.seconds == pytest.approx(9 + 10 + 19)
    assert it.part == pytest.approx(0.95)
    assert (it.worst_day, it.worst_seconds) == ("2026-11-20", it.seconds)
    later = held["later"]
    assert later.seconds == pytest.approx(9 + 10 + 10 + 10 + 10 - 1)
    assert later.exceeded == 4


def test_one_second_may_be_more_than_the_burst(held: dict[str, Held]) -> None:
    it = held["peaks"]
    assert (it.exceeded, it.beyond) == (1, 200)
    assert it.seconds == pytest.approx(2)


def test_demand_that_waited_is_told(held: dict[str, Held]) -> None:
    assert (held["waited"].waited, held["twice"].waited) == (2, 0)


def rule(**parts: object) -> Rule:
    limit = {"publish": {"messages": "100/s"}}
    return Rule.model_validate({"id": "r", "limit": limit} | parts)


def test_limits_of_tenants_can_be_tried() -> None:
    both = {"publish": {"messages": "100/s", "bytes": "1KB/s"}, "lookups": "1/s"}
    found = [*buckets([rule(match={"tenant": ["a", "b"]}, per="tenant", limit=both, burst="2s")])]
    assert found == [
        replace(bucket("r", "a", "b"), burst=200.0),
        Bucket("r", What.PUBLISH_BYTES, ("a", "b"), 1000.0, 2000.0),
        Untried("r", "records do not tell what lookups would do"),
    ]
    assert [*buckets([rule(match={"tenant": "a"}), rule(per="tenant")])] == [
        replace(bucket("r", "a"), burst=10.0),
        replace(bucket("r"), burst=10.0),
    ]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"match": {"topic": "x"}}, "it is by topic, which"),
        ({"per": ["tenant", "principal"]}, "it is by principal, which"),
        ({"match": {"tenant": "a*"}, "per": "tenant"}, "it names tenants by a pattern"),
        ({"match": {"tenant": "a,b"}}, "its tenants share one limit"),
        ({}, "its tenants share one limit"),
        ({"limit": None, "deny": "produce"}, "it limits nothing"),
    ],
)
def test_other_rules_cannot_be_tried(parts: dict[str, object], reason: str) -> None:
    (found,) = buckets([rule(**parts)])
    assert isinstance(found, Untried)
    assert found.reason.startswith(reason)
