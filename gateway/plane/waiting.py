"""One pair's frames that wait for allowance: grants let them pass, in their order.

A producer whose frames waited for too long is *reset*: its client opens it again and sends again
what has no receipt. Clients give a SEND 30 s and would otherwise give up what we still keep; those
ghosts would then eat the allowance of what they send later.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway.plane.hold import HeldFrames
from gateway.wire.contract import Account, Direction

if TYPE_CHECKING:
    from gateway.plane.pair import Pair
    from gateway.plane.reactor import Reactor

RESET_STEP = 0.02
"""Seconds between two looks whether a producer that is reset has all its receipts."""


class Waiting:
    """Made for a pair when its first frame waits."""

    __slots__ = ("_aging", "_expecting", "_frames", "_pair", "_reactor")

    def __init__(self, pair: Pair, reactor: Reactor) -> None:
        self._pair = pair
        self._reactor = reactor
        self._frames = HeldFrames(reactor.memory)
        self._expecting: set[Account] = set()
        self._aging: set[Account] = set()  # whose oldest frame is looked at when it is too old

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._frames.size

    def put(self, account: Account, frames: bytes, now: float) -> None:
        """Have whole frames wait."""
        self._reactor.holding[account] = self._pair
        self._frames.put(account, frames, now)
        self._watch(account)

    def expect(self, account: Account) -> None:
        """Its next grant is told to the session."""
        self._reactor.holding[account] = self._pair
        self._expecting.add(account)

    def discard(self, account: Account) -> None:
        """Throw away what waits, and expect nothing."""
        self._frames.discard(account)
        self._expecting.discard(account)
        self._reactor.holding.pop(account, None)

    def clear(self) -> None:
        """The pair is over."""
        for account in (*self._frames.clear(), *self._expecting):
            self._reactor.holding.pop(account, None)

    def grant(self, account: Account, messages: int, size: int, now: float) -> None:
        """Let pass what may; to be called at a frame border towards the broker."""
        account.grant(messages, size)
        self._release(account, now)
        if self._frames.is_spent(account):
            self._begin_reset(account, now)
        elif account not in self._frames:
            self._reactor.holding.pop(account, None)
            if account in self._expecting:
                self._expecting.discard(account)
                self._pair.attend(now)

    def _release(self, account: Account, now: float) -> None:
        pump = self._pair.pumps[Direction.TO_BROKER]
        while (frames := self._frames.first(account)) is not None:
            passed = pump.release(frames)
            if self._pair.over:
                return
            # Whatever else it halts at is decided: it came behind what has passed.
            stop = 0 if account.held else pump.scanner.stop
            self._frames.passed(account, passed + stop)
            if stop:
                self._pair.decide(Direction.TO_BROKER, frames[passed : passed + stop], now)

    # -- too old -----------------------------------------------------------------------------

    def _watch(self, account: Account) -> None:
        """Have a look when the oldest frame will be too old; once for each account at a time."""
        since = self._frames.since(account)
        if since is not None and account not in self._aging:
            self._aging.add(account)
            when = since + self._reactor.settings.held_for
            self._pair.later(when, partial(self._look, account))

    def _look(self, account: Account, now: float) -> None:
        self._aging.discard(account)
        since = self._frames.since(account)
        if since is not None and now >= since + self._reactor.settings.held_for:
            self._begin_reset(account, now)
        else:
            self._watch(account)

    # -- resets ------------------------------------------------------------------------------

    def _begin_reset(self, account: Account, now: float) -> None:
        self._reactor.resets += 1
        self._reset(account, now)

    def _reset(self, account: Account, now: float) -> None:
        """One step of it after the other, until the session knows no more."""
        if self._pair.reset(account, now):
            self._pair.later(now + RESET_STEP, partial(self._reset, account))
