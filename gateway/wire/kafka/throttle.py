"""Tells clients for how long they are held, in the place that answers have for it.

Well-behaved clients wait by themselves then, and show the time (KIP-219); all others are held by
not being read. Answers keep their size, so a frame that passes can be changed where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct

from gateway.wire.account import Account
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan
from gateway.wire.services import Services

LONGEST_WAIT = 20.0
"""Seconds for which a request waits for allowance at most, and then goes on in debt: clients have
their requests answered within 30, or send them again on another connection."""

LONGEST_WAIT_IN_GROUP = 2.0
"""The same on a connection that carries a group's heartbeats: a member that is silent for ten
seconds may lose its place, and some clients use one connection for everything."""

_NAME = "ThrottleTimeMs"
_WANTED = frozenset({_NAME})

LONGEST_MS = 2**31 - 1

_TIME = Struct(">i")


@dataclass(slots=True)
class Throttle:
    """Says for how long the client of one connection has to wait for allowance. `in_group`: the
    connection carries a group's heartbeats."""

    services: Services
    in_group: bool = False

    @property
    def longest(self) -> float:
        """Return for how many seconds a request waits at most."""
        return LONGEST_WAIT_IN_GROUP if self.in_group else LONGEST_WAIT

    def milliseconds(self, accounts: Iterable[Account]) -> int:
        """Return for how long the client should wait that has used these accounts."""
        held = [it for it in accounts if it.held]
        due = max(map(self.services.due_in, held), default=0.0)
        return math.ceil(1000 * min(self.longest, due))


def has_throttle(schema: Schema, version: int) -> bool:
    """Return whether answers of this version say how long a client is held."""
    return any(it.name == _NAME for it in schema.of(version))


def throttled(schema: Schema, version: int, frame: bytes, start: int, milliseconds: int) -> bytes:
    """Return an answer whose body begins at `start` and says at least so many milliseconds: what a
    broker says stays if it is more. Raises `PeerError` if the body is torn."""
    changed = bytearray(frame)
    for place in plan(schema, version, _WANTED).walk(frame, start, len(frame)).places:
        told = int.from_bytes(frame[place.start : place.end], signed=True)
        own = min(LONGEST_MS, max(told, milliseconds))
        changed[place.start : place.end] = own.to_bytes(4, signed=True)
    return bytes(changed)


def tell(chunk: bytearray, at: int, milliseconds: int) -> None:
    """Write into an answer that passes, whose time stands at `at`, at least so many
    milliseconds."""
    (told,) = _TIME.unpack_from(chunk, at)
    _TIME.pack_into(chunk, at, min(LONGEST_MS, max(told, milliseconds)))
