"""What limits did since the start, summed up by rule and dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.keys import kind_of
from gateway.telemetry.figures import RuleFigures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.policy.keys import Identity, Kind


def no_figures(kind: Kind) -> RuleFigures:
    """Return the figures of limits that did nothing yet."""
    rule, what, shadow = kind
    return RuleFigures(rule, what.value, "shadow" if shadow else "enforce")


class Tallies:
    """Bounded by the number of rules there were: limits come and go, their sums stay."""

    def __init__(self) -> None:
        self._sums: dict[Kind, RuleFigures] = {}

    def waited(self, identity: Identity, seconds: float) -> None:
        """Count a wait of so many seconds; at a shadow, one that would have been."""
        sums = self._of(identity)
        if sums.mode == "shadow":
            sums = sums._replace(held=sums.held + 1)
        else:
            sums = sums._replace(waits=sums.waits + 1)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def has_waited(self, identity: Identity, seconds: float) -> None:
        """Add seconds to a wait that was counted before."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def refused(self, identity: Identity) -> None:
        """Count a refusal; by a shadow, one that would have been."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(refused=sums.refused + 1)

    def figures(self, limits: Iterable[tuple[Identity, int]]) -> list[RuleFigures]:
        """Return the sums of all limits there are or were. `limits`: those there are, each with the
        number of requests that wait at it."""
        found = dict(self._sums)
        for identity, waiting in limits:
            before = found.get(kind_of(identity)) or self._of(identity)
            found[kind_of(identity)] = before._replace(
                limits=before.limits + 1, waiting=before.waiting + waiting
            )
        return list(found.values())

    def _of(self, identity: Identity) -> RuleFigures:
        kind = kind_of(identity)
        return self._sums.get(kind) or no_figures(kind)
