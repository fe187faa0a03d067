"""The feed: sends the state of the gateway to each reader once a second, as server-sent events
(HTML standard, section 9.2).

One task reads the state for all readers, and only while there is one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.console.views import Views

SECOND = 1.0

MOST_READERS = 32
"""Readers at a time. Each gets some 30 KB a second."""


class Feed:
    """Reads the state of the gateway once a second, for all readers of one console together."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._readers = 0
        self._wanted = trio.Event()
        self._next = trio.Event()
        self._last = b""

    @property
    def is_full(self) -> bool:
        """Return whether the feed has as many readers as it may have."""
        return self._readers >= MOST_READERS

    async def run(self) -> None:
        """While there are readers, read the state of the gateway each second; run until
        cancelled."""
        while True:
            await self._wanted.wait()
            due = trio.current_time()
            while self._readers:
                second = await self._views.look()
                if second is not None:
                    self._last = event("second", second)
                    self._next.set()
                    self._next = trio.Event()
                due = max(due + SECOND, trio.current_time())
                await trio.sleep_until(due)
            self._wanted = trio.Event()
            await self._views.rest()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield server-sent events to one reader: first the history, then an event for each second.
        A slow reader misses seconds."""
        self._readers += 1
        try:
            self._wanted.set()
            yield event("history", {"seconds": list(self._views.history)})
            while True:
                await self._next.wait()
                yield self._last
        finally:
            self._readers -= 1


def event(name: str, data: dict[str, Any]) -> bytes:
    """Return a server-sent event of this name, encoded as bytes. `data` is sent as JSON."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
