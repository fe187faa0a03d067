"""One direction of a pair: receive, scan, send.

Theory of operation
===================
The reactor calls a pump when its source lane has bytes. The usual case is one receive into the
shared buffer, one scan, and one send of all bytes that the scanner cleared. The other cases:

- **Carry**: the chunk ends within a header. The pump keeps the header's bytes and puts them before
  the next bytes received.
- **Stop frame**: the session decides the frame, the pair carries out the effects, and the scan goes
  on behind the frame. An incomplete stop frame is *collected*, within the session's bound (see
  `collection`).
- **Postponed**: the session decides the stop frame later. It is carried, and offered again.
- **Heads**: a stop frame may be the head of a longer frame. After the decision the rest is owed,
  and is sent or dropped as it comes.
- **Injections**: the gateway's own frames may be inserted only at a frame border. They wait while
  part of the last frame is *owed*. A peer that lets too many of them wait is not read: it would
  fill the memory with the responses to its requests.
- **Blocked or paused**: the source is not read until the pump is resumed. The rest of the chunk is
  carried.
- **Short write**: the pump copies what the sink did not take, stops reading until that is sent, and
  halves its next reads, so that a slow reader does not keep a whole buffer's worth.
- **Frames that are slow to scan**: the smallest frames cost a hundred times as much per byte as
  usual ones. A chunk is scanned in pieces. If one piece takes longer than a turn, the next reads
  and their pieces are halved. If all pieces take far longer than a turn, the rest is carried and
  scanned after other pumps had their turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gateway.errors import PeerError
from gateway.plane.collection import Collection
from gateway.plane.moving import SMALLEST_READ, SPARING_READ, Mover
from gateway.wire.contract import Direction, EndReason

if TYPE_CHECKING:
    from gateway.plane.deadlines import Cancellable
    from gateway.plane.lane import Lane
    from gateway.plane.state import PlaneState
    from gateway.wire.account import Account
    from gateway.wire.contract import Scanner, Session

BREATH = 0.05
"""Seconds for which a pump stops reading when the plane's memory is full: a few round trips, in
which the slow peers may take their pending bytes."""

PIECES = 4
"""Pieces in which a read is scanned; the pump checks the clock after each. A piece of the largest
read takes 18 ms with the slowest frames, once: then reads are halved, down to 1 ms each. Each piece
costs 1 µs, so sixteen pieces would make usual frames 3 % slower."""

LONGEST_SCAN = 3
"""Turns that scanning one read may take. Deferring the rest copies it twice, so the bound is above
the two turns that small usual frames take on a slow machine."""

LEAST_SLOW_READ = SMALLEST_READ // 2
"""Smallest read, in bytes, for frames that are slow to scan: the slowest take 1 ms for it."""

LARGEST_PIECE = 128 * 1024
"""Upper bound of a piece in bytes, however large the read is."""

PATIENCE = 8
"""Full reads that must be quick to scan after a slow one, before reads grow again."""


class PumpHost(Protocol):
    """The part of a pair that its pumps use."""

    session: Session
    over: bool
    attends: bool
    pumps: tuple[Pump, Pump]

    def decide(self, direction: Direction, frame: bytes, now: float) -> Account | None:
        """Give a stop frame, one at which the scanner halted, to the session, and do what the
        session decides. Return the account if the frame now waits for that account's allowance,
        else None."""

    def decided_enough(self) -> bool:
        """Count a decided frame. Return whether other pairs should be served before more frames are
        decided."""

    def hold(self, account: Account, frames: bytes, now: float) -> None:
        """Queue whole frames until this account has allowance again."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset behind the whole frames of this account at the begin of
        `chunk[start:end]`, which must wait because the account has no allowance; `start` if there
        are none."""

    def attend(self, now: float) -> None:
        """Ask the session for further effects, after bytes were sent to the client or an account
        got allowance."""

    def later(self, when: float, callback: Callable[[float], None]) -> Cancellable[None]:
        """Call `callback` at the time `when`, unless the pair has ended or the returned object was
        cancelled by then."""

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call `callback` after the reactor has served other pairs."""

    def short_of_memory(self, now: float) -> None:
        """Tell the reactor that a pump has stopped reading, because the memory for all pairs is
        full."""

    def closed_by(self, lane: Lane) -> None:
        """End the pair, because the peer of this lane closed its stream."""

    def lost(self, lane: Lane, error: OSError) -> None:
        """End the pair, because the connection of this lane's peer failed."""

    def violated(self, direction: Direction, error: PeerError) -> None:
        """End the pair, because the peer that sends in this direction violated its protocol."""

    def end(self, reason: EndReason, farewell: bytes = b"", detail: str = "") -> None:
        """End the pair. `farewell`: the last frame for the client; if empty, the client gets the
        frame that the session builds for `reason`. `detail`: a text for logs."""

    def crash(self, error: Exception) -> None:
        """End the pair, because an exception has shown a bug in the gateway."""


