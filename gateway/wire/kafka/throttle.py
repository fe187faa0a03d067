"""States the throttle time in responses, in the protocol's own field for it.

Well-behaved clients then wait by themselves, and show the throttle time to their users (KIP-219).
Clients that do not wait are throttled because the gateway does not read their connections. A
response keeps its size, so the time can be written into a frame that is being forwarded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from struct import Struct
from types import MappingProxyType

from gateway.wire.account import Account, Action
from gateway.wire.contract import Await, Effects, Postpone
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan
from gateway.wire.services import Services

LONGEST_WAIT = 20.0
"""The most seconds for which a request waits for allowance; then it goes on in debt. Clients expect
a response within 30, or send the request again on another connection."""

LONGEST_WAIT_IN_GROUP = 2.0
"""The same on a connection that carries a group's heartbeats: a member that is silent for ten
seconds may lose its place, and some clients use one connection for everything."""

_NAME = "ThrottleTimeMs"
_WANTED = frozenset({_NAME})

LONGEST_MS = 2**31 - 1

_TIME = Struct(">i")


_NONE: Mapping[Account, None] = MappingProxyType({})
"""Stands for no accounts. Most connections never use up an allowance, so they share it."""


class Throttle:
    """Computes how long the client of one connection waits for allowance. `in_group`: the
    connection carries a group's heartbeats. `produced`, `consumed`: the accounts that have used up
    their allowance."""

    __slots__ = ("_services", "_waits_since", "consumed", "in_group", "produced")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waits_since = math.inf  # when the next request began to wait
        self.in_group = False
        self.produced = self.consumed = _NONE

    def used_up(self, account: Account) -> None:
        """Remember that an account has used up its allowance, so that responses about its topic
        state a throttle time."""
        if account.action is Action.PRODUCE:
            if not isinstance(self.produced, dict):
                self.produced = {}
            self.produced[account] = None
        else:
            if not isinstance(self.consumed, dict):
                self.consumed = {}
            self.consumed[account] = None

    def forget(self, account: Account) -> None:
        """Forget an account that has allowance again, or is closed."""
        noted = self.produced if account.action is Action.PRODUCE else self.consumed
        if isinstance(noted, dict):
            noted.pop(account, None)

    def waiting(self, noted: Mapping[Account, None]) -> list[Account]:
        """Return those of the `noted` accounts that still have no allowance, and forget the others.
        `noted`: this object's `produced` or `consumed`."""
        waiting: list[Account] = []
        for account in list(noted):
            if account.held and not self._services.wants(account):
                waiting.append(account)
            else:
                self.forget(account)
        return waiting

    def wait(self, noted: Mapping[Account, None], now: float) -> Effects | None:
        """Return the effects that make a request wait until these accounts have allowance; None if
        it may go on. A request that has waited as long as it may goes on in debt. `noted`: this
        object's `produced` or `consumed`."""
        self._waits_since = min(self._waits_since, now)
        until = self._waits_since + self.longest
        waiting = self.waiting(noted)
        if not waiting or now >= until:
            self._waits_since = math.inf
            return None
        return (*(Await(account) for account in waiting), Postpone(until))

    @property
    def longest(self) -> float:
        """Return the most seconds that a request of this connection may wait for allowance."""
        return LONGEST_WAIT_IN_GROUP if self.in_group else LONGEST_WAIT

    def milliseconds(self, accounts: Iterable[Account]) -> int:
        """Return the throttle time, in milliseconds, for a response to a client that has used these
        accounts; 0: the client need not wait."""
        held = [account for account in accounts if account.held]
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
