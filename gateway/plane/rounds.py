# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Takes events from the kernel, and has lanes read; the part of the reactor that runs for each.

One timer ends all waits of a turn, where modules are compiled. A timeout of each wait would cost
2 us an event, because the kernel sets its own timer for one that is due before the next tick, and
resets it afterwards: more than all else that is done here.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

from gateway.plane import calls
from gateway.plane.fairness import Served
from gateway.plane.moving import Mover

_IN = select.EPOLLIN
_FOREVER = -1  # milliseconds


class Rounds:
    """The base of `reactor.Reactor`.

    `until`: when the turn is over. `due`: when its waits end: at a deadline, or at `until`.
    `turn_seconds`: of all turns, without waiting. `decisions`, `gave_work`: other parts of the
    gateway may have work.
    """

    _after_last: int
    _epoll: select.epoll
    _events: calls.Events
    _has_rung: bool
    _is_registered: bool
    _lanes: dict[int, Any]
    _next: int
    _rings: float
    _timer_fd: int
    clock: Callable[[], float]
    decisions: int
    due: float
    gave_work: bool
    sampler: Any
    turn_seconds: float
    until: float

    def __cinit__(self) -> None:
        """Mark the timer as not made. Compiled code calls this first: `__del__` closes the timer,
        even if `__init__` failed."""
        self._timer_fd = -1

    def __init__(self) -> None:
        self.turn_seconds = self._rings = 0.0
        self._next = self._after_last = 0
        self._has_rung = self._is_registered = False
        self._events = calls.make_events()
        self._timer_fd = calls.make_timer()

    def __del__(self) -> None:
        calls.close_timer(self._timer_fd)
        calls.free_events(self._events)

    def handle_other(self, lane: Any, event: int, now: float) -> None:
        """Handle an event that is not only `IN`; see `reactor.Reactor`."""
        raise NotImplementedError

    def failed(self, lane: Any, error: Exception) -> None:
        """End the pair whose event raised an error; see `reactor.Reactor`."""
        raise NotImplementedError

    def serve(self, descriptor: int, linger: int) -> float:
        """Handle events until the time `until` or until no event is left. Return the time when the
        last event was handled.

        `descriptor`: the epoll's. `linger`: milliseconds to wait for another event; there is no
        wait if other parts of the gateway have work.
        """
        is_monotonic = self.clock is time.monotonic
        lingers = False
        wait = 0  # there are events, or else nobody would have called
        after = self._time(is_monotonic)
        self._has_rung = False
        while self._next < self._after_last or self._poll(descriptor, wait):
            now = self._time(is_monotonic)
            after = self._handle(now, is_monotonic)
            self.turn_seconds += after - now
            if after > self.until or self._has_rung:
                break
            if self.decisions or self.gave_work or not linger:
                wait = 0
                continue
            if not lingers or self.due != self._rings:
                lingers = is_monotonic and self._set_timer(descriptor)
            wait = _FOREVER if lingers else linger
        if lingers and not self._has_rung:
            calls.set_timer(self._timer_fd, 0)
        return after

    def _set_timer(self, descriptor: int) -> bool:
        """Have the timer ring when the turn is due to end. Return whether it will."""
        if self._timer_fd < 0:  # no descriptors, or not compiled
            return False
        if not self._is_registered:
            self._is_registered = calls.register_timer(descriptor, self._timer_fd)
        self._rings = self.due
        return self._is_registered and calls.set_timer(self._timer_fd, self.due)

    def _time(self, is_monotonic: bool) -> float:  # noqa: FBT001
        """Return the time of the clock. `is_monotonic`: it is Python's, which asks this one."""
        return calls.monotonic() if is_monotonic else self.clock()

    def _poll(self, descriptor: int, milliseconds: int) -> bool:
        """Take events from the kernel, for `_handle`. Return whether there are any."""
        self._next = 0
        self._after_last = calls.wait(self._events, self._epoll, descriptor, milliseconds)
        return self._after_last > 0

    def _handle(self, now: float, is_monotonic: bool) -> float:  # noqa: FBT001
        """Handle the events that `_poll` took, until the turn is over. Return the time.

        Events of clients that have had more than their part are left out: the kernel reports them
        again, together with new ones. If all have, the first of these clients becomes due.

        Flat, because it runs once for each wake-up.
        """
        start = self._next
        first: Served | None = None  # of those left out, while nobody was served
        after = before = now
        while self._next < self._after_last:
            descriptor = calls.descriptor_of(self._events, self._next)
            event = calls.what_of(self._events, self._next)
            self._next += 1
            lane = self._lanes.get(descriptor)
            if lane is None:
                if descriptor == self._timer_fd:
                    self._has_rung = True
                continue
            served = lane.served
            if not served.is_due():
                if after == now and (first is None or served.precedes(first)):
                    first = served
                continue
            try:
                if event != _IN:
                    self.handle_other(lane, event, now)
                elif not self.sampler.skips:
                    lane.reader.timed(now, self.sampler.sample(now))
                else:
                    self.sampler.skips -= 1
                    reader = lane.reader
                    if isinstance(reader, Mover):
                        mover = reader
                        mover.move(now)
                    else:
                        reader.readable(now)
            except Exception as error:
                self.failed(lane, error)
            after = self._time(is_monotonic)
            served.charge(after - before)
            before = after
            if after > self.until:
                break
        if first is not None and after == now:
            first.admit()
            self._next = start
        return after
