"""Receipts that come after the close of their producer: its client hears of them first.

A broker closes a producer, or fences its topic, before it has given receipts for all that it has
stored. A client that hears of the close opens the producer anew, at once and perhaps elsewhere, and
sends again what has no receipt: it is stored twice. So the close is told when no receipt is awaited
any more, or when none has come for a while.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from gateway.wire.contract import Account, Later
from gateway.wire.pulsar.ids import Handle

FIRST = 0.1
"""Seconds for the first receipt: mostly none comes, as what has none was still on its way to the
broker. A producer that moves is away for as long anyway."""

QUIET = 0.2
"""Seconds for another one, where some came: a broker that was frozen gave them in bursts, with
0.1 s in between."""

PATIENCE = 2.0
"""Seconds that a client is kept in ignorance at most. Its producer could be open elsewhere."""

FIRST_TOKEN = 1 << 62
"""Of ours; those of chases begin at 0."""


class _Closed(NamedTuple):
    handle: Handle
    told: bytes
    unanswered: int
    until: float


class LateReceipts:
    """The closed producers of one pair. Made when it is needed: idle pairs are many."""

    __slots__ = ("_closed", "_tokens")

    def __init__(self) -> None:
        self._closed: dict[int, _Closed] = {}  # by the token of the next look at it
        self._tokens = count(FIRST_TOKEN)

    def __bool__(self) -> bool:
        return bool(self._closed)

    def begin(self, handle: Handle, told: bytes, now: float) -> Later:
        """Its receipts are awaited from now on. `told`: the close, as its client may see it."""
        return self._again(_Closed(handle, told, handle.unanswered, now + PATIENCE), now, FIRST)

    def _again(self, closed: _Closed, now: float, seconds: float = QUIET) -> Later:
        token = next(self._tokens)
        self._closed[token] = closed._replace(unanswered=closed.handle.unanswered)
        return Later(token, min(now + seconds, closed.until))

    def look(self, token: int, now: float) -> Later | Handle | None:
        """It is later: look again later, or tell this one's client; None: it is over meanwhile."""
        closed = self._closed.pop(token, None)
        if closed is None:
            return None
        if closed.handle.unanswered < closed.unanswered and now < closed.until:
            return self._again(closed, now)
        self._closed[token] = closed
        return closed.handle

    def complete(self) -> list[Handle]:
        """Those whose receipts are all here."""
        return [it.handle for it in self._closed.values() if not it.handle.unanswered]

    def over(self, account: Account) -> bytes:
        """Nothing is awaited for it any more. Answers what its client is to be told."""
        for token, closed in self._closed.items():
            if closed.handle.account is account:
                del self._closed[token]
                return closed.told
        return b""
