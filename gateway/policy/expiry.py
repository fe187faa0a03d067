"""Expiry times of rules, as people write them: a date such as `2026-12-24`, which means the end of
that day, or a time such as `2026-12-24T18:00:00Z`. All of them are in UTC, whatever the machine's
time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

PATTERN = r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$"
"""A time needs its zone: without one people would mean their own, and be hours wrong."""

_FORM = re.compile(PATTERN, re.ASCII)
_DATE = len("2026-12-24")


def moment(value: object) -> datetime:
    """Return a rule's expiry time, which is a text in the rules file, as a UTC datetime. Raises
    `ValueError` if the text is malformed; see `config.units`."""
    if isinstance(value, str) and _FORM.match(value):
        try:
            parsed = datetime.fromisoformat(value)
            if len(value) == _DATE:
                return parsed.replace(tzinfo=UTC) + timedelta(days=1)
            return parsed.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError(
        "is not a moment; 2026-12-24 for the end of that day in UTC, or 2026-12-24T18:00:00Z"
    )


def written(moment: datetime) -> str:
    """Return a UTC datetime as text: `2026-12-25T00:00:00Z`."""
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
