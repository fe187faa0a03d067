"""Times what the client of one connection waits for: receipts of its frames, first messages.

Theory of operation
===================
Scanners count frames and receipts a chunk at a time, and nothing is done for each frame. So times
are taken for each chunk too: when a chunk has moved, the frames that an account gained have the
chunk's time, and when receipts come, they answer the account's oldest frames. All frames of a chunk
came together, and all receipts of a chunk go together, so no frame's time is a guess.

A chunk may hold frames of any of a connection's producers, and looking at thousands after each
chunk would cost more than moving it. So `PRODUCERS` of a connection are timed. If more are open,
these are drawn at random from those that were opened, whatever they send: a sample without bias.

Frames that wait for a limit have the time at which they came, so their wait is part of it.

The part of a send that passes in the gateway takes another look at the clock, which is a third of
the price. So it is taken of one chunk in `SAMPLED` on average, drawn at random, whatever is in it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from gateway.wire.account import Account

PRODUCERS = 4
"""Producers of a connection that are timed at once. Most connections have one; each costs 0.1 µs
for a chunk."""

CONSUMERS = 4
"""Consumers of a connection whose first message is awaited at once. On a quiet topic that may last
for ever."""

SAMPLED = 16
"""Chunks to the broker of which one has the gateway's own part measured: 500 a second give its
quantiles every second, and it costs less than 1 % of a chunk."""

CHUNKS = 64
"""Chunks of one producer without all their receipts, whose times are kept. Further frames have the
time of the last of these; by default clients keep 1,000 frames without a receipt."""


class Durations(Protocol):
    """Counts durations of one kind."""

    def add(self, seconds: float, number: int = 1) -> None:
        """Count a number of equal durations."""


class Slowest(Protocol):
    """Remembers the slowest sends. Those below `floor` are not among them until the time `until`,
    of the plane's clock."""

    floor: float
    until: float

    def note(self, account: Account, seconds: float, now: float) -> None:
        """Remember a send if it is among the slowest."""


class Latencies(Protocol):
    """The durations that are counted for the client of one account.

    `send`: from a frame of a producer to its receipt. `own`: the part of it in the gateway, until
    the frame is on its way to the broker. `first_message`: from the request that opens a consumer
    to its first message. `lookup`: from the question where a topic is to the answer.
    """

    @property
    def send(self) -> Durations: ...

    @property
    def own(self) -> Durations: ...

    @property
    def first_message(self) -> Durations: ...

    @property
    def lookup(self) -> Durations: ...

    @property
    def slow(self) -> Slowest: ...


class _Sends:
    """The frames of one producer that have no receipt yet. `under_way`: how many had passed when a
    chunk came, and when that was."""

    __slots__ = ("account", "answered", "latencies", "passed", "under_way")

    def __init__(self, account: Account, latencies: Latencies) -> None:
        self.account = account
        self.latencies = latencies
        self.passed = account.frames
        self.answered = account.receipts
        self.under_way: deque[tuple[int, float]] = deque()

    def settle(self, receipts: int, now: float) -> None:
        """Count the durations of the oldest frames, `receipts` in all."""
        answered, under_way = self.answered, self.under_way
        while under_way:
            frames, came = under_way[0]
            until = min(frames, receipts)
            if answered < until:  # not so if the broker sent more receipts than it got frames
                seconds = now - came
                self.latencies.send.add(seconds, until - answered)
                slow = self.latencies.slow
                if seconds > slow.floor or now >= slow.until:
                    slow.note(self.account, seconds, now)
                answered = until
            if frames > receipts:
                break
            under_way.popleft()
        self.answered = receipts


def _no_clock() -> float:
    raise AssertionError("the plane sets the clock before anything moves")


class Stopwatch:
    """The times of one connection.

    The plane sets its `clock`, and calls `moved` and `delivered` after each chunk, with times of
    that clock. The session calls everything else.
    """

    __slots__ = ("_awaited", "_draw", "_opened", "_sends", "_skips", "clock")

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        """`draw`: returns a number from 0 to its argument, without that."""
        self.clock: Callable[[], float] = _no_clock
        self._draw = draw
        self._opened = 0  # producers, in all
        self._sends: list[_Sends] = []
        self._skips = draw(SAMPLED)  # chunks until the next one that is sampled
        self._awaited: list[tuple[Account, float, Latencies]] = []

    @property
    def under_way(self) -> int:
        """Return the number of chunks with frames that have no receipt."""
        return sum(len(it.under_way) for it in self._sends)

    def opened(self, account: Account, latencies: Latencies) -> None:
        """Time the frames of a producer that is open now, or decide at random not to."""
        self._opened += 1
        if len(self._sends) < PRODUCERS:
            self._sends.append(_Sends(account, latencies))
            return
        place = self._draw(self._opened)
        if place < PRODUCERS:
            self._sends[place] = _Sends(account, latencies)

    def subscribed(self, account: Account, latencies: Latencies, now: float) -> None:
        """Time the first message of a consumer that asks to be opened."""
        if len(self._awaited) < CONSUMERS:
            self._awaited.append((account, now, latencies))

    def closed(self, account: Account) -> None:
        """Time nothing more of a producer or consumer."""
        self._sends = [it for it in self._sends if it.account is not account]
        self._awaited = [it for it in self._awaited if it[0] is not account]

    def moved(self, came: float) -> None:
        """Note that a chunk, which came at `came`, is on its way to the broker now. Flat, because
        it runs once for each wake-up."""
        for it in self._sends:
            account = it.account
            frames = account.messages - account.surplus
            if frames == it.passed:
                continue
            if self._skips:
                self._skips -= 1
            else:
                self._skips = self._draw(2 * SAMPLED - 1)
                it.latencies.own.add(self.clock() - came, frames - it.passed)
            it.passed = frames
            under_way = it.under_way
            if len(under_way) < CHUNKS:
                under_way.append((frames, came))
            else:
                under_way[-1] = (frames, under_way[-1][1])

    def delivered(self, now: float) -> None:
        """Note that a chunk is on its way to the client."""
        for it in self._sends:
            receipts = it.account.receipts
            if receipts != it.answered:
                it.settle(receipts, now)
        if self._awaited:
            self._find_first(now)

    def _find_first(self, now: float) -> None:
        for account, since, latencies in self._awaited:
            if account.messages:
                latencies.first_message.add(now - since)
        self._awaited = [it for it in self._awaited if not it[0].messages]
