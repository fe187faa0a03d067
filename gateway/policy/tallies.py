"""Totals of what limits have done since the start, by rule and dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.keys import kind_of
from gateway.telemetry.figures import RuleFigures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.policy.keys import Identity, Key, Kind


def no_figures(kind: Kind) -> RuleFigures:
    """Return zero figures for limits of one kind (rule, dimension, mode) that have done nothing."""
    rule, what, shadow = kind
    return RuleFigures(rule, what.value, "shadow" if shadow else "enforce")


def filled(before: RuleFigures, key: Key, used: float) -> RuleFigures:
    """Return the figures `before`, with the limit `key` as the fullest one if it is fuller than the
    one in `before`. `used`: the used share of this limit, from 0 to 1; more if it is in debt."""
    if used <= before.fill:
        return before
    return before._replace(fill=min(1.0, used), fullest=", ".join(key.values))


class Tallies:
    """The totals by rule and dimension. They are kept when limits are forgotten; there are only as
    many totals as there were rules and dimensions."""

    def __init__(self) -> None:
        self._sums: dict[Kind, RuleFigures] = {}

    def waited(self, identity: Identity, seconds: float) -> None:
        """Count a wait of `seconds`; at a shadow limit, a wait that the limit would have caused."""
        sums = self._of(identity)
        if sums.mode == "shadow":
            sums = sums._replace(held=sums.held + 1)
        else:
            sums = sums._replace(waits=sums.waits + 1)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def has_waited(self, identity: Identity, seconds: float) -> None:
        """Add `seconds` to the total duration of waits; `waited` has counted the wait itself
        already."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(seconds=sums.seconds + seconds)

    def refused(self, identity: Identity) -> None:
        """Count a refusal; at a shadow limit, a refusal that the limit would have caused."""
        sums = self._of(identity)
        self._sums[kind_of(identity)] = sums._replace(refused=sums.refused + 1)

    def figures(self, limits: Iterable[tuple[Identity, int, float]]) -> list[RuleFigures]:
        """Return the totals of all limits since the start. `limits`: the limits that exist now,
        each with the number of requests that wait for it, and with its used share."""
        by_kind = dict(self._sums)
        for identity, waiting, used in limits:
            before = by_kind.get(kind_of(identity)) or self._of(identity)
            more = before._replace(limits=before.limits + 1, waiting=before.waiting + waiting)
            by_kind[kind_of(identity)] = filled(more, identity[0], used)
        return list(by_kind.values())

    def _of(self, identity: Identity) -> RuleFigures:
        kind = kind_of(identity)
        return self._sums.get(kind) or no_figures(kind)
