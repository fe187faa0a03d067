"""Stops a client's connection while one of its consumers has got far more than it may.

Permits are for messages, whatever their size: a broker that has some may send that many of the
largest. MESSAGEs never wait in the gateway, so the broker's connection is not read for a while
instead. When it cannot write any more the broker dispatches nothing to this connection, and other
consumers get what this one may not have.

Whatever else the broker says on this connection waits as well. So it is read again and again: what
comes between two pauses is one read of the data plane, and the rest of the frame that it ends in.
To client and broker any frame is a sign of life, and both have patience for 30 s at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.contract import Await, Direction, Effects, Pause

if TYPE_CHECKING:
    from gateway.wire.account import Account
    from gateway.wire.services import Services

FAR_BYTES = 6 * 1024 * 1024
"""Bytes beyond the allowance that are far beyond it. A permit may bring a message of any size, and
brokers allow 5 MiB by default."""

FAR_MESSAGES = 10_000
"""The same in messages. A permit may bring a batch, and clients make them of 1,000 by default."""

SHORTEST = 0.1
"""Seconds of the first pause. What high limits are owed is paid soon."""

LONGEST = 4.0
"""Seconds of a pause at most: each is twice as long as the one before. So something passes several
times within the patience of clients."""


def is_far_beyond(account: Account) -> bool:
    """Whether a consumer has got more than one usual message or batch that it had no right to."""
    return (
        account.bytes > account.bytes_ceiling + FAR_BYTES
        or account.messages > account.messages_ceiling + FAR_MESSAGES
    )


class Brake:
    """The brake of one pair."""

    __slots__ = ("_seconds", "_services", "_until")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seconds = SHORTEST
        self._until = float("-inf")

    def ask(self, account: Account, braked_at: int, now: float) -> Effects:
        """Stop reading from the broker for a while: a consumer got far more than it may have.

        `braked_at`: the bytes that it had got at its last pause. Return no effects while an earlier
        pause lasts, when this consumer got nothing since its last one, or when its limits have room
        for more.
        """
        if now < self._until or account.bytes == braked_at or self._services.wants(account):
            return ()
        is_new = now > self._until + LONGEST
        self._seconds = SHORTEST if is_new else min(2 * self._seconds, LONGEST)
        self._until = now + self._seconds
        return Pause(Direction.TO_CLIENT, self._until), Await(account)
