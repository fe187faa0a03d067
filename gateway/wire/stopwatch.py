"""Measures clients' latencies: of the receipts of frames, and of the first messages of consumers.

Theory of operation
===================
Scanners count frames and receipts a chunk at a time, and nothing is done for each frame. So times
are taken of chunks: all frames of a chunk came together, and all receipts of a chunk go together.

Looking at the producers of a connection takes 1 µs of a chunk, mostly for memory that is not in the
processor's caches: 6 % of a wake-up. So one chunk is timed in each interval of `PACE` seconds. If
fewer chunks come, each chunk is timed. Otherwise the chunk is drawn at random among the next chunks
of all connections, whatever is in them and however long the last chunks took (`Sampler`). For each
producer a frame of that chunk is drawn, which stands for all its frames in the chunk, and in as
many chunks as were skipped. So averages and quantiles are without bias, and counts are right on
average.

A connection may have thousands of producers. Up to `PRODUCERS` of them are timed. If more are
open, those that are timed are drawn at random, whatever they send.

A throttled frame is timed from its arrival, so its wait is part of the latency.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from gateway.wire.account import Account

PACE = 0.001
"""Seconds between two timed chunks of a busy process: quantiles of a tenant with a hundredth of the
traffic have ten samples a second, and timing takes 0.2 % of a core."""

FARTHEST = 200
"""Chunks to the next timed one, on average at most: the rate may fall at any time, and no more than
so many chunks come in `PACE`."""

WINDOW = 0.02
"""Seconds in which chunks are counted, to know how many come. A request and its response come
close, and are no burst."""

PRODUCERS = 4
"""Producers of a connection that are timed at once. Most connections have one."""

CONSUMERS = 4
"""Consumers of a connection whose first message is awaited at once. On a quiet topic that may last
for ever."""

UNDER_WAY = 64
"""Timed in-flight frames of one producer. Beyond these no more are timed until some have a receipt;
by default clients keep 1,000 frames in flight."""

Draw = Callable[[int], int]
"""Returns a random integer from 0 up to its argument, which is excluded."""


class Durations(Protocol):
    """A histogram of one kind of duration."""

    def add(self, seconds: float, number: int = 1) -> None:
        """Count a duration of `seconds`, `number` times."""


class Slowest(Protocol):
    """Remembers the slowest sends. Until the time `until`, by the plane's clock, a send of less
    than `floor` seconds cannot be among them."""

    floor: float
    until: float

    def note(self, account: Account, seconds: float, now: float) -> None:
        """Remember a send that took `seconds` if it is one of the slowest."""


class Latencies(Protocol):
    """The histograms of one account's client.

    `send`: from a producer's frame to its receipt. `own`: the part of `send` that the gateway
    takes, until the frame is on its way to the broker. `first_message`: from the request that opens
    a consumer to the consumer's first message. `lookup`: from a lookup request to its response.
    `slow`: the slowest sends.
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


class Sampler:
    """Draws at random which chunks of a process are timed. `skips`: how many chunks come before the
    next timed one; the plane subtracts 1 for each chunk that it moves."""

    __slots__ = ("_began", "_chunks", "_draw", "_mean", "_stride", "skips")

    def __init__(self, draw: Draw = random.randrange) -> None:
        self.skips = 0
        self._draw = draw
        self._stride = 1  # chunks from the one that was timed last to the next one
        self._mean = 0.0  # of strides that keep the pace
        self._began = 0.0  # when the chunks were counted from
        self._chunks = 0

    def sample(self, now: float) -> int:
        """Draw at random which chunk is timed next. Return how many chunks the one that is timed
        now represents in the counts."""
        stood_for = self._stride
        self._chunks += stood_for
        if now - self._began >= WINDOW:
            self._mean = min(FARTHEST, self._chunks * PACE / (now - self._began))
            self._began, self._chunks = now, 0
        self.skips = 0 if self._mean < 2 else self._draw(int(2 * self._mean))
        self._stride = self.skips + 1
        return stood_for


class _Sends:
    """One producer whose frames are timed.

    `seen`: frames that had passed before the chunk that is timed. `under_way`: timed in-flight
    frames: the number of the frame, its time of arrival, and how many frames it stands for.
    """

    __slots__ = ("account", "latencies", "seen", "under_way")

    def __init__(self, account: Account, latencies: Latencies) -> None:
        self.account = account
        self.latencies = latencies
        self.seen = account.frames
        # A tuple, because most producers have none at a time: a deque would take 600 bytes of each
        # producer, an empty list 60.
        self.under_way: tuple[tuple[int, float, int], ...] = ()

    def settle(self, now: float) -> None:
        """Count the durations of those timed frames whose receipts have come."""
        receipts, slow = self.account.receipts, self.latencies.slow
        settled = 0
        for frame, came, number in self.under_way:
            if frame > receipts:
                break
            settled += 1
            seconds = now - came
            self.latencies.send.add(seconds, number)
            if seconds > slow.floor or now >= slow.until:
                slow.note(self.account, seconds, now)
        self.under_way = self.under_way[settled:]


