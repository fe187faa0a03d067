"""One direction of a pair: receive, scan, send.

Theory of operation
===================
A pump is called when its source lane has bytes. In the usual case that is one receive into the
shared buffer, one scan, one send of all that the scanner cleared. What else can happen:

- **carry**: the chunk ended within a header. Those bytes are kept, and put before the next ones.
- **stop frame**: the session decides it, and its effects are carried out; the scan goes on behind
  it. One that is not all here is *collected*, within the session's bound (see `collection`).
- **injections**: frames of our own may enter only at a frame border. While the last frame is *owed*
  in part they wait. A peer that lets too many of them wait is not read: it would fill the memory
  with the answers to its requests.
- **blocked or paused**: not read until somebody resumes it. What the chunk held beyond is carried.
- **the sink takes less than it is given**: the rest is copied, reading stops until it is gone,
  and the next reads are halved, so that a slow reader does not keep a whole buffer's worth.
- **frames that are slow to scan**: the smallest frames cost a hundred times as much per byte as
  usual ones. A chunk is scanned in pieces. If one of them takes longer than a turn, the next reads
  are halved, and so are their pieces. If all of them take far longer than a turn, the rest is
  carried and goes on when others had their turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gateway.errors import PeerError
from gateway.plane.collection import Collection
from gateway.plane.memory import SMALLEST_READ, SPARING_READ
from gateway.wire.contract import Direction, EndReason

if TYPE_CHECKING:
    from gateway.plane.lane import Lane
    from gateway.plane.state import PlaneState
    from gateway.wire.account import Account
    from gateway.wire.contract import Scanner, Session

BREATH = 0.05
"""Seconds that a pump does not read while the plane's memory is full: a few round trips, in which
the peers that caused it may take what is pending."""

PIECES = 4
"""Pieces in which a read is scanned, with a look at the clock between them. The slowest frames take
18 ms for a piece of the largest read, once: then reads are halved, down to 1 ms each. Each piece
costs 1 µs, so sixteen of them would make usual frames 3 % slower."""

LONGEST_SCAN = 3
"""Turns that scanning one read may take. The rest waits, and is copied twice for it; so this is
more than the two turns that small usual frames take on a slow machine."""

LEAST_SLOW_READ = SMALLEST_READ // 2
"""Reads of frames that are slow to scan are not halved below this: the slowest take 1 ms for it."""

LARGEST_PIECE = 128 * 1024
"""Bytes of a piece at most, whatever a read may have."""

PATIENCE = 8
"""Full reads that must be quick to scan, after one that was not, before reads become larger."""


class PumpHost(Protocol):
    """The pair of a pump, as far as the pump needs it."""

    session: Session
    over: bool
    attends: bool
    pumps: tuple[Pump, Pump]

    def decide(self, direction: Direction, frame: bytes, now: float) -> Account | None:
        """Have a stop frame decided. Answers for whose allowance it waits, if it does."""

    def decided_enough(self) -> bool:
        """Whether others should have their turn before more stop frames are decided."""

    def hold(self, account: Account, frames: bytes, now: float) -> None:
        """Have whole frames wait for this account's allowance."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """Up to where frames follow that wait as this account's stop frame does."""

    def attend(self, now: float) -> None:
        """Ask what else may go."""

    def later(self, when: float, callback: Callable[[float], None]) -> object:
        """Call back at a time, unless the pair is over by then."""

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call back when others had their turn."""

    def short_of_memory(self, now: float) -> None:
        """The pump does not read because memory is full."""

    def closed_by(self, lane: Lane) -> None:
        """A peer has said all that it will."""

    def lost(self, lane: Lane, error: OSError) -> None:
        """A peer is gone without a word."""

    def violated(self, direction: Direction, error: PeerError) -> None:
        """A peer sent what its protocol does not allow."""

    def end(self, reason: EndReason, farewell: bytes = b"", detail: str = "") -> None:
        """End the pair."""

    def crash(self, error: Exception) -> None:
        """A bug of ours ends the pair."""


