"""When connections are read again whose requests for messages were refused.

Clients wait after such a refusal for as long as it says. Those that do not, and many that do, would
have the core make refusals all the time. So each client (a principal, or an address where nobody
knows one) gets a bounded number of refusals a second, which its connections get in turn.
"""

from __future__ import annotations

from collections.abc import Hashable

APART = 0.005
"""Seconds between two refusals of a client, which take half a millisecond each."""

LONGEST = 10.0
"""Seconds for which a connection is not read at most: consumers have to send a heartbeat in each
30 seconds."""

MOST = 1000
"""Clients whose turns are known, at which those are forgotten that are over."""


class Turns:
    """The time of each client's next refusal."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[Hashable, float] = {}

    def take(self, client: Hashable, now: float) -> float:
        """Return when the gateway reads a refused connection of `client` again. `now`: seconds."""
        if len(self._next) >= MOST and client not in self._next:
            self._next = {it: at for it, at in self._next.items() if at > now}
        turn = max(now, self._next.get(client, now))
        self._next[client] = min(turn + APART, now + LONGEST)
        return turn
