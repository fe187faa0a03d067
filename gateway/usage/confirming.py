"""Computes which messages and bytes of a producer the broker has confirmed.

An account counts frames, messages and bytes as they pass to the broker, and receipts as these come
back, in the order of the frames. Bills are on receipts, so a look at the account must tell how many
messages and bytes the frames with receipts had. *Marks* remember the counts at earlier looks: once
there are as many receipts as a mark has frames, its messages and bytes are confirmed. Frames
between two marks count as confirmed once all of them are, or, when the producer ends, by their
share.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gateway.wire.account import Account

MOST_MARKS = 32
"""Most marks of one producer that wait for receipts. Beyond it the newest is replaced."""


class Counts(NamedTuple):
    """Frames, messages and bytes that an account has counted up to one moment."""

    frames: int = 0
    messages: int = 0
    bytes: int = 0

    def minus(self, earlier: Counts) -> Counts:
        """Return the counts since an earlier moment."""
        return Counts(*(now - before for now, before in zip(self, earlier, strict=True)))


def passed(account: Account) -> Counts:
    """Return the counts of all that has passed to the broker, or to the consumer."""
    return Counts(account.frames, account.messages, account.bytes)


class Confirming:
    """Computes the confirmed counts of one producer, from regular looks at its account."""

    __slots__ = ("_confirmed", "_marks")

    def __init__(self) -> None:
        self._confirmed = Counts()
        self._marks: deque[Counts] = deque()

    def confirmed(self, account: Account) -> Counts:
        """Return the counts that are confirmed by now."""
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
        """Return the confirmed counts of a producer that has ended, for which no receipt comes any
        more."""
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
