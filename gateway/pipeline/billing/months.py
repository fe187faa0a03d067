"""The period of a bill: a month in a time zone, and its days, of which two in a year have 23 or 25
hours in many zones."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from datetime import tzinfo

_TEXT = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")

_FIRST_YEAR = 1970
"""Records count milliseconds from it."""

_LAST_YEAR = 9998
"""The end of the last month must still be a date that Python can say."""


class Month(NamedTuple):
    """A month, from its first midnight to the next month's. Months are ordered by time."""

    year: int
    month: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `2026-11`. Raises `ValueError` with what would be right."""
        match = _TEXT.fullmatch(text)
        if match is None or not _FIRST_YEAR <= int(match[1]) <= _LAST_YEAR:
            raise ValueError("is not a month; 2026-11")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @property
    def title(self) -> str:
        """The month for readers: `November 2026`."""
        return f"{month_name(self.month)} {self.year}"

    @property
    def first(self) -> date:
        """The first day."""
        return date(self.year, self.month, 1)

    def next(self) -> Month:
        """Return the month after it."""
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    def days(self) -> tuple[date, ...]:
        """Return all days, in order."""
        number = (self.next().first - self.first).days
        return tuple(self.first + timedelta(days=it) for it in range(number))

    def cuts(self, zone: tzinfo) -> tuple[int, ...]:
        """Return when each day begins in a time zone, and the last one ends, in milliseconds since
        1970. They are not at whole hours of UTC in all zones. A day that a zone skipped has no
        length."""
        days = (*self.days(), self.next().first)
        return tuple(round(begin(it, zone).timestamp()) * 1000 for it in days)


def begin(day: date, zone: tzinfo) -> datetime:
    """Return the time, in UTC, at which a day begins in a time zone. If clocks are put back over
    midnight, this is the first midnight; if they skip midnight, the moment of the change."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def instant(day: date, zone: tzinfo) -> str:
    """Return when a day begins in a time zone as FOCUS writes it: ISO 8601 in UTC."""
    return f"{begin(day, zone):%Y-%m-%dT%H:%M:%SZ}"


UTC_ZONE: Final = ZoneInfo("UTC")
"""The time zone of months, unless a rate card says otherwise."""


_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""Not of `calendar`, whose names depend on the locale of the process."""


def month_name(month: int) -> str:
    """Return the name of a month, from 1."""
    return _NAMES[month - 1]