class ByteCount(Protocol):
    """Counts bytes."""

    bytes: int


class _Uncounted:
    """Counts bytes that nobody asks for."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


UNCOUNTED = (_Uncounted(), _Uncounted())


class Pump(Mover):
    """Moves the bytes of one direction of a pair, by plain calls that never wait."""

    __slots__ = (
        "_drops_owed",
        "_is_detained",
        "_mutes_peer",
        "_patience",
        "_plane",
        "_postponed",
        "_unheard",
        "blocked_since",
        "direction",
    )

    def __init__(
        self,
        pair: PumpHost,
        direction: Direction,
        lanes: tuple[Lane, Lane],
        scanner: Scanner,
        plane: PlaneState,
        moved: ByteCount = UNCOUNTED[0],
    ) -> None:
        super().__init__(scanner)
        self.pair = pair
        self._moved = moved  # counts the received bytes
        self.direction = direction
        self.source, self.sink = lanes
        self.note: Callable[[float], bool] | None = None  # told of chunks while it returns True
        self._plane = plane
        self._memory = memory = plane.memory
        self._read_size = memory.size
        self._patience = 0  # full reads to go before reads grow again
        self._carry = b""
        self._collection: Collection | None = None  # of an incomplete stop frame
        # Actions to run and frames to send at the next border.
        self._at_border: deque[Callable[[], None] | bytes] | None = None
        self._pauses = 0  # number of reasons not to read
        self._postponed: Cancellable[None] | None = None  # when the stop frame is offered again
        self._unheard = 0  # bytes of the gateway's own that were not sent at once
        self._drops_owed = False  # owed bytes are not sent
        self._is_detained = False  # the postponed frame, until its decision in slices
        self._mutes_peer = False  # the sink's peer is not read because of `_unheard`
        self.heard = 0.0  # when the source's peer last sent bytes
        self.blocked_since = math.inf  # since when the sink takes no more bytes
        self.source.reader = self

    # -- common case -------------------------------------------------------------------------

    def receive(self, now: float) -> None:
        """Receive bytes while the pump is paused, the sink is blocked, memory is full, or a stop
        frame is collected, in which cases none or only some are received; or while something waits
        for a frame border. `now`: the plane's time."""
        pair, memory = self.pair, self._memory
        if self._pauses or self.sink.pending or memory.used > memory.bound:
            self._not_now(now)
            return
        self.heard = now
        if self._collection is not None:
            self._collect(self._collection, now)
            return
        start = len(self._carry)
        memory.view[:start] = self._carry
        most = self._read_size if memory.used <= memory.ample else SPARING_READ
        try:
            count = self.source.receive_into(memory.view[start:], most)
        except BlockingIOError:
            return
        except OSError as error:
            pair.lost(self.source, error)
            return
        if not count:
            pair.closed_by(self.source)
            return
        self._moved.bytes += count
        self._move_across(start + count, now)

    def judged(self, cleared: int, end: int, count: int, now: float) -> None:
        """Send `buffer[:cleared]`, which the scanner has cleared, and go on with the rest of the
        bytes, which end at `end`. `count`: how many bytes were received now."""
        pair, memory = self.pair, self._memory
        if cleared:
            try:
                sent = self.sink.transmit(memory.view[:cleared])
            except BlockingIOError:
                sent = 0
            except OSError as error:
                pair.lost(self.sink, error)
                return
            if sent < cleared:
                self.keep_unsent(sent, cleared)
            elif count == self._read_size < memory.size:
                self.read_more()
        if self.note is not None and not self.note(now):
            self.note = None
        if cleared < end:
            if self.scanner.stop:
                self._stopped(cleared, end, now)
            else:
                self._keep(memory.view[cleared:end])
                if self.scanner.is_slow:
                    self._go_on_soon()
        elif self._carry:
            self._keep(b"")
        if pair.attends and not pair.over:
            pair.attend(now)

    def keep_unsent(self, sent: int, cleared: int) -> None:
        """Keep `buffer[sent:cleared]` to send later, because the sink did not take these bytes, and
        stop reading the source until they are sent."""
        self.sink.keep(self._memory.view[sent:cleared])
        self._blocked_by_sink()

    def scan_pieces(self, at: int, end: int, begin: int) -> int:
        """Scan `buffer[at:end]`, for `LONGEST_SCAN` turns at most; the rest is scanned after other
        pumps had their turn. Return the end of the cleared bytes, of which those from `begin` on
        are sent here if a later one is refused."""
        scanner, buffer, clock = self.scanner, self._memory.buffer, self._plane.clock
        size = max(SMALLEST_READ, min(self._read_size // PIECES, LARGEST_PIECE))
        turn = self._plane.settings.turn
        began = before = clock()
        cleared = border = at
        try:
            while True:
                # A piece begins behind what costs nothing to scan.
                if cleared + scanner.skips > border:
                    border = cleared + scanner.skips
                border += size
                if border > end:
                    border = end
                cleared = scanner.scan(buffer, cleared, border)
                now = clock()
                if now - before > turn:
                    self._read_less()
                if border == end or scanner.stop:
                    break
                if now - began > LONGEST_SCAN * turn:
                    self._go_on_soon()
                    break
                before = now
        except Exception:
            self._emit(self._memory.view[begin:cleared])  # the scanner counts them as sent
            raise
        return cleared

    def _read_less(self) -> None:
        """Halve the reads: a piece took longer than a turn to scan."""
        self._read_size = max(LEAST_SLOW_READ, self._read_size // 2)
        self._patience = PATIENCE

    def read_more(self) -> None:
        """Double the reads, some full reads after a slow one: the last was full, and all sent."""
        if self._patience:
            self._patience -= 1
        else:
            self._read_size = min(2 * self._read_size, self._memory.size)

    def _go_on_soon(self) -> None:
        """Pause until other pumps had their turn."""
        self.pause()
        self.pair.soon(self.unpause)

    def _keep(self, cut: bytes | memoryview) -> None:
        """Carry these bytes, to be put before the next received ones."""
        self._memory.used += len(cut) - len(self._carry)
        self._carry = bytes(cut)

    def _not_now(self, now: float) -> None:
        """Stop reading: the event precedes the pause, or memory is full, or the peer hung up."""
        self.source.read(False)
        if not self._pauses and not self.sink.pending:
            self.pair.short_of_memory(now)
            self.pause()
            self.pair.later(now + BREATH, self._retry_reading)

    def _retry_reading(self, now: float) -> None:
        if not self._memory.full:
            self._memory.full_since = None
        self.unpause(now)

    def _blocked_by_sink(self) -> None:
        self._stop_reading()
        self._read_size = min(self._read_size, max(SMALLEST_READ, self._read_size // 2))
        self.blocked_since = min(self.blocked_since, self._plane.clock())

    # -- other cases -------------------------------------------------------------------------

    def timed(self, now: float, stands_for: int) -> None:
        """Receive and forward bytes, and measure how long that takes. `stands_for`: how many chunks
        this chunk represents in the counts (see `Sampler.sample`)."""
        stopwatch = self.pair.session.stopwatch
        if stopwatch is None or self.direction is Direction.TO_CLIENT:
            self.readable(now)
            return
        stopwatch.begin()
        self.readable(now)
        stopwatch.moved(now, self._plane.clock(), stands_for)

    def _move_across(self, end: int, now: float) -> None:
        """Move `buffer[:end]`, which has the border that something waits for, or does not yet."""
        self._keep(b"")
        self._move(0, end, now)
        if self.pair.attends and not self.pair.over:
            self.pair.attend(now)

    def _move(self, at: int, end: int, now: float) -> None:
        """Scan and send `buffer[at:end]`; at the first border, do what waits for a border."""
        memory = self._memory
        if self._at_border is not None:
            at = self._to_border(at, end)
        while at < end and not self.pair.over:
            if self._pauses:
                self._keep(memory.view[at:end])
                return
            if end - at < SMALLEST_READ:
                cleared = self.scanner.scan(memory.buffer, at, end)
            else:
                cleared = self.scan_pieces(at, end, at)
            self._emit(memory.view[at:cleared])
            if self.note is not None and not self.note(now):
                self.note = None
            if cleared == end or self.pair.over:
                return
            if not self.scanner.stop:
                self._keep(memory.view[cleared:end])
                if self.scanner.is_slow:
                    self._go_on_soon()
                return
            at = self._stop_frame(cleared, end, now)
            if self._at_border is not None:  # the frame was the head of one that is owed now
                at = self._to_border(at, end)

    def _stopped(self, at: int, end: int, now: float) -> None:
        """Go on after the scan in `readable` halted at a stop frame."""
        self._keep(b"")
        self._move(self._stop_frame(at, end, now), end, now)
        # The session may have counted what was decided.
        if self.note is not None and not self.note(now):
            self.note = None

    def _stop_frame(self, at: int, end: int, now: float) -> int:
        """Have a stop frame decided, or begin to collect it. Return the offset behind the frame."""
        memory, length = self._memory, self.scanner.stop
        if length > self.pair.session.collected_bound:
            self.pair.end(EndReason.FRAME_TOO_LARGE, detail=f"a stop frame of {length} bytes")
            return end
        if at + length > end:
            self._begin_to_collect(length, memory.view[at:end], now)
            return end
        behind = at + length
        holder = self.pair.decide(self.direction, bytes(memory.view[at:behind]), now)
        if self._postponed is not None:
            return at
        if holder is not None:
            behind = self._hold_following(holder, behind, end, now)
        if behind < end and not self.pair.over and self.pair.decided_enough():
            self._go_on_soon()
        return behind

    def _hold_following(self, account: Account, at: int, end: int, now: float) -> int:
        """Hold the frames of the same producer that often follow a held frame. Return their end."""
        memory = self._memory
        behind: int = self.pair.following(account, memory.buffer, at, end)
        if behind > at:
            self.pair.hold(account, bytes(memory.view[at:behind]), now)
        return behind

    def _to_border(self, at: int, end: int) -> int:
        """Send owed bytes; if none are missing, do what waits for a border. Return their end."""
        border = min(at + self.scanner.owed, end)
        cleared = self.scanner.scan(self._memory.buffer, at, border)
        if not self._drops_owed:
            self._emit(self._memory.view[at:cleared])
        if not self.scanner.owed:
            self._do_at_border()
        return cleared

    def _do_at_border(self) -> None:
        """Do what waits for a border. Any action may end the pair, which empties the queue."""
        self._drops_owed = False
        while self._at_border:
            action = self._at_border.popleft()
            if isinstance(action, bytes):
                self._memory.used -= len(action)
                self._emit(action)
            else:
                action()
        self._at_border = None
        if not self.sink.pending:
            self._unmute_peer()

    def _begin_to_collect(self, length: int, first: memoryview, now: float) -> None:
        """Keep the first bytes of a stop frame; read on when the whole frame has room."""
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
        """Receive more of a stop frame, never beyond its end."""
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
        self._moved.bytes += count
        self._collect_from(collection, memory.view[:count], now)

    def _collect_from(self, collection: Collection, data: memoryview, now: float) -> int:
        """Add to the collected stop frame; decide it when it is whole. Return the number of bytes
        taken."""
        taken = collection.add(data)
        if not collection.missing:
            self._collection = None
            frame = collection.frame()
            try:
                self.pair.decide(self.direction, frame, now)
            finally:
                collection.close()
            if self._postponed is not None:
                self._keep(frame)
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

    # -- the gateway's own frames ------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Send `frame` in place of the frame about which the session decides now. All earlier
        frames were sent whole, so the direction is at a frame border."""
        self._emit(frame)

    def release(self, frames: bytearray, came: float) -> int:
        """Scan and send whole frames that were queued at the time `came`; the direction is at a
        frame border. Return how many bytes were sent; a stop frame may follow them. The frames are
        not in the shared buffer, which may be in use. They are sent before the bytes that the pump
        has kept, which came later."""
        sampler, stopwatch = self._plane.sampler, self.pair.session.stopwatch
        stands_for = 0
        if sampler.skips or stopwatch is None:
            sampler.skips = max(0, sampler.skips - 1)
        else:
            stands_for = sampler.sample(self._plane.clock())
            stopwatch.begin()
        cleared = self.scanner.scan(frames, 0, len(frames))
        self._emit(bytes(frames[:cleared]))
        if stands_for and stopwatch is not None:
            stopwatch.moved(came, self._plane.clock(), stands_for)
        return cleared

    def inject(self, frames: bytes) -> None:
        """Send frames that the gateway made, at the next frame border."""
        if self.scanner.owed:
            self._wait_for_border(frames)
            self._memory.used += len(frames)
        else:
            self._emit(frames)
            if self.pair.over or not self.sink.pending:
                return
        self._unheard += len(frames)
        if self._unheard > self._memory.unheard_bound and not self._mutes_peer:
            self._mutes_peer = True
            self._other.pause()

    def _unmute_peer(self) -> None:
        """Read the sink's peer again: none of the gateway's own frames wait for it."""
        if self._mutes_peer:
            self._mutes_peer = False
            self.pair.soon(self._other.unpause)
        self._unheard = 0

    @property
    def _other(self) -> Pump:
        """Return the pump of the other direction, which reads this pump's sink."""
        other: Pump = self.pair.pumps[1 - self.direction]
        return other

    def at_border(self, action: Callable[[], None]) -> None:
        """Call `action` at the next frame border; at once if no part of a frame is still to
        come."""
        if self.scanner.owed:
            self._wait_for_border(action)
        else:
            action()

    def drop_owed(self) -> None:
        """Do not send what is still to come of the frame whose head the session decides now."""
        self._drops_owed = True
        if self._at_border is None:
            self._at_border = deque()  # the next border ends that, and bytes are moved piece-wise

    def _wait_for_border(self, action: Callable[[], None] | bytes) -> None:
        if self._at_border is None:
            self._at_border = deque()
        self._at_border.append(action)

    # -- pausing -----------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop reading the source until `unpause` has been called as often as `pause`."""
        self._pauses += 1
        self._stop_reading()

    def _stop_reading(self) -> None:
        self.source.read(False)
        if self._collection is not None:
            self._collection.stop(self._plane.clock())

    def unpause(self, now: float) -> None:
        """Undo one call of `pause`. If none is left to undo, forward the bytes that were kept
        meanwhile, and read the source again."""
        self._pauses -= 1
        if self._pauses or self.pair.over:
            return
        carried = self._carry
        if carried:
            self._keep(b"")
            self.offer(carried, now)
        self._read_on()

    def postpone(self, until: float) -> None:
        """Keep the stop frame that is being decided, and all bytes behind it, until this time; then
        ask the session again."""
        assert self._postponed is None, "a stop frame is postponed once"
        self.pause()
        self._postponed = self.pair.later(until, self.take_up)

    @property
    def _is_postponed(self) -> bool:
        return self._postponed is not None

    def detain(self) -> None:
        """Keep the stop frame that is being decided, and all bytes behind it, until `settle`."""
        self.postpone(math.inf)
        self._is_detained = True

    def settle(self, length: int, carry_out: Callable[[bytes], None], now: float) -> None:
        """Carry out the decision about the detained stop frame, of `length` bytes, and go on behind
        it. The frame is not scanned again: to the session it is over. `carry_out`: gets the frame;
        it may postpone it, to have it decided anew."""
        assert self._postponed is not None, "the frame is detained"
        self._plane.deadlines.cancel(self._postponed)
        self._postponed, self._is_detained = None, False
        carry_out(self._carry[:length])
        if self.pair.over:
            return
        if self._is_postponed:
            self._pauses -= 1  # the postponement has one of its own
            return
        self._keep(self._carry[length:])
        self.unpause(now)

    def take_up(self, now: float) -> None:
        """Ask the session again about the postponed stop frame; do nothing if no frame is
        postponed."""
        if self._postponed is not None and not self._is_detained:
            self._plane.deadlines.cancel(self._postponed)
            self._postponed = None
            self.unpause(now)

    def offer(self, data: bytes, now: float) -> None:
        """Scan and forward bytes that were kept before, of any length, as if they came now."""
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
        """Read the source again, because the sink has sent all its pending bytes."""
        self.blocked_since = math.inf
        if self._at_border is None:
            self._unmute_peer()
        self._read_on()

    def _read_on(self) -> None:
        if self.listens and not self.pair.over:
            self.heard = self._plane.clock()  # the peer may have sent bytes meanwhile
            self.source.read(True)
            if self._collection is not None:
                self._collection.go_on(self.heard, self._overdue)
            if self.pair.attends:
                self.pair.attend(self.heard)

    @property
    def listens(self) -> bool:
        """Return whether the source is being read, neither paused nor blocked by the sink."""
        return not self._pauses and not self.sink.pending

    # -- other events of the source lane -----------------------------------------------------

    def flushed(self) -> None:
        """See `Reader`. The source lane, which has sent all its bytes, is the sink of the other
        pump."""
        self._other.drained()

    def lost(self, error: OSError) -> None:
        """See `Reader`."""
        self.pair.lost(self.source, error)

    # -- kept bytes --------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Return how many bytes this pump keeps: received bytes that are not scanned yet, and the
        gateway's own frames that wait for a frame border."""
        return len(self._carry) + self._waiting

    @property
    def _waiting(self) -> int:
        return sum(len(frames) for frames in self._at_border or () if isinstance(frames, bytes))

    def close(self) -> None:
        """Free all bytes that are kept, because the pair has ended."""
        if self._collection is not None:
            self._collection.close()
            self._collection = None
        if self._postponed is not None:
            self._plane.deadlines.cancel(self._postponed)
            self._postponed = None
        self._keep(b"")
        self._memory.used -= self._waiting
        self._at_border = None
