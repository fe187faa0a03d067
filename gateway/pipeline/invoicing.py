"""Writes a month's invoices, its overview and its FOCUS rows, and closes months.

    FOLDER/2026-11/overview.html, focus.csv, invoice-TENANT.html, invoice-TENANT.csv
    FOLDER/closed/2026-10.json
    FOLDER/2026-10.1/focus.csv, credit-note-TENANT.html, invoice-TENANT.html, and both as .csv
    FOLDER/corrected/2026-10.1.json

A closed month is what was billed; it never changes. What late records change of it becomes
adjustments in the earliest later month that is not closed. Other prices are a correction: credit
notes, and new invoices.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline.billing import closing, focus, invoices, overview
from gateway.pipeline.billing.adjustments import Adjustment, adjust
from gateway.pipeline.billing.amounts import UNALLOCATED, Statement, charge
from gateway.pipeline.billing.closing import Closed
from gateway.pipeline.billing.correcting import changes, documents, standing
from gateway.pipeline.billing.figures import Use, by_day
from gateway.pipeline.billing.file_names import file_stem
from gateway.pipeline.billing.months import begin
from gateway.pipeline.billing.wording import count_are
from gateway.system.whole_files import write_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from gateway.pipeline.billing.amounts import Charges
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.chargeback import MonthlyUse

GRACE = timedelta(hours=72)
"""After the end of a month, before it may be closed: gateways that were cut off deliver late."""


def closed_months(folder: Path) -> list[Closed]:
    """Return what was closed, oldest first. Raises `ConfigurationError` if a file is wrong."""
    paths = sorted((folder / "closed").glob("*.json"))
    return [closing.load(path.read_bytes(), str(path)) for path in paths]


def corrected_months(folder: Path) -> list[Closed]:
    """Return the corrections of closed months, oldest first. Raises as `closed_months` does."""
    found = {}
    for path in (folder / "corrected").glob("*.json"):
        this = closing.load(path.read_bytes(), str(path))
        if this.correction is None:
            raise ConfigurationError(
                f"{path}: is not a correction, but a closed month; move it back"
            )
        found[this.month, this.correction.number] = this
    return [found[it] for it in sorted(found)]


def bill(card: RateCard, month: Month, use: MonthlyUse) -> Charges:
    """Return what all tenants owe for a month."""
    of_month = card.of(month)
    return charge(of_month, by_day(use.used, use.uses) if of_month.changes else use.used)


def adjustments(
    month: Month,
    closed: Sequence[Closed],
    look: Callable[[Month], MonthlyUse | None],
    back: int,
) -> dict[Month, tuple[Adjustment, ...]]:
    """Return what late records change of closed months before this one, by the month whose invoices
    have it: the earliest later one that is not closed. It is the same whichever month is written,
    so no two invoices have an adjustment; while nobody closes that month, none of a later one has
    it. `closed`: all closed months, then all corrections. `look`: reads what was used in a month;
    None of one whose days are gone, which stays as it was billed. `back`: how many of the latest
    closed months are looked at."""
    months = {it.month for it in closed}
    found: dict[Month, tuple[Adjustment, ...]] = {}
    for original in sorted(it for it in months if it < month)[-back or len(months) :]:
        use, before = look(original), standing(original, closed)
        if use is None or before is None:
            continue
        present = original.next()
        while present in months:
            present = present.next()
        card, both = before.last.card, (original, present)
        now = bill(card, original, use).lines()
        if made := adjust(card.currency, both, before.last.lines, now, before.adjustments):
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
    charges = bill(card, month, use)
    into = folder / str(month)
    into.mkdir(parents=True, exist_ok=True)
    setting = focus.Setting(card, month, use.completeness.part)
    table = focus.to_csv(setting, charges, adjustments, for_spreadsheets=for_spreadsheets)
    write_at_once(into / "focus.csv", table)
    statements = {it.tenant: it for it in charges.statements}
    of_tenant = defaultdict[str, list[Adjustment]](list)
    for it in adjustments:
        of_tenant[it.tenant].append(it)
    for tenant in sorted({*statements, *of_tenant} - {UNALLOCATED}):
        statement = statements.get(tenant) or Statement.empty(tenant, card.currency)
        own = tuple(of_tenant[tenant])
        seen = use.uses.get(tenant, Use(use.completeness))
        invoice = invoices.Invoice(card, month, statement, seen, own)
        _write_invoice(into / file_stem(tenant), invoice, for_spreadsheets=for_spreadsheets)
    whole = overview.Overview(
        card, month, charges, use.completeness, tuple(adjustments), has_links=True
    )
    write_at_once(into / "overview.html", overview.to_html(whole))
    return charges


def _write_invoice(stem: Path, invoice: invoices.Invoice, *, for_spreadsheets: bool) -> None:
    write_at_once(stem.with_name(f"{stem.name}.html"), invoices.to_html(invoice))
    table = invoices.to_csv(invoice, for_spreadsheets=for_spreadsheets)
    write_at_once(stem.with_name(f"{stem.name}.csv"), table)


def correct(
    folder: Path,
    now: Closed,
    closed: Sequence[Closed],
    use: MonthlyUse,
    *,
    for_spreadsheets: bool = False,
) -> Path:
    """Bill a closed month again: write the documents of the correction, then its file, which is
    returned.

    `now`: the month with the new rate card, and the day and reason of its correction; the rest is
    filled in. `closed`: as of `adjustments`. Raises `ConfigurationError` if the month is not
    closed, or nothing changes.
    """
    month, card, before = now.month, now.card, standing(now.month, closed)
    if before is None or now.correction is None:
        raise ConfigurationError(f"{month} cannot be corrected: it is not closed; write it again")
    if card.currency != before.last.card.currency:
        raise ConfigurationError(
            f"{month} cannot be corrected: it was billed in {before.last.card.currency.code}"
        )
    charges = bill(card, month, use)
    tenants = changes(before, charges)
    if not tenants and card == before.last.card:
        raise ConfigurationError(f"{month} needs no correction: by these prices it stays as it is")
    made = now.correction._replace(
        number=len(before.bills), tenants=tenants, credited=before.adjustments
    )
    now = now._replace(lines=tuple(charges.lines()), correction=made)
    found, name = tuple(documents(before, now, charges)), f"{month}.{made.number}"
    into = folder / name
    into.mkdir(parents=True, exist_ok=True)
    setting = focus.Setting(card, month, use.completeness.part)
    table = focus.corrections_to_csv(setting, made.issued, found, for_spreadsheets=for_spreadsheets)
    write_at_once(into / "focus.csv", table)
    for it in found:
        tenant, nothing = it.statement.tenant, Use(use.completeness)
        if tenant == UNALLOCATED:
            continue
        seen = nothing if it.is_credit else use.uses.get(tenant, nothing)
        invoice = invoices.Invoice(
            card, month, it.statement, seen, it.adjustments, made.issued, document=it
        )
        stem = file_stem(tenant, "credit-note" if it.is_credit else "invoice")
        _write_invoice(into / stem, invoice, for_spreadsheets=for_spreadsheets)
    path = folder / "corrected" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, closing.dump(now).decode())
    return path


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
    """Close a month; return its file. Raises `ConfigurationError` before the grace is over."""
    month = closed.month
    if now < begin(month.next().first, closed.card.time_zone) + GRACE:
        hours = GRACE // timedelta(hours=1)
        raise ConfigurationError(
            f"{month} cannot be closed yet: records may come until {hours} hours after its end"
        )
    path = folder / "closed" / f"{month}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, closing.dump(closed).decode())
    return path
