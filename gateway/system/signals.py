"""Signals that a process takes while it does something."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

STOP = (signal.SIGTERM, signal.SIGINT)
"""By these people and managers of services end a process, in good order; twice: at once."""

AT_ONCE = signal.SIGUSR1
"""By this a parent ends a worker at once. Another signal, because a manager of services may tell
all processes to stop, and so does the parent: for a worker that is one word. It may come first: of
signals that wait the kernel delivers the lowest number."""

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
