"""All limits of a process that it shares with others: which want to ask, and what becomes of the
answers. While it is *lost* nobody can be asked.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.stock import KEPT, OnLoss, SharedMeter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from gateway.policy.reservations import Ask, Reserved

AT_ONCE = 100
"""Limits that are asked for in one call: 20 µs of ours for each, so a turn of the data plane."""


class Asked(NamedTuple):
    """A question that is out."""

    meter: SharedMeter
    ask: Ask


class Supply:
    """All shared limits of a process. `wake` is called when somebody wants something.

    `processes`: how many share them, as was heard last. `losses`: how often nobody could be asked.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self.processes = 1
        self.lost = False
        self.losses = 0
        # Only this dictionary forgets its first entry at no cost.
        self._wanting: OrderedDict[SharedMeter, None] = OrderedDict()
        self._watched: list[tuple[float, int, SharedMeter]] = []
        self._tickets = count()

    def meter(
        self, key: str, rate: float, burst: float, on_loss: OnLoss, owner: Hashable = None
    ) -> SharedMeter:
        """Of one limit. It asks at once: whoever opens a producer will send."""
        meter = SharedMeter(self, key, rate, burst, on_loss, owner)
        meter.want()
        return meter

    def want(self, meter: SharedMeter) -> None:
        """A meter is to ask for more."""
        if meter not in self._wanting:
            self._wanting[meter] = None
            self.wake()

    def watch(self, meter: SharedMeter, now: float) -> None:
        """See to it that what is not used goes back."""
        if not meter.watched:
            meter.watched = True
            heappush(self._watched, (now + KEPT, next(self._tickets), meter))

    def next_time(self, now: float) -> float:
        """When there is something to ask; infinity: when somebody wants something."""
        if self._wanting:
            return now
        return self._watched[0][0] if self._watched else float("inf")

    def questions(self, now: float, most: int = AT_ONCE) -> list[Asked]:
        """What is to be asked now, who waits for longest first; each is then answered, or not."""
        asked: list[Asked] = []
        while self._wanting and len(asked) < most:
            meter, _ = self._wanting.popitem(last=False)
            asked.append(Asked(meter, meter.ask(now)))
        while len(asked) < most and self._watched and self._watched[0][0] <= now:
            meter = heappop(self._watched)[2]
            meter.watched = False
            since = meter.idle_since(now)
            if since is not None and (meter.asking or since > now - KEPT):
                self.watch(meter, max(since, now - KEPT / 2))
            elif since is not None:
                asked.append(Asked(meter, meter.returned()))
        return asked

    def answered(
        self, asked: Iterable[Asked], answers: Sequence[Reserved | None], now: float
    ) -> None:
        """The answers, in the order of the questions; None: there is none for this limit alone."""
        for (meter, ask), reserved in zip(asked, answers, strict=True):
            if reserved is None:
                meter.refused(ask, now)
            else:
                meter.answered(ask, reserved, now)

    def unanswered(self, asked: Iterable[Asked]) -> None:
        """Nobody answered."""
        for meter, ask in asked:
            meter.unanswered(ask)

    def lose(self) -> None:
        """Nobody can be asked."""
        if not self.lost:
            self.lost = True
            self.losses += 1
            self._wanting.clear()

    def regain(self) -> None:
        """Somebody answers again."""
        self.lost = False
