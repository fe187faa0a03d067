"""Traces each frame of a pair and the decision about it, described by the protocol's entry.

Only traced pairs pay for this, because wrappers do it: a traced scanner walks the bytes a second
time that the inner scanner cleared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    Sliced,
    Start,
    Trace,
)
from gateway.wire.slices import Slices
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller

LONGEST = 64 * 1024
"""Bytes of a passing frame that are read to describe it: the description needs only the first."""


class TracedScanner:
    """A scanner around another scanner; it writes the frames that are forwarded to the trace."""

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
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self._inner.skips

    @property
    def is_slow(self) -> bool:
        """See `contract.Scanner`."""
        return self._inner.is_slow

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
            description = self._entry.describe(self._direction, frame[:length])
            self._trace(self._direction, description, length, "pass")
            pos += length
        return cleared


class TracedSession:
    """A session around another session; it writes the decisions about stop frames to the trace."""

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
    def stopwatch(self) -> Stopwatch | None:
        """See `contract.Session`."""
        return self._inner.stopwatch

    @property
    def idle(self) -> float | None:
        """See `contract.Session`."""
        return self._inner.idle

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
        with self._violations(direction, frame):
            effects = self._inner.decide(direction, frame, now)
        if effects and isinstance(effects[0], Sliced):
            return (Sliced(self._slices(direction, frame, effects[0].steps)),)
        return self._decided(direction, frame, effects)

    def _slices(
        self, direction: Direction, frame: bytes, steps: Slices[Effects]
    ) -> Slices[Effects]:
        with self._violations(direction, frame):
            effects = yield from steps
        return self._decided(direction, frame, effects)

    def _decided(self, direction: Direction, frame: bytes, effects: Effects) -> Effects:
        self._trace(direction, self._describe(direction, frame), len(frame), decision(effects))
        return self._wrap(effects)

    @contextmanager
    def _violations(self, direction: Direction, frame: bytes) -> Iterator[None]:
        """Write a frame to the trace that violates the protocol."""
        try:
            yield
        except PeerError:
            self._trace(direction, self._describe(direction, frame), len(frame), "violation")
            raise

    def _wrap(self, effects: Effects) -> Effects:
        """Return the same effects; those with a `then` trace what it decides."""
        return tuple(map(self._wrap_one, effects))

    def _wrap_one(self, effect: Effect) -> Effect:
        if isinstance(effect, Start):
            return replace(effect, then=partial(self._resume, effect.then))
        if isinstance(effect, Later):
            then = effect.then
            return replace(effect, then=lambda now: self._resume(lambda _, at: then(at), b"", now))
        return effect

    def _resume(self, then: AfterJob, result: bytes | Denial, now: float) -> Effects:
        effects = then(result, now)
        size = 0 if isinstance(result, Denial) else len(result)
        text = f"resume: {decision(effects)}"
        self._trace(Direction.TO_CLIENT, self._describe_result(result), size, text)
        return self._wrap(effects)

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
        """See `contract.Holding`. Return `start`, so that each frame is decided and traced by
        itself."""
        return start

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.delivered(now)
        return None if effects is None else self._wrap(effects)

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.reset(account)
        return None if effects is None else self._wrap(effects)

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`."""
        return self._wrap(self._inner.revoke(account, denial, now))

    @property
    def moves_at(self) -> float | None:
        """See `contract.Session`."""
        return self._inner.moves_at

    @property
    def may_move(self) -> bool:
        """See `contract.Session`."""
        return self._inner.may_move

    @property
    def is_known(self) -> bool:
        """See `contract.Session`."""
        return self._inner.is_known

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        return self._wrap(self._inner.opened(now))

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`."""
        return self._wrap(self._inner.expiring(now))

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        effects = self._inner.leave(now)
        return None if effects is None else self._wrap(effects)

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        return self._inner.farewell(reason, detail)

    def close(self) -> bool:
        """See `contract.Session`."""
        return self._inner.close()

    def _describe_result(self, result: bytes | Denial) -> str:
        """Return a job's result in words; empty bytes stand for a `Later`."""
        if isinstance(result, Denial):
            return result.text or result.refusal.value
        return self._describe(Direction.TO_CLIENT, result) if result else "the delay is over"


def decision(effects: Effects) -> str:
    """Return the names of effects as one text, such as `drop + inject`."""
    return " + ".join(type(effect).__name__.lower() for effect in effects)
