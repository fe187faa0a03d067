"""Scanners that verify the CRC32C of messages, for listeners with `checksums: verify`.

Theory of operation
===================
A SEND or MESSAGE may carry a CRC32C of its metadata and payload (`[0x0e01][CRC32C]`). Brokers
verify it and refuse a damaged SEND. With `checksums: verify` the gateway verifies it too, and
counts damage by topic and side: between client and gateway, or between gateway and brokers.

**To the broker** a damaged SEND must not go on, so its end must have come before its begin may go.
If the chunk's end cuts a SEND, the scanner waits for the rest of a small one, and stops at a large
one, which is collected. A damaged SEND is a stop frame too: the session refuses it.

**To the client** a MESSAGE passes as always, and is verified on its way, piece by piece: the
consumer verifies it again, and would miss a message that was withheld.

The usual scanners stay as they are: these scanners walk the cleared bytes a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from crc32c import crc32c

from gateway.wire.account import Account
from gateway.wire.pulsar.frames import BROKER_ENTRY_MAGIC, CHECKSUM_MAGIC, HEAD, Kind
from gateway.wire.pulsar.scan import (
    LARGEST_COMMAND,
    Accounts,
    ToBrokerScanner,
    ToClientScanner,
    id_of,
)

WAITED_FOR = 64 * 1024
"""Bytes of a cut SEND to wait for; a larger one is collected. The scanner keeps it with the chunk's
rest, which must fit before the next chunk."""

_MARK = Struct(">HI")
"""A magic number, and a checksum or a size."""

_mark: Callable[[bytes | bytearray, int], tuple[int, int]] = _MARK.unpack_from
_crc32c: Callable[[memoryview, int], int] = crc32c
_head: Callable[[bytes | bytearray, int], tuple[int, int]] = HEAD.unpack_from


def _is_damaged(chunk: bytes | bytearray, command_end: int, end: int) -> bool:
    """Return whether a SEND has a checksum that is wrong, by the rules of brokers."""
    if end - command_end < _MARK.size:
        return False
    magic, checksum = _mark(chunk, command_end)
    if magic != CHECKSUM_MAGIC:
        return False
    with memoryview(chunk) as view:
        return checksum != _crc32c(view[command_end + _MARK.size : end], 0)


class VerifyingToBrokerScanner(ToBrokerScanner):
    """Scans as `ToBrokerScanner` does, but forwards a SEND only when it is whole and its checksum
    is right."""

    __slots__ = ()

    def is_damaged(self, frame: bytes) -> bool:
        """See `scanning.ProducerScanner`."""
        return _is_damaged(frame, 8 + _head(frame, 0)[1], len(frame))

    def _send(self, chunk: bytearray, pos: int, total: int, end: int, here: int) -> int:
        frame_end = pos + 4 + total
        if frame_end > here:
            return pos if total <= WAITED_FOR else self._halt(pos, total)
        if _is_damaged(chunk, end, frame_end):
            return self._halt(pos, total)
        return super()._send(chunk, pos, total, end, here)

    def _learn(
        self, chunk: bytearray, pos: int, sequence_at: int, end: int, account: Account
    ) -> None:
        """Learn no shape: no SEND may pass by its shape alone."""


class VerifyingToClientScanner(ToClientScanner):
    """Scans as `ToClientScanner` does, and counts MESSAGEs with a wrong checksum for each
    consumer."""

    __slots__ = ("_account", "_computed", "_expected", "_left")

    def __init__(
        self,
        actions: tuple[int, ...],
        unknown: Account,
        command_bound: int = LARGEST_COMMAND,
        consumers: Accounts | None = None,
    ) -> None:
        super().__init__(actions, unknown, command_bound, consumers)
        self._left = 0  # missing bytes of a cut MESSAGE
        self._computed = self._expected = 0
        self._account = unknown

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        owed = self.owed
        cleared = super().scan(chunk, start, end)
        with memoryview(chunk) as view:
            pos = self._go_on(view, start, min(start + owed, cleared))
            while pos < cleared:
                pos = self._verify(chunk, view, pos, cleared)
        return cleared

    def _go_on(self, view: memoryview, start: int, end: int) -> int:
        """Go on with a frame that the last chunk truncated. Return the end of its bytes here."""
        if self._left:
            self._computed = _crc32c(view[start:end], self._computed)
            self._left -= end - start
            self._compare()
        return end

    def _verify(self, chunk: bytearray, view: memoryview, pos: int, end: int) -> int:
        """Begin to verify a frame. Return the offset behind it."""
        total, size = _head(chunk, pos)
        frame_end = pos + 4 + total
        if chunk[pos + 9] != Kind.MESSAGE:
            return frame_end
        begin = _checked_from(chunk, pos + 8 + size, min(frame_end, end))
        if begin is None:
            return frame_end
        account = self._consumers.get(id_of(chunk, pos + 8, pos + 8 + size))
        self._account = self.unknown if account is None else account
        self._expected = _mark(chunk, begin - _MARK.size)[1]
        here = min(frame_end, end)
        self._computed = _crc32c(view[begin:here], 0)
        self._left = frame_end - here
        self._compare()
        return frame_end

    def _compare(self) -> None:
        if not self._left and self._computed != self._expected:
            self._account.damaged += 1


def _checked_from(chunk: bytearray, at: int, end: int) -> int | None:
    """Return the offset of the bytes that a MESSAGE's checksum covers; None without a checksum."""
    if at + _MARK.size > end:
        return None
    magic, number = _mark(chunk, at)
    if magic == BROKER_ENTRY_MAGIC:
        at += _MARK.size + number
        if at + _MARK.size > end:
            return None
        magic, _ = _mark(chunk, at)
    return at + _MARK.size if magic == CHECKSUM_MAGIC else None
