"""Writes lines, at once or by a thread.

A write blocks while nobody reads: a pipe has room for 64 KiB. Standard error is shared with other
processes, so it is not made non-blocking; a thread waits in place of the event loop.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TextIO

from gateway.telemetry.figures import LogFigures

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[bytes], object]

PATIENCE = 1.0
"""Seconds for what waits at the end of the process. Whoever reads takes it in milliseconds."""

GATHERED = 0.01
"""Seconds in which lines gather after a write. To wake the thread for each line of many costs the
event loop more than to make the line: both want the interpreter's lock."""

REST = 0.5
"""Seconds without a line after which the thread ends. In a process that has a second thread each
system call of the event loop costs more, for what both may use is locked: 1 to 3 % of a wake-up.
To start the thread again takes 0.1 ms."""


class Lines:
    """Writes lines at once; one that cannot be written is no reason to fail."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        """Write one line."""
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # gone, full, or closed: there is nobody to tell
            pass

    debug = info = warning = error = critical = exception = log = msg


class Queue:
    """Lines that wait for a thread to write them: so many at most, and so many bytes (`size`).

    Where the bounds are reached lines are dropped, until half of the queue is written. Then a line
    tells how many were dropped: `notice` makes it.

    The thread ends when there was nothing to write for a while, and the next line starts another.
    It is a daemon: one that waits in `write` does not keep the process from ending. So
    `write` must hold no lock that the end of the interpreter needs, as those of `sys.stderr`.
    """

    def __init__(
        self, write: Write, notice: Callable[[int], str], *, lines: int, size: int
    ) -> None:
        self.figures = LogFigures()
        self._write = write
        self._notice = notice
        self._most_lines = lines
        self._most_bytes = size
        self._lines: deque[bytes] = deque()
        self._size = 0  # of these, and of what is being written
        self._untold = 0  # lines dropped since the last notice
        self._closed = False
        self._idle = False  # the thread waits to be woken
        self._lock = threading.Lock()
        self._wake = SimpleQueue[None]()
        self._thread: threading.Thread | None = None  # None: it has ended, or never began

    def msg(self, line: str) -> None:
        """Queue one line, or drop it. Never waits for the stream."""
        data = encoded(line)
        with self._lock:
            if self._thread is None:
                self._start()
            if self._untold or self._is_full(len(data)):
                self._untold += 1
                self.figures.dropped += 1
                return
            self._append(data)
            if not self._idle:
                return
            self._idle = False
        self._wake.put(None)

    debug = info = warning = error = critical = exception = log = msg

    def close(self, patience: float = PATIENCE) -> None:
        """Wait until all is written, for so many seconds at the most."""
        self._closed = True
        self._wake.put(None)
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(patience)

    def _is_full(self, more: int) -> bool:
        # An empty queue takes any line: nothing would ever make more room for it.
        beyond = self._size + more > self._most_bytes or len(self._lines) >= self._most_lines
        return self._size > 0 and beyond

    def _append(self, data: bytes) -> None:
        self._lines.append(data)
        self._size += len(data)

    # -- the thread --------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the thread. Where the system allows no more threads, the next line tries again."""
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        chunk = self._next(0)
        while chunk:
            try:
                self._write(b"".join(chunk))
            except (OSError, ValueError):  # gone, or closed: there is nobody to tell
                with self._lock:
                    self.figures.dropped += len(chunk)
            chunk = self._next(sum(map(len, chunk)))

    def _next(self, written: int) -> list[bytes]:
        """Wait for lines, and answer some; none: the thread is to end. `written`: bytes."""
        with self._lock:
            self._size -= written
            if self._untold and self._is_half_empty():
                self._append(encoded(self._notice(self._untold)))
                self._untold = 0
        if written and not self._lines:
            with suppress(Empty):
                self._wake.get(timeout=GATHERED)
        while not (chunk := self._taken()) and not self._closed:
            try:
                self._wake.get(timeout=REST)
            except Empty:
                if self._may_end():
                    break
        return chunk

    def _may_end(self) -> bool:
        """Whether there are no lines; the next one then starts another thread."""
        with self._lock:
            if self._lines:
                return False
            self._thread, self._idle = None, False
            return True

    def _is_half_empty(self) -> bool:
        few = len(self._lines) <= self._most_lines // 2
        return few and self._size <= self._most_bytes // 2

    def _taken(self) -> list[bytes]:
        """Take whole lines, as many as a pipe takes in one piece: others may write to it too."""
        chunk: list[bytes] = []
        room = select.PIPE_BUF
        with self._lock:
            while self._lines and (len(self._lines[0]) <= room or not chunk):
                chunk.append(self._lines.popleft())
                room -= len(chunk[-1])
            self._idle = not chunk
        return chunk


def encoded(line: str) -> bytes:
    """A line as it is written. Names may hold half of a surrogate pair, which UTF-8 cannot."""
    return line.encode(errors="backslashreplace") + b"\n"


def written_to(stream: TextIO) -> Write:
    """What writes to a stream: by its descriptor, where it has one."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return lambda data: stream.write(data.decode())
    return lambda data: _written(descriptor, data)


def _written(descriptor: int, data: bytes) -> None:
    """Write all. Raises `OSError`."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # somebody who shares it has made it so
            waiting = select.poll()
            waiting.register(descriptor, select.POLLOUT)
            waiting.poll()
