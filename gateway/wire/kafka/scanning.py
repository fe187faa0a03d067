"""The base of Kafka's two scanners, `requests` and `responses`; see `contract.Scanner`.

Produce requests and Fetch responses are counted and forwarded while they arrive. Fetch requests and
Produce responses are forwarded too, unless the session has to decide them. At any other frame the
scanner halts.
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
"""The head of each request up to its client id: size, API key, version, correlation id."""

ANSWER = struct.Struct(">ii")
"""The head of each response: size, correlation id."""

NO_ACKS = 0
"""The `acks` of a Produce request that gets no response."""


class FrameScanner(ABC):
    """Scans one direction of a connection: reads frames that may be forwarded while they arrive,
    and halts at stop frames, which the session must decide.

    `raw`: frames are bare SASL tokens without heads, as after SaslHandshake 0; the scanner halts at
    each of them.
    """

    __slots__ = ("_failed", "_rest", "_stream", "raw", "stop")

    is_slow = False

    def __init__(self) -> None:
        self.stop = 0
        self.raw = False
        self._rest = 0  # remaining bytes of a frame whose wanted part has been read
        self._stream: Stream | None = None
        self._failed: int | None = None  # bytes that were owed before the scan that failed

    @property
    def owed(self) -> int:
        """Return how many bytes of the frame that is being forwarded have not arrived yet; see
        `contract.Scanner`."""
        if self._failed is not None:
            return self._failed
        return self._rest if self._stream is None else self._stream.left

    @property
    def skips(self) -> int:
        """Return how many of the bytes that `owed` counts are forwarded without being read; see
        `contract.Scanner`."""
        return self._rest if self._stream is None else self._stream.skips

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which `chunk[start:end]` may be forwarded; see
        `contract.Scanner`. The usual case, a chunk that is one frame like the last one, is tried
        first."""
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
        """Pass the frames at `pos` that are like the last one; return the offset behind them, or
        `pos` if none is. The last of them may end beyond the chunk."""

    @abstractmethod
    def _begin(self, chunk: bytearray, pos: int, end: int, size: int) -> int:
        """Begin with a frame at `pos`. `size`: the bytes behind its size field. Return the length
        of its head if it passes, or its whole length if it has been read, though its end may not
        have come. Otherwise return 0, with `stop` set unless the chunk cuts the head."""

    @abstractmethod
    def _passed(self, chunk: bytearray) -> None:
        """Count the frame that has passed, which ends in this chunk."""


def schemas(key: int) -> tuple[Schema, Schema]:
    """Return the schema of an API's requests, and the schema of its responses. `key`: the API
    key."""
    known = api(key)
    assert known is not None
    return known.request, known.response


NOTHING, UNASKED = Traffic(), Asked(PRODUCE, 0, 0)
"""The frame's content and request, while no frame passes."""
