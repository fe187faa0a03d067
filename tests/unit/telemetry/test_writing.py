"""Lines written by a thread, to fake streams and pipes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading

import pytest

from gateway.telemetry.writing import Queue, writer_to

PATIENCE = 60.0
"""Seconds until a thread that does not do what it should fails its test."""


class Stream:
    """A stream that writes only on command. `begun`: a write started; `written`: all data."""

    def __init__(self) -> None:
        self.written = b""
        self.begun = threading.Semaphore(0)
        self._may = threading.Semaphore(0)

    def write(self, data: bytes) -> None:
        self.begun.release()
        assert self._may.acquire(timeout=PATIENCE)
        self.written += data

    def let(self, writes: int = 1_000_000) -> None:
        """Allow a number of further writes."""
        self._may.release(writes)

    @property
    def lines(self) -> list[str]:
        return self.written.decode().splitlines()


def queue_of(stream: Stream, lines: int = 1000, size: int = 1_000_000) -> Queue:
    """Return a queue whose thread is writing its first line."""
    queue = Queue(stream.write, lambda number: f"dropped {number}", lines=lines, size=size)
    queue.msg("first")
    assert stream.begun.acquire(timeout=PATIENCE)
    return queue


def test_lines_are_written_in_order() -> None:
    stream = Stream()
    queue = queue_of(stream)
    for number in range(500):
        queue.msg(str(number))
    stream.let()
    queue.close(PATIENCE)
    assert stream.lines == ["first", *map(str, range(500))]
    assert queue.figures.dropped == 0


def test_lines_above_the_number_are_dropped_and_counted() -> None:
    stream = Stream()
    queue = queue_of(stream, lines=10)
    for number in range(100):
        queue.msg(str(number))
    assert queue.figures.dropped == 90
    stream.let()
    queue.close(PATIENCE)
    assert stream.lines == ["first", *map(str, range(10)), "dropped 90"]


def test_lines_above_the_size_are_dropped_and_counted() -> None:
    stream = Stream()
    queue = queue_of(stream, size=1006)
    for _ in range(100):
        queue.msg("x" * 99)
    assert queue.figures.dropped == 90
    stream.let()
    queue.close(PATIENCE)
    assert stream.lines == ["first", *["x" * 99] * 10, "dropped 90"]


def test_dropped_lines_are_reported_before_lines_are_taken_again() -> None:
    stream = Stream()
    queue = queue_of(stream, lines=4)
    for _ in range(6):
        queue.msg("x" * 4000)  # each is a write of its own
    for _ in range(2):
        stream.let(1)
        assert stream.begun.acquire(timeout=PATIENCE)
        queue.msg("too early")
    stream.let(1)
    assert stream.begun.acquire(timeout=PATIENCE)
    queue.msg("last")
    stream.let()
    queue.close(PATIENCE)
    told = [it for it in stream.lines if not it.startswith("x")]
    assert told == ["first", "dropped 4", "last"]
    assert queue.figures.dropped == 4


def test_an_empty_queue_takes_a_line_of_any_length() -> None:
    stream = Stream()
    stream.let()
    queue = Queue(stream.write, str, lines=10, size=100)
    queue.msg("x" * 1000)
    queue.close(PATIENCE)
    assert stream.lines == ["x" * 1000]


def test_whole_lines_are_written_up_to_the_atomic_size_of_a_pipe() -> None:
    sizes: list[int] = []
    stream = Stream()
    queue = queue_of(stream)
    write = stream.write

    def seen(data: bytes) -> None:
        assert data.endswith(b"\n")
        sizes.append(len(data))
        write(data)

    queue._write = seen
    for _ in range(1000):
        queue.msg("x" * 250)
    stream.let()
    queue.close(PATIENCE)
    assert sum(sizes) == 251_000
    assert max(sizes) <= 4096


def test_a_failing_stream_is_ignored() -> None:
    def write(_data: bytes) -> None:
        raise BrokenPipeError

    queue = Queue(write, str, lines=10, size=1000)
    queue.msg("a")
    queue.msg("b")
    queue.close(PATIENCE)
    assert queue.figures.dropped == 2


def test_the_thread_ends_while_there_is_nothing_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.telemetry.writing.REST", 0.001)
    others = set(threading.enumerate())
    stream = Stream()
    stream.let()
    queue = queue_of(stream)
    for number in range(5):
        for thread in set(threading.enumerate()) - others:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        queue.msg(str(number))
    queue.close(PATIENCE)
    assert stream.lines == ["first", *map(str, range(5))]


def test_the_next_line_retries_if_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    stream = Stream()
    stream.let()
    queue = Queue(stream.write, lambda number: f"dropped {number}", lines=2, size=1_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_more)
        for number in range(5):
            queue.msg(str(number))
    queue.msg("last")  # no room for it, and it has the others written
    queue.close(PATIENCE)
    assert stream.lines == ["0", "1", "dropped 4"]


def test_closing_does_not_wait_for_a_blocked_stream() -> None:
    stream = Stream()
    queue = queue_of(stream)
    queue.close(0)
    assert queue._thread is not None
    assert queue._thread.is_alive()
    stream.let()


def test_half_of_a_surrogate_pair_is_written_as_an_escape() -> None:
    stream = Stream()
    stream.let()
    queue = Queue(stream.write, str, lines=10, size=1000)
    queue.msg("a\ud800b")
    queue.close(PATIENCE)
    assert stream.lines == ["a\\ud800b"]


def test_a_stream_without_a_descriptor_works_too() -> None:
    stream = io.StringIO()
    writer_to(stream)(b"line\n")
    assert stream.getvalue() == "line\n"


def test_a_non_blocking_pipe_works_too() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data = b"x" * 300_000
    with open(writing, "wb", buffering=0) as stream, open(reading, "rb") as reader:  # noqa: PTH123
        write = writer_to(stream)  # type: ignore[arg-type]
        thread = threading.Thread(target=write, args=[data])
        thread.start()
        assert reader.read(len(data)) == data
        thread.join(PATIENCE)


ENDING = """
import structlog
from gateway.telemetry import log
queue = log.configure_queued(log.Style("json", burst=10**6), lines=10**5, size=10**8)
for number in range(5000):
    structlog.get_logger().info("flood", number=number)
queue.close(0.1)
raise SystemExit(7)
"""


@pytest.mark.tier("test")
def test_a_process_can_end_while_nobody_reads_its_log() -> None:
    """The thread is blocked in a write by then."""
    process = subprocess.Popen([sys.executable, "-c", ENDING], stderr=subprocess.PIPE)
    try:
        assert process.wait(60) == 7
    finally:
        process.kill()
        process.wait()
    assert process.stderr is not None
    process.stderr.close()
