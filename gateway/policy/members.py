"""An account under limits: what was charged for it, and what it has used.

Units are charged when they are leased. `paid` is how far the account's counters may go at that
price. What a frame passes beyond is charged as soon as it is seen, so that debt is nobody's gift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.limits import Dimension
from gateway.wire.contract import ENDLESS, Account, Action

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gateway.policy.limits import Limit


class Grant(NamedTuple):
    """An account's allowance rises by so much; 0: it stays as it is."""

    account: Account
    messages: int
    bytes: int


def _raise(account: Account, messages: int, size: int) -> Grant:
    """What raises both ceilings to these counts."""
    messages -= account.messages_ceiling
    return Grant(account, max(0, messages), max(0, size - account.bytes_ceiling))


def endless(account: Account) -> Grant:
    """What puts both ceilings out of reach."""
    return _raise(account, ENDLESS, ENDLESS)


class Member:
    """`limits` hold it, `shadows` only watch. `tags`: see `limits`. `since`: when its wait began.
    `client`: whose account it is; None: nobody knows.

    `used_at`: when it was last seen to have used something, or got a lease. `granted_by`: the limit
    that gave it one by turn, until that one is served again.
    """

    __slots__ = (
        "_paid",
        "_seen",
        "account",
        "client",
        "granted_by",
        "limits",
        "shadows",
        "since",
        "tags",
        "ticket",
        "used_at",
        "waits_at",
    )

    def __init__(
        self,
        account: Account,
        limits: tuple[Limit, ...],
        shadows: tuple[Limit, ...],
        client: Hashable = None,
    ) -> None:
        self.account = account
        self.client = client
        self.limits = limits
        self.shadows = shadows
        self.tags = dict.fromkeys(limits, 0.0)
        self.waits_at: Limit | None = None
        self.granted_by: Limit | None = None
        self.ticket = -1
        self.since = self.used_at = 0.0
        self._seen = [account.messages, account.bytes]
        self._paid = [account.messages, account.bytes]

    def settle(self, now: float) -> None:
        """See what was used, and charge what was not paid for."""
        account, seen = self.account, self._seen
        messages, size = account.messages - seen[0], account.bytes - seen[1]
        if messages or size:
            seen[0], seen[1] = account.messages, account.bytes
            self.used_at = now
            if messages:
                self._charge(Dimension.MESSAGES, messages, now)
            if size:
                self._charge(Dimension.BYTES, size, now)

    def _charge(self, dimension: Dimension, used: int, now: float) -> None:
        unpaid = max(0, self._seen[dimension] - self._paid[dimension])
        self._paid[dimension] += unpaid
        for limit in self.limits:
            if limit.applied.dimension == dimension:
                limit.charge(self, used, unpaid, now)
        for limit in self.shadows:
            if limit.applied.dimension == dimension:
                limit.unmetered += used

    def beyond(self, dimension: Dimension) -> int:
        """Units that passed and are neither paid for nor seen."""
        passed = (self.account.messages, self.account.bytes)[dimension]
        return max(0, passed - self._paid[dimension])

    def has_left(self, dimension: Dimension) -> bool:
        """Of what it paid for, as far as that was seen."""
        return self._paid[dimension] > self._seen[dimension]

    @property
    def is_due(self) -> bool:
        """It is held though it paid: its grant waits until a frame that is cut is all here."""
        return self.account.held and all(self.has_left(it.applied.dimension) for it in self.limits)

    def refused_by(self, now: float) -> Limit | None:
        """A limit of which it needs a lease and cannot have one now."""
        for limit in self.limits:
            if not self.has_left(limit.applied.dimension) and limit.refuses(self, now):
                return limit
        return None

    def lend(self, now: float) -> Grant:
        """Lease what it has not, the least that any limit gives."""
        sizes = [0, 0]
        for limit in self.limits:
            dimension = limit.applied.dimension
            if not self.has_left(dimension):
                size = limit.lease(self, now)
                sizes[dimension] = min(size, sizes[dimension] or size)
        for limit in self.limits:
            limit.meter.take(sizes[limit.applied.dimension], now)
            limit.leased.add(self)
        self._paid[0] += sizes[0]
        self._paid[1] += sizes[1]
        self.used_at = now
        return self._grant()

    def _grant(self) -> Grant:
        """To where it paid for, or out of reach where nothing limits."""
        reach = [ENDLESS, ENDLESS]
        for limit in self.limits:
            reach[limit.applied.dimension] = self._paid[limit.applied.dimension]
        return _raise(self.account, *reach)

    def rest(self, now: float) -> None:
        """It has not used its leases for a while. A consumer keeps them: the messages that it has
        asked for may come at any time, and they are paid."""
        if self.account.action is not Action.CONSUME:
            self.give_back(now)
        for limit in self.limits:
            limit.leased.discard(self)

    def give_back(self, now: float) -> None:
        """Return what is left of its leases. From here on it is held."""
        self.settle(now)
        for limit in self.limits:
            dimension = limit.applied.dimension
            limit.meter.give_back(self._paid[dimension] - self._seen[dimension], now)
            limit.leased.discard(self)
        self._paid[:] = self._seen
        if self.limits:
            self.account.hold()
