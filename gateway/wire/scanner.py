# cython: annotation_typing=False
"""The base of scanners; see `contract.Scanner`."""

from __future__ import annotations


class BaseScanner:
    """Scans one direction of a pair; see `contract.Scanner`, whose attributes `owed`, `skips` and
    `stop` are.

    `looks`: bytes are scanned that come once more, so that nothing may be written into them.
    `is_slow`: the last scan ended early, because its frames took long; the rest is scanned after
    other pairs had their turn.
    """

    __slots__ = ("is_slow", "looks", "owed", "skips", "stop")

    looks: bool
    is_slow: bool
    owed: int
    skips: int
    stop: int

    def __init__(self) -> None:
        self.owed = self.skips = self.stop = 0
        self.looks = self.is_slow = False

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        raise NotImplementedError

    def look(self, chunk: bytearray, end: int) -> None:
        """Scan `chunk[:end]`, whose bytes come once more: what is cleared passes unread then."""
        self.looks = True
        cleared = self.scan(chunk, 0, end)
        self.looks = False
        self.owed += cleared
        self.skips += cleared
