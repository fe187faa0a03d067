"""One direction of a pair: receive, scan, send.

Theory of operation
===================
A pump is called when its source lane has bytes. In the usual case that is one receive into the
shared buffer, one scan, one send of all that the scanner cleared. What else can happen:

- **carry**: the chunk ended within a header. Those bytes are kept, and put before the next ones.
- **stop frame**: the session decides it, and its effects are carried out; the scan goes on behind
  it. One that is not all here is *collected*, within the session's bound.
- **injections**: frames of our own may enter only at a frame border. While the last frame is *owed*
  in part they wait.
- **blocked or paused**: not read until somebody resumes it. What the chunk held beyond is carried.
- **the sink takes less than it is given**: the rest is copied, reading stops until it is gone,
  and the next reads are halved, so that a slow reader does not keep a whole buffer's worth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gateway.wire.contract import Direction, EndReason

if TYPE_CHECKING:
    from gateway.plane.lane import Lane
    from gateway.plane.memory import Memory
    from gateway.plane.pair import Pair
    from gateway.wire.contract import Scanner

SMALLEST_READ = 16 * 1024
"""Below this a blocked pump does not halve its reads: system calls would cost more than memory."""

BREATH = 0.05
"""Seconds that a pump does not read while the plane's memory is full: a few round trips, in which
the peers that caused it may take what is pending."""


class Reader(Protocol):
    """Whose lane it is: called by the reactor for what happens to it."""

    def readable(self, now: float) -> None:
        """Bytes have come, or the end of them."""

    def flushed(self) -> None:
        """The lane has nothing pending any more."""

    def lost(self, error: OSError) -> None:
        """The lane's peer is gone."""


