"""Folds floods of log lines: only a few of many similar lines are written, and the next line that
is written reports how many were left out."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict, WrappedLogger

INTERVAL = 10.0
"""Seconds: often enough to see that a warning continues, at 6 lines a minute."""

BURST = 1000
"""See `Folding`. It is the default of the setting `log.burst`, which gives the reason."""

KINDS = 32
"""Kinds of one event that are distinguished. Clients choose some values: a client that invents new
ones gets no more than so many lines per interval. A gateway has few listeners, clusters and reasons
at a time."""

CLIENTS = 64
"""Clients whose lines of one event are folded by themselves, so that a client that fails again and
again hides neither others nor other causes. A client is an address with a principal, or without."""

KINDS_OF_CLIENT = 4
"""The same as `KINDS`, of one client: few causes make it fail. With `CLIENTS` of them an event
takes half a megabyte at most, and 26 lines a second."""

# Fields that name one occurrence of an event, not its kind. Anybody may name any method.
_OCCURRENCE = frozenset({"client", "connection", "exc_info", "method", "principal", "seconds"})

# Lines of traces, which somebody wants to see one by one.
_NEVER_FOLDED = frozenset({"frame"})

_SEVERE = frozenset({"warning", "error", "critical"})


class Folding:
    """A processor of structlog that lets some lines of each event pass in an interval, and leaves
    out the rest.

    Lines of one event are of one *kind* if they have the same level, the same client, and the same
    fields; fields that differ at each occurrence, such as the connection, are not
    compared. In an interval, one line of each kind passes. Further lines of level info pass until
    `burst` lines of the event have passed. If an event has more than `KINDS` kinds, or
    `KINDS_OF_CLIENT` of one client, the kinds beyond that count as one; so do the clients beyond
    `CLIENTS`. If lines of a kind were left out, the next line of this kind that passes has their
    number in the field `repeated`. `clock`: returns monotonic seconds.
    """

    def __init__(self, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._clock = clock
        # By event and level; bounded, because the code has some forty events.
        self._events: dict[tuple[str, str], _Event] = {}

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Return the event, with `repeated` if others were left out, or raise
        `structlog.DropEvent`."""
        name = event["event"]
        if name in _NEVER_FOLDED:
            return event
        now = self._clock()
        known = self._events.get((name, method))
        if known is None:
            known = self._events[name, method] = _Event(0 if method in _SEVERE else self._burst)
        folded = known.admit(_client(event), _kind(event), now)
        if folded is None:
            raise structlog.DropEvent
        return {**event, "repeated": folded} if folded else event


class _Kind:
    """`written`: when the last interval began. `folded`: lines left out and not yet reported."""

    __slots__ = ("folded", "written")

    def __init__(self, written: float) -> None:
        self.written = written
        self.folded = 0


class _Kinds:
    """Kinds of lines, in the order in which their intervals began. `most`: how many are
    distinguished. `others`: the kinds beyond them."""

    __slots__ = ("_most", "kinds", "others")

    def __init__(self, most: int) -> None:
        self._most = most
        self.kinds: dict[int, _Kind] = {}
        self.others = _Kind(-math.inf)

    def of(self, key: int, now: float) -> _Kind:
        """Return the kind with this key."""
        kind = self.kinds.get(key)
        if kind is not None:
            return kind
        if len(self.kinds) >= self._most:
            self._forget(now)
        return _Kind(-math.inf) if len(self.kinds) < self._most else self.others

    def write(self, key: int, kind: _Kind, now: float) -> None:
        """Begin a kind's interval with a line that passes."""
        kind.written = now
        if kind is not self.others:
            self.kinds[key] = self.kinds.pop(key, kind)

    def is_quiet(self, now: float) -> bool:
        """Return whether no interval has begun lately."""
        latest = max(kind.written for kind in (*self.kinds.values(), self.others))
        return now - latest >= INTERVAL

    @property
    def folded(self) -> int:
        """Return how many lines were left out and not reported."""
        return self.others.folded + sum(kind.folded for kind in self.kinds.values())

    def _forget(self, now: float) -> None:
        """Remove old kinds. Lines left out of these are reported with the other kinds."""
        for key, kind in list(self.kinds.items()):
            if now - kind.written < INTERVAL:
                return
            self.others.folded += kind.folded
            del self.kinds[key]


class _Event:
    """The kinds of one event at one level: those of each client, and all others."""

    def __init__(self, burst: int) -> None:
        self._burst = burst
        self._left = burst
        self._began = -math.inf
        self.clients: dict[int | None, _Kinds] = {}
        self.others = _Kinds(KINDS)

    def admit(self, client: int | None, key: int, now: float) -> int | None:
        """Return how many earlier lines of the same kind were left out, for the field `repeated`;
        None: this line must be left out too. `client`: whom the line is about; None: no client.
        `key`: the line's kind."""
        kinds = self.others if client is None else self._kinds(client, now)
        kind = kinds.of(key, now)
        if now - kind.written >= INTERVAL:
            kinds.write(key, kind, now)
            if client in self.clients:  # the oldest one is first
                self.clients[client] = self.clients.pop(client)
        elif not self._take_burst(now):
            kind.folded += 1
            return None
        folded, kind.folded = kind.folded, 0
        return folded

    def _take_burst(self, now: float) -> bool:
        """Take one line of the burst. Return false if none is left."""
        if now - self._began >= INTERVAL:
            self._began, self._left = now, self._burst
        if not self._left:
            return False
        self._left -= 1
        return True

    def _kinds(self, client: int, now: float) -> _Kinds:
        """Return the kinds of a client. If there are too many clients, forget the oldest one if
        that is quiet; lines left out of its kinds are reported with all others."""
        if client in self.clients:
            return self.clients[client]
        if len(self.clients) >= CLIENTS:
            oldest = next(iter(self.clients))
            if not self.clients[oldest].is_quiet(now):
                return self.others
            self.others.others.folded += self.clients.pop(oldest).folded
        self.clients[client] = kinds = _Kinds(KINDS_OF_CLIENT)
        return kinds


def _client(event: EventDict) -> int | None:
    """Return a hash of the client's address, without the port, and of its principal; None: the line
    is about no client."""
    if "client" not in event:
        return None
    return hash((str(event["client"]).rpartition(":")[0], event.get("principal")))


def _kind(event: EventDict) -> int:
    # A hash rather than the values: clients choose some, and these may be long. An event has the
    # same fields in the same order wherever it is logged.
    values = [
        value if value.__class__ is str else str(value)
        for key, value in event.items()
        if key not in _OCCURRENCE
    ]
    return hash(tuple(values))
