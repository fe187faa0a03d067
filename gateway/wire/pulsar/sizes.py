"""Estimates the size of a consumer's next messages by those that it got last.

A limit of bytes is kept by the number of messages that may come. That number follows from two
sizes: by the average as many may come as the allowance has room for, and if all of them were as
large as the largest recent one they would not go far beyond it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.pulsar.brake import FAR_BYTES

if TYPE_CHECKING:
    from gateway.wire.account import Account

RECENT = 100
"""Messages: those before them count half as much or less. A consumer of small messages forgets a
large one after some hundreds."""


class Sizes:
    """The sizes of one consumer. Each is the average of what came between two looks."""

    __slots__ = ("_average", "_bytes", "_largest", "_messages")

    def __init__(self) -> None:
        self._messages = self._bytes = 0  # seen so far
        self._average = self._largest = 0.0

    def see(self, account: Account) -> bool:
        """Learn the size of what came since the last call. Return whether anything came."""
        messages = account.messages - self._messages
        if not messages:
            return False
        size = max(1.0, (account.bytes - self._bytes) / messages)
        self._messages, self._bytes = account.messages, account.bytes
        kept = RECENT / (RECENT + messages) if self._average else 0.0
        self._average = size + (self._average - size) * kept
        self._largest = max(size, self._largest * kept)
        return True

    def fitting(self, account: Account) -> int:
        """Return how many messages fit into the allowance of bytes. Some were seen before."""
        left = account.bytes_ceiling - account.bytes
        return int(min(left / self._average, (left + FAR_BYTES) / self._largest))
