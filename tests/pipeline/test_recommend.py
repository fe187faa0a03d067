"""Limits from what tenants used."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.limits.deciding import Policy, Seen, Undecided, What
from gateway.pipeline.limits.texts import write
from gateway.pipeline.limits.writing import current, document, identifier
from gateway.pipeline.recommend import history, recommend
from tests.pipeline.samples import NOW, Folder, ms, used


@pytest.fixture
def usage(lake: Lake, records: Folder) -> Lake:
    """Return tables in which acme sends for four days from two gateways, and another for one."""
    all = []
    for number in range(40):
        time = f"2026-11-2{number % 4}T03:{number:02}"
        for gw in ("edge-1", "edge-2"):
            both = {"sent_msgs": 5_000, "sent_bytes": 50_000, "peak_msgs_1s": 900}
            all.append(used(number + 1, time, gw=gw, **both))
    all += [
        used(50, "2026-11-23T04:00", sent_msgs=80_000, throttle_count=3, peak_msgs_1s=10_000),
        used(51, "2026-11-23T05:00", tenant="brief", sent_msgs=10),
        used(52, "2026-11-23T05:00", tenant=None, sent_msgs=10**9),
        used(53, "2026-11-23T05:00", tenant="__other__", sent_msgs=10**9),
    ]
    records.add(all)
    ingest(lake, records.url, "usage", ms(NOW))
    return lake


def test_rates_are_of_all_gateways_together(usage: Lake) -> None:
    seen = {(it.tenant, it.what): it for it in history(usage.read("usage"), 0.5)}
    assert seen["acme", What.PUBLISH_MESSAGES] == Seen(
        "acme", What.PUBLISH_MESSAGES, 4, 41, usual=1000, most=8000, peak=10_000, held=8000
    )
    assert {tenant for tenant, _ in seen} == {"acme", "brief"}
    assert ("acme", What.DISPATCH_BYTES) not in seen


@pytest.mark.tier("test")
def test_limits_are_rules_that_gateways_read(usage: Lake, tmp_path: Path) -> None:
    limits, undecided = recommend(usage.read("usage"), Policy(), {})
    found = {it.seen.what: it.rate for it in limits}
    assert found == {What.PUBLISH_MESSAGES: 12_000, What.PUBLISH_BYTES: 100_000}
    assert {it.seen.tenant for it in undecided} == {"brief"}
    assert isinstance(undecided[0], Undecided)
    path = tmp_path / "tenants.yaml"
    write(path, document(limits, date(2026, 12, 24)))
    named = {identifier("acme", it): found[it] for it in found}
    assert current(path) == named
    assert recommend(usage.read("usage"), Policy(), named)[0] == limits
