"""Messages above a limit, which wait for allowance in the order in which they came.

A producer that is refused has to send again, and the one in C++ does not look at refusals: what it
sent would be lost. So a message waits, as long as its client is sure to wait too.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from gateway.wire.account import Account
from gateway.wire.budget import Quota
from gateway.wire.tubemq.frames import Frame

LONGEST_WAIT = 4.0
"""Seconds for which a message waits at most, or half the time that its request has, if that is
less: clients in C++ and Go have 8 seconds or more, those in Java 10 unless they are told less."""

MOST = 1000
"""Messages of one connection that wait."""


class Overdrawn(NamedTuple):
    """The account of a message that may not pass yet."""

    account: Account


class Waits(NamedTuple):
    """A message that waits, and until when."""

    frame: Frame
    until: float


class Waiting:
    """The messages of one connection that wait. `number`: of these. Accounts note their bytes."""

    __slots__ = ("_queues", "_quota", "number")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._queues: dict[Account, deque[Waits]] = {}
        self.number = 0

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Return the accounts of these messages."""
        return tuple(self._queues)

    def put(self, account: Account, frame: Frame, until: float) -> bool:
        """Have a message wait; return whether it may: there is room, and its rule allows it."""
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
        """Return the message whose turn it is; None: none waits."""
        queue = self._queues.get(account)
        return None if queue is None else queue[0]

    def take(self, account: Account) -> Frame:
        """Take the message whose turn it is."""
        queue = self._queues[account]
        frame = queue.popleft().frame
        if not queue:
            del self._queues[account]
        self._count(account, -1, -len(frame.data))
        return frame

    def take_all(self, account: Account) -> list[Frame]:
        """Take all messages of an account."""
        found = []
        while account in self._queues:
            found.append(self.take(account))
        return found

    def clear(self) -> None:
        """Drop all messages."""
        for account in self.accounts:
            self.take_all(account)

    def _count(self, account: Account, number: int, size: int) -> None:
        self.number += number
        account.queued += size
        self._quota.take(2 * size)  # the frame and its envelope
