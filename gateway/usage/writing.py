"""Has a thread do work that would block the event loop: compressing, writing and syncing files, one
piece of work after the other.

The thread ends when no work is left. It is not kept, because a second thread makes each system call
of the event loop slower, and writing the records of an interval takes only milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 5.0
"""Seconds in which waiting work is done at the end of the process. A sync takes up to one."""

MOST_WAITING = 64 << 20
"""Bytes of records that wait for a disk, at most: some 200,000 records."""


class Work:
    """One piece of work. `do`: is called in the thread. `size`: how many bytes of memory the work
    keeps until it is done. `failed`: is called if `do` raises `OSError`."""

    __slots__ = ("do", "failed", "size")

    def __init__(
        self, do: Callable[[], None], size: int = 0, failed: Callable[[], None] | None = None
    ) -> None:
        self.do = do
        self.size = size
        self.failed = failed


class Worker:
    """A queue of work, and the thread that does the work in order. `most`: the most bytes that may
    wait in the queue."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._waiting: deque[Work] = deque()
        self._size = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def put(self, work: Work) -> bool:
        """Queue a piece of work, and return True. If too many bytes wait, do not queue it, and
        return False."""
        with self._lock:
            if work.size and self._size and self._size + work.size > self._most:
                return False
            self._waiting.append(work)
            self._size += work.size
            if self._thread is None:
                self._start()
        return True

    def close(self, patience: float = PATIENCE) -> bool:
        """Wait until all work is done, for at most `patience` seconds; return whether it is
        done."""
        until = time.monotonic() + patience
        with self._lock:
            if self._waiting and self._thread is None:
                self._start()
            thread = self._thread
        if thread is not None:
            thread.join(max(0.0, until - time.monotonic()))
            return not thread.is_alive()
        return not self._waiting

    def _start(self) -> None:
        """Start the thread. If the system allows no more threads, the next work tries again."""
        thread = threading.Thread(target=self._run, name="usage", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                work = self._waiting.popleft()
            try:
                work.do()
            except OSError as failure:
                if work.failed is not None:
                    work.failed()
                self._log.warning("usage_not_written", reason=failure.strerror or str(failure))
            with self._lock:
                self._size -= work.size
