"""The last moments of a lane whose pair is over.

Closing a socket that holds unread bytes makes the kernel send a reset, and the reset may
overtake our last frames at the peer. So a lane delivers what is pending, says that no more will
come, and reads until the peer says the same, or for a short time; what it reads is thrown away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.lane import Lane
    from gateway.plane.state import PlaneState


class Lingering:
    """Owns a lane until it is closed, which `forget` does; see `lane.Reader`."""

    __slots__ = ("_forget", "_lane", "_plane")

    def __init__(self, plane: PlaneState, lane: Lane, forget: Callable[[Lane], None]) -> None:
        self._plane = plane
        self._lane = lane
        self._forget = forget

    def begin(self, farewell: bytes) -> None:
        """Deliver, then shut; closed at the latest when the time to linger is over."""
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
        """What a peer says now is of no interest, but that it will say no more is."""
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
            lane.read(False)  # it may still hear
        else:
            self._forget(lane)

    def flushed(self) -> None:
        """All is delivered."""
        if self._lane.reading:
            self._lane.shut()
        else:
            self._forget(self._lane)

    def lost(self, error: OSError) -> None:
        """Nobody is there to be told."""
        self._forget(self._lane)

    def _expired(self, now: float) -> None:
        self._forget(self._lane)
