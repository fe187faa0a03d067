"""An incomplete stop frame: its received bytes, its claim on memory and its deadline.

Theory of operation
===================
A stop frame is kept until it is whole. How long that takes is its sender's choice, so two bounds
limit what the frame may cost others.

- **Room.** A frame above some kilobytes needs a claim on a share of memory, for its whole length
  (see `share`). Without a granted claim its source is not read: only the sender waits.
- **Time.** A frame must be whole `PlaneSettings.frame` seconds after its first byte. Only the time
  counts in which its source is read: a sender is not at fault for waiting for a claim, for memory,
  or for the other peer to take pending bytes.
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
    """A stop frame that is not whole yet. `length`: bytes of the whole frame. `left`: seconds that
    are left for its other bytes to come."""

    __slots__ = ("_claim", "_data", "_deadlines", "_memory", "_since", "_timer", "left", "length")

    def __init__(self, length: int, memory: Memory, deadlines: Deadlines, seconds: float) -> None:
        self.length = length
        self.left = seconds
        self._data = bytearray()
        self._memory = memory
        self._deadlines = deadlines
        self._claim: Claim | None = None
        self._since = 0.0
        self._timer: Cancellable[None] | None = None

    # -- bytes -------------------------------------------------------------------------------

    @property
    def missing(self) -> int:
        """Return how many bytes of the frame have not come yet."""
        return self.length - len(self._data)

    def __str__(self) -> str:
        return f"{len(self._data)} bytes of a stop frame of {self.length} came in time"

    def add(self, data: memoryview) -> int:
        """Copy the first bytes of `data`, those that belong to the frame. Return their number."""
        taken = data[: self.missing]
        self._data += taken
        self._memory.collected += len(taken)
        return len(taken)

    def frame(self) -> bytes:
        """Return the whole frame. Its bytes no longer count as memory of incomplete frames."""
        frame = bytes(self._data)
        self._memory.collected -= len(self._data)
        self._data = bytearray()
        return frame

    # -- room --------------------------------------------------------------------------------

    def claim(self, address: str, on_grant: Callable[[], None]) -> bool:
        """Claim memory for the whole frame. Return whether more of the frame may be read now; if
        False, add no bytes until `on_grant` is called."""
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
        """Start the timer, unless it runs. When no time is left for the frame, the timer calls
        `overdue(now)`."""
        if self._timer is None:
            self._since = now
            self._timer = Cancellable(overdue)
            self._deadlines.add(now + self.left, self._timer)

    def stop(self, now: float) -> None:
        """Stop the timer, because no more of the frame is read for now."""
        if self._timer is not None:
            self.left -= now - self._since
            self._deadlines.cancel(self._timer)
            self._timer = None

    def close(self) -> None:
        """Free the bytes, the timer and the claim, because the frame was decided or the pair has
        ended."""
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
