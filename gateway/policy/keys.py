"""What limits of rules are told apart by."""

from __future__ import annotations

import json
from hashlib import blake2b
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.rules import Dimension
from gateway.policy.supply import OnLoss

if TYPE_CHECKING:
    from gateway.policy.matching import AppliedLimit


LONGEST_SHARED = 200
"""Bytes of a name by which processes share a limit. Rules, tenants and usual topics are shorter;
what clients write is as long as they like, and goes into messages and keys of a store."""


class Key(NamedTuple):
    """Which limit it is: of a rule, of what it limits, and for whom (the values of its `per`)."""

    rule: str
    what: Dimension
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """The same in every process, and of no other limit: all of it, or of a long one a digest
        (no whole one begins as that does)."""
        whole = json.dumps([self.rule, self.what, *self.values], separators=(",", ":"))
        if len(whole) <= LONGEST_SHARED:
            return whole
        digest = blake2b(whole.encode(), digest_size=32).hexdigest()
        return f"{self.rule}:{self.what}:{digest}"

    @property
    def size(self) -> int:
        """Bytes that a limit takes in memory."""
        return LIMIT_SIZE + sum(map(getsizeof, self.values))


LIMIT_SIZE = 1500
"""Bytes of a limit without its names, with its meter and its places in queues. Measured: 500 to
2,000 by its kind."""

FORGOTTEN_AT_ONCE = 64
"""Limits that are looked at, to be forgotten, for each one that is asked of: 0.3 ms. More than come
anew with each, so they grow fewer."""

MOST_RESTING = 64 * 1024 * 1024
"""Bytes of limits that nobody is under, kept for what they owe: 40,000 with usual names. Clients
make one by each name that they ask for, where a rule is per topic. Beyond it those that are the
nearest to owing nothing are forgotten, which gives away least."""

Identity = tuple[Key, bool]
"""Of one limit, whatever its figures; whether it is a shadow."""

Kind = tuple[str, Dimension, bool]
"""Of all limits that a rule has made for one thing; whether they are shadows."""


def identity_of(limit: AppliedLimit) -> Identity:
    """Whoever is under limits of the same identity shares one."""
    return Key(limit.rule.id, limit.dimension, limit.key), limit.mode == "shadow"


def on_loss_of(limit: AppliedLimit) -> OnLoss | None:
    """How a limit goes on without the processes that share it; None: it is shared with nobody.

    Nobody else has the same connection, and shadows are counted by each process.
    """
    alone = limit.mode == "shadow" or "connection" in limit.rule.per
    return None if alone else OnLoss(limit.rule.on_store_failure)


def kind_of(identity: Identity) -> Kind:
    """Which figures a limit is a part of."""
    key, shadow = identity
    return key.rule, key.what, shadow
