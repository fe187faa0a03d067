"""Choices out of a fuzzer's bytes: the same bytes make the same choices.

Zeros are the ordinary choice, and bytes that are missing read as zeros. So what a fuzzer cuts off
makes an input simpler, and each byte that it changes changes one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Source:
    """Bytes that are used up one after another."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that are not used yet."""
        return max(0, len(self._data) - self._at)

    def byte(self) -> int:
        at = self._at
        self._at += 1
        return self._data[at] if at < len(self._data) else 0

    def take(self, size: int) -> bytes:
        """At most so many bytes as they are."""
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1."""
        value = self.byte()
        if bound > 256:
            value = value << 8 | self.byte()
        return value % bound

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def odd(self, often: int) -> bool:
        """True once in so many bytes, and never for zero."""
        return self.byte() % often == often - 1

    def number(self) -> int:
        """Mostly small, at times of any size up to 64 bits."""
        width = self.byte()
        if width < 192:
            return width % 16
        return int.from_bytes(self.take(width % 8 + 1))
