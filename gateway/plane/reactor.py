"""Waits for events of all lanes at once, inside trio, and calls their pumps.

Theory of operation
===================
The lanes are registered in the reactor's own epoll, and one trio task awaits that epoll's
descriptor (an epoll is readable while it has events). Between two awaits, a *turn* handles events
by plain calls: no task, no cancel scope and no checkpoint per connection or per frame. Measured:
two tasks per connection cost nearly twice the CPU for small frames, and three times the memory.

A turn is bounded in time, so that accepting, handshakes and the admin listener get their share. A
turn that is cut keeps the rest of its events for the next turn: epoll reports events in the same
order each time, so the last ones would starve.

One try/except stands around each event: a failure ends one pair.

No socket is opened within a turn, so a descriptor number closed in a turn cannot be another
socket's in the same list of events.
"""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Callable
from functools import partial

import trio

from gateway.errors import PeerError
from gateway.plane.backlog import Backlog, Work
from gateway.plane.fairness import Fairness, Served
from gateway.plane.lane import Lane, RecordLane
from gateway.plane.linger import Lingering
from gateway.plane.pair import Hooks, Pair, PairOwner
from gateway.plane.pump import UNCOUNTED, ByteCount, Pump
from gateway.plane.rounds import Rounds
from gateway.plane.state import PlaneSettings
from gateway.plane.stream import OUT, Stream, has_records
from gateway.wire.account import Account
from gateway.wire.contract import AfterJob, Denial, EndReason, Peer, Session

RELIEF = 2.0
"""Seconds for which memory may stay full. No peer is read meanwhile, because some peers do not take
their pending bytes. Longer than a lane lingers, and a short break for the other pairs."""


PARTED = 0.05
"""Seconds after which ended pairs are taken apart: many at once, because a timer has its price, and
before the garbage collector moves them to an older generation."""


LINGER_MS = 1
"""Milliseconds for which a busy turn waits for its next event. A pass through trio instead takes as
much CPU as two events. A wait in vain delays the other tasks by as long, half a turn. The compiled
loop waits until the turn ends, or a deadline: one timer for all events, because timeouts of a
millisecond are set and cancelled at a higher price than that of moving a small frame."""


