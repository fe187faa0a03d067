"""Moves all clients to other gateways when this gateway stops, a few at a time.

`Session.leave` moves one client, step by step; this module says when. Every pair is asked for its
next step until the pair is over. The first steps are spread over time, so that the other gateways
do not get all clients at once, and no client waits longer than its own move takes.

The drain also waits until the connections of ended pairs are closed (`plane.linger`). A process
that exits earlier resets the connection of a client that still sends. The Go client then gets two
notices of its producer's end, and opens the producer on two connections, of which the broker
refuses one for ever.
"""

from __future__ import annotations

from collections import deque

import trio

from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor

PAIRS_PER_SECOND = 200
"""Pairs that begin to move, if the time allows so few: each makes a handshake at another gateway,
which takes half a millisecond of CPU there."""

STEP = 0.01
"""Seconds between two steps of a pair: part of the longest time that a send may take."""

STEPS_AT_ONCE = 64
"""Steps in a row before other tasks run."""


async def drain(reactor: Reactor, seconds: float) -> None:
    """Move all clients to other gateways. Return when no connection is left. Within the first half
    of `seconds` the move of each pair begins; the caller bounds how long the rest takes."""
    waiting = deque(reactor.pairs)
    total, began = len(waiting), trio.current_time()
    spread = min(seconds / 2, total / PAIRS_PER_SECOND)
    while not reactor.is_empty:
        elapsed = trio.current_time() - began
        begun = total if elapsed >= spread else 1 + int(total * elapsed / spread)
        while len(waiting) > total - begun:
            waiting.popleft()
        # Pairs that opened during the drain move at once.
        await _step(reactor, reactor.pairs.difference(waiting))
        await trio.sleep(STEP)


async def _step(reactor: Reactor, leaving: set[Pair]) -> None:
    for number, pair in enumerate(leaving, start=1):
        reactor.leave(pair)
        if number % STEPS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