class Pump:
    """Moves one direction of a pair. Plain calls, no waiting."""

    __slots__ = (
        "_at_border",
        "_carry",
        "_clock",
        "_collection",
        "_memory",
        "_patience",
        "_pauses",
        "_plane",
        "_read_size",
        "_scan",
        "_silences",
        "_turn",
        "_unheard",
        "blocked_since",
        "direction",
        "heard",
        "pair",
        "scanner",
        "sink",
        "source",
    )

    def __init__(
        self,
        pair: PumpHost,
        direction: Direction,
        lanes: tuple[Lane, Lane],
        scanner: Scanner,
        plane: PlaneState,
    ) -> None:
        self.pair = pair
        self.direction = direction
        self.source, self.sink = lanes
        self.scanner = scanner
        self._scan = scanner.scan
        self._plane = plane
        self._clock = plane.clock
        self._turn = plane.settings.turn
        self._memory = memory = plane.memory
        self._read_size = memory.size
        self._patience = 0  # how many full reads are awaited before larger ones
        self._carry = b""
        self._collection: Collection | None = None  # the stop frame that is not all here
        # To be done, or sent, there.
        self._at_border: deque[Callable[[], None] | bytes] | None = None
        self._pauses = 0  # how many reasons there are not to read
        self._unheard = 0  # bytes of our own that were not sent at once
        self._silences = False  # whether the sink's peer is not read because of them
        self.heard = 0.0  # when the source said something last
        self.blocked_since = math.inf  # since when the sink owes us room
        self.source.reader = self

    # -- the usual way -----------------------------------------------------------------------

    def readable(self, now: float) -> None:  # noqa: C901
        """Move what has come. Flat: this runs once for each wake-up."""
        pair, memory, carry = self.pair, self._memory, self._carry
        if self._pauses or self.sink.pending or memory.used > memory.bound:
            self._not_now(now)
            return
        self.heard = now
        if self._collection is not None:
            self._collect(self._collection, now)
            return
        start = len(carry)
        most = self._read_size if memory.used <= memory.ample else SPARING_READ
        try:
            if start:
                memory.buffer[:start] = carry
                count = self.source.receive_into(memory.view[start:], most)
            else:
                count = self.source.receive_into(memory.buffer, most)
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
            if pair.attends and not pair.over:
                pair.attend(now)
            return
        if end < SMALLEST_READ:
            cleared = self._scan(memory.buffer, 0, end)
        else:
            cleared = self._scan_pieces(0, end)
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
                self._read_more()
        if cleared < end:
            if self.scanner.stop:
                self._stopped(cleared, end, now)
            else:
                self._keep(memory.view[cleared:end])
        elif start:
            self._keep(b"")
        if pair.attends and not pair.over:
            pair.attend(now)

    def _scan_pieces(self, at: int, end: int) -> int:
        """Scan `buffer[at:end]`, for some turns at most. Return up to where it may go on.

        If there is more to scan then, the pump goes on with it when others had their turn.
        """
        scan, scanner, buffer, clock = self._scan, self.scanner, self._memory.buffer, self._clock
        size = max(SMALLEST_READ, min(self._read_size // PIECES, LARGEST_PIECE))
        began = before = clock()
        cleared = border = at
        try:
            while True:
                # What is owed costs nothing: a piece begins behind it.
                if cleared + scanner.owed > border:
                    border = cleared + scanner.owed
                border += size
                if border > end:
                    border = end
                cleared = scan(buffer, cleared, border)
                now = clock()
                if now - before > self._turn:
                    self._read_less()
                if border == end or scanner.stop:
                    break
                if now - began > LONGEST_SCAN * self._turn:
                    self._go_on_soon()
                    break
                before = now
        except Exception:
            self._emit(self._memory.view[at:cleared])  # the scanner counts these as sent
            raise
        return cleared

    def _read_less(self) -> None:
        """A piece took longer than a turn to scan: have smaller ones for a while."""
        self._read_size = max(LEAST_SLOW_READ, self._read_size // 2)
        self._patience = PATIENCE

    def _read_more(self) -> None:
        """A read brought as much as it might, and the sink took it."""
        if self._patience:
            self._patience -= 1
        else:
            self._read_size = min(2 * self._read_size, self._memory.size)

    def _go_on_soon(self) -> None:
        """Leave what is carried, and the source, alone until others had their turn."""
        self.pause()
        self.pair.soon(self.unpause)

    def _keep(self, cut: bytes | memoryview) -> None:
        """What is to be put before the next received bytes."""
        self._memory.used += len(cut) - len(self._carry)
        self._carry = bytes(cut)

    def _not_now(self, now: float) -> None:
        """An event from before reading was turned off, or a hang-up of a lane that is not read."""
        self.source.read(False)
        if not self._pauses and not self.sink.pending:
            self.pair.short_of_memory(now)
            self.pause()
            self.pair.later(now + BREATH, self._look_again)

    def _look_again(self, now: float) -> None:
        if not self._memory.full:
            self._memory.full_since = None
        self.unpause(now)

    def _blocked_by_sink(self) -> None:
        self._stop_reading()
        self._read_size = min(self._read_size, max(SMALLEST_READ, self._read_size // 2))
        self.blocked_since = min(self.blocked_since, self._clock())

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
            if end - at < SMALLEST_READ:
                cleared = self._scan(memory.buffer, at, end)
            else:
                cleared = self._scan_pieces(at, end)
            self._emit(memory.view[at:cleared])
            if cleared == end or self.pair.over:
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
            self._begin_to_collect(length, memory.view[at:end], now)
            return end
        behind = at + length
        holder = self.pair.decide(self.direction, bytes(memory.view[at:behind]), now)
        if holder is not None:
            behind = self._hold_on(holder, behind, end, now)
        if behind < end and not self.pair.over and self.pair.decided_enough():
            self._go_on_soon()
        return behind

    def _hold_on(self, account: Account, at: int, end: int, now: float) -> int:
        """Behind a frame that waits there are often more of its producer."""
        memory = self._memory
        behind = self.pair.following(account, memory.buffer, at, end)
        if behind > at:
            self.pair.hold(account, bytes(memory.view[at:behind]), now)
        return behind

    def _to_border(self, at: int, end: int) -> int:
        """Send what is owed; if all of it is here, do what waits for the border behind it."""
        border = min(at + self.scanner.owed, end)
        self._scan(self._memory.buffer, at, border)
        self._emit(self._memory.view[at:border])
        if not self.scanner.owed:
            self._do_at_border()
        return border

    def _do_at_border(self) -> None:
        """Whatever is done may end the pair, and there is nothing to be done then."""
        while self._at_border:
            action = self._at_border.popleft()
            if isinstance(action, bytes):
                self._memory.used -= len(action)
                self._emit(action)
            else:
                action()
        self._at_border = None
        if not self.sink.pending:
            self._heard()

    def _begin_to_collect(self, length: int, first: memoryview, now: float) -> None:
        """Keep the first bytes of a stop frame; read on when there is room for all of it."""
        plane = self._plane
        collection = Collection(length, plane.memory, plane.deadlines, plane.settings.frame)
        self._collection = collection
        collection.add(first)
        if not collection.claim(self.source.address, partial(self.pair.soon, self.unpause)):
            self.pause()
        elif self.listens:
            collection.go_on(now, self._overdue)

    def _overdue(self, now: float) -> None:
        detail = f"{self.source.peer.name.lower()}: {self._collection}"
        self.pair.end(EndReason.FRAME_TIMEOUT, detail=detail)

    def _collect(self, collection: Collection, now: float) -> None:
        """Receive more of a stop frame, never beyond it."""
        memory = self._memory
        try:
            count = self.source.receive_into(memory.buffer, min(collection.missing, memory.size))
        except BlockingIOError:
            return
        except OSError as error:
            self.pair.lost(self.source, error)
            return
        if not count:
            self.pair.closed_by(self.source)
            return
        self._collect_from(collection, memory.view[:count], now)

    def _collect_from(self, collection: Collection, data: memoryview, now: float) -> int:
        """Add to the stop frame that is collected; decide it when it is whole. Answers how much
        was taken."""
        taken = collection.add(data)
        if not collection.missing:
            self._collection = None
            frame = collection.frame()
            try:
                self.pair.decide(self.direction, frame, now)
            finally:
                collection.close()
        return taken

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

    def release(self, frames: bytearray) -> int:
        """Scan and send whole frames that were held, at a border. Answers how many bytes passed;
        what comes behind them is a stop frame. Not by way of the shared buffer, which may be in
        use, and not behind what is carried, which came later."""
        cleared = self._scan(frames, 0, len(frames))
        self._emit(bytes(frames[:cleared]))
        return cleared

    def inject(self, frames: bytes) -> None:
        """Send at the next frame border."""
        if self.scanner.owed:
            self._wait_for_border(frames)
            self._memory.used += len(frames)
        else:
            self._emit(frames)
            if self.pair.over or not self.sink.pending:
                return
        self._unheard += len(frames)
        if self._unheard > self._memory.unheard_bound and not self._silences:
            self._silences = True
            self._other.pause()

    def _heard(self) -> None:
        """None of our own frames waits any more."""
        if self._silences:
            self._silences = False
            self.pair.soon(self._other.unpause)
        self._unheard = 0

    @property
    def _other(self) -> Pump:
        """The pump that reads from the peer to which this one sends."""
        return self.pair.pumps[1 - self.direction]

    def at_border(self, action: Callable[[], None]) -> None:
        """Do this at the next frame border: now, if nothing is owed."""
        if self.scanner.owed:
            self._wait_for_border(action)
        else:
            action()

    def _wait_for_border(self, action: Callable[[], None] | bytes) -> None:
        if self._at_border is None:
            self._at_border = deque()
        self._at_border.append(action)

    # -- reading or not ----------------------------------------------------------------------

    def pause(self) -> None:
        """One more reason not to read."""
        self._pauses += 1
        self._stop_reading()

    def _stop_reading(self) -> None:
        self.source.read(False)
        if self._collection is not None:
            self._collection.stop(self._clock())

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
        try:
            self._offer(data, now)
        except PeerError as error:
            self.pair.violated(self.direction, error)

    def _offer(self, data: bytes, now: float) -> None:
        memory, rest = self._memory, memoryview(data)
        while rest and not self.pair.over:
            if self._pauses:
                self._keep(self._carry + bytes(rest))
                return
            if self._collection is not None:
                rest = rest[self._collect_from(self._collection, rest, now) :]
                continue
            start, take = len(self._carry), min(len(rest), memory.size)
            memory.buffer[:start] = self._carry
            memory.buffer[start : start + take] = rest[:take]
            self._keep(b"")
            self._move(0, start + take, now)
            rest = rest[take:]

    def drained(self) -> None:
        """The sink has nothing pending any more."""
        self.blocked_since = math.inf
        if self._at_border is None:
            self._heard()
        self._read_on()

    def _read_on(self) -> None:
        if self.listens and not self.pair.over:
            self.heard = self._clock()  # it may have spoken meanwhile
            self.source.read(True)
            if self._collection is not None:
                self._collection.go_on(self.heard, self._overdue)
            if self.pair.attends:
                self.pair.attend(self.heard)

    @property
    def listens(self) -> bool:
        """Whether there is no reason not to read."""
        return not self._pauses and not self.sink.pending

    # -- the source lane's other news --------------------------------------------------------

    def flushed(self) -> None:
        """See `Reader`: the source lane is the sink of the other pump."""
        self._other.drained()

    def lost(self, error: OSError) -> None:
        """See `Reader`."""
        self.pair.lost(self.source, error)

    # -- what is kept ------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Bytes: carried, and of our own that wait for a border."""
        return len(self._carry) + self._waiting

    @property
    def _waiting(self) -> int:
        return sum(len(frames) for frames in self._at_border or () if isinstance(frames, bytes))

    def close(self) -> None:
        """The pair is over: nothing is kept."""
        if self._collection is not None:
            self._collection.close()
            self._collection = None
        self._keep(b"")
        self._memory.used -= self._waiting
        self._at_border = None
