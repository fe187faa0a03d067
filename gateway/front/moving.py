"""Moves clients when their connection is old, and before the gateway's own credential expires.

Age
===
Balancers choose a gateway for each connection, and connections last: gateways that are added get
no share of the clients that are there. So clients are moved once their connection has lasted for as
long as the listener says, more or less by `AGE_SPREAD`.

Credential
==========
A broker that got the gateway's credential, and the client's name in place of its credential, cannot
ask the client for reauthentication: it closes the connection when the gateway's credential expires.
So each client is moved before that time, as when a gateway stops, but to this gateway again, which
opens the client's next broker connection with the credential that is in force then. The moves of
the pairs that use one credential are spread over time.
"""

from __future__ import annotations

import heapq
from itertools import count
from math import inf
from typing import NamedTuple

import trio

from gateway.front.drain import STEP, STEPS_AT_ONCE
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor

AHEAD = 60.0
"""Seconds before the expiry at which moves begin; half of what is left if that is less."""

_SWEPT_FROM = 1000
"""Pairs that wait before those that have ended are looked for: a day's clients come and go while
one credential lasts, and few are there at its end."""

_GOLDEN = 0.618033988749895
"""Its multiples, without their whole parts, are spread evenly however many there are."""


AGE_SPREAD = 0.1
"""Part of the age by which connections last longer or shorter, because those of a gateway that has
just started, or of clients that come back together, are of one age."""


class _Due(NamedTuple):
    at: float
    number: int
    pair: Pair
    aged: bool = False


class Moving:
    """Makes clients reconnect when their time has come. Times are by trio's clock."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._numbers = count()
        self._due: list[_Due] = []
        self._swept_at = _SWEPT_FROM
        self._leaving: set[Pair] = set()
        self._next_step = -inf
        self._changed = trio.Event()

    def add(self, pair: Pair, left: float) -> None:
        """Make a pair's client reconnect shortly before `left` seconds from now."""
        number, ahead = next(self._numbers), min(AHEAD, left / 2)
        spread = (number * _GOLDEN % 1.0) * ahead / 2
        self._add(_Due(trio.current_time() + left - ahead + spread, number, pair))

    def age(self, pair: Pair, seconds: float) -> None:
        """Make a new pair's client reconnect when the connection is about `seconds` old."""
        number = next(self._numbers)
        spread = 1 + (2 * (number * _GOLDEN % 1.0) - 1) * AGE_SPREAD
        self._add(_Due(trio.current_time() + seconds * spread, number, pair, aged=True))

    def _add(self, due: _Due) -> None:
        if len(self._due) >= self._swept_at:
            self._sweep()
        heapq.heappush(self._due, due)
        self._changed.set()

    def _sweep(self) -> None:
        """Forget pairs that have ended; each time after as many more have come as are left."""
        self._due = [due for due in self._due if not due.pair.over]
        heapq.heapify(self._due)
        self._swept_at = max(_SWEPT_FROM, 2 * len(self._due))

    async def run(self) -> None:
        """Make clients reconnect as their times come, until cancelled."""
        while True:
            await self._until_due()
            self._begin(trio.current_time())
            if trio.current_time() >= self._next_step:
                await self._step()
                self._next_step = trio.current_time() + STEP

    async def _until_due(self) -> None:
        """Wait for the next step of those who leave, or for the next pair."""
        self._changed = trio.Event()
        until = self._due[0].at if self._due else inf
        if self._leaving:
            until = min(until, self._next_step)
        with trio.move_on_at(until):
            await self._changed.wait()

    def _begin(self, now: float) -> None:
        while self._due and self._due[0].at <= now:
            _, _, pair, aged = heapq.heappop(self._due)
            if pair.over:
                continue
            if aged or pair.session.may_move:
                self._leaving.add(pair)
            else:  # no newer credential is there yet
                later = _Due(now + 1.0, next(self._numbers), pair)
                heapq.heappush(self._due, later)

    async def _step(self) -> None:
        self._leaving = {pair for pair in self._leaving if not pair.over}
        for number, pair in enumerate(self._leaving, start=1):
            self._reactor.leave(pair)
            if number % STEPS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
