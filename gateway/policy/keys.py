"""What limits of rules are told apart by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gateway.policy.matching import AppliedLimit
    from gateway.policy.rules import Dimension


class Key(NamedTuple):
    """What one limit of a rule is for: the values of what the rule is `per`."""

    rule: str
    values: tuple[str, ...]


Identity = tuple[Key, "Dimension", bool]
"""What stays when a rule gets other figures; the last says whether it is a shadow."""


def identity_of(limit: AppliedLimit) -> Identity:
    """Whoever is under limits of the same identity shares one."""
    return Key(limit.rule.id, limit.key), limit.dimension, limit.mode == "shadow"
