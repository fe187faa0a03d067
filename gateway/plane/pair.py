"""One client connection with its broker connection: carries out its session's effects."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Protocol, assert_never

from gateway.errors import PeerError
from gateway.plane.callbacks import PairCallback, PeerCheck, SessionCallback
from gateway.plane.deadlines import Cancellable
from gateway.plane.pump import UNCOUNTED, ByteCount, Pump
from gateway.plane.slicing import Slicing
from gateway.plane.state import PlaneSettings, PlaneState
from gateway.plane.waiting import WaitingFrames
from gateway.wire.account import Account
from gateway.wire.contract import (
    AfterJob,
    Attend,
    Await,
    Denial,
    Direction,
    Discard,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Forward,
    Hold,
    Holding,
    Inject,
    Job,
    Later,
    Pause,
    Peer,
    Postpone,
    Prolong,
    Refuse,
    Replace,
    Resume,
    Session,
    Sliced,
    Start,
    ViolationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.backlog import Work
    from gateway.plane.fairness import Served
    from gateway.plane.lane import Lane
    from gateway.wire.slices import Slices

ASK_AHEAD = 30.0
"""Seconds before its credential expires at which a client is asked for reauthentication; half of
the time that is left if that is less."""

_CLOSED = {Peer.CLIENT: EndReason.CLIENT_CLOSED, Peer.BROKER: EndReason.BROKER_CLOSED}
_LOST = {Peer.CLIENT: EndReason.CLIENT_LOST, Peer.BROKER: EndReason.BROKER_LOST}
DECISIONS_AT_ONCE = 64
"""Stop frames decided in a row, of all pairs together, before passing frames have their turn; fewer
if the turn ends earlier. A decision costs 10 to 20 µs, so this is about a turn; a chunk may hold
25,000 stop frames, and a client can make some that take milliseconds each."""

QUIET = 0.05
"""Seconds without a byte after which a pair without a further step of leaving ends: its client's
last requests, such as partitions or a schema, have their responses by then."""

EMPTY = 0.5
"""Seconds after which such a pair ends in any case: a client whose lookup another gateway answers
would come back on this connection."""

_SILENT = {Peer.CLIENT: EndReason.CLIENT_SILENT, Peer.BROKER: EndReason.BROKER_SILENT}
_STALLED = {Peer.CLIENT: EndReason.CLIENT_STALLED, Peer.BROKER: EndReason.BROKER_STALLED}
_VIOLATION = (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)  # by direction


class Pair:
    """One open client connection with its broker connection: two lanes (client, broker), two pumps
    between them, and one session. `owner`: the object by which the caller of `Reactor.add` knows
    the pair. `moved`: counts of received bytes, by direction. `over`: the pair has ended."""

    __slots__ = (
        "_asks",
        "_empty_since",
        "_expires",
        "_reactor",
        "_slicing",
        "_waiting",
        "_watch",
        "attends",
        "broker",
        "client",
        "laters",
        "over",
        "owner",
        "pumps",
        "session",
    )

    def __init__(
        self,
        reactor: PairOwner,
        client: Lane,
        broker: Lane,
        session: Session,
        owner: object,
        moved: tuple[ByteCount, ByteCount] = UNCOUNTED,
    ) -> None:
        self._reactor = reactor
        self.client = client
        self.broker = broker
        self.session = session
        self.owner = owner
        self.over = False
        self.attends = False  # call `attend` after sending to the client
        self._asks = math.inf  # when the client is asked for a newer credential
        self._expires = math.inf
        self._empty_since = math.inf  # during shutdown: since when the session has no step left
        self.laters: SessionCallback | None = None  # what the session asked for last
        self._watch = PeerCheck(self)
        to_broker, to_client = session.scanners
        self.pumps = (
            Pump(self, Direction.TO_BROKER, (client, broker), to_broker, reactor, moved[0]),
            Pump(self, Direction.TO_CLIENT, (broker, client), to_client, reactor, moved[1]),
        )
        self._waiting: WaitingFrames | None = None
        self._slicing: Slicing | None = None
        if session.stopwatch is not None:
            session.stopwatch.watched = self

    def listen(self) -> None:
        """See `stopwatch.Watched`."""
        stopwatch = self.session.stopwatch
        if not self.over and stopwatch is not None:
            self.pumps[Direction.TO_CLIENT].note = stopwatch.delivered

    def begin(self, now: float) -> None:
        """Carry out the effects with which the session begins."""
        self._carry_out(self.session.opened(now), self.pumps[Direction.TO_BROKER], b"", now)

    # -- decisions ---------------------------------------------------------------------------

    def decide(self, direction: Direction, frame: bytes, now: float) -> Account | None:
        """Ask the session what to do with a stop frame, and do it. Return the account if the frame
        now waits for that account's allowance, else None."""
        try:
            effects = self.session.decide(direction, frame, now)
        except PeerError as error:
            self.violated(direction, error)
            return None
        self._carry_out(effects, self.pumps[direction], frame, now)
        last = effects[-1] if effects else None
        if self.over or not isinstance(last, Hold) or last.account.patience is not None:
            return None
        return last.account

    def decided_enough(self) -> bool:
        """Count a decided frame. Return whether other pairs should be served before more frames are
        decided."""
        reactor = self._reactor
        reactor.decisions += 1
        return reactor.decisions >= DECISIONS_AT_ONCE or reactor.clock() > reactor.until

    def resume(self, then: AfterJob, result: bytes | Denial, now: float) -> None:
        """Give a job's result to the session's callback `then`, and carry out the effects that
        `then` returns; do nothing if the pair has ended. If `then` raises `PeerError`, the broker
        has violated its protocol, and the pair ends."""
        if self.over:
            return
        try:
            effects = then(result, now)
        except PeerError as error:
            self.violated(Direction.TO_CLIENT, error)
            return
        self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def _later(self, until: float, then: Callable[[float], Effects]) -> None:
        """Go on at a time that the session asks for, unless the pair has ended by then."""
        self._reactor.deadlines.add(until, SessionCallback(self, then))

    def go_on(self, then: Callable[[float], Effects], now: float) -> None:
        """Call the session's callback `then`, because its time has come, and carry out the effects
        that it returns."""
        try:
            effects = then(now)
        except PeerError as error:
            self.violated(Direction.TO_BROKER, error)
            return
        self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def _carry_out(self, effects: Effects, pump: Pump, frame: bytes, now: float) -> None:
        for effect in effects:
            if self.over:
                return
            self._effect(effect, pump, frame, now)

    def _effect(  # noqa: C901 - an arm for each effect
        self, effect: Effect, pump: Pump, frame: bytes, now: float
    ) -> None:
        match effect:
            case Forward():
                pump.send(frame)
            case Replace(data):
                pump.send(data)
            case Drop(owed):
                if owed:
                    pump.drop_owed()
            case Inject(direction, data):
                self.pumps[direction].inject(data)
            case Hold(account, instead):
                self.hold(account, instead or frame, now)
            case Refuse(account, data):
                self._wait().refuse(account, data, now)
                self.attends = True
            case Await(account):
                self._wait().expect(account)
            case Attend():
                self.attends = True
            case Discard(account):
                self._discard(account)
            case Pause(direction, until):
                self._pause(self.pumps[direction], until)
            case Postpone(until):
                pump.postpone(until)
            case Resume(direction):
                self.soon(self.pumps[direction].take_up)
            case Sliced(steps):
                self._slice(pump, len(frame), steps)
            case Start(job, then):
                self._reactor.gave_work = True
                self._reactor.hooks.start(self, job, then)
            case Later(until, go_on):
                self._later(until, go_on)
            case Prolong(until):
                self._prolong(until, now)
                self.check_peers(now)
            case End(reason, farewell, detail):
                self.end(reason, farewell, detail)
            case _:
                assert_never(effect)

    # -- holding, pausing --------------------------------------------------------------------

    def hold(self, account: Account, frames: bytes, now: float) -> None:
        """Queue whole frames until this account has allowance again."""
        self._wait().put(account, frames, now)

    @property
    def _holding(self) -> Holding:
        holding = self.session.holding
        assert holding is not None, "a session without holding has no frames that wait"
        return holding

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""
        return self._holding.following(account, chunk, start, end)

    def _wait(self) -> WaitingFrames:
        if self._waiting is None:
            self._waiting = WaitingFrames(self, self._reactor, self._holding.given_up)
        return self._waiting

    def _discard(self, account: Account) -> None:
        if self._waiting is not None:
            self._waiting.discard(account)

    def attend(self, now: float) -> None:
        """Send the client the refusals that are due, and carry out the effects that the session now
        wants. Called after bytes were sent to the client or an account got allowance."""
        waiting = self._waiting
        if waiting is not None and waiting.is_refusing:
            waiting.check_refusals(now)
        effects = self._holding.delivered(now)
        if effects is None:
            self.attends = waiting is not None and waiting.is_refusing
        elif not self.over:
            self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def reset(self, account: Account, now: float) -> bool:
        """Take the next step of making the client open the account's producer again, and return
        True. Return False if no step is left."""
        effects = self._holding.reset(account)
        if effects is None:
            return False
        self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)
        return True

    def _pause(self, pump: Pump, until: float) -> None:
        def pause() -> None:
            pump.pause()
            self.later(until, pump.unpause)

        pump.at_border(pause)

    def later(self, when: float, callback: Callable[[float], None]) -> Cancellable[None]:
        """Call `callback` at the time `when`, unless the pair has ended or the returned object was
        cancelled by then. Use this for delays of seconds only: the pair is kept in memory until
        then."""
        made = PairCallback(self, callback)
        self._reactor.deadlines.add(when, made)
        return made

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call `callback` as soon as other pairs have been served."""
        self._reactor.put_off(self.client.served, PairCallback(self, callback))

    def _slice(self, pump: Pump, length: int, steps: Slices[Effects]) -> None:
        if self._slicing is None:
            self._slicing = Slicing(self)
        self._slicing.begin(pump, length, steps)

    def settle(self, direction: Direction, length: int, effects: Effects, now: float) -> None:
        """Carry out the decision about a stop frame that was taken in slices."""
        pump = self.pumps[direction]
        pump.settle(length, partial(self._carry_out, effects, pump, now=now), now)

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, now: float) -> None:
        """Take the next step of moving the client to another gateway. When all steps were taken,
        end the pair once both peers have been silent for a moment."""
        effects = self.session.leave(now)
        if effects is not None:
            self._empty_since = math.inf
            self._carry_out(effects, self.pumps[Direction.TO_CLIENT], b"", now)
            return
        self._empty_since = min(self._empty_since, now)
        if now >= min(self.touched + QUIET, self._empty_since + EMPTY):
            self.end(EndReason.DRAINED)

    def revoke(self, account: Account, denial: Denial, now: float) -> None:
        """Close the producer or consumer of an account, because rules no longer allow it. `denial`:
        the reason."""
        effects = self.session.revoke(account, denial, now)
        self._carry_out(effects, self.pumps[Direction.TO_CLIENT], b"", now)

    # -- watching ----------------------------------------------------------------------------

    def clock(self) -> float:
        """Return the present time by the plane's clock, for callers without a `now`."""
        return self._reactor.clock()

    @property
    def kept(self) -> int:
        """Return how many bytes are kept in memory for this pair, incomplete stop frames not
        counted."""
        parts = (*self.pumps, self.client, self.broker)
        return sum(part.kept for part in parts) + (self._waiting.size if self._waiting else 0)

    def short_of_memory(self, now: float) -> None:
        """Tell the reactor that a pump of this pair has stopped reading, because the memory for all
        pairs is full; see `Reactor.short_of_memory`."""
        self._reactor.short_of_memory(now)

    @property
    def touched(self) -> float:
        """Return when bytes last came from either peer."""
        return max(pump.heard for pump in self.pumps)

    def watch(self, now: float, expires: float) -> None:
        """Begin to check the peers. The pair ends when a peer is gone, or some time after the
        client's credential has expired without reauthentication. `expires`: when the credential
        expires, by the plane's clock."""
        self._prolong(expires, now)
        for pump in self.pumps:
            pump.heard = now
        self.check_peers(now)

    def _prolong(self, expires: float, now: float) -> None:
        ahead = min(ASK_AHEAD, (expires - now) / 2) if expires < math.inf else 0.0
        self._asks = expires - ahead
        self._expires = expires + self._reactor.settings.expired if expires > now else expires

    def _ask(self, now: float) -> None:
        """Have the client asked for reauthentication."""
        self._asks = math.inf
        try:
            effects = self.session.expiring(now)
        except PeerError as error:
            self.violated(Direction.TO_BROKER, error)
            return
        self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def check_peers(self, now: float) -> None:
        """End the pair if a peer is gone or the client's credential has expired; otherwise schedule
        the next check."""
        settings = self._reactor.settings
        if now >= self._asks:
            self._ask(now)
        if self.over:
            return
        patience = self.session.idle
        idle = self.touched + (settings.idle if patience is None else patience)
        if now >= self._expires:
            self.end(EndReason.CREDENTIAL_EXPIRED, detail="the credential has expired")
        elif now >= idle:
            self.end(EndReason.IDLE)
        elif (gone := self._find_gone(now)) is not None:
            self.end(gone)
        else:
            # A live peer is not gone before the first of these; a blocked one may be earlier.
            ends = [now + min(settings.silent, settings.stalled), idle, self._expires, self._asks]
            ends += [pump.blocked_since + settings.stalled for pump in self.pumps]
            if patience is None:
                ends += [pump.heard + settings.silent for pump in self.pumps if pump.listens]
            self._reactor.deadlines.add(min(end for end in ends if end > now), self._watch)

    def _find_gone(self, now: float) -> EndReason | None:
        """Return the reason if a peer is stalled, or if only one of the two is silent."""
        settings = self._reactor.settings
        for pump in self.pumps:
            if now >= pump.blocked_since + settings.stalled:
                return _STALLED[pump.sink.peer]
        if self.session.idle is not None:
            return None
        silent = [
            pump for pump in self.pumps if pump.listens and now >= pump.heard + settings.silent
        ]
        return _SILENT[silent[0].source.peer] if len(silent) == 1 else None

    # -- ends --------------------------------------------------------------------------------

    def closed_by(self, lane: Lane) -> None:
        """End the pair, because the peer of this lane closed its stream."""
        self.end(_CLOSED[lane.peer])

    def lost(self, lane: Lane, error: OSError) -> None:
        """End the pair, because the connection of this lane's peer failed."""
        self.end(_LOST[lane.peer], detail=error.strerror or str(error))

    def violated(self, direction: Direction, error: PeerError) -> None:
        """End the pair, because the peer that sends in this direction violated its protocol."""
        reason = error.reason if isinstance(error, ViolationError) else _VIOLATION[direction]
        self.end(reason, detail=str(error))

    def crash(self, error: Exception) -> None:
        """End the pair, because an exception has shown a bug in the gateway."""
        self._reactor.crash(self, error)

    def end(self, reason: EndReason, farewell: bytes = b"", detail: str = "") -> None:
        """End this pair. Bytes already received are still sent. `farewell`: the last frame for the
        client; empty: the frame that the session makes. `detail`: a text for logs."""
        if self.over:
            return
        self.over = True
        self._reactor.deadlines.cancel(self._watch)
        while (callback := self.laters) is not None:
            callback.leave(self)
            self._reactor.deadlines.cancel(callback)
        if self.session.stopwatch is not None:
            self.session.stopwatch.stop()
        whole = self.pumps[Direction.TO_CLIENT].scanner.owed == 0
        for pump in self.pumps:
            pump.close()
        if self._slicing is not None:
            self._slicing.close()
        if self._waiting is not None:
            self._waiting.clear()
            self._waiting = None
        farewell = self._close_session(reason, farewell, detail)
        self._reactor.part(self, reason, farewell if whole else b"", detail)

    def _close_session(self, reason: EndReason, farewell: bytes, detail: str) -> bytes:
        """Close the session and return its farewell. A bug there does not keep the lanes open."""
        try:
            try:
                return farewell or self.session.farewell(reason, detail)
            finally:
                self._reactor.dismiss(self)
        except Exception as error:
            self._reactor.hooks.crashed(self, error)
            return farewell


