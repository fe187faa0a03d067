"""Keys of limits: which limit of which rule, and for whom."""

from __future__ import annotations

import json
from hashlib import blake2b
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.dimensions import Dimension
from gateway.policy.supply import OnLoss

if TYPE_CHECKING:
    from gateway.policy.matching import AppliedLimit


LONGEST_SHARED = 200
"""Bytes of the name of a limit that processes share. Rules, tenants and usual topics are shorter;
names that clients choose may have any length, and go into messages and keys of a store."""


class Key(NamedTuple):
    """A limit of a rule: the rule's id, what it limits, and for whom (the values of its `per`)."""

    rule: str
    what: Dimension
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return a name that is the same in every process, and that no other limit has: the whole
        key, or if that is long a digest (no whole key begins like one)."""
        whole = json.dumps([self.rule, self.what, *self.values], separators=(",", ":"))
        if len(whole) <= LONGEST_SHARED:
            return whole
        digest = blake2b(whole.encode(), digest_size=32).hexdigest()
        return f"{self.rule}:{self.what}:{digest}"

    @property
    def size(self) -> int:
        """Return the bytes that a limit of this key takes in memory."""
        return LIMIT_SIZE + sum(map(getsizeof, self.values))


LIMIT_SIZE = 1500
"""Bytes of a limit without its names, with its meter and its places in queues. Measured: 500 to
2,000 by its kind."""

FORGOTTEN_AT_ONCE = 64
"""Limits to check, and forget if they are full, with each use of another one: 0.3 ms. Fewer come
anew with each use, so the number of limits falls."""

MOST_RESTING = 64 * 1024 * 1024
"""Bytes of limits to keep for what they owe though no account is under them: 40,000 with usual
names. Where a rule is per topic, clients make one by each name that they ask for. Beyond it those
that are nearest to owing nothing are forgotten, which gives away least."""

Identity = tuple[Key, bool]
"""A limit, whatever its figures: its key, and whether it is a shadow."""

Kind = tuple[str, Dimension, bool]
"""All limits that a rule makes for one dimension: rule, dimension, and whether they are shadows."""


def identity_of(limit: AppliedLimit) -> Identity:
    """Return the identity of a limit. Accounts under limits of the same identity share one."""
    return Key(limit.rule.id, limit.dimension, limit.key), limit.mode == "shadow"


def on_loss_of(limit: AppliedLimit) -> OnLoss | None:
    """Return how a limit works while the store cannot be asked; None if it is not shared.

    A limit per connection is not: no other process has the same connection. Shadows are counted by
    each process.
    """
    alone = limit.mode == "shadow" or "connection" in limit.rule.per
    return None if alone else OnLoss(limit.rule.on_store_failure)


def kind_of(identity: Identity) -> Kind:
    """Return the kind of a limit, by which its figures are summed up."""
    key, shadow = identity
    return key.rule, key.what, shadow