class Pump:
    """Moves one direction of a pair. Plain calls, no waiting."""

    __slots__ = (
        "_at_border",
        "_carry",
        "_collected",
        "_collecting",
        "_memory",
        "_pauses",
        "_read_size",
        "_scan",
        "direction",
        "pair",
        "scanner",
        "sink",
        "source",
    )

    def __init__(
        self,
        pair: Pair,
        direction: Direction,
        lanes: tuple[Lane, Lane],
        scanner: Scanner,
        memory: Memory,
    ) -> None:
        self.pair = pair
        self.direction = direction
        self.source, self.sink = lanes
        self.scanner = scanner
        self._scan = scanner.scan
        self._memory = memory
        self._read_size = memory.size
        self._carry = b""
        self._collected: bytearray | None = None
        self._collecting = 0  # length of the stop frame that is collected
        self._at_border: deque[Callable[[], None]] | None = None  # to be done there
        self._pauses = 0  # how many reasons there are not to read
        self.source.reader = self

    # -- the usual way -----------------------------------------------------------------------

    def readable(self, now: float) -> None:
        """Move what has come. Flat: this runs once for each wake-up."""
        pair, memory, carry = self.pair, self._memory, self._carry
        if self._pauses or self.sink.pending or memory.used > memory.bound:
            self._not_now(now)
            return
        pair.touched = now
        if self._collected is not None:
            self._collect(now)
            return
        start = len(carry)
        try:
            if start:
                memory.buffer[:start] = carry
                count = self.source.receive_into(memory.view[start:], self._read_size)
            else:
                count = self.source.receive_into(memory.buffer, self._read_size)
        except BlockingIOError:
            return
        except OSError as error:
            pair.lost(self.source, error)
            return
        if not count:
            pair.closed_by(self.source)
            return
        end = start + count
        if self._at_border is not None:
            self._keep(b"")
            self._move(0, end, now)
            return
        cleared = self._scan(memory.buffer, 0, end)
        if cleared:
            try:
                sent = self.sink.transmit(memory.view[:cleared])
            except BlockingIOError:
                sent = 0
            except OSError as error:
                pair.lost(self.sink, error)
                return
            if sent < cleared:
                self.sink.keep(memory.view[sent:cleared])
                self._blocked_by_sink()
            elif count == self._read_size < memory.size:
                self._read_size *= 2
        if cleared < end:
            if self.scanner.stop:
                self._stopped(cleared, end, now)
            else:
                self._keep(memory.view[cleared:end])
        elif start:
            self._keep(b"")

    def _keep(self, cut: bytes | memoryview) -> None:
        """What is to be put before the next received bytes."""
        self._memory.used += len(cut) - len(self._carry)
        self._carry = bytes(cut)

    def _not_now(self, now: float) -> None:
        """An event from before reading was turned off, or a hang-up of a lane that is not read."""
        self.source.read(False)
        if not self._pauses and not self.sink.pending:
            self.pause()
            self.pair.later(now + BREATH, self.unpause)

    def _blocked_by_sink(self) -> None:
        self.source.read(False)
        self._read_size = max(SMALLEST_READ, self._read_size // 2)

    # -- the unusual ways --------------------------------------------------------------------

    def _move(self, at: int, end: int, now: float) -> None:
        """Scan and send `buffer[at:end]`, and do at the first border what waits for it."""
        memory = self._memory
        if self._at_border is not None:
            at = self._to_border(at, end)
        while at < end and not self.pair.over:
            if self._pauses:
                self._keep(memory.view[at:end])
                return
            cleared = self._scan(memory.buffer, at, end)
            self._emit(memory.view[at:cleared])
            if cleared == end:
                return
            if not self.scanner.stop:
                self._keep(memory.view[cleared:end])
                return
            at = self._stop_frame(cleared, end, now)

    def _stopped(self, at: int, end: int, now: float) -> None:
        """The scan of the usual way halted at a stop frame."""
        self._keep(b"")
        self._move(self._stop_frame(at, end, now), end, now)

    def _stop_frame(self, at: int, end: int, now: float) -> int:
        """Have a stop frame decided, or collected. Answers the offset behind it."""
        memory, length = self._memory, self.scanner.stop
        if length > self.pair.session.collected_bound:
            self.pair.end(EndReason.FRAME_TOO_LARGE, detail=f"a stop frame of {length} bytes")
            return end
        if at + length > end:
            self._collected = bytearray(memory.view[at:end])
            self._collecting = length
            memory.used += end - at
            return end
        self.pair.decide(self.direction, bytes(memory.view[at : at + length]), now)
        return at + length

    def _to_border(self, at: int, end: int) -> int:
        """Send what is owed; if all of it is here, do what waits for the border behind it."""
        border = min(at + self.scanner.owed, end)
        self._scan(self._memory.buffer, at, border)
        self._emit(self._memory.view[at:border])
        if not self.scanner.owed:
            waiting, self._at_border = self._at_border, None
            for action in waiting or ():
                action()
        return border

    def _collect(self, now: float) -> None:
        """Receive more of a stop frame, never beyond it."""
        memory, collected = self._memory, self._collected
        assert collected is not None
        missing = self._collecting - len(collected)
        try:
            count = self.source.receive_into(memory.buffer, min(missing, memory.size))
        except BlockingIOError:
            return
        except OSError as error:
            self.pair.lost(self.source, error)
            return
        if not count:
            self.pair.closed_by(self.source)
            return
        self._collect_from(memory.view[:count], now)

    def _collect_from(self, data: memoryview, now: float) -> int:
        """Add to the stop frame that is collected; decide it when it is whole. Answers how much
        was taken."""
        collected = self._collected
        assert collected is not None
        taken = data[: self._collecting - len(collected)]
        collected += taken
        self._memory.used += len(taken)
        if len(collected) == self._collecting:
            self._release_collected()
            self.pair.decide(self.direction, bytes(collected), now)
        return len(taken)

    def _release_collected(self) -> None:
        if self._collected is not None:
            self._memory.used -= len(self._collected)
            self._collected = None

    def _emit(self, data: memoryview | bytes) -> None:
        if not data:
            return
        try:
            self.sink.send(data)
        except OSError as error:
            self.pair.lost(self.sink, error)
            return
        if self.sink.pending:
            self._blocked_by_sink()

    # -- frames of our own -------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Send in place of the stop frame that is being decided: at a border by its nature."""
        self._emit(frame)

    def inject(self, frames: bytes) -> None:
        """Send at the next frame border."""
        self.at_border(partial(self._emit, frames))

    def at_border(self, action: Callable[[], None]) -> None:
        """Do this at the next frame border: now, if nothing is owed."""
        if not self.scanner.owed:
            action()
        elif self._at_border is None:
            self._at_border = deque((action,))
        else:
            self._at_border.append(action)

    # -- reading or not ----------------------------------------------------------------------

    def pause(self) -> None:
        """One more reason not to read."""
        self._pauses += 1
        self.source.read(False)

    def unpause(self, now: float) -> None:
        """One reason less. With none left, what was carried is moved, and reading goes on."""
        self._pauses -= 1
        if self._pauses or self.pair.over:
            return
        carried = self._carry
        if carried:
            self._keep(b"")
            self.offer(carried, now)
        self._read_on()

    def offer(self, data: bytes, now: float) -> None:
        """Move bytes that were kept, of any length, as if they had been received just now."""
        memory, rest = self._memory, memoryview(data)
        while rest and not self.pair.over:
            if self._collected is not None:
                rest = rest[self._collect_from(rest, now) :]
                continue
            if self._pauses:
                self._keep(self._carry + bytes(rest))
                return
            start, take = len(self._carry), min(len(rest), memory.size)
            memory.buffer[:start] = self._carry
            memory.buffer[start : start + take] = rest[:take]
            self._keep(b"")
            self._move(0, start + take, now)
            rest = rest[take:]

    def drained(self) -> None:
        """The sink has nothing pending any more."""
        self._read_on()

    def _read_on(self) -> None:
        if not self._pauses and not self.sink.pending and not self.pair.over:
            self.source.read(True)

    # -- the source lane's other news --------------------------------------------------------

    def flushed(self) -> None:
        """See `Reader`: the source lane is the sink of the other pump."""
        self.pair.pumps[1 - self.direction].drained()

    def lost(self, error: OSError) -> None:
        """See `Reader`."""
        self.pair.lost(self.source, error)

    def close(self) -> None:
        """The pair is over: nothing is kept."""
        self._release_collected()
        self._keep(b"")
        self._at_border = None
