"""Incidents in which one tenant's growth comes with others' latency or holds."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from gateway.pipeline.demo.planted import What
from gateway.pipeline.lake import Lake
from gateway.pipeline.neighbours import DAY_MS, Thresholds, incidents, signals, update
from gateway.telemetry.figures import OTHER
from gateway.usage.records import Usage, Wait
from tests.pipeline.samples import Month, ms, table, used

BEGIN = ms("2026-11-02T03:00")
SLOT = Thresholds().slot_ms
SLOTS = range(12)
GROWN = range(6, 9)

USUAL, MUCH = 30_000_000, 300_000_000
"""Bytes of a slot."""

QUICK, SLOW = 4_000, 40_000
"""Microseconds of a send."""


def at(slot: int) -> int:
    return BEGIN + slot * SLOT


class Scene:
    """Records of one cluster: what tenants sent, and how long they waited."""

    def __init__(self, cluster: str | None, listener: str = "") -> None:
        self.records: list[Usage] = []
        self._cluster, self._listener = cluster, listener or f"for {cluster}"

    def add(
        self,
        tenant: str | None,
        start_ms: int,
        sent: int,
        wait_us: int = QUICK,
        *,
        sends: int = 1_000,
        holds: Mapping[str, int] | None = None,
        listener: str = "",
    ) -> None:
        """Add what a tenant sends in a slot. `holds`: milliseconds by rule."""
        common: dict[str, Any] = {"tenant": tenant, "listener": listener or self._listener}
        common |= {"start_ms": start_ms, "dur_ms": SLOT}
        waits = [Wait(rule, 1, held) for rule, held in (holds or {}).items()]
        half, rest = sent // 2, sent - sent // 2
        sends_half: dict[str, Any] = {
            "sent_bytes": half,
            "sent_msgs": half // 1_000,
            "bytes_wire": 1,
        }
        rest_comes: dict[str, Any] = {"bytes_wire": rest, "msgs": rest // 1_000, "op": "deliver"}
        latency: dict[str, Any] = {"lat_count": sends, "lat_sum_us": sends * wait_us}
        latency |= {**common, "op": "latency"}
        self.records += [
            used(1, **common, **sends_half, cluster=self._cluster, throttles=waits),
            used(1, **common, **rest_comes, cluster=self._cluster),
            used(1, **latency, lat_what="send"),
            used(1, **{**latency, "lat_sum_us": sends * SLOW}, lat_what="lookup"),
        ]

    def usual(
        self,
        tenant: str | None,
        *,
        grown: Collection[int] = (),
        slow: Collection[int] = (),
        held: Collection[int] = (),
        rule: str = "shared",
        usual: int = USUAL,
        much: int = MUCH,
        wait_us: int = QUICK,
        **more: Any,
    ) -> None:
        """Add an hour of a tenant, and in which slots it is not as ever."""
        for it in SLOTS:
            holds = {rule: 20_000} if it in held else {}
            sent, wait = much if it in grown else usual, SLOW if it in slow else wait_us
            self.add(tenant, at(it), sent, wait, holds=holds, **more)


def scenes() -> dict[str, Scene]:
    names = (
        *("noisy", "launch", "slow", "itself", "held", "own limit", "always held", "once"),
        *("bridged", "apart", "minor", "listeners", "short job", "few sends", "unnamed"),
        *("nightly", "weekly", "new", "not much later"),
    )
    found = {it: Scene(it) for it in names}
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "noisy": ({"grown": GROWN}, {"slow": GROWN}),
        "launch": ({"grown": GROWN}, {}),
        "slow": ({}, {"slow": GROWN}),
        "itself": ({"grown": GROWN, "slow": GROWN}, {}),
        "held": ({"grown": GROWN, "held": GROWN}, {"held": GROWN}),
        "own limit": ({"grown": GROWN}, {"held": GROWN, "rule": "mine"}),
        "always held": ({"grown": GROWN, "held": SLOTS}, {"held": SLOTS}),
        "once": ({"grown": [6]}, {"slow": [6]}),
        "bridged": ({"grown": [5, 6, 8, 9]}, {"slow": [5, 6, 8, 9]}),
        "apart": ({"grown": [1, 2, 9, 10]}, {"slow": [1, 2, 9, 10]}),
        "minor": ({"grown": GROWN}, {"slow": GROWN, "usual": 50 * MUCH}),
        "short job": ({"grown": range(4, 9)}, {"slow": range(4, 9)}),
        "few sends": ({"grown": GROWN}, {"slow": GROWN, "sends": 9}),
        "listeners": ({"grown": GROWN, "listener": "one"}, {"slow": GROWN, "listener": "two"}),
    }
    for name, (big, small) in pairs.items():
        found[name].usual("big", **big)
        found[name].usual("small", **small)
    found["short job"].usual("job", grown=(5, 6), much=2 * MUCH)
    for nobody in (OTHER, None):
        found["unnamed"].usual(nobody, grown=GROWN)
    found["unnamed"].usual("small", slow=GROWN)
    found["no cluster"] = alone = Scene(None, "alone")
    alone.usual("big", grown=GROWN)
    alone.usual("small", slow=GROWN)
    found["new"].usual("small", slow=GROWN)
    for it in GROWN:
        found["new"].add("big", at(it), MUCH)
    slightly = found["not much later"]
    slightly.usual("big", grown=GROWN)
    for it in SLOTS:
        slightly.add("small", at(it), USUAL, 3_000 if it in GROWN else 1_000)
    _at_fixed_times(found["nightly"], days=5, every=1)
    _at_fixed_times(found["weekly"], days=28, every=7)
    return found


def _at_fixed_times(scene: Scene, days: int, every: int) -> None:
    """Add a job that runs at the same two slots of some days. Once, somebody is slow."""
    for day in range(days):
        for it in range(8):
            is_job = it > 5 and (day + 1) % every == 0
            is_slow = is_job and day == days - 1
            scene.add("big", at(it) + day * DAY_MS, MUCH if is_job else USUAL)
            scene.add("small", at(it) + day * DAY_MS, USUAL, SLOW if is_slow else QUICK)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[Row]]:
    """Return the incidents of all scenes, by cluster and time."""
    records = [record for scene in scenes().values() for record in scene.records]
    all = incidents(table(spark, records), Thresholds()).orderBy("cluster", "start_ms").collect()
    result: dict[str, list[Row]] = {}
    for row in all:
        result.setdefault(row.cluster, []).append(row)
    return result


def test_growth_while_others_wait_is_an_incident(found: dict[str, list[Row]]) -> None:
    (row,) = found["noisy"]
    assert (row.culprit, row.victims, row.slots) == ("big", ["small"], 3)
    assert (row.start_ms, row.end_ms, row.day) == (at(6), at(9), "2026-11-02")
    assert row.share == pytest.approx(10 / 11)
    assert row.growth == pytest.approx(10)
    assert row.z == pytest.approx(90)  # nine medians, of which a tenth is the least deviation
    assert row.slower == pytest.approx(10)
    assert row.held_ms == 0


def test_growth_while_others_are_held_is_an_incident(found: dict[str, list[Row]]) -> None:
    (row,) = found["held"]
    assert (row.culprit, row.victims, row.held_ms) == ("big", ["small"], 60_000)
    assert row.slower == pytest.approx(1)


@pytest.mark.parametrize(
    "scene",
    [
        *("launch", "slow", "itself", "own limit", "always held", "once", "minor", "few sends"),
        *("unnamed", "nightly", "weekly", "not much later"),
    ],
)
def test_all_else_is_none(found: dict[str, list[Row]], scene: str) -> None:
    assert scene in scenes()
    assert scene not in found


def test_adjacent_slots_are_one_incident(found: dict[str, list[Row]]) -> None:
    (row,) = found["bridged"]
    assert (row.start_ms, row.end_ms, row.slots) == (at(5), at(10), 4)
    assert [(it.start_ms, it.end_ms) for it in found["apart"]] == [
        (at(1), at(3)),
        (at(9), at(11)),
    ]


def test_a_short_job_in_an_incident_is_not_its_culprit(found: dict[str, list[Row]]) -> None:
    (row,) = found["short job"]
    assert (row.culprit, row.start_ms, row.end_ms, row.slots) == ("big", at(4), at(9), 5)


def test_tenants_of_a_cluster_are_neighbours_on_all_listeners(found: dict[str, list[Row]]) -> None:
    assert [(it.culprit, it.victims) for it in found["listeners"]] == [("big", ["small"])]
    assert [(it.culprit, it.victims) for it in found["alone"]] == [("big", ["small"])]


def test_a_tenant_without_a_history_may_be_the_culprit(found: dict[str, list[Row]]) -> None:
    assert [(it.culprit, it.start_ms) for it in found["new"]] == [("big", at(6))]


def test_what_is_usual_is_a_median(spark: SparkSession) -> None:
    rng, scene, sent = Random(1), Scene("any"), dict[str, list[int]]()
    for number in range(20):
        amounts = [rng.randrange(1_000_000, 90_000_000) for _ in range(rng.randrange(4, 12))]
        sent[f"tenant {number}"] = amounts
        for slot, amount in enumerate(amounts):
            scene.add(f"tenant {number}", at(slot), amount)
    rows = signals(table(spark, scene.records), Thresholds()).collect()
    assert len(rows) == sum(map(len, sent.values()))
    for row in rows:
        amounts = sent[row.tenant]
        amount, median = amounts[(row.slot_ms - BEGIN) // SLOT], statistics.median(amounts)
        deviation = statistics.median(abs(it - median) for it in amounts)
        spread = max(1.4826 * deviation, median / 10)
        assert row.growth == pytest.approx(amount / median)
        assert row.z == pytest.approx((amount - median) / spread)


@pytest.mark.tier("test")
def test_what_was_planted_is_found_and_nothing_else(month: Month) -> None:
    days = month.lake.state().days["usage"]
    thresholds = Thresholds(slot_ms=month.interval_ms)
    rows = update(month.lake, days, ms("2026-11-08T00:00"), thresholds).orderBy("start_ms")
    planted = month.planted.of(What.NOISY_NEIGHBOUR)
    assert len(planted) == 2
    assert [(it.culprit, it.start_ms, it.end_ms, set(it.victims)) for it in rows.collect()] == [
        (it.tenant, it.start_ms, it.end_ms, set(it.victims)) for it in planted
    ]


def test_odd_numbers_fail_nothing(spark: SparkSession) -> None:
    scene = Scene("odd")
    scene.usual("silent", usual=0, sends=0)
    scene.usual("at once", wait_us=0)
    for it in SLOTS:
        for tenant in ("held", "held too"):
            scene.add(tenant, at(it), USUAL, holds={"huge": 2**62, "below": -1})
    rows = signals(table(spark, scene.records), Thresholds()).collect()
    assert {(it.tenant, it.held_ms, it.grows, it.suffers) for it in rows} == {
        (it, 0, False, False) for it in ("silent", "at once", "held", "held too")
    }


def test_days_without_incidents_are_empty(lake: Lake) -> None:
    days = ["2026-11-02"]
    assert update(lake, days, ms("2026-11-08T00:00")).collect() == []
    assert lake.state().days["neighbours"] == {}


def test_names_of_victims_are_bounded(spark: SparkSession) -> None:
    scene = Scene("many")
    scene.usual("big", grown=GROWN)
    for number in range(6):
        scene.usual(f"small {number}", slow=GROWN)
    (row,) = incidents(table(spark, scene.records), Thresholds(victims=4)).collect()
    assert row.victims == [f"small {number}" for number in range(4)]
    assert row.culprit == "big"
