"""Writes a month's invoices, its overview and its FOCUS rows, and closes months.

    FOLDER/2026-11/overview.html, focus.csv, invoice-TENANT.html, invoice-TENANT.csv
    FOLDER/closed/2026-10.json

A closed month is what was billed; it never changes. What late records change of it becomes
adjustments in the earliest later month that is not closed.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline.billing import closing, focus, invoices, overview
from gateway.pipeline.billing.adjustments import adjust
from gateway.pipeline.billing.amounts import charge
from gateway.pipeline.billing.closing import Closed
from gateway.pipeline.billing.figures import Use
from gateway.pipeline.billing.file_names import file_stem
from gateway.pipeline.billing.wording import count_are
from gateway.system.whole_files import write_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gateway.pipeline.billing.adjustments import Adjustment
    from gateway.pipeline.billing.amounts import Charges
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.chargeback import MonthlyUse

GRACE = timedelta(hours=72)
"""After the end of a month, before it may be closed: gateways that were cut off deliver late."""

ADJUSTED = 3
"""Closed months that are looked at for late records: older records were dropped long ago by the
gateways' own disks."""


def closed_months(folder: Path) -> list[Closed]:
    """Return what was closed, oldest first. Raises `ConfigurationError` if a file is wrong."""
    paths = sorted((folder / "closed").glob("*.json"))
    return [closing.load(path.read_bytes(), str(path)) for path in paths]


def corrections(
    month: Month, closed: Sequence[Closed], look: Callable[[Month], MonthlyUse | None]
) -> dict[Month, tuple[Adjustment, ...]]:
    """Return what late records change of closed months before this one, by the month whose invoices
    have it: the earliest later one that is not closed. It is the same whichever month is written,
    so no two invoices have a correction; while nobody closes that month, none of a later one has
    it. `look`: reads what was used in a month; None of one whose days are gone, which stays as it
    was billed."""
    earlier = [it for before in closed for it in before.adjustments]
    months = {it.month for it in closed}
    found: dict[Month, tuple[Adjustment, ...]] = {}
    for before in [it for it in closed if it.month < month][-ADJUSTED:]:
        use = look(before.month)
        if use is None:
            continue
        present = before.month.next()
        while present in months:
            present = present.next()
        now, both = charge(before.card, use.used), (before.month, present)
        if made := adjust(before.card.currency, both, before.lines, now.lines(), earlier):
            found[present] = (*found.get(present, ()), *made)
    return found


def write(
    folder: Path,
    month: Month,
    card: RateCard,
    use: MonthlyUse,
    adjustments: Sequence[Adjustment] = (),
    *,
    for_spreadsheets: bool = False,
) -> Charges:
    """Write all files of a month; return its charges. `for_spreadsheets`: no text of a CSV file is
    taken for a formula."""
    charges = charge(card, use.used)
    into = folder / str(month)
    into.mkdir(parents=True, exist_ok=True)
    setting = focus.Setting(card, month, use.completeness.part)
    table = focus.to_csv(setting, charges, adjustments, for_spreadsheets=for_spreadsheets)
    write_at_once(into / "focus.csv", table)
    for statement in charges.statements:
        tenant = statement.tenant
        own = tuple(it for it in adjustments if it.tenant == tenant)
        seen = use.uses.get(tenant, Use(use.completeness))
        invoice = invoices.Invoice(card, month, statement, seen, own)
        stem = into / file_stem(tenant)
        write_at_once(stem.with_name(f"{stem.name}.html"), invoices.to_html(invoice))
        table = invoices.to_csv(invoice, for_spreadsheets=for_spreadsheets)
        write_at_once(stem.with_name(f"{stem.name}.csv"), table)
    whole = overview.Overview(
        card, month, charges, use.completeness, tuple(adjustments), has_links=True
    )
    write_at_once(into / "overview.html", overview.to_html(whole))
    return charges


def check(month: Month, use: MonthlyUse, *, is_empty: bool, accepted: int) -> None:
    """Raise `ConfigurationError` if a month may not be closed with this use. `is_empty`: somebody
    says that nothing was used. `accepted`: how many records may be missing."""
    if use.is_empty and not is_empty:
        raise ConfigurationError(
            f"{month} cannot be closed: the tables have no records of it; name the tables that "
            "have, or say that nothing was used: --empty"
        )
    if is_empty and not use.is_empty:
        raise ConfigurationError(f"--empty: the tables have records of {month}; leave it out")
    missing = use.completeness.missing
    if missing > accepted:
        days = ", ".join(f"{day} ({number:,})" for day, number in use.missing.items())
        raise ConfigurationError(
            f"{month} cannot be closed: {count_are(missing, 'record')} missing, on {days}; ingest "
            f"what is left, or close it without them: --accept-missing {missing}"
        )


def close(folder: Path, closed: Closed, now: datetime) -> Path:
    """Close a month; return its file. `now`: in UTC. Raises `ConfigurationError` before the grace
    is over."""
    month = closed.month
    if now < datetime.combine(month.next().first, time(), UTC) + GRACE:
        hours = GRACE // timedelta(hours=1)
        raise ConfigurationError(
            f"{month} cannot be closed yet: records may come until {hours} hours after its end"
        )
    path = folder / "closed" / f"{month}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, closing.dump(closed).decode())
    return path
