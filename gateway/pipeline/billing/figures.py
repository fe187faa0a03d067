"""What a page shows beside money: use by day and topic, and how complete it is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from gateway.pipeline.billing.amounts import Used
from gateway.pipeline.billing.meters import BY_FIGURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Completeness(NamedTuple):
    """How many records are there, of those that gateways have numbered."""

    present: int
    expected: int

    @property
    def part(self) -> Fraction | None:
        """The part that is there, from 0 to 1; None if no record was ever numbered."""
        if self.expected <= 0:
            return None
        return Fraction(min(max(self.present, 0), self.expected), self.expected)

    @property
    def missing(self) -> int:
        """How many records are missing."""
        return max(self.expected - max(self.present, 0), 0)


class Day(NamedTuple):
    """What one tenant used on a day, and the completeness of that day's records."""

    day: date
    bytes_in: int
    bytes_out: int
    msgs_in: int
    msgs_out: int
    connection_ms: int
    completeness: Completeness
    stored_byte_hours: int = 0


class Topic(NamedTuple):
    """What one tenant used by a topic."""

    name: str
    bytes_in: int
    bytes_out: int
    msgs_in: int
    msgs_out: int


class Use(NamedTuple):
    """What a page shows of a tenant's month. Topics come in any order, all or the largest."""

    completeness: Completeness
    days: tuple[Day, ...] = ()
    topics: tuple[Topic, ...] = ()


def by_day(used: Iterable[Used], uses: Mapping[str, Use]) -> Iterator[Used]:
    """Yield what was used on each day of a month, and, without a day, what days do not have of it.

    `used`: of the whole month, a row for each tenant. `uses`: days by tenant.
    """
    for whole in used:
        left = {it: getattr(whole, it) for it in BY_FIGURE}
        for day in uses[whole.tenant].days if whole.tenant in uses else ():
            figures = {it: getattr(day, it) for it in BY_FIGURE}
            left = {it: left[it] - figures[it] for it in BY_FIGURE}
            yield Used(whole.tenant, **figures, day=day.day)
        yield replace(whole, **left)
