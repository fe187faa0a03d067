"""Keys of limits: the rule, the limited quantity, and the values of the rule's `per`."""

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
    """Identifies a limit. `rule`: the rule's id. `what`: the limited dimension. `values`: the
    subject's value of each field in the rule's `per`."""

    rule: str
    what: Dimension
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return a name of the limit that is unique, and the same in every process: the key as
        JSON, or a digest of this text if it is long. No digest equals the JSON of another key,
        because the two forms begin differently."""
        whole = json.dumps([self.rule, self.what, *self.values], separators=(",", ":"))
        if len(whole) <= LONGEST_SHARED:
            return whole
        digest = blake2b(whole.encode(), digest_size=32).hexdigest()
        return f"{self.rule}:{self.what}:{digest}"

    @property
    def size(self) -> int:
        """Return about how many bytes of memory a limit with this key takes."""
        return LIMIT_SIZE + sum(map(getsizeof, self.values))


LIMIT_SIZE = 1500
"""Bytes of a limit without its names, with its meter and its places in queues. Measured: 500 to
2,000 by its kind."""

FORGOTTEN_AT_ONCE = 64
"""Limits to check with each use of another one, and to forget if they are full: 0.3 ms. Each use
adds fewer new ones, so the number of limits falls."""

MOST_RESTING = 64 * 1024 * 1024
"""Bytes of limits to keep for their debt though no account is under them: 40,000 with usual names.
Where a rule is per topic, clients make a limit by each name that they request. Beyond the bound the
limits with the least debt are forgotten, which gives away least."""

Identity = tuple[Key, bool]
"""A limit, whatever its rate and burst: its key, and whether it is a shadow."""

Kind = tuple[str, Dimension, bool]
"""All limits that a rule makes for one dimension: rule, dimension, and whether they are shadows."""


def identity_of(limit: AppliedLimit) -> Identity:
    """Return the identity of a limit. Accounts whose limits have the same identity share one
    limit."""
    return Key(limit.rule.id, limit.dimension, limit.key), limit.mode == "shadow"


def on_loss_of(limit: AppliedLimit) -> OnLoss | None:
    """Return how a limit works while the store that processes share is unreachable; None if the
    limit is not shared.

    A limit per connection is not shared, because no other process has the same connection. A shadow
    limit is not shared: each process counts it for itself.
    """
    alone = limit.mode == "shadow" or "connection" in limit.rule.per
    return None if alone else OnLoss(limit.rule.on_store_failure)


def kind_of(identity: Identity) -> Kind:
    """Return a limit's kind: its rule, dimension, and whether it is a shadow. Metrics have one sum
    for each kind."""
    key, shadow = identity
    return key.rule, key.what, shadow
