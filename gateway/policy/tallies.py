"""What limits did since the start, all that a rule has made for one thing taken together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.keys import kind_of
from gateway.telemetry.figures import RuleFigures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.policy.keys import Identity, Kind


class Tallies:
    """Bounded by how many rules there were: limits come and go, their sums stay."""

    def __init__(self) -> None:
        self._sums: dict[Kind, RuleFigures] = {}

    def waited(self, identity: Identity, seconds: float) -> None:
        """Somebody has to wait; at a shadow would have to."""
        sums = self._of(identity)
        if sums.mode == "shadow":
            sums = sums._replace(held=sums.held + 1)
        else:
            sums = sums._replace(waits=sums.waits + 1)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def has_waited(self, identity: Identity, seconds: float) -> None:
        """Somebody that had to wait did so for so long."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def refused(self, identity: Identity) -> None:
        """Somebody is refused; by a shadow would be."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(refused=sums.refused + 1)

    def figures(self, limits: Iterable[tuple[Identity, int]]) -> list[RuleFigures]:
        """Of all limits there are or were. `limits`: those there are, and how many wait at each."""
        found = dict(self._sums)
        for identity, waiting in limits:
            before = found.get(kind_of(identity)) or self._of(identity)
            found[kind_of(identity)] = before._replace(
                limits=before.limits + 1, waiting=before.waiting + waiting
            )
        return list(found.values())

    def _of(self, identity: Identity) -> RuleFigures:
        rule, what, shadow = kind = kind_of(identity)
        none = RuleFigures(rule, what.value, "shadow" if shadow else "enforce")
        return self._sums.get(kind, none)
