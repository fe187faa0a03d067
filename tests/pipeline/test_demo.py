"""The demonstration: a made-up month through all jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.amounts import charge
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import read
from gateway.pipeline.demo.planted import Fact, Planted, What
from gateway.pipeline.demo.report import Found, Seen, matched, to_html
from gateway.pipeline.demo.showing import show
from tests.pipeline.samples import ms

FEBRUARY = Month(2026, 2)
CARD = read("version: 1\ncurrency: EUR\nprices: {gb_in: 1}", Path("p.yaml"))
NOW = ms("2026-03-03T12:00")


def test_a_month_goes_through_all_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """Its records are of hours, so that it takes seconds, and incidents are not told apart."""
    said: list[str] = []
    options = {"tenants": 10, "interval_ms": 3_600_000}
    page = show(spark, tmp_path / "demo", FEBRUARY, NOW, said.append, **options)
    text = page.read_text()
    assert "Messages and bytes of all 10 tenants are what was made up." in text
    assert "February 2026" in text
    overview = page.parent / "invoices" / "2026-02" / "overview.html"
    assert 'href="invoices/2026-02/overview.html"' in text
    assert overview.exists()
    assert (page.parent / "rules" / "recommended" / "tenants.yaml").exists()
    assert len(said) >= 8
    with pytest.raises(ConfigurationError, match="is not empty; name a new folder"):
        show(spark, tmp_path / "demo", FEBRUARY, NOW, said.append)


def found_of(planted: tuple[Fact, ...], *seen: Seen) -> Found:
    charges = charge(CARD, [])
    made_up = Planted(planted, {}, {}, {}, 0, 0)
    return Found(made_up, (), charges, seen, (), (), ())


def test_what_was_found_is_held_against_what_was_planted() -> None:
    noisy = Fact(What.NOISY_NEIGHBOUR, 100, 200, tenant="acme")
    sprayed = Fact(What.SPRAYING, 100, 200, networks=("192.0.2.0/24",))
    growth = Fact(What.GROWTH, 0, 1000, tenant="acme")
    right = Seen("noisy_neighbour", "acme", 150, 250, ("best",))
    late, other = right._replace(start_ms=200), right._replace(who="best")
    found = matched(found_of((noisy, sprayed, growth), late, right, other))
    assert found == [(noisy, right), (sprayed, None), (None, late), (None, other)]


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("2026-02-05T11:30", "05 Feb 10:00 to 11:30"),
        ("2026-02-06T00:00", "05 Feb 10:00 to 24:00"),
        ("2026-02-06T00:01", "05 Feb 10:00 to 06 Feb 00:01"),
    ],
)
def test_a_time_of_one_day_names_it_once(end: str, shown: str) -> None:
    seen = Seen("guessed", "acme-app", ms("2026-02-05T10:00"), ms(end))
    text = to_html(found_of((), seen), FEBRUARY, CARD)
    assert f">{shown}<" in text
