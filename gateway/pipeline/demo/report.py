"""The page of the demonstration: what was made up, and what the jobs found of it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.pipeline.billing.markup import Content, Markup, name, tag
from gateway.pipeline.billing.meters import BY_FIGURE
from gateway.pipeline.billing.sheet import Column, Record, facts, page, paragraphs, section, table
from gateway.pipeline.demo.planted import What

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.pipeline.billing.amounts import Charges, Line
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.demo.planted import Fact, Planted
    from gateway.pipeline.ingest import Taken
    from gateway.pipeline.limits.deciding import Limit, Undecided

KINDS: Final = {
    What.NOISY_NEIGHBOUR: "noisy_neighbour",
    What.SPRAYING: "spraying",
    What.GUESSED: "guessed",
    What.SHARED_CREDENTIAL: "shared_credential",
    What.EXPIRED_STORM: "expired_storm",
}
"""What is planted, and what jobs call it."""

_TITLES: Final = {
    "noisy_neighbour": "Noisy neighbour",
    "spraying": "Password spraying",
    "guessing": "Guessing",
    "guessed": "Guessed password",
    "shared_credential": "Shared credential",
    "expired_storm": "Expired token (a mistake)",
}


class Seen(NamedTuple):
    """An incident that a job found. `who`: tenant, principal or network."""

    kind: str
    who: str
    start_ms: int
    end_ms: int
    victims: tuple[str, ...] = ()


class Found(NamedTuple):
    """What all jobs gave."""

    planted: Planted
    taken: tuple[Taken, ...]
    charges: Charges
    incidents: tuple[Seen, ...]
    findings: tuple[Seen, ...]
    limits: Sequence[Limit]
    undecided: Sequence[Undecided]


def matched(found: Found) -> list[tuple[Fact | None, Seen | None]]:
    """Return each planted incident with what was found of it, and what was found besides."""
    left = [*found.incidents, *found.findings]
    pairs: list[tuple[Fact | None, Seen | None]] = []
    for what, kind in KINDS.items():
        for fact in found.planted.of(what):
            whom = {fact.tenant, *fact.principals, *fact.networks}
            fitting = (
                it
                for it in left
                if it.kind == kind
                and it.who in whom
                and it.start_ms < fact.end_ms
                and fact.start_ms < it.end_ms
            )
            seen = next(fitting, None)
            if seen is not None:
                left.remove(seen)
            pairs.append((fact, seen))
    return [*pairs, *((None, it) for it in left)]


def unequal(found: Found) -> list[str]:
    """Return the tenants whose invoice has other messages or bytes than was made up."""
    wrong = []
    for tenant, truth in found.planted.truth.items():
        statement = found.charges.of(tenant)
        billed = {} if statement is None else _figures(statement.lines)
        expected = {
            "msgs_in": truth.messages_in,
            "msgs_out": truth.messages_out,
            "bytes_in": truth.bytes_in,
            "bytes_out": truth.bytes_out,
        }
        if any(billed.get(figure, 0) != number for figure, number in expected.items()):
            wrong.append(tenant)
    return wrong


def _figures(lines: Sequence[Line]) -> dict[str, int]:
    """Return what lines bill, in the units of records."""
    sums: dict[str, int] = {}
    for line in lines:
        meter = BY_FIGURE.get(line.charge)
        if meter is not None:
            whole = line.quantity * meter.per
            sums[line.charge] = sums.get(line.charge, 0) + int(whole)
    return sums


def to_html(found: Found, month: Month, card: RateCard) -> str:
    """Return the page."""
    header = tag(
        "header",
        tag(
            "div",
            tag("p", "The pipeline's demonstration", class_="kind"),
            tag("h1", f"A made-up month: {month.title}"),
        ),
        tag(
            "div",
            tag("p", "Billed in all"),
            tag("p", card.currency.text(found.charges.total), class_="amount"),
            class_="sum",
        ),
    )
    main = tag(
        "main",
        _records(found),
        _bills(found, month),
        _incidents(found),
        _limits(found),
    )
    footer = tag("footer", tag("p", "Tenants, traffic and incidents are invented."))
    return page(f"A made-up month: {month.title}", header, main, footer)


def _records(found: Found) -> Markup:
    records, quarantined, missing, files = (
        sum(getattr(it, field) for it in found.taken)
        for field in ("records", "quarantined", "missing", "files")
    )
    lost = sum(found.planted.missing.values())
    return section(
        "Records",
        facts(
            [
                ("Files", f"{files:,}", None),
                ("Records read", f"{records:,}", None),
                ("Lines put aside", f"{quarantined:,}", None),
                ("Lacking in torn files", f"{missing:,}", None),
                ("Records lost in all", f"{lost:,}", None),
            ]
        ),
        paragraphs(
            "One file is torn, one is missing, one is there twice, one is late, and one has lines "
            "that are no records: the month is billed all the same, each record once."
        ),
    )


def _bills(found: Found, month: Month) -> Markup:
    wrong = unequal(found)
    said = (
        f"Messages and bytes of all {len(found.planted.truth)} tenants are what was made up."
        if not wrong
        else f"Differ from what was made up: {', '.join(wrong)}."
    )
    link = tag("a", "All invoices", href=f"invoices/{month}/overview.html")
    return section("Bills", paragraphs(link, said), kind=None if not wrong else "warning")


def _incidents(found: Found) -> Markup:
    rows = [_row(*pair) for pair in matched(found)]
    columns = (
        *(Column("What"), Column("Who"), Column("Planted"), Column("Found")),
        Column("Others waited", is_number=True),
    )
    return section(
        "Incidents",
        paragraphs(
            "Besides these, one tenant's traffic tripled for good and hurt nobody; that is none."
        ),
        table("Incidents that were planted, and those that were found", columns, rows),
    )


def _row(fact: Fact | None, seen: Seen | None) -> Record:
    kind = seen.kind if seen is not None else KINDS[fact.what] if fact is not None else ""
    if seen is not None:
        who = seen.who
    else:
        assert fact is not None
        who = fact.tenant or next(iter((*fact.principals, *fact.networks)), "")
    planted: Content = "—" if fact is None else _span(fact.start_ms, fact.end_ms)
    told: Content = "not found" if seen is None else _span(seen.start_ms, seen.end_ms)
    victims: Content = f"{len(seen.victims)}" if seen is not None and seen.victims else ""
    is_good = fact is not None and seen is not None
    cells = (_TITLES.get(kind, kind), name(who), planted, told, victims)
    return Record(cells, None if is_good else "bad")


def _span(start_ms: int, end_ms: int) -> Markup:
    start, end = (datetime.fromtimestamp(it / 1000, UTC) for it in (start_ms, end_ms))
    if end == datetime.combine(start + timedelta(days=1), time(), UTC):
        until = "24:00"
    else:
        until = f"{end:{'%H:%M' if start.date() == end.date() else '%d %b %H:%M'}}"
    return tag("span", f"{start:%d %b %H:%M} to {until}", class_="whole")


def _limits(found: Found) -> Markup:
    columns = (
        Column("Tenant"),
        Column("What"),
        *(Column(it, is_number=True) for it in ("Usual", "Most", "Held", "Limit", "At once")),
    )
    rows = list(_limit_rows(found.limits))
    without = sorted({it.seen.tenant for it in found.undecided})
    return section(
        "Recommended limits",
        paragraphs(
            "Per second, in shadow mode: rules/recommended/tenants.yaml.",
            f"None for {', '.join(without)}." if without else "",
        ),
        table("Limits by tenant", columns, rows),
    )


def _limit_rows(limits: Sequence[Limit]) -> Iterator[Record]:
    for it in sorted(limits, key=lambda it: (it.seen.tenant, it.seen.what)):
        numbers = (it.seen.usual, it.seen.most, it.seen.held, it.rate, it.burst)
        shown = tuple(f"{number:,.0f}" if number else "" for number in numbers)
        yield Record((name(it.seen.tenant), it.seen.what.value, *shown))
