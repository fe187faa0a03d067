"""Pauses reading from the broker while a consumer has got far more messages than its limit allows.

Permits are for messages of any size: a broker that has permits may send as many of the largest
messages. MESSAGEs never wait in the gateway. Instead the gateway does not read the broker's
connection for a while. When the broker cannot write any more, it dispatches nothing to this
connection, and other consumers get the messages.

All other frames of the broker on this connection wait as well. So the connection is read between
pauses: one read of the data plane, and the rest of the frame that the read ends in. To client and
broker any frame is a sign of life, and both wait for one for 30 s at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.contract import Await, Direction, Effects, Pause

if TYPE_CHECKING:
    from gateway.wire.account import Account
    from gateway.wire.services import Services

FAR_BYTES = 6 * 1024 * 1024
"""Bytes beyond the allowance that count as far beyond. One permit may bring a message of any size,
and brokers allow 5 MiB by default."""

FAR_MESSAGES = 10_000
"""The same in messages. One permit may bring a batch; clients make batches of up to 1,000."""

SHORTEST = 0.1
"""Seconds of the first pause. Debt to a high limit is paid soon."""

LONGEST = 4.0
"""Seconds of the longest pause; each pause is twice as long as the last one. So frames pass several
times within the 30 s that clients wait."""


def is_far_beyond(account: Account) -> bool:
    """Return whether a consumer exceeds its allowance by more than `FAR_BYTES` or
    `FAR_MESSAGES`."""
    return (
        account.bytes > account.bytes_ceiling + FAR_BYTES
        or account.messages > account.messages_ceiling + FAR_MESSAGES
    )


class Throttle:
    """Pauses reading from the broker of one pair."""

    __slots__ = ("_seconds", "_services", "_until")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seconds = SHORTEST
        self._until = float("-inf")

    def ask(self, account: Account, throttled_at: int, now: float) -> Effects:
        """Return the effects that pause reading from the broker, because a consumer has got far
        more than its allowance. There are no effects while an earlier pause lasts, if the consumer
        has got nothing since its last pause, or if its limits allow it more now.

        `throttled_at`: how many bytes the consumer had got at its last pause.
        """
        if now < self._until or account.bytes == throttled_at or self._services.wants(account):
            return ()
        is_new = now > self._until + LONGEST
        self._seconds = SHORTEST if is_new else min(2 * self._seconds, LONGEST)
        self._until = now + self._seconds
        return Pause(Direction.TO_CLIENT, self._until), Await(account)