class Watched(Protocol):
    """A connection that can call its stopwatch after chunks that it sends to the client."""

    def listen(self) -> None:
        """From now on call `Stopwatch.delivered` after each chunk sent to the client, until
        `delivered` returns False."""


class _Unwatched:
    """Stands in for a connection that the plane does not have yet, or not any more."""

    def listen(self) -> None:
        """See `Watched`."""


_UNWATCHED = _Unwatched()


class Stopwatch:
    """Measures the latencies of one connection.

    The plane sets `watched`. It calls `begin` before it sends a timed chunk to the broker, `moved`
    after that, `delivered` after it sent a chunk to the client, and `stop` at the end. The session
    calls `opened`, `subscribed` and `closed`. All times are of one clock.
    """

    __slots__ = ("_awaited", "_draw", "_opened", "_sends", "watched")

    def __init__(self, draw: Draw = random.randrange) -> None:
        self.watched: Watched = _UNWATCHED
        self._draw = draw
        self._opened = 0  # producers, in all
        # Tuples, as most connections have none of either, and connections are many.
        self._sends: tuple[_Sends, ...] = ()
        self._awaited: tuple[tuple[Account, float, Callable[[], Latencies]], ...] = ()

    @property
    def under_way(self) -> int:
        """Return how many timed frames have no receipt yet."""
        return sum(len(producer.under_way) for producer in self._sends)

    def opened(self, account: Account, latencies: Latencies) -> None:
        """Time the sends of a newly opened producer. If more than `PRODUCERS` producers are open,
        those that are timed are drawn at random."""
        self._opened += 1
        sends = self._sends
        place = len(sends) if len(sends) < PRODUCERS else self._draw(self._opened)
        if place < PRODUCERS:
            own = _Sends(account, latencies)
            self._sends = (*sends[:place], own, *sends[place + 1 :])

    def subscribed(self, account: Account, latencies: Callable[[], Latencies], now: float) -> None:
        """Measure how long a consumer, which the client opens at the time `now`, waits for its
        first message. `latencies`: called when that message has come; returns the histograms that
        count the wait."""
        if len(self._awaited) < CONSUMERS:
            self._awaited = (*self._awaited, (account, now, latencies))
            self.watched.listen()

    def closed(self, account: Account) -> None:
        """Stop timing this producer or consumer, because it is closed."""
        self._sends = tuple(producer for producer in self._sends if producer.account is not account)
        self._awaited = tuple(consumer for consumer in self._awaited if consumer[0] is not account)

    def stop(self) -> None:
        """Do not call the connection (`watched`) any more, because it has ended."""
        self.watched = _UNWATCHED

    def begin(self) -> None:
        """Remember how many frames each producer has sent so far, before a timed chunk is
        forwarded."""
        for producer in self._sends:
            producer.seen = producer.account.frames

    def moved(self, came: float, now: float, stands_for: int) -> None:
        """Begin to time one frame of each producer that has frames in a timed chunk. The chunk is
        now on its way to the broker.

        `came`: when the chunk arrived. `stands_for`: how many chunks this chunk represents in the
        counts (see `Sampler.sample`).
        """
        for producer in self._sends:
            frames = producer.account.frames
            new = frames - producer.seen
            if not new or len(producer.under_way) == UNDER_WAY:
                continue
            producer.latencies.own.add(now - came, new * stands_for)
            drawn = frames if new == 1 else frames - self._draw(new)
            if drawn > producer.account.receipts:  # one that gets no receipt counts as if it had it
                producer.under_way = (*producer.under_way, (drawn, came, new * stands_for))
                self.watched.listen()

    def delivered(self, now: float) -> bool:
        """Count the latencies of receipts and first messages in a chunk that is now on its way to
        the client. Return whether further receipts or first messages are awaited."""
        awaits = False
        for producer in self._sends:
            if producer.under_way:
                producer.settle(now)
                awaits = awaits or bool(producer.under_way)
        if self._awaited:
            self._find_first(now)
        return awaits or bool(self._awaited)

    def _find_first(self, now: float) -> None:
        for account, since, latencies in self._awaited:
            if account.messages:
                latencies().first_message.add(now - since)
        self._awaited = tuple(consumer for consumer in self._awaited if not consumer[0].messages)
