"""Folds floods: of many lines of one kind a few are written, and the next one tells the number of
those that were not.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict, WrappedLogger

INTERVAL = 10.0
"""Seconds. Often enough to see that it goes on, and 6 lines a minute of one warning."""

BURST = 1000
"""See `Folding`; the default of `log.burst`, which gives the reason."""

KINDS = 32
"""Kinds of one event that are told apart. Clients choose some values: who invents new ones gets no
more than so many lines per interval. A gateway has a few listeners, clusters and reasons at a
time."""

# Fields that name one occurrence of an event, not its kind.
_OCCURRENCE = frozenset({"client", "connection", "detail", "exc_info", "seconds"})

# Lines that a person has asked for one by one.
_NEVER_FOLDED = frozenset({"frame"})

_SEVERE = frozenset({"warning", "error", "critical"})


class Folding:
    """Lets some lines of each event pass per interval. A processor of structlog.

    Lines are of one kind if their level and all fields but those of one occurrence are the same.
    Of each kind one line passes per interval. Information passes beyond that, until `burst` lines
    of its event have passed in the interval. When an event has more than `KINDS` kinds, the others
    count as one. A line that passes after some were left out has their number in `repeated`.
    `clock` is a monotonic one.
    """

    def __init__(self, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._clock = clock
        # By event and level. The code has some forty events, so this is bounded.
        self._events: dict[tuple[str, str], _Event] = {}

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Answer the event, or raise `structlog.DropEvent`."""
        name = event["event"]
        if name in _NEVER_FOLDED:
            return event
        now = self._clock()
        found = self._events.get((name, method))
        if found is None:
            found = self._events[name, method] = _Event(0 if method in _SEVERE else self._burst)
        folded = found.passing(_kind(event), now)
        if folded is None:
            raise structlog.DropEvent
        return {**event, "repeated": folded} if folded else event


class _Kind:
    """`written`: when the last interval began. `folded`: lines left out, and not told yet."""

    __slots__ = ("folded", "written")

    def __init__(self, written: float) -> None:
        self.written = written
        self.folded = 0


class _Event:
    """One event at one level: its kinds, those that began an interval last at the end."""

    def __init__(self, burst: int) -> None:
        self._burst = burst
        self._left = burst
        self._began = -math.inf
        self._kinds: dict[int, _Kind] = {}
        self._others = _Kind(-math.inf)

    def passing(self, key: int, now: float) -> int | None:
        """Answer how many lines this one stands for beside itself; None: leave it out."""
        kind = self._kind(key, now)
        if now - kind.written >= INTERVAL:
            kind.written = now
            if kind is not self._others:
                self._kinds[key] = self._kinds.pop(key, kind)
        elif not self._spent(now):
            kind.folded += 1
            return None
        folded, kind.folded = kind.folded, 0
        return folded

    def _spent(self, now: float) -> bool:
        """Take one line of the burst, if there is one left."""
        if now - self._began >= INTERVAL:
            self._began, self._left = now, self._burst
        if not self._left:
            return False
        self._left -= 1
        return True

    def _kind(self, key: int, now: float) -> _Kind:
        kind = self._kinds.get(key)
        if kind is not None:
            return kind
        if len(self._kinds) >= KINDS:
            self._forget(now)
        return _Kind(-math.inf) if len(self._kinds) < KINDS else self._others

    def _forget(self, now: float) -> None:
        """Make room. What was left out of a kind that is forgotten is told with the others."""
        for key, kind in list(self._kinds.items()):
            if now - kind.written < INTERVAL:
                return
            self._others.folded += kind.folded
            del self._kinds[key]


def _kind(event: EventDict) -> int:
    # The hash in place of the values: clients choose some, and they may be long. An event has the
    # same fields in the same order wherever it is logged.
    values = [
        it if it.__class__ is str else str(it)
        for key, it in event.items()
        if key not in _OCCURRENCE
    ]
    return hash(tuple(values))
