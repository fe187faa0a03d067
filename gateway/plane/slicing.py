"""The decisions of one pair that are taken in slices; see `contract.Sliced`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from typing import Protocol

from gateway.errors import PeerError
from gateway.wire.contract import Direction, Effects

Steps = Generator[None, None, Effects]


class SlicedPump(Protocol):
    """The part of a pump that a sliced decision uses."""

    @property
    def direction(self) -> Direction: ...

    def postpone(self, until: float) -> None:
        """Keep the stop frame, and all bytes behind it, until `take_up` is called."""

    def take_up(self, now: float) -> None:
        """Have the stop frame decided again."""


class SlicingPair(Protocol):
    """The part of a pair that its sliced decisions use."""

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call `callback` after the reactor has served other pairs."""

    def violated(self, direction: Direction, error: PeerError) -> None:
        """End the pair, because the peer that sends in this direction violated its protocol."""


class Slicing:
    """The decisions under way, at most one for each direction."""

    __slots__ = ("_decided", "_pair", "_under_way")

    def __init__(self, pair: SlicingPair) -> None:
        self._pair = pair
        self._under_way: dict[Direction, Steps] = {}
        self._decided: dict[Direction, Effects] = {}

    def is_under_way(self, direction: Direction) -> bool:
        """Return whether a stop frame of this direction is being decided."""
        return direction in self._under_way

    def outcome(self, direction: Direction) -> Effects | None:
        """Return the effects for the stop frame that is offered again, once; None if the session
        has to decide."""
        return self._decided.pop(direction, None)

    def begin(self, pump: SlicedPump, steps: Steps) -> None:
        """Take a decision in slices, of which the first comes after other pairs were served."""
        pump.postpone(math.inf)
        self._under_way[pump.direction] = steps
        self._pair.soon(partial(self._slice, pump))

    def _slice(self, pump: SlicedPump, now: float) -> None:
        """Take the next slice; after the last one, have the pump offer the stop frame again."""
        try:
            next(self._under_way[pump.direction])
        except StopIteration as end:
            del self._under_way[pump.direction]
            self._decided[pump.direction] = end.value
            pump.take_up(now)
        except PeerError as error:
            self._pair.violated(pump.direction, error)
        else:
            self._pair.soon(partial(self._slice, pump))

    def close(self) -> None:
        """Close all generators, because the pair has ended."""
        for steps in self._under_way.values():
            steps.close()
        self._under_way.clear()
        self._decided.clear()
