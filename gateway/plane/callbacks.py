"""Callbacks that a pair gets at set times. Each pair may keep some, so they are small objects in
place of closures and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from gateway.plane.deadlines import Cancellable
from gateway.wire.contract import Effects

T = TypeVar("T")


class CallbackOwner(Protocol):
    """The part of a pair that its callbacks use. `laters`: the end of the chain of callbacks that
    the session has asked for and not got."""

    over: bool
    laters: SessionCallback | None

    def crash(self, error: Exception) -> None:
        """End the pair because of a bug in the gateway."""

    def go_on(self, then: Callable[[float], Effects], now: float) -> None:
        """Have the session go on at the time that it asked for."""


class Checked(Protocol):
    """The method of a pair that `PeerCheck` calls."""

    def check_peers(self, now: float) -> None:
        """End the pair if a peer is gone, or look again later."""


class PeerCheck(Cancellable[None]):
    """Has a pair look at its peers, as often as it wants. Each pair keeps one for all its life, so
    it does without a bound method, which takes 64 bytes."""

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
    """Calls back unless the pair has ended. A bug in what is called ends this pair alone."""

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
    """Calls the session once, and carries out its effects. The callbacks that a pair still awaits
    form a chain: the pair cancels all of them at its end, and one that is due takes itself out."""

    __slots__ = ("_earlier", "_later")

    def __init__(self, pair: CallbackOwner, then: Callable[[float], Effects]) -> None:
        super().__init__(pair, then)
        self._later: SessionCallback | None = None
        self._earlier = pair.laters
        if self._earlier is not None:
            self._earlier._later = self
        pair.laters = self

    def leave(self, pair: CallbackOwner) -> None:
        """Leave the pair's chain."""
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
