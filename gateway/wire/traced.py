"""What a traced connection says, frame by frame, in the words of its protocol.

Only traced pairs pay: their scanners and session are wrapped. What the wrapped scanner lets pass is
walked a second time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import (
    AfterJob,
    Denial,
    Direction,
    Effect,
    Effects,
    EndReason,
    Entry,
    Holding,
    Later,
    Scanner,
    Session,
    Start,
    Trace,
)
from gateway.wire.subject import Caller

LONGEST = 64 * 1024
"""Bytes of a passing frame that are looked at. What is said of it is in its first ones."""


class TracedScanner:
    """A scanner that traces passing frames."""

    def __init__(self, inner: Scanner, direction: Direction, trace: Trace, entry: Entry) -> None:
        self._inner = inner
        self._direction = direction
        self._trace = trace
        self._entry = entry

    @property
    def owed(self) -> int:
        """See `contract.Scanner`."""
        return self._inner.owed

    @property
    def stop(self) -> int:
        """See `contract.Scanner`."""
        return self._inner.stop

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        pos = start + self._inner.owed
        cleared = self._inner.scan(chunk, start, end)
        while pos < cleared:
            frame = bytes(chunk[pos : min(pos + LONGEST, cleared)])
            length = self._entry.frame_length(frame)
            told = self._entry.describe(frame[:length])
            self._trace(self._direction, told, length, "pass")
            pos += length
        return cleared


class TracedSession:
    """A session that traces its decisions."""

    def __init__(self, inner: Session, trace: Trace, entry: Entry) -> None:
        self._inner = inner
        self._describe = entry.describe
        self._holding = inner.holding
        self._trace = trace
        to_broker, to_client = inner.scanners
        self._scanners = (
            TracedScanner(to_broker, Direction.TO_BROKER, trace, entry),
            TracedScanner(to_client, Direction.TO_CLIENT, trace, entry),
        )

    @property
    def caller(self) -> Caller:
        """See `contract.Session`."""
        return self._inner.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """See `contract.Session`."""
        return self._scanners

    @property
    def collected_bound(self) -> int:
        """See `contract.Session`."""
        return self._inner.collected_bound

    @property
    def expires_at(self) -> float | None:
        """See `contract.Session`."""
        return self._inner.expires_at

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        try:
            effects = self._inner.decide(direction, frame, now)
        except PeerError:
            self._trace(direction, self._describe(frame), len(frame), "violation")
            raise
        self._trace(direction, self._describe(frame), len(frame), decision(effects))
        return self._told_later(effects)

    def _told_later(self, effects: Effects) -> Effects:
        """The same effects, which tell what is decided when they go on."""
        return tuple(map(self._telling, effects))

    def _telling(self, effect: Effect) -> Effect:
        if isinstance(effect, Start):
            return replace(effect, then=partial(self._go_on, effect.then))
        if isinstance(effect, Later):
            then = effect.then
            return replace(effect, then=lambda now: self._go_on(lambda _, at: then(at), b"", now))
        return effect

    def _go_on(self, then: AfterJob, result: bytes | Denial, now: float) -> Effects:
        effects = then(result, now)
        size = 0 if isinstance(result, Denial) else len(result)
        told = f"resume: {decision(effects)}"
        self._trace(Direction.TO_CLIENT, self._outcome(result), size, told)
        return self._told_later(effects)

    @property
    def holding(self) -> Holding | None:
        """See `contract.Session`."""
        return None if self._holding is None else self

    @property
    def given_up(self) -> float:
        """See `contract.Holding`."""
        assert self._holding is not None
        return self._holding.given_up

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`. Each frame is decided by itself, and told."""
        return start

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.delivered(now)
        return None if effects is None else self._told_later(effects)

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.reset(account)
        return None if effects is None else self._told_later(effects)

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`."""
        return self._told_later(self._inner.revoke(account, denial, now))

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        effects = self._inner.leave(now)
        return None if effects is None else self._told_later(effects)

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        return self._inner.farewell(reason, detail)

    def close(self) -> bool:
        """See `contract.Session`."""
        return self._inner.close()

    def _outcome(self, result: bytes | Denial) -> str:
        """Of a job; or nothing, where it was only time that had to pass."""
        if isinstance(result, Denial):
            return result.text or result.refusal.value
        return self._describe(result) if result else "its time has come"


def decision(effects: Effects) -> str:
    """Effects by name."""
    return " + ".join(type(effect).__name__.lower() for effect in effects)
