"""`gateway pipeline demo`: a made-up month goes through all jobs, and a page shows the results."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline import abuse, invoicing, neighbours
from gateway.pipeline.billing import prices
from gateway.pipeline.chargeback import month_of
from gateway.pipeline.demo.month import write_month
from gateway.pipeline.demo.report import Found, Seen, to_html
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.limits import texts, writing
from gateway.pipeline.limits.deciding import Policy
from gateway.pipeline.recommend import recommend
from gateway.pipeline.rollup import rollup
from gateway.pipeline.schema import OF_GATEWAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.ingest import Taken

PRICES = """\
version: 1
currency: EUR
issuer: Example Platform Team
note: "A demonstration: nobody owes this."
prices:
  gb_in: 0.09
  gb_out: {price: 0.05, tiers: [{above: 500, price: 0.04}]}
  million_messages_in: 0.40
  million_messages_out: 0.20
  connection_hour: 0.002
minimum: 5
"""
"""Of the demonstration."""

DAYS = 14
"""At the end of the month, from which limits are recommended."""

FINDINGS = 1000
"""Incidents, and findings of abuse, that the page has at most."""


def show(
    spark: SparkSession,
    folder: Path,
    month: Month,
    now_ms: int,
    say: Callable[[str], None],
    *,
    tenants: int = 20,
    interval_ms: int = 300_000,
) -> Path:
    """Run all jobs on a made-up month in an empty folder; return the page. `now_ms`: after it.
    Raises `ConfigurationError` if something is there."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError(f"{folder}: is not empty; name a new folder")
    began = time.monotonic()

    def tell(text: str) -> None:
        say(f"{time.monotonic() - began:5.0f} s  {text}")

    def made_up(done: int, days: int) -> None:
        if done in (days // 3, 2 * days // 3, days):
            tell(f"made up {done} of {days} days")

    records, invoices = folder / "records", folder / "invoices"
    planted = write_month(
        records,
        month.first,
        days=len(month.days()),
        tenants=tenants,
        interval_ms=interval_ms,
        progress=made_up,
    )
    lake = Lake(spark, str(folder / "tables"))
    taken: list[Taken] = []
    for stream in OF_GATEWAYS:
        taken += ingest(lake, str(records), stream, now_ms)
        tell(f"ingest: {sum(it.records for it in taken):,} records")
    tell(f"rollup: {len(rollup(lake, now_ms))} days")
    card = prices.read(PRICES, folder / "prices.yaml")
    (folder / "prices.yaml").write_text(PRICES)
    charges = invoicing.write(invoices, month, card, month_of(lake, month))
    tell(f"chargeback: {len(charges.statements)} invoices")
    days = [it.isoformat() for it in month.days()]
    incidents = _incidents(neighbours.update(lake, days, now_ms))
    tell(f"neighbours: {len(incidents)} incidents")
    findings = _findings(abuse.update(lake, days, now_ms))
    tell(f"abuse: {len(findings)} findings")
    limits, undecided = recommend(lake.read("usage", days[-DAYS:]), Policy(), {})
    rules = folder / "rules" / "recommended" / "tenants.yaml"
    until = writing.good_until(month.next().first, Policy().valid_days, None)
    texts.write(rules, writing.document(limits, until))
    tell(f"recommend: {len(limits)} limits")
    found = Found(planted, tuple(taken), charges, incidents, findings, limits, undecided)
    page = folder / "report.html"
    page.write_text(to_html(found, month, card))
    tell(f"the page: {page}")
    return page


def _incidents(found: DataFrame) -> tuple[Seen, ...]:
    return tuple(
        Seen("noisy_neighbour", it.culprit, it.start_ms, it.end_ms, tuple(sorted(it.victims)))
        for it in found.orderBy("start_ms").limit(FINDINGS).collect()
    )


def _findings(found: DataFrame) -> tuple[Seen, ...]:
    return tuple(
        Seen(it.kind, it.principal or it.network or "", it.start_ms, it.end_ms)
        for it in found.orderBy("start_ms").limit(FINDINGS).collect()
    )
