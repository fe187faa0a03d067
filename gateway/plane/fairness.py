# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Fair parts of the loop's time: who is served first while several clients have work.

Theory of operation
===================
One loop serves all pairs, and the kernel reports their events in any order. So a client with a
hundred busy connections would get a hundred times as much of the loop as a client with one.

The loop's time is divided at three levels: among principals (among addresses where the gateway
knows no principal), then among the addresses of a principal, then among the connections of an
address. At each level the members have a clock of *virtual time* in common. A member's `until` is
the virtual time up to which it has had its part: serving it for a second moves its `until` on by a
second. A member is due unless it is ahead of the clock by more than `AHEAD`. If no member that has
work is due, the clock moves to the `until` of the first of them, which may then be served for
`AHEAD` in a row: each event that is left out costs a call of the kernel, so that must be rare. So
members that always have work get equal parts, whatever each event costs, and a member that comes
back is served at once, without credit for its absence.

This is start-time fair queueing (Goyal, Vin, Cheng: SIGCOMM 1996), at each level. It costs a few
comparisons for each event, as the loop reads the clock after each event in any case.
"""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

AHEAD = 0.001
"""Seconds of work for which a client may be served in a row while others wait: a few full reads.
Less would change clients, and their data in the processor's caches, more often."""

_AHEAD = AHEAD


class Served:
    """How much of the loop's time one member has had: a connection, an address or a principal.
    `above`: the member to which it belongs; None: this is the whole loop. `now`: the virtual time
    of its own members. `until`: the virtual time of `above` up to which it was served."""

    __slots__ = ("__weakref__", "above", "now", "until")

    above: Served | None
    now: float
    until: float

    def __init__(self, above: Served | None = None) -> None:
        self.above = above
        self.now = 0.0
        self.until = 0.0 if above is None else above.now

    def is_due(self) -> bool:
        """Return whether this member, and those above it, may be served before others that wait."""
        one = self
        while one.above is not None:
            if one.until > one.above.now + _AHEAD:
                return False
            one = one.above
        return True

    def charge(self, seconds: float) -> None:
        """Count time for which the loop has served this member."""
        one = self
        while one.above is not None:
            above = one.above
            if one.until < above.now:
                one.until = above.now
            one.until += seconds
            one = above

    def precedes(self, other: Served) -> bool:
        """Return whether this member comes before another of the same level, if neither is due."""
        if self.above is None or other.above is None:
            return False
        if self.above is not other.above:
            return self.above.precedes(other.above)
        return self.until < other.until

    def admit(self) -> None:
        """Make this member due: no member with work is due, and this one is the first of them."""
        one = self
        while one.above is not None:
            above = one.above
            if above.now < one.until:
                above.now = one.until
            one = above


class Fairness:
    """Knows how much of the loop's time each open connection, and its client, has had."""

    def __init__(self) -> None:
        self._whole = Served()
        self._known: WeakValueDictionary[Hashable, Served] = WeakValueDictionary()

    def served(self, principal: str | None, host: str | None) -> Served:
        """Return the member for a new connection. `principal`: the client's, if the gateway knows
        it; `host`: its address. An address or principal is a member while it has a connection."""
        client = self._below(self._whole, host if principal is None else (principal,))
        return Served(self._below(client, (principal, host)))

    def _below(self, above: Served, key: Hashable) -> Served:
        one = self._known.get(key)
        if one is None:
            one = self._known[key] = Served(above)
        return one
