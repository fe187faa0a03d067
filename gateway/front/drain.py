"""Empties the plane when the gateway stops: every client is moved elsewhere, a few at a time.

The pairs know how (`Session.leave`); here is when. A pair is asked for its next step again and
again, until it is over. Who begins is spread over time, so that the gateways that are left do not
get all clients at once, and no client waits longer than its own move takes.
"""

from __future__ import annotations

from collections import deque

import trio

from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor

PAIRS_PER_SECOND = 200
"""Those that begin, where the time allows: each makes a handshake at another gateway, and takes
half a millisecond of CPU there."""

STEP = 0.01
"""Seconds between two steps of a pair: part of the longest time that a send may take."""

STEPS_AT_ONCE = 64
"""Pairs in a row before others have a chance."""


async def drain(reactor: Reactor, seconds: float) -> None:
    """Return when no pair is left. All have begun after half of `seconds` at the latest."""
    waiting = deque(reactor.pairs)
    total, began = len(waiting), trio.current_time()
    spread = min(seconds / 2, total / PAIRS_PER_SECOND)
    while reactor.pairs:
        elapsed = trio.current_time() - began
        begun = total if elapsed >= spread else 1 + int(total * elapsed / spread)
        while len(waiting) > total - begun:
            waiting.popleft()
        # Those that were opened meanwhile do not wait.
        await _step(reactor, reactor.pairs.difference(waiting))
        await trio.sleep(STEP)


async def _step(reactor: Reactor, leaving: set[Pair]) -> None:
    for number, pair in enumerate(leaving, start=1):
        reactor.leave(pair)
        if number % STEPS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
