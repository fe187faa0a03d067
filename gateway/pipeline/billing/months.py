"""The period of a bill: a month in UTC."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple, Self

_TEXT = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")

_FIRST_YEAR = 1970
"""Records count milliseconds from it."""

_LAST_YEAR = 9998
"""The end of the last month must still be a date that Python can say."""


class Month(NamedTuple):
    """A month of UTC, from its first midnight to the next month's. Months are ordered by time."""

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

    @property
    def start(self) -> str:
        """The begin as FOCUS writes it; the end is exclusive."""
        return instant(self.first)

    @property
    def end(self) -> str:
        """The exclusive end; see `start`."""
        return self.next().start


def instant(day: date) -> str:
    """Return the begin of a day as FOCUS writes it: ISO 8601 in UTC."""
    return f"{day.isoformat()}T00:00:00Z"


_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""Not of `calendar`, whose names depend on the locale of the process."""


def month_name(month: int) -> str:
    """Return the name of a month, from 1."""
    return _NAMES[month - 1]
