"""Computes how many messages and bytes of a producer the broker has confirmed.

An account counts frames, messages and bytes as they pass to the broker, and receipts as they come
back in the order of the frames. Only messages with receipts are billed. But receipts are counted by
frame, so the messages and bytes of the confirmed frames must be computed. Each time the account is
read, a *mark* remembers its counts. Once there are as many receipts as a mark has frames, the
mark's messages and bytes are confirmed. Frames between two marks count as confirmed once all of
them have receipts. When the producer has ended, a part of them may have receipts; then the same
part of their messages and bytes counts.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gateway.wire.account import Account

MOST_MARKS = 32
"""Most marks of one producer that wait for receipts. Beyond it the newest is replaced."""


class Counts(NamedTuple):
    """How many frames, messages and bytes an account has counted up to one moment."""

    frames: int = 0
    messages: int = 0
    bytes: int = 0

    def minus(self, earlier: Counts) -> Counts:
        """Return what has been counted since an earlier moment."""
        return Counts(*(now - before for now, before in zip(self, earlier, strict=True)))


def passed(account: Account) -> Counts:
    """Return the counts of all frames that have passed to the broker, or to the consumer."""
    return Counts(account.frames, account.messages, account.bytes)


class Confirming:
    """Computes the confirmed counts of one producer. Its account must be read regularly, by
    `confirmed`."""

    __slots__ = ("_confirmed", "_marks")

    def __init__(self) -> None:
        self._confirmed = Counts()
        self._marks: deque[Counts] = deque()

    def confirmed(self, account: Account) -> Counts:
        """Return the counts that the broker has confirmed up to now."""
        now = passed(account)
        marks = self._marks
        if account.receipts >= now.frames:
            marks.clear()
            self._confirmed = now
            return now
        while marks and marks[0].frames <= account.receipts:
            self._confirmed = marks.popleft()
        if not marks or marks[-1] != now:
            if len(marks) >= MOST_MARKS:
                marks.pop()
            marks.append(now)
        return self._confirmed

    def last(self, account: Account) -> Counts:
        """Return the confirmed counts of a producer that has ended, and that gets no more
        receipts."""
        confirmed = self.confirmed(account)
        extra = account.receipts - confirmed.frames
        if extra <= 0 or not self._marks:
            return confirmed
        following = self._marks[0].minus(confirmed)
        shares = (count * extra // following.frames for count in following)
        self._confirmed = Counts(
            *(number + share for number, share in zip(confirmed, shares, strict=True))
        )
        return self._confirmed
