"""The state that all pairs of a process share: settings, memory, deadlines, clock and turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.plane.deadlines import Deadlines
from gateway.plane.memory import Memory
from gateway.wire.account import Account
from gateway.wire.stopwatch import Sampler


@dataclass(frozen=True, slots=True)
class PlaneSettings:
    """Settings of the data plane; sizes are in bytes, times in seconds.

    `buffer`: the most that one receive takes. HAProxy's 16 KiB cost 2.5 times the CPU of 512 KiB.
    `turn`: the longest time for which the plane keeps the rest of the process waiting.
    `idle`: a pair without a byte in either direction for this long ends; clients and brokers ping
    each other every 30 s, so silence of four such intervals means that both are gone.
    `silent`: how long one peer may be silent while the other one sends. Go is the most patient of
    the clients: it gives a silent broker 90 s.
    `stalled`: how long a peer may take for pending bytes, one chunk at the most. Most clients, and
    brokers, give the other side 60 s to send anything.
    `frame`: how long a stop frame may take to become whole. Brokers give a client 30 to 60 s for a
    frame, because they close a connection that answers no ping: slower frames fail directly too.
    `memory`: bound on the bytes that wait for peers and allowance, see `Memory`.
    `collected`, `opening`: the shares of memory for incomplete frames of open connections and of
    connections being opened. Not part of `memory`; None: a quarter and an eighth as much.
    `held`: the part of `memory` that may wait for allowance; None: a quarter. Far less than all, so
    that a client above its limit stops nobody else; enough for its thousand messages of 32 KB.
    `held_for`: how long a frame may wait for allowance. Clients wait 30 s for a receipt.
    `linger`: how long a peer may take for its last bytes when a pair ends.
    `expired`: how long a pair may live on after the client's credential has expired.
    """

    buffer: int = 512 * 1024
    turn: float = 0.002
    idle: float = 120.0
    silent: float = 90.0
    stalled: float = 60.0
    frame: float = 60.0
    memory: int = 256 * 1024 * 1024
    collected: int | None = None
    opening: int | None = None
    held: int | None = None
    held_for: float = 20.0
    linger: float = 1.0
    expired: float = 10.0


class Grantee(Protocol):
    """The waiting frames of one pair, to which grants of allowance are given."""

    def grant(self, account: Account, messages: int, size: int, now: float) -> None:
        """Add `messages` and `size` bytes to an account's allowance, and send its queued frames
        before any later frame. Raises nothing."""


class PlaneState:
    """The part of a reactor that pairs, pumps and lanes use. `rearm`: see `Deadlines`.

    `decisions`: stop frames decided in a row, in this turn or by this deadline. `until`: when this
    turn ends. `due`: until when this turn may wait for events. `gave_work`: whether this turn has
    started a job, which begins only after the turn. `resets`: number of resets of producers whose
    frames waited too long. `granted`: the receiver of each waiting account's next grant. `sampler`:
    draws the chunks that are timed.
    """

    def __init__(
        self,
        settings: PlaneSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        rearm: Callable[[], None] = lambda: None,
    ) -> None:
        bounds = self.settings = settings or PlaneSettings()
        self.memory = Memory(
            bounds.buffer, bounds.memory, bounds.held, bounds.collected, bounds.opening
        )
        self.deadlines = Deadlines(rearm)
        self.clock = clock
        self.decisions = 0
        self.until = self.due = math.inf
        self.gave_work = False
        self.resets = 0
        self.granted: dict[Account, Grantee] = {}
        self.sampler = Sampler()
