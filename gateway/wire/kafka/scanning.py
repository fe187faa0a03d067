"""What both scanners of Kafka share: `requests` and `responses`; see `contract.Scanner`.

Produce requests and Fetch answers pass and are counted while they come; so do the requests of Fetch
and the responses to Produce that need no decision. All other frames stop.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import PRODUCE
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.stream import Stream
from gateway.wire.kafka.traffic import Traffic

REQUEST = struct.Struct(">ihhi")
"""The head of each request up to its client id: size, API, version, correlation id."""

ANSWER = struct.Struct(">ii")
"""The head of each response: size, correlation id."""

NO_ACKS = 0
"""Of a Produce request that is not answered."""


class FrameScanner(ABC):
    """The part that both directions share: a frame that is read while it passes.

    `raw`: frames have no heads, as tokens after SaslHandshake 0; each stops.
    """

    __slots__ = ("_failed", "_rest", "_stream", "raw", "stop")

    def __init__(self) -> None:
        self.stop = 0
        self.raw = False
        self._rest = 0  # bytes of a frame that has been read as far as anybody wants
        self._stream: Stream | None = None
        self._failed: int | None = None  # bytes that were owed before the scan that failed

    @property
    def owed(self) -> int:
        """See `contract.Scanner`."""
        if self._failed is not None:
            return self._failed
        return self._rest if self._stream is None else self._stream.left

    @property
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self._rest if self._stream is None else self._stream.skips

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Mostly a chunk is one frame like the last one."""
        stream, pos = self._stream, start
        owed = self._rest if stream is None else stream.left
        if stream is None and not self.raw:
            pos += owed
            if pos < end:
                pos = self._run(chunk, pos, end)
            self.stop = 0
            self._rest = max(0, pos - end)
            if pos >= end:
                return end
        try:
            return self._scan(chunk, pos, end)
        except PeerError:
            self._failed = owed
            raise

    def _scan(self, chunk: bytearray, start: int, end: int) -> int:
        self.stop = 0
        pos = start + self._rest
        while pos < end:
            if self._stream is None:
                if end - pos < SIZE.size:
                    break
                (size,) = SIZE.unpack_from(chunk, pos)
                if size < 0:
                    raise PeerError(f"a frame of {size} bytes")
                begun = 0 if self.raw else self._begin(chunk, pos, end, size)
                if self.raw:
                    self.stop = SIZE.size + size
                if not begun:
                    break
                pos += begun
                if self._stream is None:  # all of it, read in one go
                    continue
            pos = self._stream.feed(chunk, pos, end)
            if self._stream.left:
                break
            self._stream = None
            self._passed(chunk)
        self._rest = max(0, pos - end)
        return min(pos, end)

    @abstractmethod
    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the frames at `pos` that are like the last one, and return the offset behind them;
        `pos` if none is. The end of the last one may not have come."""

    @abstractmethod
    def _begin(self, chunk: bytearray, pos: int, end: int, size: int) -> int:
        """Begin with a frame: return the length of its head if it passes, or of all of it if it has
        been read, though its end may not have come; otherwise 0, with `stop` unless its head is
        cut. `size`: bytes behind its size."""

    @abstractmethod
    def _passed(self, chunk: bytearray) -> None:
        """Count the frame that has passed, and which ends in this chunk."""


def schemas(key: int) -> tuple[Schema, Schema]:
    """Return how an API's requests and answers look."""
    found = api(key)
    assert found is not None
    return found.request, found.response


NOTHING, UNASKED = Traffic(), Asked(PRODUCE, 0, 0)
"""What stands in place of a frame that passes, while none does."""
