"""Writes a month of usage records and events, as gateways would have, with known truth.

The jobs of the pipeline need something true to find. So this invents some companies and their
traffic (`cast`, `load`), plans what happens to them (`plan`), and makes the records of each
interval (`traffic`, `happenings`, `durations`), which processes of two gateways write
(`processes`) by the code of real ones. A few files are damaged afterwards (`damage`). What was
planted, and the sums of all that can be read, are returned (`planted`).

The same arguments give the same bytes: there is no clock, and all randomness comes from the seed.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors import ConfigurationError
from gateway.pipeline.demo.cast import GATEWAYS, cast_of
from gateway.pipeline.demo.damage import AHEAD_MS, Place, damage, places_of
from gateway.pipeline.demo.dice import dice
from gateway.pipeline.demo.happenings import Happenings
from gateway.pipeline.demo.load import DAY_MS
from gateway.pipeline.demo.plan import FEWEST_DAYS, HOUR_MS, Plan
from gateway.pipeline.demo.planted import Fact, Planted, What
from gateway.pipeline.demo.processes import Account, Process
from gateway.pipeline.demo.traffic import Opened, Traffic
from gateway.usage.records import STREAMS, Event, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST_DAYS = 366
"""Days at once: a year is gigabytes."""

_DOWN_AT_MS = 3 * HOUR_MS + 12 * 60_000 + 30_000
"""Time of the day at which a gateway ends, in the middle of an interval."""

_DOWN_MS = 11_000
"""Until it is there again."""

_RESTARTS = {"edge-1": (12, 1), "edge-2": (21, 2)}
"""Days; see `Plan.day`."""


def write_month(
    folder: Path,
    first_day: date,
    *,
    seed: int = 1,
    days: int = 30,
    tenants: int = 20,
    interval_ms: int = 300_000,
    progress: Callable[[int, int], object] = lambda _done, _days: None,
) -> Planted:
    """Write a month into an empty folder, and return what is true of it.

    `interval_ms`: of a record; a part of an hour. `progress`: is told after each day how many are
    done, and of how many. Raises `ConfigurationError` if an argument cannot be, and `OSError`.
    """
    _check(folder, days, interval_ms)
    begin = datetime.combine(first_day, time(), UTC)
    plan = Plan(cast_of(seed, tenants), round(begin.timestamp() * 1000), days, seed)
    month = _Month(folder, plan, seed)
    for day in range(days):
        day_ms = plan.first_ms + day * DAY_MS
        for hour_ms in range(day_ms, day_ms + DAY_MS, HOUR_MS):
            month.write_hour(hour_ms, interval_ms)
        progress(day + 1, days)
    return month.planted()


def _check(folder: Path, days: int, interval_ms: int) -> None:
    if not FEWEST_DAYS <= days <= MOST_DAYS:
        raise ConfigurationError(f"days: {days} cannot be; give {FEWEST_DAYS} to {MOST_DAYS}")
    if interval_ms < 1000 or HOUR_MS % interval_ms:
        raise ConfigurationError(
            f"interval_ms: {interval_ms} cannot be; give a part of an hour, as 10000 or 300000"
        )
    for kind in STREAMS:
        if (folder / kind).exists():
            raise ConfigurationError(f"{folder}: has a folder {kind}; give an empty one")


class _Life(NamedTuple):
    """A run of a gateway. `end_ms`: exclusive."""

    process: Process
    start_ms: int
    end_ms: int


class _Month:
    """A month that is being written."""

    def __init__(self, folder: Path, plan: Plan, seed: int) -> None:
        self._folder, self._plan = folder, plan
        self._owners = {
            it.client.principal: tenant.name for tenant in plan.tenants for it in tenant.connections
        }
        self._traffic, self._happenings = Traffic(plan, seed), Happenings(plan, seed)
        self._lives = list(self._lived(seed))
        self._places = places_of(plan)
        self._facts = [*plan.facts(), *self._restarts()]
        self._usage, self._events = Account(), Account()

    def write_hour(self, hour_ms: int, interval_ms: int) -> None:
        """Write all intervals of an hour, and close its files."""
        for start_ms in range(hour_ms, hour_ms + HOUR_MS, interval_ms):
            self._write(start_ms, start_ms + interval_ms)
        for life in self._lives:
            self._close(life.process, hour_ms, min(hour_ms + HOUR_MS, life.end_ms))

    def planted(self) -> Planted:
        """Return what is true of all that was written."""
        return Planted(
            facts=tuple(sorted(self._facts, key=lambda it: (it.start_ms, it.what))),
            truth=dict(sorted(self._usage.used.items())),
            owners=dict(sorted(self._owners.items())),
            missing=dict(self._usage.missing),
            records=self._usage.records,
            events=self._events.records,
        )

    def _lived(self, seed: int) -> Iterator[_Life]:
        """Yield two runs of each gateway."""
        rng = dice(seed, "boots")
        for gw in GATEWAYS:
            down_ms = self._plan.day(*_RESTARTS[gw]) + _DOWN_AT_MS
            times = (self._plan.first_ms, down_ms), (down_ms + _DOWN_MS, self._plan.end_ms)
            for start_ms, end_ms in times:
                boot = f"{rng.getrandbits(64):016x}"
                yield _Life(Process(self._folder, gw, boot, self._owners), start_ms, end_ms)

    def _restarts(self) -> Iterator[Fact]:
        for before, after in zip(self._lives[::2], self._lives[1::2], strict=True):
            named = {"gateway": after.process.gw, "boot": after.process.boot}
            yield Fact(What.RESTART, before.end_ms, after.start_ms, **named)  # type: ignore[arg-type]

    def _write(self, start_ms: int, end_ms: int) -> None:
        lives = dict(self._parts(start_ms, end_ms))
        events = {
            span: self._happenings.events(
                span,
                begins=span.start_ms == life.start_ms,
                ends=span.start_ms + span.dur_ms == life.end_ms < self._plan.end_ms,
            )
            for span, life in lives.items()
        }
        opened = {span: self._opened(some) for span, some in events.items()}
        for span, records in self._traffic.records(tuple(lives), opened).items():
            process = lives[span].process
            hour_ms = start_ms - start_ms % HOUR_MS
            if self._places.get(Place(span.gw, hour_ms)) is What.CLOCK_AHEAD:
                for record in records:
                    record.start_ms += AHEAD_MS
            span_end_ms = span.start_ms + span.dur_ms
            process.usage.write(records, span.start_ms, span_end_ms)
            process.events.write(events[span], span.start_ms, span_end_ms)

    def _parts(self, start_ms: int, end_ms: int) -> Iterator[tuple[Span, _Life]]:
        """Yield the part of an interval in which a process was there, of each."""
        for it in self._lives:
            begin, end = max(start_ms, it.start_ms), min(end_ms, it.end_ms)
            if begin < end:
                yield Span(it.process.gw, it.process.boot, begin, end - begin), it

    def _opened(self, events: list[Event]) -> Opened:
        came = [it for it in events if it.event == "connected"]
        owners = (self._owners.get(it.principal or "", "") for it in came)
        return Opened(Counter(it.listener or "" for it in came), Counter(owners))

    def _close(self, process: Process, hour_ms: int, now_ms: int) -> None:
        closed = process.usage.close(now_ms)
        if closed is not None:
            what = self._places.get(Place(process.gw, hour_ms))
            if what is None:
                self._usage.add(closed)
            else:
                self._facts.append(damage(what, closed, self._folder, self._usage))
        events = process.events.close(now_ms)
        if events is not None:
            self._events.add(events)
