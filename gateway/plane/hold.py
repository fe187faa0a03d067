"""Frames that wait for their account's allowance."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gateway.wire.contract import Account

if TYPE_CHECKING:
    from gateway.plane.memory import Memory


class HeldFrames:
    """One queue for each held account of a pair, in the order of arrival.

    While an account's queue is not empty the account has no allowance: nothing overtakes it.
    """

    __slots__ = ("_memory", "_queues")

    def __init__(self, memory: Memory) -> None:
        self._queues: dict[Account, deque[bytes]] = {}
        self._memory = memory

    def __contains__(self, account: Account) -> bool:
        return account in self._queues

    @property
    def size(self) -> int:
        """Bytes of all frames."""
        return sum(len(frame) for queue in self._queues.values() for frame in queue)

    def put(self, account: Account, frame: bytes) -> None:
        self._queues.setdefault(account, deque()).append(frame)
        self._memory.used += len(frame)
        account.hold()

    def take(self, account: Account) -> bytes | None:
        """The oldest frame, if the account may pass it now."""
        queue = self._queues.get(account)
        if not queue or account.held:
            return None
        frame = queue.popleft()
        self._memory.used -= len(frame)
        if not queue:
            del self._queues[account]
        return frame

    def discard(self, account: Account) -> None:
        self._memory.used -= sum(map(len, self._queues.pop(account, ())))

    def clear(self) -> None:
        for account in tuple(self._queues):
            self.discard(account)
