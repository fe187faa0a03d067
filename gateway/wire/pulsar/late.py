"""Receipts that come after the close of their producer: its client hears of them first.

A broker closes a producer, or fences its topic, before it has given receipts for all that it has
stored. A client that hears of the close opens the producer anew, at once and perhaps elsewhere, and
sends again what has no receipt: it is stored twice. So the close is told when no receipt is awaited
any more, or when none has come for a while.

Only receipts go ahead of the close. Whatever else the broker says of the producer comes behind it:
the Go client forgets a producer by a SEND_ERROR TopicTerminatedError, and a close that it hears
after that it ignores.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count, islice
from typing import NamedTuple

from gateway.wire.contract import Later
from gateway.wire.pulsar.ids import Handle

FIRST = 0.1
"""Seconds for the first receipt: mostly none comes, as what has none was still on its way to the
broker. A producer that moves is away for as long anyway."""

QUIET = 0.2
"""Seconds for another one, where some came: a broker that was frozen gave them in bursts, with
0.1 s in between."""

PATIENCE = 2.0
"""Seconds that a client is kept in ignorance at most. Its producer could be open elsewhere."""

LOOKS = 64
"""Closed producers that `complete` looks at in one call. It is called for every chunk that goes to
the client, so looking at all of thousands would cost more than the chunk; whom it does not come to,
the next `look` finds."""

FIRST_TOKEN = 1 << 62
"""Of ours; those of chases begin at 0."""


class _Closed(NamedTuple):
    """`token`: of the next look at it. `unanswered`: frames without a receipt, at the last one."""

    token: int
    told: bytes
    unanswered: int
    until: float


class LateReceipts:
    """The closed producers of one pair. Made when it is needed: idle pairs are many.

    No method's cost grows with the number of closed producers.
    """

    __slots__ = ("_closed", "_handles", "_tokens")

    def __init__(self) -> None:
        self._closed: OrderedDict[Handle, _Closed] = OrderedDict()
        self._handles: dict[int, Handle] = {}  # by token
        self._tokens = count(FIRST_TOKEN)

    def __bool__(self) -> bool:
        return bool(self._closed)

    def begin(self, handle: Handle, told: bytes, now: float) -> Later:
        """Its receipts are awaited from now on. `told`: the close, as its client may see it."""
        return self._look_later(handle, told, now + FIRST, now + PATIENCE)

    def _look_later(self, handle: Handle, told: bytes, when: float, until: float) -> Later:
        token = next(self._tokens)
        self._handles[token] = handle
        self._closed[handle] = _Closed(token, told, handle.unanswered, until)
        return Later(token, min(when, until))

    def look(self, token: int, now: float) -> Later | Handle | None:
        """It is later: look again later, or tell this one's client; None: it is over meanwhile."""
        handle = self._handles.pop(token, None)
        if handle is None:
            return None
        closed = self._closed[handle]
        if 0 < handle.unanswered < closed.unanswered and now < closed.until:
            return self._look_later(handle, closed.told, now + QUIET, closed.until)
        return handle

    def complete(self) -> list[Handle]:
        """Those whose receipts are all here, among the next few."""
        found = []
        for handle in tuple(islice(self._closed, LOOKS)):
            if handle.unanswered:
                self._closed.move_to_end(handle)
            else:
                found.append(handle)
        return found

    def over(self, handle: Handle) -> bytes:
        """Nothing is awaited for it any more. Answers what its client is to be told."""
        closed = self._closed.pop(handle, None)
        if closed is None:
            return b""
        self._handles.pop(closed.token, None)
        return closed.told