class Hooks(Protocol):
    """What the plane calls in the rest of the gateway, within a turn: the methods must return
    soon."""

    def start(self, pair: Pair, job: Job, then: AfterJob) -> None:
        """Begin a job for a pair. When the job is done, its result and `then` are given to
        `Reactor.resume`."""

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        """Record that a pair has ended, and why. `detail`: a text for logs."""

    def crashed(self, pair: Pair, error: Exception) -> None:
        """Record that a pair was ended by a bug in the gateway."""


class PairOwner(PlaneState, ABC):
    """The part of the reactor that pairs use."""

    def __init__(
        self,
        hooks: Hooks,
        settings: PlaneSettings | None,
        clock: Callable[[], float],
        rearm: Callable[[], None],
    ) -> None:
        super().__init__(settings, clock, rearm)
        self.hooks = hooks

    @abstractmethod
    def part(self, pair: Pair, reason: EndReason, farewell: bytes, detail: str) -> None:
        """Separate the two lanes of a pair that ends: each sends its pending bytes and is then
        closed. `farewell`: the last frame for the client."""

    @abstractmethod
    def dismiss(self, pair: Pair) -> None:
        """Close the session of a pair that has ended, at once or in steps, between which other
        pairs are served."""

    @abstractmethod
    def crash(self, pair: Pair, error: Exception) -> None:
        """End this pair, because an exception has shown a bug in the gateway."""

    @abstractmethod
    def put_off(self, served: Served, work: Work) -> None:
        """Keep a piece of work until other pairs were served. `served`: that of its connection."""

    @abstractmethod
    def short_of_memory(self, now: float) -> None:
        """End the pairs that keep the most bytes if memory stays full for a while. Called when a
        pump has stopped reading, because the memory for all pairs is full."""
