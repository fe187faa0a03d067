"""Messages above a limit, which wait for allowance in the order in which they came.

A refused producer has to send again, and the one in C++ ignores refusals: its messages would be
lost. So a message waits, as long as its client is sure to wait too.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from gateway.wire.account import Account
from gateway.wire.budget import Quota
from gateway.wire.tubemq.frames import Frame

LONGEST_WAIT = 4.0
"""The most seconds for which a message waits, or half of its request's timeout, if that is less:
clients in C++ and Go have 8 seconds or more, those in Java 10 by default."""

MOST = 1000
"""The most waiting messages of one connection."""


class Overdrawn(NamedTuple):
    """A message may not pass yet, since this account has no allowance."""

    account: Account


class Waits(NamedTuple):
    """A waiting message, and the time until which it waits."""

    frame: Frame
    until: float


class Waiting:
    """The waiting messages of one connection. `number`: how many there are. Their bytes are counted
    in `queued` of their accounts."""

    __slots__ = ("_queues", "_quota", "number")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._queues: dict[Account, deque[Waits]] = {}
        self.number = 0

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Return the accounts with waiting messages."""
        return tuple(self._queues)

    def put(self, account: Account, frame: Frame, until: float) -> bool:
        """Let a message wait until a time; return whether it does: there must be room, and its rule
        must allow it."""
        size, patience = len(frame.data), account.patience
        queue = self._queues.get(account, ())
        if self.number >= MOST or not self._quota.fits(2 * size):
            return False
        if patience is not None and len(queue) >= patience.messages:
            return False
        if patience is not None and account.queued + size > patience.bytes:
            return False
        self._queues.setdefault(account, deque()).append(Waits(frame, until))
        self._count(account, 1, size)
        return True

    def first(self, account: Account) -> Waits | None:
        """Return the oldest waiting message of an account; None if there is none."""
        queue = self._queues.get(account)
        return None if queue is None else queue[0]

    def take(self, account: Account) -> Frame:
        """Remove the oldest waiting message of an account, and return its frame."""
        queue = self._queues[account]
        frame = queue.popleft().frame
        if not queue:
            del self._queues[account]
        self._count(account, -1, -len(frame.data))
        return frame

    def take_all(self, account: Account) -> list[Frame]:
        """Remove all waiting messages of an account, and return their frames."""
        frames = []
        while account in self._queues:
            frames.append(self.take(account))
        return frames

    def clear(self) -> None:
        """Drop all waiting messages."""
        for account in self.accounts:
            self.take_all(account)

    def _count(self, account: Account, number: int, size: int) -> None:
        self.number += number
        account.queued += size
        self._quota.take(2 * size)  # the frame and its envelope
