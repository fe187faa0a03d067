"""How long tables are kept, and what is removed from their folder.

`retain` lets days go at an age that each kind of table has: records are large and needed for
weeks, sums are small and needed for years. A day of records goes only once it is summed up, and a
record that comes later for it is put aside, because it would stand for the whole day.

`compact` removes the files that nobody reads any more, and joins the lists of files that were
taken, to which each run of `ingest` adds one. Files that were replaced are left for a day, because
a job that began before that may still read them; so are those that no commit names yet, because
their job may still run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline import rollup
from gateway.pipeline.ingest import EARLIEST
from gateway.pipeline.lake import NO_DAY, State, needed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.pipeline.lake import Lake

FOREVER = 0

TIERS = {
    "records": 90,
    "stored": 90,
    "quarantine": 30,
    "hourly": 400,
    "daily": FOREVER,
    "findings": FOREVER,
}
"""Days for which each kind of tables is kept. Recommendations and neighbours look at four weeks of
records, an audit of a bill at a quarter; 400 days of hours compare a season with the last one."""

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

LEAST = {"records": 2, "stored": 3, "daily": 93}
"""Days for which these are kept at least: records until late ones have come; a month of bills, and
the next one, whose invoices have the adjustments of the first."""

REACH = {"stored": 2}
"""How many days beyond the oldest snapshots a late one is refused: it changes the days beside its
own, whose sums need the days beside them."""

KEPT_MS = 86_400_000
"""For which replaced files stay: longer than any job runs."""

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
    """Days that are old enough to go. `before`: records of earlier days are refused from then on.
    `waiting`: days that stay, because `rollup` has not summed them up."""

    table: str
    days: tuple[str, ...]
    before: str
    waiting: tuple[str, ...] = ()


def old(state: State, kept: Mapping[str, int], today: date) -> list[Old]:
    """Return what is to go, by table. `kept`: days by kind of table."""
    found, stale = list[Old](), rollup.stale(state)
    for kind, number in kept.items():
        if number == FOREVER:
            continue
        first = (today - timedelta(days=number)).isoformat()
        if kind == "records" and stale:
            waiting = tuple(day for day in stale if day < first)
            first = min(first, *stale)
        else:
            waiting = ()
        for table in MEMBERS[kind]:
            days = tuple(it for it in sorted(state.days.get(table, {})) if _known(it) < first)
            if days or waiting:
                found.append(Old(table, days, _refused(kind, first), waiting))
    return found


def _known(day: str) -> str:
    """Return a day, or one that never comes for lines whose file names none: their age is not
    known."""
    return "9999-12-31" if day == EARLIEST else day


def _refused(kind: str, first: str) -> str:
    return (date.fromisoformat(first) + timedelta(days=REACH.get(kind, 0))).isoformat()


def retain(lake: Lake, kept: Mapping[str, int], today: date, now_ms: int) -> list[Old]:
    """Let old days go, in one commit; return them."""
    state = lake.state()
    found = old(state, kept, today)
    if any(it.days for it in found):
        change = lake.change("retain", now_ms, state)
        for it in found:
            change.retire(it.table, it.days, it.before)
        change.commit()
    return found


# -- files -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Removed:
    """Generations of tables, their bytes, and commits."""

    generations: int = 0
    size: int = 0
    commits: int = 0


def compact(lake: Lake, now_ms: int, *, kept_ms: int = KEPT_MS) -> Removed:
    """Join the lists of files, and remove what nobody has read since `kept_ms` ago."""
    state = lake.state()
    lists = state.days.get("files", {}).get(NO_DAY, [])
    if len(lists) > JOINED or state.length > 1:
        change = lake.change("compact", now_ms, state)
        change.rewrite("files", lake.read("files", state=state))
        change.commit()
    return _sweep(lake, now_ms - kept_ms)


def _sweep(lake: Lake, horizon_ms: int) -> Removed:
    commits = {it.generation: it for it in lake.commits()}
    kept, read = needed(commits.values(), horizon_ms)
    rows = lake.generations(horizon_ms).collect()
    gone = [row for row in rows if (row.table, row.generation) not in read]
    for row in gone:
        lake.remove(f"data/{row.table}/{row.generation}")
    forgotten = sorted(set(commits) - kept)
    for generation in forgotten:
        lake.remove(f"commits/{generation}")
    return Removed(len(gone), sum(row.size for row in gone), len(forgotten))
