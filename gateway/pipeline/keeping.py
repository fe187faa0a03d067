"""How long tables are kept, and what is removed from their folder.

`retain` lets days go at an age that each kind of table has: records are large and needed for
weeks, sums are small and needed for years. A day of records or snapshots goes only once it is
summed up, and a record that comes later for it is put aside, because it would stand for the whole
day. Sums that bills are made of go only once their month is closed. Months are billed in order, so
the first open one holds back all days from its first on; then one day, in a commit, says which days
are gone.

Days need no joining: a day is always written whole, as one file, or as some of a hundred megabytes.
`compact` removes the files that nobody reads any more, and joins the lists of files that were
taken, to which each run of `ingest` adds one. Files that were replaced are left for a day, because
a job that began before that may still read them; so are those that no commit names yet, because
their job may still run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline import inbox, rollup, storage
from gateway.pipeline.billing.months import Month
from gateway.pipeline.chargeback import BILLED
from gateway.pipeline.ingest import EARLIEST
from gateway.pipeline.lake import NO_DAY, State, needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from gateway.pipeline.lake import Commit, Lake, Written

FOREVER = 0

NEVER = "9999-12-31"
"""A day after all others."""

TIERS = {
    "records": 90,
    "stored": 90,
    "quarantine": 30,
    "hourly": 400,
    "daily": FOREVER,
    "findings": FOREVER,
}
"""Days that each kind of table is kept. Jobs look back four weeks of records, an audit of a bill a
quarter; 400 days of hours compare a season with the last one."""

MEMBERS = {
    "records": ("usage", "events"),
    "stored": ("stored",),
    "quarantine": ("quarantine",),
    "hourly": ("hourly", "latency_hourly"),
    "daily": ("daily", "latency_daily", "stored_daily"),
    "findings": ("neighbours", "abuse"),
}
"""The tables of each kind. `completeness` and `files` are kept: gaps are counted from the first
number of a process on, and a file that is forgotten is taken again."""

FEEDS = ("records", "stored")
"""Kinds that sums are made from."""

LEAST = {"records": 2, "stored": 3, "daily": 93}
"""Days for which these are kept at least: records until late ones have come; a month of bills, and
the next one, whose invoices have the adjustments of the first."""

REACH = {"stored": 2}
"""How many days beyond the oldest snapshots a late one is refused: it changes the days beside its
own, whose sums need the days beside them."""

KEPT_MS = inbox.KEPT_MS
"""For which replaced files stay at least: longer than jobs and readers run, and as long as the
inbox asks for tables of the past."""

JOINED = 20
"""Lists of files beyond which they are joined to one."""


def tiers(texts: Mapping[str, int]) -> dict[str, int]:
    """Return the days of all kinds, some of them as given. Raises `ConfigurationError` for a kind
    that does not exist, or too few days."""
    for kind, days in texts.items():
        if kind not in TIERS:
            raise ConfigurationError(f"--keep {kind}={days}: keep one of {', '.join(TIERS)}")
        least = LEAST.get(kind, 1)
        if days != FOREVER and days < least:
            raise ConfigurationError(f"--keep {kind}={days}: keep {least} days at least, or 0: all")
    return {**TIERS, **texts}


@dataclass(frozen=True, slots=True)
class Old:
    """The days of a table that are old enough to go (`days`). `before`: ingest refuses records of
    earlier days from then on.
    `waiting`: days that stay, because they are needed for sums that are not made yet. `unbilled`:
    days that stay, because their month is not closed, or one before it."""

    table: str
    days: tuple[str, ...]
    before: str
    waiting: tuple[str, ...] = ()
    unbilled: tuple[str, ...] = ()


def old(
    state: State, kept: Mapping[str, int], today: date, closed: Set[Month] | None = frozenset()
) -> list[Old]:
    """Return what is to go, by table. `kept`: days by kind of table. `closed`: months that will not
    be billed any more; None if none will."""
    found, open_from = list[Old](), NEVER if closed is None else _open_from(state, closed)
    for kind, number in kept.items():
        if number == FOREVER:
            continue
        first = (today - timedelta(days=number)).isoformat()
        unsummed = _unsummed(state, kind)
        waiting = tuple(day for day in unsummed if day < first)
        first = min([first, *unsummed])
        of_kind = [_old(state, kind, it, first, open_from, waiting) for it in MEMBERS[kind]]
        # All or none: a late event of a day whose usage is gone would have it summed up anew.
        if any(it.days or it.waiting or it.unbilled for it in of_kind):
            found += of_kind
    return found


def _old(
    state: State, kind: str, table: str, first: str, open_from: str, waiting: tuple[str, ...]
) -> Old:
    end = min(first, open_from) if table in BILLED else first
    aged = [it for it in sorted(state.days.get(table, {})) if _known(it) < first]
    days = tuple(it for it in aged if _known(it) < end)
    unbilled = tuple(it for it in aged if it not in days)
    return Old(table, days, _refused(kind, end), waiting, unbilled)


def _open_from(state: State, closed: Set[Month]) -> str:
    """Return the first day of the first month that may still be billed: it is not closed, and has
    sums, or what they are made from; `NEVER` if there is none."""
    days = {day for table in BILLED for day in state.days.get(table, {})}
    days.update(*(_unsummed(state, kind) for kind in FEEDS))
    months = {_month(day) for day in days} - closed
    return min(months).first.isoformat() if months else NEVER


def _month(day: str) -> Month:
    return Month.read(day[: len("2026-11")])


def holding(found: Iterable[Old], closed: Set[Month]) -> dict[Month, int]:
    """Return the open months that hold days back, and how many each: its own, and those of closed
    months after it."""
    held = [it for it in found if it.unbilled]
    days = sorted({day for it in held for day in it.unbilled})
    first = {_month(it.before) for it in held}
    still_open = (first | set(map(_month, days))) - closed
    return Counter(max(it for it in still_open if it <= _month(day)) for day in days)


def _unsummed(state: State, kind: str) -> list[str]:
    """Return the days of a kind that sums are still to be made from, in order."""
    if kind == "records":
        return rollup.stale(state)
    if kind == "stored":
        there = state.days.get("stored", {})
        return [day for day in storage.around(storage.stale(state)) if day in there]
    return []


def _known(day: str) -> str:
    """Return a day, or one that never comes for lines whose file names none: their age is not
    known."""
    return NEVER if day == EARLIEST else day


def _refused(kind: str, first: str) -> str:
    return (date.fromisoformat(first) + timedelta(days=REACH.get(kind, 0))).isoformat()


def retain(
    lake: Lake,
    kept: Mapping[str, int],
    today: date,
    now_ms: int,
    closed: Set[Month] | None = frozenset(),
) -> list[Old]:
    """Remove old days from the tables by one commit, and return them (see `old`). If the commit of
    another job wins, commit again."""
    state = lake.state()
    found = left = old(state, kept, today, closed)
    while any(it.days for it in left):
        change = lake.change("retain", now_ms, state)
        for it in left:
            change.retire(it.table, it.days, it.before)
        change.commit()
        found, state = left, lake.state()
        left = old(state, kept, today, closed)
    return found


# -- files -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Removed:
    """Generations of tables, their bytes, and commits."""

    generations: int = 0
    size: int = 0
    commits: int = 0


def compact(lake: Lake, now_ms: int, *, kept_ms: int = KEPT_MS) -> Removed:
    """Join the lists of files, and remove what nobody has needed since `kept_ms` ago."""
    state = lake.state()
    lists = state.days.get("files", {}).get(NO_DAY, [])
    if len(lists) > JOINED or state.length > 1:
        change = lake.change("compact", now_ms, state)
        change.rewrite("files", lake.read("files", state=state))
        change.commit()
    return _sweep(lake, now_ms - kept_ms)


def _sweep(lake: Lake, horizon_ms: int) -> Removed:
    commits = list(lake.commits())
    gone, forgotten = unread(commits, lake.written(), horizon_ms)
    for folder in (*gone, *(f"commits/{it}" for it in forgotten)):
        lake.remove(folder)
    return Removed(len(gone), sum(gone.values()), len(forgotten))


def unread(
    commits: Iterable[Commit], written: Iterable[Written], horizon_ms: int
) -> tuple[dict[str, int], list[str]]:
    """Return the folders that nobody reads who began after the horizon, with their bytes, and the
    commits. A generation counts as one, with all its tables: its job may be at the next one."""
    commits, written = list(commits), list(written)
    kept, read = needed(commits, horizon_ms)
    running = {it.generation for it in written if it.last_ms >= horizon_ms}
    used = {f"data/{table}/{generation}" for table, generation in read}
    used |= {f"commits/{it.generation}" for it in commits}
    gone = dict[str, int]()
    for it in written:
        if it.generation not in running and it.folder not in used:
            gone[it.folder] = gone.get(it.folder, 0) + it.size
    return gone, sorted({it.generation for it in commits} - kept)
