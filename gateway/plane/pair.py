"""One client connection and its broker connection: carries out what their session decides."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Protocol, assert_never

from gateway.errors import PeerError
from gateway.plane.deadlines import Cancellable
from gateway.plane.pump import Pump
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
    Refuse,
    Replace,
    Session,
    Start,
    ViolationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.lane import Lane

_CLOSED = {Peer.CLIENT: EndReason.CLIENT_CLOSED, Peer.BROKER: EndReason.BROKER_CLOSED}
_LOST = {Peer.CLIENT: EndReason.CLIENT_LOST, Peer.BROKER: EndReason.BROKER_LOST}
DECISIONS_AT_ONCE = 64
"""Stop frames that are decided in a row, of whatever pairs, before frames that just pass have their
turn, if the turn's time is not over before. One costs 10 to 20 µs, so this is about a turn; a
chunk may hold 25,000, and those that a client makes costly take some milliseconds each."""

QUIET = 0.05
"""Seconds without a byte after which a pair that is left by everybody ends: what its client asked
for last, such as partitions or a schema, is answered."""

EMPTY = 0.5
"""Seconds after which it ends anyway: a client whose lookup another gateway answers would come back
on this connection."""

_SILENT = {Peer.CLIENT: EndReason.CLIENT_SILENT, Peer.BROKER: EndReason.BROKER_SILENT}
_STALLED = {Peer.CLIENT: EndReason.CLIENT_STALLED, Peer.BROKER: EndReason.BROKER_STALLED}
_VIOLATION = (EndReason.CLIENT_VIOLATION, EndReason.BROKER_VIOLATION)  # by direction


class Pair:
    """Two lanes, two pumps, one session. `owner` is whatever its maker knows it by."""

    __slots__ = (
        "_empty_since",
        "_expires",
        "_reactor",
        "_waiting",
        "_watch",
        "attends",
        "broker",
        "client",
        "over",
        "owner",
        "pumps",
        "session",
    )

    def __init__(
        self, reactor: PairOwner, client: Lane, broker: Lane, session: Session, owner: object
    ) -> None:
        self._reactor = reactor
        self.client = client
        self.broker = broker
        self.session = session
        self.owner = owner
        self.over = False
        self.attends = False  # the session is asked for more after what went to the client
        self._expires = math.inf
        self._empty_since = math.inf  # when nothing was left here any more, while the gateway stops
        self._watch = Cancellable(self._look)
        to_broker, to_client = session.scanners
        self.pumps = (
            Pump(self, Direction.TO_BROKER, (client, broker), to_broker, reactor),
            Pump(self, Direction.TO_CLIENT, (broker, client), to_client, reactor),
        )
        self._waiting: WaitingFrames | None = None

    # -- decisions ---------------------------------------------------------------------------

    def decide(self, direction: Direction, frame: bytes, now: float) -> Account | None:
        """Have the session decide a stop frame, and carry that out. Answers for whose allowance it
        waits, if it does."""
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
        """Whether others should have their turn before more stop frames are decided."""
        reactor = self._reactor
        reactor.decisions += 1
        return reactor.decisions >= DECISIONS_AT_ONCE or reactor.clock() > reactor.until

    def resume(self, then: AfterJob, result: bytes | Denial, now: float) -> None:
        """Go on with a job's result, unless the pair is over meanwhile. A broker is at fault where
        that raises `PeerError`."""
        if self.over:
            return
        try:
            effects = then(result, now)
        except PeerError as error:
            self.violated(Direction.TO_CLIENT, error)
            return
        self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def _go_on(self, then: Callable[[float], Effects], now: float) -> None:
        """Go on now that it is as late as the session asked for."""
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
            case Drop():
                pass
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
            case Start(job, then):
                self._reactor.hooks.start(self, job, then)
            case Later(until, go_on):
                self.later(until, partial(self._go_on, go_on))
            case End(reason, farewell, detail):
                self.end(reason, farewell, detail)
            case _:
                assert_never(effect)

    # -- holding, pausing --------------------------------------------------------------------

    def hold(self, account: Account, frames: bytes, now: float) -> None:
        """Whole frames wait for this account's allowance."""
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
        """Something went to the client, or allowance came: ask what else may go."""
        waiting = self._waiting
        if waiting is not None and waiting.is_refusing:
            waiting.answer(now)
        effects = self._holding.delivered(now)
        if effects is None:
            self.attends = waiting is not None and waiting.is_refusing
        elif not self.over:
            self._carry_out(effects, self.pumps[Direction.TO_BROKER], b"", now)

    def reset(self, account: Account, now: float) -> bool:
        """One step of having the client open a producer again; whether there are more."""
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

    def later(self, when: float, callback: Callable[[float], None]) -> Cancellable:
        """Call back at a time, unless the pair is over by then, or the answer is cancelled. For
        seconds: until that time the pair is kept."""

        def still(now: float) -> None:
            if self.over:
                return
            try:
                callback(now)
            except Exception as error:
                self.crash(error)

        cancellable = Cancellable(still)
        self._reactor.deadlines.add(when, cancellable)
        return cancellable

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call back when what is done now is done, and others had their turn."""
        self.later(self.clock(), callback)

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, now: float) -> None:
        """The gateway stops: one more step of moving the client elsewhere, or the end."""
        effects = self.session.leave(now)
        if effects is not None:
            self._empty_since = math.inf
            self._carry_out(effects, self.pumps[Direction.TO_CLIENT], b"", now)
            return
        self._empty_since = min(self._empty_since, now)
        if now >= min(self.touched + QUIET, self._empty_since + EMPTY):
            self.end(EndReason.DRAINED)

    def revoke(self, account: Account, denial: Denial, now: float) -> None:
        """End what an account was admitted to."""
        effects = self.session.revoke(account, denial, now)
        self._carry_out(effects, self.pumps[Direction.TO_CLIENT], b"", now)

    # -- watching ----------------------------------------------------------------------------

    def clock(self) -> float:
        """The plane's time, where no event brought it."""
        return self._reactor.clock()

    @property
    def kept(self) -> int:
        """Bytes that the plane's memory holds for this pair, without those that are collected."""
        parts = (*self.pumps, self.client, self.broker)
        return sum(part.kept for part in parts) + (self._waiting.size if self._waiting else 0)

    def short_of_memory(self, now: float) -> None:
        """A pump of this pair does not read because of it."""
        self._reactor.short_of_memory(now)

    @property
    def touched(self) -> float:
        """When either peer was heard last."""
        return max(pump.heard for pump in self.pumps)

    def watch(self, now: float, expires: float) -> None:
        """End the pair when a peer is not there any more, or at `expires`."""
        self._expires = expires
        for pump in self.pumps:
            pump.heard = now
        self._look(now)

    def _look(self, now: float) -> None:
        settings = self._reactor.settings
        idle = self.touched + settings.idle
        if now >= self._expires:
            self.end(EndReason.CREDENTIAL_EXPIRED, detail="the credential has expired")
        elif now >= idle:
            self.end(EndReason.IDLE)
        elif (gone := self._who_is_gone(now)) is not None:
            self.end(gone)
        else:
            # Whoever is there now is not gone before this; who is blocked may be sooner.
            ends = [now + min(settings.silent, settings.stalled), idle, self._expires]
            ends += [pump.blocked_since + settings.stalled for pump in self.pumps]
            ends += [pump.heard + settings.silent for pump in self.pumps if pump.listens]
            self._reactor.deadlines.add(min(end for end in ends if end > now), self._watch)

    def _who_is_gone(self, now: float) -> EndReason | None:
        """A peer that takes nothing, or one that is silent while the other one speaks."""
        settings = self._reactor.settings
        for pump in self.pumps:
            if now >= pump.blocked_since + settings.stalled:
                return _STALLED[pump.sink.peer]
        silent = [it for it in self.pumps if it.listens and now >= it.heard + settings.silent]
        return _SILENT[silent[0].source.peer] if len(silent) == 1 else None

    # -- ends --------------------------------------------------------------------------------

    def closed_by(self, lane: Lane) -> None:
        """A peer has said all that it will."""
        self.end(_CLOSED[lane.peer])

    def lost(self, lane: Lane, error: OSError) -> None:
        """A peer is gone without a word."""
        self.end(_LOST[lane.peer], detail=error.strerror or str(error))

    def violated(self, direction: Direction, error: PeerError) -> None:
        """A peer sent what its protocol does not allow."""
        reason = error.reason if isinstance(error, ViolationError) else _VIOLATION[direction]
        self.end(reason, detail=str(error))

    def crash(self, error: Exception) -> None:
        """A bug of ours ends this pair."""
        self._reactor.crash(self, error)

    def end(self, reason: EndReason, farewell: bytes = b"", detail: str = "") -> None:
        """End this pair, and it alone. What was already received is still delivered."""
        if self.over:
            return
        self.over = True
        self._reactor.deadlines.cancel(self._watch)
        whole = self.pumps[Direction.TO_CLIENT].scanner.owed == 0
        for pump in self.pumps:
            pump.close()
        if self._waiting is not None:
            self._waiting.clear()
            self._waiting = None
        farewell = self._take_leave(reason, farewell, detail)
        self._reactor.part(self, reason, farewell if whole else b"", detail)

    def _take_leave(self, reason: EndReason, farewell: bytes, detail: str) -> bytes:
        """Of the session. Its bugs are no reason to keep the lanes."""
        try:
            try:
                return farewell or self.session.farewell(reason, detail)
            finally:
                self._reactor.dismiss(self)
        except Exception as error:
            self._reactor.hooks.crashed(self, error)
            return farewell


class Hooks(Protocol):
    """Whom the plane tells; called within a turn, so what takes time is only begun there."""

    def start(self, pair: Pair, job: Job, then: AfterJob) -> None:
        """Have a job done and hand its result to `Reactor.resume`."""

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        """A pair is over."""

    def crashed(self, pair: Pair, error: Exception) -> None:
        """Our own bug ended a pair."""


class PairOwner(PlaneState, ABC):
    """The reactor as its pairs see it."""

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
        """A pair ends: its lanes deliver what they must, then close."""

    @abstractmethod
    def dismiss(self, pair: Pair) -> None:
        """Close the session of a pair that is over, in as many steps as that takes."""

    @abstractmethod
    def crash(self, pair: Pair, error: Exception) -> None:
        """Our own bug ends a pair, and it alone."""

    @abstractmethod
    def short_of_memory(self, now: float) -> None:
        """A pump does not read because memory is full."""
