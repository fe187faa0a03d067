"""System calls of the data plane. Compiled loops use the C functions of the same names in
`calls.pxd`; with `wire.octets` these are the only code that is written twice. This module itself is
never compiled.

Functions that move bytes return how many, or the negative error number.
"""

from __future__ import annotations

import os
import select
import time

SPLICES = False
"""Whether large frames pass through a pipe. Without a compiler Python's own work is dearer than the
copy."""

EVENTS_AT_ONCE = 256
"""Events taken from the kernel by one call: enough to make it cheap, few enough to be fresh."""

Events = list[tuple[int, int]]
"""Events: of which descriptor each is, and what has happened on it, in bits of epoll."""


def receive(descriptor: int, buffer: bytearray, start: int, most: int) -> int:
    """Receive at most so many bytes into `buffer[start:]`; 0: the stream has ended."""
    try:
        return os.readv(descriptor, [memoryview(buffer)[start : start + most]])
    except OSError as error:
        return -(error.errno or 0)


def transmit(descriptor: int, buffer: bytearray, end: int) -> int:
    """Send `buffer[:end]`."""
    try:
        return os.write(descriptor, memoryview(buffer)[:end])
    except OSError as error:
        return -(error.errno or 0)


def peek(descriptor: int, buffer: bytearray, most: int) -> int:
    """Copy bytes that the socket has received into `buffer`, and leave them in the socket. Only C
    has this call: in Python no pipe is made, see `SPLICES`."""
    raise NotImplementedError


def splice(source: int, sink: int, most: int) -> int:
    """Move bytes from a socket into a pipe, or from a pipe to a socket, without a copy. Only C has
    this call, as `peek`."""
    raise NotImplementedError


def take(pipe: int, buffer: bytearray, at: int, most: int) -> int:
    """Move bytes from a pipe into `buffer[at:]`. Only C has this call, as `peek`."""
    raise NotImplementedError


def monotonic() -> float:
    """Return the seconds of the clock of `time.monotonic`."""
    return time.monotonic()


def make_events() -> Events:
    """Return room for `EVENTS_AT_ONCE` events."""
    return []


def free_events(events: Events) -> None:
    """Free this room."""


def wait(events: Events, epoll: select.epoll, _: int, milliseconds: int) -> int:
    """Wait for events of an epoll; return how many came. `_`: its descriptor, which C uses. Raises
    OSError."""
    events[:] = epoll.poll(milliseconds / 1000, EVENTS_AT_ONCE)
    return len(events)


def descriptor_of(events: Events, place: int) -> int:
    """Return the descriptor of an event."""
    return events[place][0]


def what_of(events: Events, place: int) -> int:
    """Return what has happened, in bits of epoll."""
    return events[place][1]


def make_timer() -> int:
    """Return the descriptor of a timer that ends waits; -1, because Python has none before 3.13."""
    return -1


def register_timer(descriptor: int, timer: int) -> bool:
    """Register the timer with the epoll `descriptor`. Return whether it is registered. Only C has
    this call: in Python no timer is made, see `make_timer`."""
    raise NotImplementedError


def set_timer(timer: int, due: float) -> bool:
    """Set the timer to end the wait at the time `due` of `monotonic`; 0: never. Return whether the
    timer is set. Only C has this call, as `register_timer`."""
    raise NotImplementedError


def close_timer(timer: int) -> None:
    """Close a timer."""
