"""Reads a body while its bytes come, without holding more of it than one number or text.

A *reader* is a generator. It yields how many bytes it needs next, and is sent them; or it yields
how many it skips, as a negative number, and is sent nothing. `Stream` runs it over the chunks of a
connection: what it needs is mostly in the chunk, and is read there; what a chunk's end cuts is put
together. So a request of a hundred megabytes is read by the same code as one of a hundred bytes.

Nothing is held that has no bound: `LONGEST` bytes of a text. Whoever runs a reader knows how long
the frame is, and what the frame does not hold is a violation.
"""

from __future__ import annotations

from collections.abc import Generator

from gateway.errors import PeerError

LONGEST = 4096
"""Bytes of one text that is read: names of topics have 249, of transactions rarely 100."""

Reader = Generator[int, bytes, None]
Read = Generator[int, bytes, int]


class Stream:
    """Runs a reader over a body of `size` bytes. `left`: bytes that have not come."""

    __slots__ = ("_held", "_needs", "_reader", "_skips", "_unread", "left")

    def __init__(self, reader: Reader, size: int) -> None:
        """Raises `PeerError` if the body cannot be as short as that."""
        self.left = self._unread = size
        self._reader: Reader | None = reader
        self._held = bytearray()
        self._needs = self._skips = 0
        self._go_on(None)

    @property
    def is_done(self) -> bool:
        """Return whether the reader has read all that it wants."""
        return self._reader is None

    def feed(self, chunk: bytes | bytearray, start: int, end: int) -> int:
        """Take bytes of the body, and return where it ends in the chunk, or the chunk's end. Raises
        `PeerError` if the body is not what the reader takes."""
        end = min(end, start + self.left)
        self.left -= end - start
        at = start
        while at < end and self._reader is not None:
            at = self._skip(at, end) if self._skips else self._take(chunk, at, end)
        return end

    def _skip(self, at: int, end: int) -> int:
        step = min(self._skips, end - at)
        self._skips -= step
        self._unread -= step
        if not self._skips:
            self._go_on(None)
        return at + step

    def _take(self, chunk: bytes | bytearray, at: int, end: int) -> int:
        wanted = self._needs - len(self._held)
        if end - at < wanted:
            self._held += chunk[at:end]
            return end
        data = bytes(self._held + chunk[at : at + wanted])
        self._held.clear()
        self._unread -= self._needs
        self._go_on(data)
        return at + wanted

    def _go_on(self, data: bytes | None) -> None:
        """Send the reader what it needed, and learn what it needs next."""
        assert self._reader is not None
        try:
            asked = self._reader.send(data) if data is not None else next(self._reader)
            while not asked:
                asked = self._reader.send(b"")
        except StopIteration:
            self._reader = None
            return
        if abs(asked) > self._unread:
            raise PeerError("a length beyond its frame")
        self._needs, self._skips = (asked, 0) if asked > 0 else (0, -asked)


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


def text(size: int) -> Generator[int, bytes, bytes | None]:
    """Read a text, whose length has `size` bytes. Raises `PeerError` beyond `LONGEST`."""
    found = yield from length(size)
    if found > LONGEST:
        raise PeerError(f"a text of {found} bytes")
    return None if found < 0 else (yield found)


def skip(count: int) -> Generator[int, bytes, None]:
    """Skip bytes."""
    if count > 0:
        yield -count


def skip_tags() -> Generator[int, bytes, None]:
    """Skip tagged fields. Raises `PeerError`."""
    for _ in range((yield from compact())):
        yield from compact()
        yield from skip((yield from compact()))