class Reactor(Rounds, PairOwner):
    """Serves all open pairs of a process. Its method `run` is the task that does so."""

    def __init__(
        self,
        hooks: Hooks,
        settings: PlaneSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        Rounds.__init__(self)
        PairOwner.__init__(self, hooks, settings, clock, self._rearm)
        self.pairs: set[Pair] = set()
        self._by_connection: dict[int | None, Pair] = {}
        self._parted: list[Pair] = []  # ended, to be taken apart
        self._dismissed: deque[Pair] = deque()  # ended, session not closed yet
        self.turns = 0
        self._epoll = select.epoll()
        self._lanes = {}
        self._fairness = Fairness()
        self._backlog = Backlog()
        self._catches_up = False  # a deadline will take from the backlog
        self._buffered: set[Lane] = set()  # to be read without an event
        self._ended = -math.inf  # when the last turn ended
        self._timer: trio.CancelScope | None = None

    # -- pairs -------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Return whether every connection is closed, also those that linger after the end of their
        pair."""
        return not self._lanes

    def add(
        self,
        client: Stream,
        broker: Stream,
        session: Session,
        owner: object = None,
        received: tuple[bytes, bytes] = (b"", b""),
        expires: float = math.inf,
        moved: tuple[ByteCount, ByteCount] = UNCOUNTED,
    ) -> Pair:
        """Take over two connected, non-blocking streams, and return their pair. No exception is
        raised: if something fails, the returned pair has ended.

        `owner`: the object by which the caller knows the pair. `received`: the bytes that were read
        behind the frames of the opening, by direction. `expires`: when the client's credential
        expires, by the reactor's clock. `moved`: two counters, to which the bytes received from the
        client and from the broker are added.
        """
        now = self.clock()
        lanes = [self._lane(client, Peer.CLIENT), self._lane(broker, Peer.BROKER)]
        caller = session.caller
        served = self._fairness.served(caller.principal, caller.host)
        for lane in lanes:
            lane.served = served
        pair = Pair(self, lanes[0], lanes[1], session, owner, moved)
        self.pairs.add(pair)
        self._by_connection[caller.connection] = pair
        self._lanes.update((lane.fd, lane) for lane in lanes)
        try:
            for lane in lanes:
                lane.read(True)
            pair.watch(now, expires)
            pair.begin(now)
            for pump, counted in zip(pair.pumps, moved, strict=True):
                counted.bytes += len(received[pump.direction])
                pump.offer(received[pump.direction], now)
        except Exception as error:
            self.crash(pair, error)
        return pair

    def _lane(self, stream: Stream, peer: Peer) -> Lane:
        if has_records(stream):
            return RecordLane(stream, peer, self._epoll, self.memory, self._read_again)
        return Lane(stream, peer, self._epoll, self.memory)

    def resume(
        self,
        pair: Pair,
        then: AfterJob,
        result: bytes | Denial,
    ) -> None:
        """Pass a job's result to `then`, the callback of the pair that started the job; do nothing
        if the pair has ended."""
        try:
            pair.resume(then, result, self.clock())
        except Exception as error:
            self.crash(pair, error)

    def revoke(self, account: Account, denial: Denial) -> None:
        """Close the producer or consumer of an account, because rules no longer allow it. `denial`:
        the reason. Raises nothing."""
        pair = self._by_connection.get(account.subject.connection)
        if pair is None:
            return
        try:
            pair.revoke(account, denial, self.clock())
        except Exception as error:
            self.crash(pair, error)

    def grant(self, account: Account, messages: int, size: int) -> None:
        """Add `messages` and `size` bytes to an account's allowance, and send the frames that
        waited for it. Raises nothing."""
        waiting = self.granted.get(account)
        if waiting is None:
            account.grant(messages, size)
        else:
            waiting.grant(account, messages, size, self.clock())

    def leave(self, pair: Pair) -> None:
        """Take the next step of moving this pair's client to another gateway. Raises nothing."""
        if pair.over:
            return
        try:
            pair.leave(self.clock())
        except Exception as error:
            self.crash(pair, error)

    def part(self, pair: Pair, reason: EndReason, farewell: bytes, detail: str) -> None:
        """Separate the two lanes (connections) of a pair that ends: each sends its pending bytes
        and is then closed. `farewell`: the last frame for the client."""
        self.pairs.discard(pair)
        connection = pair.session.caller.connection
        if self._by_connection.get(connection) is pair:
            del self._by_connection[connection]
        if not self._parted:
            self.deadlines.add(self.clock() + PARTED, self._break_cycles)
        self._parted.append(pair)
        gone = {EndReason.CLIENT_CLOSED: pair.client, EndReason.CLIENT_LOST: pair.client}
        gone |= {EndReason.BROKER_CLOSED: pair.broker, EndReason.BROKER_LOST: pair.broker}
        for lane in (pair.broker, pair.client):
            if lane is gone.get(reason) or reason is EndReason.OUT_OF_MEMORY:
                self.forget(lane)
            else:
                Lingering(self, lane, self.forget).begin(farewell if lane is pair.client else b"")
        self.hooks.ended(pair, reason, detail)

    def dismiss(self, pair: Pair) -> None:
        """Close the session of an ended pair, at once or in steps, between which other pairs are
        served."""
        if not pair.session.close():
            return
        if not self._dismissed:
            self.deadlines.add(self.clock(), self._dismiss)
        self._dismissed.append(pair)

    def _dismiss(self, _now: float) -> None:
        """Take one more step of closing the session whose pair ended first."""
        pair = self._dismissed[0]
        try:
            is_over = not pair.session.close()
        except Exception as error:
            is_over = True
            self.hooks.crashed(pair, error)
        if is_over:
            self._dismissed.popleft()
        if self._dismissed:
            self.deadlines.add(self.clock(), self._dismiss)

    def forget(self, lane: Lane) -> None:
        """Close a lane (one connection of a pair). If it is closed already, do nothing, because the
        number of its descriptor may belong to another lane by now."""
        if self._lanes.get(lane.fd) is lane:
            del self._lanes[lane.fd]
            lane.close()

    def _break_cycles(self, _now: float) -> None:
        """Break the cycles of ended pairs, whose pumps are not running any more. So the pairs are
        freed at once: a garbage collection would walk through all open pairs to find them."""
        for pair in self._parted:
            del pair.pumps
        self._parted.clear()

    # -- turns -------------------------------------------------------------------------------

    def turn(self) -> None:
        """Handle events, for a bounded time.

        Under load, when all events are handled, a turn waits up to `LINGER_MS` for further events,
        because ending the turn costs more CPU. It does not wait if it has decided several frames or
        started a job, because other parts of the gateway may have work then.
        """
        self.turns += 1
        self.decisions = 0
        began = self.clock()
        self.gave_work = False
        self.until = began + self.settings.turn
        self.due = min(self.until, self.deadlines.head or math.inf)
        linger = LINGER_MS if began - self._ended < LINGER_MS / 1000 else 0
        self._ended = self.serve(self._epoll.fileno(), linger)

    def handle_other(self, lane: Lane, event: int, now: float) -> None:
        """Handle an event other than `IN` alone: the lane is writable or was hung up."""
        event = lane.meaning(event)
        if event & OUT or lane.pending:
            # Sending detects a hang-up.
            try:
                if lane.flush():
                    lane.reader.flushed()
            except OSError as error:
                lane.reader.lost(error)
        if event & ~OUT and lane.reading and self._lanes.get(lane.fd) is lane:
            self._read(lane, now)

    def _read_again(self, lane: Lane) -> None:
        """Read a lane after others had their turn: its stream holds bytes that cause no event."""
        if lane not in self._buffered:
            self._buffered.add(lane)
            self.put_off(lane.served, partial(self._read_buffered, lane))

    def _read_buffered(self, lane: Lane, now: float) -> None:
        self._buffered.discard(lane)
        if lane.reading and self._lanes.get(lane.fd) is lane:
            try:
                self._read(lane, now)
            except Exception as error:
                self.failed(lane, error)

    def put_off(self, served: Served, work: Work) -> None:
        """Keep a piece of work until other pairs were served. `served`: that of its connection."""
        self._backlog.add(served, work)
        if not self._catches_up:
            self._catches_up = True
            self.deadlines.add(self.clock(), self._catch_up)

    def _catch_up(self, now: float) -> None:
        """Do the first piece of work that was put off."""
        served, work = self._backlog.take()
        work(now)
        after = self.clock()
        served.charge(after - now)
        self._catches_up = bool(self._backlog)
        if self._catches_up:
            self.deadlines.add(after, self._catch_up)

    def _read(self, lane: Lane, now: float) -> None:
        """Have a lane read, as `turn` does without a call."""
        sampler = self.sampler
        if sampler.skips:
            sampler.skips -= 1
            lane.reader.readable(now)
        else:
            lane.reader.timed(now, sampler.sample(now))

    def failed(self, lane: Lane, error: Exception) -> None:
        pump = lane.reader
        if not isinstance(pump, Pump):
            self.forget(lane)
        elif isinstance(error, PeerError):
            pump.pair.violated(pump.direction, error)
        else:
            pump.pair.crash(error)

    def crash(self, pair: Pair, error: Exception) -> None:
        """End this pair, because an exception has shown a bug in the gateway."""
        self.hooks.crashed(pair, error)
        pair.end(EndReason.INTERNAL_ERROR)

    # -- memory ------------------------------------------------------------------------------

    def short_of_memory(self, now: float) -> None:
        """Start a timer of `RELIEF` seconds, unless it runs, because a connection is not read for
        want of memory. If memory stays full until the timer is over, the pairs that keep the most
        bytes are ended."""
        if self.memory.full_since is None:
            self.memory.full_since = now
            self.deadlines.add(now + RELIEF, partial(self._end_largest, now))

    def _end_largest(self, since: float, now: float) -> None:
        """End the pairs that keep the most bytes, if memory was full all the time, until a quarter
        is free: with less, the next bytes of the remaining pairs would stop everybody again."""
        if self.memory.full_since != since:
            return
        self.memory.full_since = None
        excess = self.memory.used - self.memory.bound * 3 // 4
        by_size = sorted(((pair.kept, id(pair), pair) for pair in self.pairs), reverse=True)
        for kept, _, pair in by_size:
            if excess <= 0:
                return
            pair.end(EndReason.OUT_OF_MEMORY, detail=f"{kept} bytes waited for its peers")
            excess -= kept

    # -- trio --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the open pairs until cancelled, then close all their connections."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._expire)
                while True:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                    self.turn()
        finally:
            self.close()

    async def _expire(self) -> None:
        while True:
            head = self.deadlines.head
            with trio.CancelScope() as self._timer:
                await trio.sleep_forever() if head is None else await trio.sleep(
                    max(0.0, head - self.clock())
                )
            self.keep_deadlines()

    def keep_deadlines(self) -> None:
        """Call the callbacks that are due, for at most `settings.turn` seconds. Each may forward
        bytes that were kept, so without this bound the bytes of demanding peers would keep all
        other pairs waiting."""
        now = self.clock()
        self.until = until = now + self.settings.turn
        while (head := self.deadlines.head) is not None and head <= now <= until:
            self.decisions = 0
            self.deadlines.expire(now, 1)
            now = self.clock()

    def _rearm(self) -> None:
        """Restart the timer: a new deadline is the earliest."""
        self.due = min(self.due, self.deadlines.head or math.inf)
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """End all pairs at once."""
        for pair in tuple(self.pairs):
            pair.end(EndReason.DRAINED)
        for lane in tuple(self._lanes.values()):
            self.forget(lane)
        trio.lowlevel.notify_closing(self._epoll.fileno())
        self._epoll.close()
