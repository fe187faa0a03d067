# cython: annotation_typing=False
"""The base of scanners; see `contract.Scanner`."""

from __future__ import annotations


class BaseScanner:
    """Scans one direction of a pair; see `contract.Scanner`, whose attributes `owed`, `skips` and
    `stop` are.

    `again`: how many of the owed bytes were scanned before, see `replay`. `is_slow`: the
    last scan ended early, because its frames took long; the rest is scanned after other pairs had
    their turn.
    """

    __slots__ = ("again", "is_slow", "owed", "skips", "stop")

    again: int
    is_slow: bool
    owed: int
    skips: int
    stop: int

    def __init__(self) -> None:
        self.owed = self.skips = self.stop = self.again = 0
        self.is_slow = False

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        raise NotImplementedError

    def replay(self, size: int) -> None:
        """Let the `size` bytes that the last scan cleared come once more, and pass unread."""
        if self.skips == self.owed:
            self.skips += size
        self.owed += size
        self.again = size
