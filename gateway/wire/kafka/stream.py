"""Reads a body while its bytes come, without holding any of it.

A *reader* is a generator. It yields how many bytes it needs next, and is sent them; how many it
skips, as a negative number, and is sent nothing; or bytes that take the place of those that it was
sent last, as many of them. `Stream` runs it over the chunks of a connection. So a request of a
hundred megabytes is read by the same code as one of a hundred bytes. What repeats a thousand times
in a body costs less without a generator: a reader may yield a `Run`, which takes all of it.

What a reader needs at once, one number or text, is mostly in the chunk. If the chunk's end cuts it,
nothing of it passes: it is offered again with the bytes that follow. So a text can be changed
wherever it is cut, and what is kept of a frame has a bound: `LONGEST` bytes of a text. Whoever runs
a reader knows how long the frame is, and what the frame does not hold is a violation.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol, TypeVar

from gateway.errors import PeerError

LONGEST = 4096
"""Bytes of one text that is read: names of topics have 249, of transactions rarely 100."""

T = TypeVar("T")


class Run(Protocol):
    """Takes a number of bytes. `left`: of those that have not passed; `skips`: of the next ones, it
    wants none."""

    left: int
    skips: int

    def take(self, chunk: bytearray, at: int, end: int) -> int:
        """Take bytes of `chunk[at:end]`, which has no more than are left; return up to where they
        may pass. Raises `PeerError` if they are not what they should be."""
        ...


Reading = Generator[int | bytes | Run, bytes, T]
"""A reader that returns something to the reader that runs it."""

Reader = Reading[None]
Read = Reading[int]


class Stream:
    """Runs a reader over a body of `size` bytes. `left`: bytes that have not passed."""

    __slots__ = ("_needs", "_reader", "_run", "_skips", "left")

    def __init__(self, reader: Reader, size: int) -> None:
        """Raises `PeerError` if the body cannot be as short as that."""
        self.left = size
        self._reader: Reader | None = reader
        self._needs = self._skips = 0
        self._run: Run | None = None
        self._ask(next(reader, None))

    @property
    def is_done(self) -> bool:
        """Return whether the reader has read all that it wants."""
        return self._reader is None

    @property
    def skips(self) -> int:
        """Return how many of the next bytes pass without a look at them."""
        if self._run is not None:
            return self._run.skips
        return self.left if self._reader is None else self._skips

    def feed(self, chunk: bytearray, start: int, end: int) -> int:
        """Take bytes of the body, and return up to where they may pass: the chunk's end, the body's
        end, or what the chunk's end cuts. Raises `PeerError` if the body is not what the reader
        takes."""
        end = min(end, start + self.left)
        at = start
        while at < end:
            if self._reader is None:
                self.left -= end - at
                return end
            if self._run is not None:
                until = min(end, at + self._run.left)
                step = self._run.take(chunk, at, until) - at
                self.left -= step
                if not self._run.left:
                    self._run = None
                    self._ask(self._sent_nothing())
                elif at + step < until:
                    return at + step  # the chunk's end cuts something
            elif self._skips:
                step = min(self._skips, end - at)
                self._skips -= step
                self._pass(step)
            elif end - at < self._needs:
                break
            else:
                step = self._needs
                self._give(chunk, at, at + step)
            at += step
        return at

    def _give(self, chunk: bytearray, at: int, end: int) -> None:
        """Give the reader what it needs, and have it changed if the reader says so."""
        reader = self._reader
        assert reader is not None
        self.left -= end - at
        self._needs = 0
        try:
            asked = reader.send(bytes(chunk[at:end]))
            while isinstance(asked, bytes):
                chunk[at:end] = asked
                asked = reader.send(b"")
        except StopIteration:
            self._reader = None
            return
        self._ask(asked)

    def _pass(self, count: int) -> None:
        self.left -= count
        if not self._skips:
            self._ask(self._sent_nothing())

    def _ask(self, asked: int | bytes | Run | None) -> None:
        """Note what the reader needs next; None: nothing more."""
        run: Run | None
        while asked is not None:
            assert not isinstance(asked, bytes), "a reader changes only what it was sent"
            run, size = (None, asked) if isinstance(asked, int) else (asked, asked.left)
            if size:
                break
            asked = self._sent_nothing()
        else:
            self._reader = None
            return
        if abs(size) > self.left:
            raise PeerError("a length beyond its frame")
        self._run = run
        if run is None:
            self._needs, self._skips = (size, 0) if size > 0 else (0, -size)

    def _sent_nothing(self) -> int | bytes | Run | None:
        assert self._reader is not None
        try:
            return self._reader.send(b"")
        except StopIteration:
            return None


# -- what readers read -------------------------------------------------------------------------


def number(size: int) -> Read:
    """Read a signed number of `size` bytes."""
    return int.from_bytes((yield size), signed=True)


def compact() -> Read:
    """Read an unsigned varint of at most 32 bits. Raises `PeerError`."""
    found = 0
    for shift in range(0, 35, 7):
        (byte,) = yield 1
        found |= (byte & 127) << shift
        if byte < 128:
            break
    else:
        raise PeerError("a length that does not end")
    if found >> 32:
        raise PeerError("a length that does not end")
    return found


def length(size: int) -> Read:
    """Read a length of `size` bytes, a compact one for 0. Null is -1. Raises `PeerError`."""
    found = yield from number(size) if size else compact()
    if not size:
        found -= 1
    if found < -1:
        raise PeerError(f"a length of {found}")
    return found


def text(size: int) -> Reading[bytes | None]:
    """Read a text, whose length has `size` bytes. Raises `PeerError` beyond `LONGEST`."""
    found = yield from length(size)
    if found > LONGEST:
        raise PeerError(f"a text of {found} bytes")
    return None if found < 0 else (yield found)


def skip(count: int) -> Reader:
    """Skip bytes."""
    if count > 0:
        yield -count


class Blank:
    """A `Run` that sets bytes to zero."""

    __slots__ = ("left",)

    skips = 0

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, chunk: bytearray, at: int, end: int) -> int:
        """See `Run`."""
        chunk[at:end] = bytes(end - at)
        self.left -= end - at
        return end


def skip_tags() -> Reader:
    """Skip tagged fields. Raises `PeerError`."""
    for _ in range((yield from compact())):
        yield from compact()
        yield from skip((yield from compact()))
