"""Signals that a process takes while it does something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

_LATE = 0.01
"""Seconds for a signal that was sent with the one before it, as `timeout` sends two."""


@asynccontextmanager
async def received(*numbers: int) -> AsyncIterator[AsyncIterator[int]]:
    """Have these signals come out of an iterator; at the end those that nobody took are gone."""
    with trio.open_signal_receiver(*numbers) as signals:
        try:
            yield signals
        finally:
            # One that nobody took is delivered anew when the receiver closes, and would end the
            # process by itself.
            with trio.move_on_after(_LATE, shield=True):
                async for _ in signals:
                    pass
