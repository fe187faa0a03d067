"""The decisions of one pair that are taken in slices; see `contract.Sliced`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from gateway.errors import PeerError
from gateway.wire.contract import Direction, Effects
from gateway.wire.slices import Slices


class SlicedPump(Protocol):
    """The part of a pump that a sliced decision uses."""

    @property
    def direction(self) -> Direction: ...

    def detain(self) -> None:
        """Keep the stop frame, and all bytes behind it, until `settle` is called."""


class SlicingPair(Protocol):
    """The part of a pair that its sliced decisions use."""

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call `callback` after the reactor has served other pairs."""

    def settle(self, direction: Direction, length: int, effects: Effects, now: float) -> None:
        """Carry out the decision about the stop frame of `length` bytes that was kept."""

    def violated(self, direction: Direction, error: PeerError) -> None:
        """End the pair, because the peer that sends in this direction violated its protocol."""


class Slicing:
    """The decisions under way, at most one for each direction."""

    __slots__ = ("_pair", "_under_way")

    def __init__(self, pair: SlicingPair) -> None:
        self._pair = pair
        self._under_way: dict[Direction, Slices[Effects]] = {}

    def begin(self, pump: SlicedPump, length: int, steps: Slices[Effects]) -> None:
        """Take the decision about a stop frame of `length` bytes in slices, of which the first
        comes after other pairs were served."""
        pump.detain()
        self._under_way[pump.direction] = steps
        self._pair.soon(partial(self._slice, pump.direction, length))

    def _slice(self, direction: Direction, length: int, now: float) -> None:
        """Take the next slice; after the last one, have the pair carry out the decision."""
        try:
            next(self._under_way[direction])
        except StopIteration as end:
            del self._under_way[direction]
            self._pair.settle(direction, length, end.value, now)
        except PeerError as error:
            self._pair.violated(direction, error)
        else:
            self._pair.soon(partial(self._slice, direction, length))

    def close(self) -> None:
        """Close all generators, because the pair has ended."""
        for steps in self._under_way.values():
            steps.close()
        self._under_way.clear()
