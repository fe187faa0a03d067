"""Writes log lines, at once or by means of a thread.

A write to a pipe blocks if nobody reads the pipe and its 64 KiB are full. Standard error is not
made non-blocking, because other processes share it. So a thread writes, and blocks in place of the
event loop.
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
"""Seconds to write waiting lines at the end of the process. A reader takes milliseconds."""

GATHERED = 0.01
"""Seconds in which lines gather after a write. Waking the thread for each of many lines would cost
the event loop more than making the line: both need the interpreter's lock."""

REST = 0.5
"""Seconds without a line after which the thread ends. In a process with a second thread each system
call of the event loop costs more, because shared objects are locked: 1 to 3 % of a wake-up.
Starting the thread again takes 0.1 ms."""


class Lines:
    """Writes each line at once, in the calling thread. A failed write is ignored."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        """Write one line."""
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # gone, full, or closed: nowhere to report that
            pass

    debug = info = warning = error = critical = exception = log = msg


class Queue:
    """A bounded queue of lines, which a thread writes. It has at most `lines` lines and `size`
    bytes.

    If the queue is full, further lines are dropped until half of it is written. Then a line that
    `notice` makes reports how many were dropped.

    The thread ends when there has been nothing to write for a while, and the next line starts a new
    thread. The thread is a daemon: while it is blocked in `write`, it does not keep the process
    from ending. So `write` must hold no lock that the interpreter needs at its end, such as those
    of `sys.stderr`.
    """

    def __init__(
        self,
        write: Write,
        notice: Callable[[int], str],
        *,
        lines: int,
        size: int,
        figures: LogFigures | None = None,
    ) -> None:
        self.figures = LogFigures() if figures is None else figures
        self._write = write
        self._notice = notice
        self._most_lines = lines
        self._most_bytes = size
        self._lines: deque[bytes] = deque()
        self._size = 0  # bytes of waiting lines, and of those being written
        self._unreported = 0  # lines dropped since the last notice
        self._closed = False
        self._idle = False  # the thread waits to be woken
        self._lock = threading.Lock()
        self._wake = SimpleQueue[None]()
        self._thread: threading.Thread | None = None  # None: it has ended, or never began

    def msg(self, line: str) -> None:
        """Queue one line; if the queue is full, drop it. This never waits for the stream."""
        data = encode(line)
        with self._lock:
            if self._thread is None:
                self._start()
            if self._unreported or self._is_full(len(data)):
                self._unreported += 1
                self.figures.dropped += 1
                return
            self._append(data)
            if not self._idle:
                return
            self._idle = False
        self._wake.put(None)

    debug = info = warning = error = critical = exception = log = msg

    def close(self, patience: float = PATIENCE) -> None:
        """Wait until all lines are written, for at most `patience` seconds."""
        self._closed = True
        self._wake.put(None)
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(patience)

    def _is_full(self, more: int) -> bool:
        # An empty queue takes a line of any size: room for it would never grow.
        beyond = self._size + more > self._most_bytes or len(self._lines) >= self._most_lines
        return self._size > 0 and beyond

    def _append(self, data: bytes) -> None:
        self._lines.append(data)
        self._size += len(data)

    # -- the thread --------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the thread. If the system allows no more threads, the next line tries again."""
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        chunk = self._next(0)
        while chunk:
            try:
                self._write(b"".join(chunk))
            except (OSError, ValueError):  # gone, or closed: nowhere to report that
                with self._lock:
                    self.figures.dropped += len(chunk)
            chunk = self._next(sum(map(len, chunk)))

    def _next(self, written: int) -> list[bytes]:
        """Wait for lines, and return some, or none to end the thread. `written`: bytes written."""
        with self._lock:
            self._size -= written
            if self._unreported and self._is_half_empty():
                self._append(encode(self._notice(self._unreported)))
                self._unreported = 0
        if written and not self._lines:
            with suppress(Empty):
                self._wake.get(timeout=GATHERED)
        while not (chunk := self._take_chunk()) and not self._closed:
            try:
                self._wake.get(timeout=REST)
            except Empty:
                if self._may_end():
                    break
        return chunk

    def _may_end(self) -> bool:
        """Return true if there are no lines. The next line then starts another thread."""
        with self._lock:
            if self._lines:
                return False
            self._thread, self._idle = None, False
            return True

    def _is_half_empty(self) -> bool:
        few = len(self._lines) <= self._most_lines // 2
        return few and self._size <= self._most_bytes // 2

    def _take_chunk(self) -> list[bytes]:
        """Take the lines that a pipe writes atomically: other processes may write to it too."""
        chunk: list[bytes] = []
        room = select.PIPE_BUF
        with self._lock:
            while self._lines and (len(self._lines[0]) <= room or not chunk):
                chunk.append(self._lines.popleft())
                room -= len(chunk[-1])
            self._idle = not chunk
        return chunk


def encode(line: str) -> bytes:
    """Return a line as UTF-8, with a line feed at its end. One half of a surrogate pair, which a
    name may contain, is escaped."""
    return line.encode(errors="backslashreplace") + b"\n"


def writer_to(stream: TextIO) -> Write:
    """Return a function that writes bytes to a stream. If the stream has a file descriptor, the
    function writes to the descriptor."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return lambda data: stream.write(data.decode())
    return appending(descriptor)


def appending(descriptor: int) -> Write:
    """Return a function that writes whole lines to a file descriptor, and raises `OSError`.

    If a line was written only in part, as on a full disk, the next line begins on a new line.
    """
    is_truncated = False

    def write(data: bytes) -> None:
        nonlocal is_truncated
        if is_truncated:
            data = b"\n" + data
        while data:
            count = _write_some(descriptor, data)
            is_truncated = data[count - 1 : count] != b"\n"
            data = data[count:]

    return write


def _write_some(descriptor: int, data: bytes) -> int:
    """Write some data, and return how many bytes. Raises `OSError`."""
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:  # another process that shares the stream made it non-blocking
            waiting = select.poll()
            waiting.register(descriptor, select.POLLOUT)
            waiting.poll()
