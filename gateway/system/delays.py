"""Measures the delay of the event loop: how long other work keeps a task waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import trio

INTERVAL = 1.0
"""Seconds between two wake-ups: each costs 20 µs."""


async def measure_delays(note: Callable[[float], object]) -> NoReturn:
    """Wake up once in each `INTERVAL`, until cancelled. Each time, call `note` with the seconds by
    which the task woke up too late."""
    due = trio.current_time()
    while True:
        due += INTERVAL
        await trio.sleep_until(due)
        now = trio.current_time()
        note(max(0.0, now - due))
        due = max(due, now - INTERVAL)  # a long delay counts once
