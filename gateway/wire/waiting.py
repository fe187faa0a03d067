"""What sessions have whose frames wait in their pumps until an account has allowance."""

from __future__ import annotations

import math
from typing import Final

from gateway.wire.account import Account
from gateway.wire.contract import Direction, Effects, Resume


class Postponing:
    """A `contract.Holding` that queues no frame: a frame that waits is postponed, and all behind
    it, and given to the session again when an account is granted allowance (`contract.Await`)."""

    given_up: Final = math.inf
    """No frame is queued that a client could give up."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """Return `start`: no frame is queued behind another."""
        return start

    def delivered(self, now: float) -> Effects | None:
        """Return the effects that give both postponed frames to the session again."""
        return (Resume(Direction.TO_BROKER), Resume(Direction.TO_CLIENT))

    def reset(self, account: Account) -> Effects | None:
        """Return None: no producer has to be reset."""
        return None
