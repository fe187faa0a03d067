"""Closes a lane whose pair has ended, without a reset.

Closing a socket that holds unread bytes makes the kernel send a reset, which may overtake the
gateway's last frames at the peer. So a lane sends its pending bytes, shuts down sending, and reads
until the peer does the same, or for a short time; it discards the bytes that it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.lane import Lane
    from gateway.plane.state import PlaneState


class Lingering:
    """Owns the lane of an ended pair until the lane is closed by `forget`; implements
    `lane.Reader`."""

    __slots__ = ("_forget", "_lane", "_plane")

    def __init__(self, plane: PlaneState, lane: Lane, forget: Callable[[Lane], None]) -> None:
        self._plane = plane
        self._lane = lane
        self._forget = forget

    def begin(self, farewell: bytes) -> None:
        """Send all pending bytes and then `farewell`, shut down sending, and close the lane within
        `PlaneSettings.linger` seconds."""
        lane, plane = self._lane, self._plane
        lane.reader = self
        plane.deadlines.add(plane.clock() + plane.settings.linger, self._expired)
        try:
            lane.read(True)
            if farewell:
                lane.send(farewell)
            if not lane.pending:
                lane.shut()
        except OSError as error:
            self.lost(error)

    def readable(self, now: float) -> None:
        """Discard received bytes. If the peer has closed its stream and no byte is pending, close
        the lane."""
        memory, lane = self._plane.memory, self._lane
        try:
            if lane.receive_into(memory.buffer, memory.size):
                return
        except BlockingIOError:
            return
        except OSError as error:
            self.lost(error)
            return
        if lane.pending:
            lane.read(False)  # the peer may still receive
        else:
            self._forget(lane)

    def timed(self, now: float, stands_for: int) -> None:
        """See `Reader`. Discarded bytes are not timed."""
        self.readable(now)

    def flushed(self) -> None:
        """All bytes were sent: close the lane if the peer has closed its stream, otherwise shut
        down sending."""
        if self._lane.reading:
            self._lane.shut()
        else:
            self._forget(self._lane)

    def lost(self, error: OSError) -> None:
        """Close the lane, because the peer is gone."""
        self._forget(self._lane)

    def _expired(self, now: float) -> None:
        self._forget(self._lane)
