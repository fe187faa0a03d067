"""A stop frame that is not all here: what has come of it, its claim and its time.

Theory of operation
===================
A stop frame is kept until it is whole. How long that takes is its sender's choice, so what it may
cost others is bounded by two things.

- **Room.** Beyond some kilobytes it needs a claim on a share of memory, for its whole length (see
  `share`). Without one its source is not read: the sender waits, and nobody else does.
- **Time.** From its first byte it has `PlaneSettings.frame` seconds to become whole. Only the time
  counts in which its source is read: who waits for a claim, for memory, or for the other peer to
  take what is pending, is not at fault for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.plane.deadlines import Cancellable
from gateway.plane.share import UNCLAIMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.deadlines import Deadlines
    from gateway.plane.memory import Memory
    from gateway.plane.share import Claim


class Collection:
    """`length`: of the whole frame. `left`: seconds in which it may be read on."""

    __slots__ = ("_claim", "_data", "_deadlines", "_memory", "_since", "_timer", "left", "length")

    def __init__(self, length: int, memory: Memory, deadlines: Deadlines, seconds: float) -> None:
        self.length = length
        self.left = seconds
        self._data = bytearray()
        self._memory = memory
        self._deadlines = deadlines
        self._claim: Claim | None = None
        self._since = 0.0
        self._timer: Cancellable | None = None

    # -- bytes -------------------------------------------------------------------------------

    @property
    def missing(self) -> int:
        """Bytes that have not come."""
        return self.length - len(self._data)

    def __str__(self) -> str:
        return f"{len(self._data)} bytes of a stop frame of {self.length} came in time"

    def add(self, data: memoryview) -> int:
        """Keep what belongs to the frame; answers how much that was."""
        taken = data[: self.missing]
        self._data += taken
        self._memory.collected += len(taken)
        return len(taken)

    def frame(self) -> bytes:
        """Return the whole frame. Its bytes are kept, and counted, once."""
        frame = bytes(self._data)
        self._memory.collected -= len(self._data)
        self._data = bytearray()
        return frame

    # -- room --------------------------------------------------------------------------------

    def claim(self, address: str, on_grant: Callable[[], None]) -> bool:
        """Claim room for the frame; answers whether it may be read on now. If not,
        nothing may be added until `on_grant` is called."""
        if self.length <= UNCLAIMED:
            return True

        def granted() -> None:
            self._memory.wait_for_claim(-len(self._data))
            on_grant()

        self._claim = self._memory.collecting.claim(address, self.length, granted)
        if not self._claim.granted:
            self._memory.wait_for_claim(len(self._data))
        return self._claim.granted

    # -- time --------------------------------------------------------------------------------

    def go_on(self, now: float, overdue: Callable[[float], None]) -> None:
        """It is read on, if it is not already: `overdue(now)` is called when its time is over."""
        if self._timer is None:
            self._since = now
            self._timer = Cancellable(overdue)
            self._deadlines.add(now + self.left, self._timer)

    def stop(self, now: float) -> None:
        """It is not read for now."""
        if self._timer is not None:
            self.left -= now - self._since
            self._deadlines.cancel(self._timer)
            self._timer = None

    def close(self) -> None:
        """It is decided, or nobody waits for it any more."""
        if self._timer is not None:
            self._deadlines.cancel(self._timer)
            self._timer = None
        claim, self._claim = self._claim, None
        if claim is not None and not claim.granted:
            self._memory.wait_for_claim(-len(self._data))
        self._memory.collected -= len(self._data)
        self._data = bytearray()
        if claim is not None:
            self._memory.collecting.release(claim)
