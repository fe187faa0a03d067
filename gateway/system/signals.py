"""Receives signals as an iterator, for the duration of a context."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

STOP = (signal.SIGTERM, signal.SIGINT)
"""Signals by which people and service managers stop a process: gracefully once, at once if
repeated."""

AT_ONCE = signal.SIGUSR1
"""The signal by which a parent ends a worker at once. It differs from SIGTERM, which a worker may
get from a service manager and from its parent, and which then counts once. It may arrive first: of
pending signals the kernel delivers the lowest number."""

_LATE = 0.01
"""Seconds for a signal sent together with the one before it, as `timeout` sends two."""


@asynccontextmanager
async def received(*numbers: int) -> AsyncIterator[AsyncIterator[int]]:
    """Yield an iterator over signals with these numbers, as they arrive. At the end of the context,
    signals that were not taken from the iterator are discarded."""
    with trio.open_signal_receiver(*numbers) as signals:
        try:
            yield signals
        finally:
            # A signal that nobody took is delivered again when the receiver closes, and would end
            # the process.
            with trio.move_on_after(_LATE, shield=True):
                async for _ in signals:
                    pass
