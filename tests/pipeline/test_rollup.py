"""Sums by hour and day, latencies, and how complete records are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.missing import gaps
from gateway.pipeline.rollup import quantile, rollup
from gateway.telemetry.latency import BOUNDS, Histogram
from tests.pipeline.samples import NOW, Folder, happened, ms, rows, used


def summed(lake: Lake, records: Folder) -> list[str]:
    ingest(lake, records.url, "usage", ms(NOW))
    if (records.path / "events").exists():
        ingest(lake, records.url, "events", ms(NOW))
    return rollup(lake, ms(NOW))


@pytest.mark.tier("test")
def test_usage_is_summed_up_by_hour_and_by_day(lake: Lake, records: Folder) -> None:
    records.add(
        [
            used(1, "2026-11-20T03:00", msgs=1, bytes_wire=10, peak_msgs_1s=5, client_net="n1"),
            used(2, "2026-11-20T03:59", msgs=2, bytes_wire=20, peak_msgs_1s=3, client_net="n2"),
            used(3, "2026-11-20T04:00", msgs=4, bytes_wire=40, client_net="n1"),
            used(4, "2026-11-20T04:00", op="deliver", msgs=8),
            used(5, "2026-11-20T04:00", tenant="other", msgs=16),
            used(6, "2026-11-21T00:00", msgs=32),
        ]
    )
    assert summed(lake, records) == ["2026-11-20", "2026-11-21"]
    columns = "op", "tenant", "day", "msgs", "bytes_wire", "peak_msgs_1s", "networks", "records"
    assert rows(lake.read("daily"), *columns) == [
        ("deliver", "acme", "2026-11-20", 8, 0, 0, 0, 1),
        ("send", "acme", "2026-11-20", 7, 70, 5, 2, 3),
        ("send", "acme", "2026-11-21", 32, 0, 0, 0, 1),
        ("send", "other", "2026-11-20", 16, 0, 0, 0, 1),
    ]
    hours = rows(lake.read("hourly").where("op = 'send' and tenant = 'acme'"), "hour_ms", "msgs")
    assert hours == [
        (ms("2026-11-20T03:00"), 3),
        (ms("2026-11-20T04:00"), 4),
        (ms("2026-11-21T00:00"), 32),
    ]


def test_only_days_that_changed_are_summed_up_again(lake: Lake, records: Folder) -> None:
    records.add([used(1), used(2, "2026-11-21T01:00")])
    summed(lake, records)
    assert rollup(lake, ms(NOW)) == []
    records.add([used(3, msgs=5)], closed="2026-11-22T01:00")
    assert summed(lake, records) == ["2026-11-20"]
    assert rows(lake.read("daily"), "day", "msgs") == [("2026-11-20", 5), ("2026-11-21", 0)]


def waits(seq: int, *seconds: float, time: str = "2026-11-20T03:00", **fields: Any) -> Any:
    histogram = Histogram()
    for it in seconds:
        histogram.add(it)
    return used(
        seq,
        time,
        op="latency",
        lat_what="send",
        lat_bucket=histogram.counts,
        lat_count=len(seconds),
        lat_sum_us=round(sum(seconds) * 1e6),
        **fields,
    )


def test_histograms_are_added_up(lake: Lake, records: Folder) -> None:
    records.add(
        [
            waits(1, 0.0002, 0.003),
            waits(2, 0.003, 90.0, time="2026-11-20T05:00"),
            waits(3, 0.1, tenant="other"),
        ]
    )
    summed(lake, records)
    expected = Histogram()
    for it in (0.0002, 0.003, 0.003, 90.0):
        expected.add(it)
    found = rows(lake.read("latency_daily"), "tenant", "lat_bucket", "lat_count", "lat_sum_us")
    assert found[0] == ("acme", expected.counts, 4, 90_006_200)
    assert [it[2] for it in found] == [4, 1]
    assert len(rows(lake.read("latency_hourly"))) == 3


def by_hand(counts: list[int], part: float) -> float | None:
    total, before = sum(counts), 0
    for at, count in enumerate(counts[:-1]):
        if count and before + count >= total * part:
            low = BOUNDS[at - 1] if at else 0.0
            return low + (total * part - before) / count * (BOUNDS[at] - low)
        before += count
    return BOUNDS[-1] if total else None


def test_a_quantile_is_within_its_bucket(spark: SparkSession) -> None:
    """Compared with the same by hand, of many histograms in one job."""
    found: list[list[int]] = [[0] * 19, [1] + [0] * 18, [0] * 18 + [3]]

    @given(st.lists(st.integers(0, 1000), min_size=19, max_size=19))
    @settings(max_examples=50)
    def gather(counts: list[int]) -> None:
        found.append(counts)

    gather()
    table = spark.createDataFrame([(it,) for it in found], "lat_bucket array<bigint>")
    for part in (0.5, 0.95, 0.99):
        values = [row[0] for row in table.select(quantile(part)).collect()]
        assert values == pytest.approx([by_hand(it, part) for it in found])


# -- completeness ------------------------------------------------------------------------------


def missing(lake: Lake) -> list[tuple[Any, ...]]:
    return rows(gaps(lake.read("completeness")), "stream", "day", "records", "missing")


def test_nothing_is_missing_where_numbers_have_no_gap(lake: Lake, records: Folder) -> None:
    records.add([used(1), used(2), used(3, "2026-11-21T00:00"), used(1, boot="c")])
    summed(lake, records)
    assert missing(lake) == [("usage", "2026-11-20", 3, 0), ("usage", "2026-11-21", 1, 0)]


def test_gaps_are_found_within_days_between_them_and_before_the_first(
    lake: Lake, records: Folder
) -> None:
    records.add([used(3), used(5), used(9, "2026-11-21T00:00")])
    records.add([happened(2)])
    summed(lake, records)
    assert missing(lake) == [
        ("events", "2026-11-20", 1, 1),
        ("usage", "2026-11-20", 2, 3),
        ("usage", "2026-11-21", 1, 3),
    ]
