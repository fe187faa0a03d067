"""Queues of tasks, by key: one task of each queue goes on at a time.

Queues that wait for one thing in common, such as free slots, take turns at it, because one task of
each waits there at a time.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import trio


class Queues:
    """Queues that exist while a task is in them."""

    def __init__(self) -> None:
        self._queues = WeakValueDictionary[str, trio.Lock]()

    def __len__(self) -> int:
        return len(self._queues)

    def of(self, key: str) -> trio.Lock:
        """Return the queue of a key. The task that holds this lock goes on."""
        return self._queues.setdefault(key, trio.Lock())
