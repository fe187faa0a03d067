"""Messages above a limit, which wait for allowance in the order in which they came.

A producer must send a refused message again, but producers in C++ ignore refusals, and their
messages would be lost. So a message above a limit is not refused at once: it waits for as long as
its client certainly waits for the reply.
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
    """The decision that a message may not be forwarded yet, because this account has no
    allowance."""

    account: Account


class Waits(NamedTuple):
    """A waiting message, and the time until which it waits."""

    frame: Frame
    until: float


class Waiting:
    """The waiting messages of one connection. `number`: how many messages wait. Their bytes are
    counted in the `queued` of their accounts."""

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
        """Queue a message of an account until the time `until` at most, and return True. Return
        False, and do not keep the message, if the memory or the connection's bound is used up, or
        if the account's rule lets no more messages wait."""
        size, patience = len(frame.data), account.patience
        self._note_needs(account)
        queue = self._queues.get(account, ())
        if self.number >= MOST or not self._quota.fits(2 * size):
            return False
        if patience is not None and len(queue) >= patience.messages:
            return False
        if patience is not None and account.queued + size > patience.bytes:
            return False
        self._queues.setdefault(account, deque()).append(Waits(frame, until))
        self._note_needs(account)
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
        self._note_needs(account)
        self._count(account, -1, -len(frame.data))
        return frame

    def _note_needs(self, account: Account) -> None:
        """Have the account's next lease cover its oldest waiting message."""
        first = self.first(account)
        account.needs = 0 if first is None else len(first.frame.data)

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
