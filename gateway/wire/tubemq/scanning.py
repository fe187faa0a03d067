# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The base of TubeMQ's two scanners, `to_broker` and `to_client`; see `contract.Scanner`.

Each scanner passes the frames that it can judge itself. At any other frame it halts. The length of
a frame is known only when its last block begins. So the scanner does not wait for the whole frame:
it halts at the blocks that have arrived whole, the frame's head included, and again at later
blocks; `assembly` joins all blocks.
"""

from __future__ import annotations

from gateway.wire import octets
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.scanner import BaseScanner
from gateway.wire.tubemq.frames import FIRST, HEAD, SIZE, head

LONGEST_LENGTH = 5
"""Bytes of the length of a field at most: decoders ignore what others have more."""

_FIRST = FIRST
_HEAD = HEAD.size
_SIZE = SIZE.size
_LONGEST_LENGTH = LONGEST_LENGTH
_WIRE = 7  # the bits of a tag that are the wire type, which is 0 for numbers
_FIRST_TAG = 1 << 3
_LAST_OF_CONNECTION = 4 << 3
"""The tags of `RpcConnHeader`."""


class BlockScanner(BaseScanner):
    """Scans one direction of a connection; see the module.

    `largest`: the most bytes of one block, and of the blocks at which the scanner halts together.
    `missing`: how many blocks of the same frame come after these.
    """

    __slots__ = ("_again", "_blocks", "_largest", "missing")

    missing: int
    _again: int  # bytes of the blocks that are offered again
    _blocks: int
    _largest: int

    def __init__(self, largest: int) -> None:
        super().__init__()
        self.missing = 0
        self._largest = largest
        self._again = 0
        self._blocks = 0  # of the frame under way that have not been decided

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which `chunk[start:end]` may be forwarded; see
        `contract.Scanner`. Raises `PeerError` if a frame's head is invalid, or a block is too
        large."""
        if self._again and start < end:
            self.stop = self._again
            self._again = self.owed = 0
            return start
        if self.stop and start < end:
            self._blocks = self.missing
            self.stop = 0
        owed = 0
        if not self._blocks:
            start = self._run(chunk, start, end)
            owed = self._rest()
        if self._blocks or (
            owed == 0 and end - start >= _FIRST and not self._waits(chunk, start, end)
        ):
            self._stop(chunk, start, end)
        self.owed = owed
        return start

    def _stop(self, chunk: bytearray, start: int, end: int) -> None:
        """Stop at the blocks that have come whole; or at the first block, though it is cut."""
        at = start
        blocks = self._blocks
        behind = 0
        if not blocks:
            blocks = head(chunk, at).blocks
            at += _HEAD
        left = blocks
        while left and end - at >= _SIZE:
            size = octets.u32(chunk, at)
            if size > self._largest and behind:
                break  # the whole blocks stop, and then this one is refused
            if size > self._largest:
                raise ViolationError(EndReason.FRAME_TOO_LARGE, f"a block of {size} bytes")
            at += _SIZE + size
            if behind and (at > end or at - start > self._largest):
                break
            behind = at
            left -= 1
        if behind:
            self.stop = behind - start
            self.missing = left

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the frames at `pos` that the scanner judges itself, and the rest of one that has
        begun. Return the offset up to which they go."""
        raise NotImplementedError

    def _rest(self) -> int:
        """Return how many bytes have not come of the frame that passes."""
        raise NotImplementedError

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """Return whether the frame at `pos` may pass once more of it has come, as far as its first
        bytes tell; at least `FIRST` of them have come. What waits has no claim on memory, so it is
        one block at most."""
        raise NotImplementedError

    def offer_again(self) -> None:
        """Make the next scan halt at the same blocks again, however many bytes it gets, because the
        session has not decided them."""
        self._again = self.stop
        self.stop = 0


def heads(data: bytearray, at: int, end: int, last: int) -> tuple[int, int]:
    """Return where the second message of the envelope at `at` begins, and where it ends. The second
    number is 0 if either of the first two messages has anything but numbers. `last`: the last tag
    of the second message."""
    size, at = sized(data, at, end)
    if at <= 0 or numbers(data, at, at + size, _FIRST_TAG, _LAST_OF_CONNECTION) != at + size:
        return 0, 0
    size, at = sized(data, at + size, end)
    if at <= 0 or numbers(data, at, at + size, _FIRST_TAG, last) != at + size:
        return 0, 0
    return at, at + size


def numbers(data: bytearray, at: int, end: int, tag: int, last: int) -> int:
    """Return the offset behind the numbers from `at` on whose tags are between `tag` and `last`,
    each at most once and in this order, as all encoders write them; 0 if a number is cut or too
    long."""
    while at < end and tag <= data[at] <= last and data[at] & _WIRE == 0:
        tag = data[at] + 1
        _, at = octets.varint(data, at + 1, end)
        if at <= 0:
            return 0
    return at


def text(data: bytearray, at: int, end: int, tag: int) -> tuple[int, int]:
    """Return where the bytes of the text with this tag begin that stands at `at`, and where they
    end. The second number is 0 if another field stands there, or if the text ends beyond `end`."""
    if at >= end or data[at] != tag:
        return 0, 0
    size, at = sized(data, at + 1, end)
    return at, at + size if at > 0 else 0


def sized(data: bytearray, at: int, end: int) -> tuple[int, int]:
    """Return the length that stands at `at`, and the offset behind it. The offset is 0 if the
    length is cut or has too many bytes, or if so many bytes do not follow before `end`."""
    size, behind = octets.varint(data, at, end)
    if behind <= 0 or behind > at + _LONGEST_LENGTH or size > end - behind:
        return 0, 0
    return size, behind


def rest(data: bytearray, at: int, end: int, envelope_end: int) -> int:
    """Return the offset behind the length that stands at `at`; 0 if it is not the length of all
    bytes from there to `envelope_end`, which may be beyond `end`."""
    size, behind = octets.varint(data, at, end)
    if behind <= 0 or behind > at + _LONGEST_LENGTH or behind + size != envelope_end:
        return 0
    return behind
