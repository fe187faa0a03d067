"""States the throttle time in responses, in the protocol's own field for it.

Well-behaved clients then wait by themselves, and show the throttle time to their users (KIP-219).
Clients that do not wait are throttled because the gateway does not read their connections. A
response keeps its size, so the time can be written into a frame that is being forwarded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from struct import Struct

from gateway.wire.account import Account, Action
from gateway.wire.contract import Await, Effects, Postpone
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan
from gateway.wire.services import Services

LONGEST_WAIT = 20.0
"""The most seconds for which a request or a response waits for allowance; then it is refused.
Clients expect a response within 30, or send the request again on another connection."""

LONGEST_WAIT_IN_GROUP = 2.0
"""The same on a connection that carries a group's heartbeats: a member that is silent for ten
seconds may lose its place, and some clients use one connection for everything."""

AT_ONCE = 64
"""Accounts that are asked about in one step, up to 10 µs each. A request may have thousands."""

OVERDUE: Effects = ()
"""Returned for a request or a response that has waited for as long as it may."""

_NAME = "ThrottleTimeMs"
_WANTED = frozenset({_NAME})

LONGEST_MS = 2**31 - 1

_TIME = Struct(">i")


_NONE: dict[Account, None] = {}
"""Stands for no accounts, and nobody adds to it: most connections never use up an allowance."""


class Throttle:
    """Makes requests and responses of one connection wait for allowance, and computes for how long.

    `in_group`: the connection carries a group's heartbeats. `produced`: the accounts whose
    allowance the request of Produce at which the scanner stopped lacks. `consumed`: those that have
    used up their allowance, so that the next request of Fetch waits. `received`: those whose
    allowance the response of Fetch lacks that passes."""

    __slots__ = ("_services", "_since", "consumed", "in_group", "produced", "received")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._since = [math.inf, math.inf]  # when the next request, or response, began to wait
        self.in_group = False
        self.produced = self.consumed = self.received = _NONE

    def lacks(self, account: Account, size: int) -> None:
        """Have a request of Produce, or a response of Fetch, wait until the account has allowance
        for `size` bytes of it."""
        account.needs = size
        if account.action is Action.PRODUCE:
            if self.produced is _NONE:
                self.produced = {}
            self.produced[account] = None
        else:
            if self.received is _NONE:
                self.received = {}
            self.received[account] = None

    def used_up(self, account: Account) -> None:
        """Have the next request of Fetch wait, because a consumer's account has used up its
        allowance."""
        if self.consumed is _NONE:
            self.consumed = {}
        self.consumed[account] = None

    def forget(self, account: Account) -> None:
        """Forget an account that is closed."""
        for noted in (self.produced, self.consumed, self.received):
            noted.pop(account, None)

    def wants(self, account: Account) -> bool:
        """Return whether an account has allowance for what waits; ask for it if not."""
        return not account.is_short or self._services.wants(account)

    def wait(self, noted: dict[Account, None], now: float) -> Effects | None:
        """Return the effects that make a request or a response wait until the `noted` accounts have
        had their turn; None if it may go on, and `OVERDUE` if it must be refused. `noted`: this
        object's `produced`, `consumed` or `received`."""
        side = noted is self.received
        self._since[side] = min(self._since[side], now)
        until = self._since[side] + self.longest
        waiting: list[Account] = []
        for account in tuple(islice(noted, AT_ONCE)):
            if self.wants(account):
                account.needs = 0
                del noted[account]
            else:
                waiting.append(account)
        if waiting and now < until:
            return (*map(Await, waiting), Postpone(until))
        if noted and not waiting:
            return (Postpone(now),)
        self._since[side] = math.inf
        return OVERDUE if waiting else None

    @property
    def longest(self) -> float:
        """Return the most seconds that a request of this connection may wait for allowance."""
        return LONGEST_WAIT_IN_GROUP if self.in_group else LONGEST_WAIT

    def milliseconds(self, accounts: Iterable[Account]) -> int:
        """Return the throttle time, in milliseconds, for a response to a client that has used these
        accounts; 0: the client need not wait."""
        held = [account for account in islice(accounts, AT_ONCE) if account.held]
        due = max(map(self._services.due_in, held), default=0.0)
        return math.ceil(1000 * min(self.longest, due))


def has_throttle(schema: Schema, version: int) -> bool:
    """Return whether responses of this version have a field for the throttle time."""
    return any(field.name == _NAME for field in schema.of(version))


def throttled(schema: Schema, version: int, frame: bytes, start: int, milliseconds: int) -> bytes:
    """Return a response, whose body begins at `start`, with a throttle time of at least
    `milliseconds`. If the broker has stated a longer time, that time is not changed. Raises
    `PeerError` if the body is truncated."""
    changed = bytearray(frame)
    for place in plan(schema, version, _WANTED).walk(frame, start, len(frame)).places:
        stated = int.from_bytes(frame[place.start : place.end], signed=True)
        own = min(LONGEST_MS, max(stated, milliseconds))
        changed[place.start : place.end] = own.to_bytes(4, signed=True)
    return bytes(changed)


def tell(chunk: bytearray, at: int, milliseconds: int) -> None:
    """Write a throttle time of at least `milliseconds` into the field at offset `at` of a response
    that is being forwarded. If the broker has stated a longer time, that time is not changed."""
    (stated,) = _TIME.unpack_from(chunk, at)
    _TIME.pack_into(chunk, at, min(LONGEST_MS, max(stated, milliseconds)))
