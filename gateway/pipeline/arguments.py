"""What the texts of arguments stand for. A text that is wrong raises `ArgumentTypeError`."""

from __future__ import annotations

import argparse
from datetime import timedelta

from gateway.pipeline.billing.meters import HOUR

MEMORY = "2g"
"""Of a session in this process. Spark spills to disk beyond it."""

LONGEST_LIFE = timedelta(days=365)
"""Of a rule against an attacker; what is for ever is nothing that a job decides."""

MOST_FILES = 1_000_000
"""Of one commit. Their names pass through the driver, as a text of some 150 MB."""

LONGEST_REASON = 200
"""As other texts on invoices."""

LATEST_MS = 86_400_000
"""The longest wait for late records: each look writes the sums of all slots within it again."""


def milliseconds(text: str) -> int:
    """Return a time, as `90s` or `24h`, in milliseconds."""
    from gateway.config import units

    try:
        return round(units.seconds(text) * 1000)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def lifetime(text: str) -> timedelta:
    """Return the time that a rule lives."""
    found = timedelta(milliseconds=_or_none(text))
    if not timedelta(0) < found <= LONGEST_LIFE:
        raise argparse.ArgumentTypeError(f"{text} is no time to live; 30m, 24h, up to 8760h")
    return found


def waited(text: str) -> int:
    """Return the milliseconds that a look at alerts waits."""
    ms = _or_none(text)
    if not 0 <= ms <= LATEST_MS:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait; 10m, up to 24h")
    return ms


def slot(text: str) -> int:
    """Return the milliseconds of a slot. Each hour has the same slots, or else nothing is usual in
    any of them."""
    ms = milliseconds(text)
    if ms < 1000 or HOUR % ms:
        raise argparse.ArgumentTypeError(f"{text}: does not divide an hour; 10s, 1m or 5m")
    return ms


def files(text: str) -> int:
    """Return a number of files."""
    if not text.isdecimal() or len(text) > 7 or not 0 < int(text) <= MOST_FILES:
        raise argparse.ArgumentTypeError(f"{text}: is no number of files; 1 to {MOST_FILES}")
    return int(text)


def reason(text: str) -> str:
    """Return why something is corrected: a line of text."""
    if not text.strip() or not text.isprintable() or len(text) > LONGEST_REASON:
        raise argparse.ArgumentTypeError(
            f"is no reason; a line, {LONGEST_REASON} characters at most"
        )
    return text.strip()


def kept(text: str) -> tuple[str, int]:
    """Return a kind of tables, and the days that it is kept."""
    kind, _, days = text.partition("=")
    if not days.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: name a kind of tables and days: records=90")
    return kind, int(days)


def _or_none(text: str) -> int:
    """Return milliseconds; a number that is too low if the text is no time."""
    try:
        return min(milliseconds(text), 2 * LONGEST_LIFE // timedelta(milliseconds=1))
    except argparse.ArgumentTypeError:
        return -1
