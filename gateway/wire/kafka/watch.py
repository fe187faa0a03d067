"""Says when frames that are like the last one may not pass any more without a look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.compiled import COMPILED


class _Watch:
    """`edition` grows with each change of one connection by which such a frame may be decided
    otherwise: of its open accounts, of its substitutes, and of who has used up an allowance.
    Compiled walkers compare it; the scanners look at the things themselves."""

    __slots__ = ("edition",)

    def __init__(self) -> None:
        self.edition = 0


if COMPILED and not TYPE_CHECKING:
    from gateway.compiled.kafka import Watch
else:
    Watch = _Watch
