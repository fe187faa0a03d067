"""Callbacks of a pair at set times. Each pair may keep several, so they are small objects in place
of closures and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from gateway.plane.deadlines import Cancellable
from gateway.wire.contract import Effects

T = TypeVar("T")


class CallbackOwner(Protocol):
    """The part of a pair that its callbacks use. `over`: the pair has ended. `laters`: the newest
    of the session's callbacks that are not due yet; the earlier callbacks are chained to it."""

    over: bool
    laters: SessionCallback | None

    def crash(self, error: Exception) -> None:
        """End the pair, because an exception has shown a bug in the gateway."""

    def go_on(self, then: Callable[[float], Effects], now: float) -> None:
        """Call the session's callback `then`, because its time has come, and carry out the effects
        that it returns."""


class Checked(Protocol):
    """The method of a pair that `PeerCheck` calls."""

    def check_peers(self, now: float) -> None:
        """End the pair if a peer is gone; otherwise schedule the next check of the peers."""


class PeerCheck(Cancellable[None]):
    """The timer that calls `Pair.check_peers`. Each pair keeps one timer until it ends, so the
    timer refers to the pair itself: a bound method would take 64 bytes more."""

    __slots__ = ("_pair",)

    def __init__(self, pair: Checked) -> None:
        super().__init__(_called)
        self._pair: Checked | None = pair

    def __call__(self, now: float) -> None:
        if self._pair is not None:
            self._pair.check_peers(now)

    def cancel(self) -> None:
        """See `Cancellable`."""
        super().cancel()
        self._pair = None


def _called(_now: float) -> None:
    """Stand for the callback of what has none of its own."""


class PairCallback(Cancellable[T]):
    """A callback that is no longer called once its pair has ended. An exception in the callback
    ends only this pair."""

    __slots__ = ("_pair",)

    def __init__(self, pair: CallbackOwner, callback: Callable[[float], T]) -> None:
        super().__init__(callback)
        self._pair: CallbackOwner | None = pair

    def __call__(self, now: float) -> None:
        pair, callback = self._pair, self._callback
        if pair is None or callback is None or pair.over:
            return
        try:
            self._call(pair, callback, now)
        except Exception as error:
            pair.crash(error)

    def cancel(self) -> None:
        """See `Cancellable`."""
        super().cancel()
        self._pair = None

    def _call(self, pair: CallbackOwner, callback: Callable[[float], T], now: float) -> None:
        callback(now)


class SessionCallback(PairCallback[Effects]):
    """A callback that the session asked for. It is called once, and the effects that it returns are
    carried out. The callbacks that a pair waits for form a chain: the pair cancels all of them at
    its end, and a callback that is due leaves the chain."""

    __slots__ = ("_earlier", "_later")

    def __init__(self, pair: CallbackOwner, then: Callable[[float], Effects]) -> None:
        super().__init__(pair, then)
        self._later: SessionCallback | None = None
        self._earlier = pair.laters
        if self._earlier is not None:
            self._earlier._later = self
        pair.laters = self

    def leave(self, pair: CallbackOwner) -> None:
        """Remove this callback from the chain of the pair's callbacks."""
        if self._earlier is not None:
            self._earlier._later = self._later
        if self._later is not None:
            self._later._earlier = self._earlier
        else:
            pair.laters = self._earlier
        self._earlier = self._later = None

    def _call(self, pair: CallbackOwner, callback: Callable[[float], Effects], now: float) -> None:
        self.leave(pair)
        pair.go_on(callback, now)
