"""When tenants reach limits and steps of prices, and clusters their disks."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.billing.prices import read
from gateway.pipeline.forecast import of_disks, of_limits, of_prices
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.rollup import rollup
from gateway.policy.rules import Rule
from tests.pipeline import several
from tests.pipeline.samples import NOW, Folder, ms, used

GB = 10**9


@pytest.fixture
def taken(lake: Lake, records: Folder) -> Lake:
    """Return tables of three weeks of November: a tenant sends 100 messages a second more on each,
    and half a gigabyte on all of them."""
    records.add(
        [
            used(day, f"2026-11-{day:02}T03:00", sent_msgs=1000 * day, bytes_wire=GB // 2)
            for day in range(1, 22)
        ]
    )
    ingest(lake, records.url, "usage", ms(NOW))
    return lake


@pytest.fixture
def grown(taken: Lake) -> Lake:
    """Return the same, summed up."""
    rollup(taken, ms(NOW))
    return taken


def rule(tenant: str, rate: str) -> Rule:
    return Rule.model_validate(
        {
            "id": f"r-{tenant}",
            "match": {"tenant": tenant},
            "limit": {"publish": {"messages": rate}},
            "per": "tenant",
        }
    )


@pytest.mark.tier("test")
def test_a_limit_is_reached_in_some_days(grown: Lake) -> None:
    rules = [rule("acme", "2500/s"), rule("nobody", "10/s")]
    acme, nobody = of_limits(grown, rules)
    assert acme.mark.what == "r-acme: publish.messages"
    assert acme.forecast is not None
    assert acme.forecast.days == 4  # 2100 on the last day
    assert acme.forecast.error == pytest.approx(0)
    assert nobody.forecast is None


def test_the_next_step_of_a_price_is_reached_in_this_month_or_not(grown: Lake) -> None:
    text = "version: 1\ncurrency: EUR\nprices: {gb_in: {price: 2, tiers: [{above: %s, price: 1}]}}"
    steps = {
        above: list(of_prices(grown, read(text % above, Path("p.yaml")), date(2026, 11, 21)))
        for above in ("5", "12", "100")
    }
    assert steps["5"] == []  # it is above that already
    (soon,) = steps["12"]
    assert soon.mark.who == "acme"
    assert soon.forecast is not None
    assert soon.forecast.days == 3  # 10.5 GB so far
    (never,) = steps["100"]
    assert never.forecast is not None
    assert never.forecast.days is None


def test_what_is_not_summed_up_yet_is_in_forecasts_of_prices(
    taken: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.yaml"
    tiers = "gb_in: {price: 2, tiers: [{above: 1000000, price: 1}]}"
    prices.write_text(f"version: 1\ncurrency: EUR\nprices: {{{tiers}}}\n")
    options = several.options_of(["forecast", taken.base, "--prices", str(prices)])
    assert options.job(taken.spark, options) == 0
    assert capsys.readouterr().err == "21 days summed up first\n1 forecasts\n"


def test_a_disk_without_snapshots_has_no_forecast(lake: Lake) -> None:
    (found,) = of_disks(lake, {"main": 10**12})
    assert found.mark.value == 10**12
    assert found.forecast is None
