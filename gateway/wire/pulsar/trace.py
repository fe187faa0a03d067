"""Trace a connection frame by frame, with secrets masked.

Only traced pairs pay for it: their scanners and session are wrapped, and passing frames are walked
a second time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from google.protobuf.message import DecodeError

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import (
    AfterJob,
    Denial,
    Direction,
    Effect,
    Effects,
    EndReason,
    Holding,
    Later,
    Scanner,
    Session,
    Start,
    Trace,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import HEAD, HEADER, kind_name
from gateway.wire.subject import Caller

LONGEST = 600
"""Characters of a frame's description; schemas and topic lists are cut."""

_MASK = b"***"


def describe(frame: bytes | bytearray | memoryview) -> str:
    """Return a frame's command by name, with its fields. `frame` may be cut."""
    if len(frame) < HEADER:
        return "cut"
    _, size = HEAD.unpack_from(frame)
    name = kind_name(frame[9])
    if len(frame) < 8 + size:
        return name
    try:
        command = BaseCommand.FromString(bytes(frame[8 : 8 + size]))
    except DecodeError:
        return f"{name} (not decodable)"
    return f"{name} {_fields(command)}".strip()[:LONGEST]


def _fields(command: BaseCommand) -> str:
    _mask(command)
    command.ClearField("type")
    command.DiscardUnknownFields()  # they could hold secrets
    # Imported only for traces: it would take 20 ms at the start of every process.
    from google.protobuf.text_format import MessageToString

    for _, message in command.ListFields():
        return MessageToString(message, as_one_line=True)
    return ""


def _mask(command: BaseCommand) -> None:
    """Mask credentials, and the challenges and responses that prove them."""
    if command.connect.auth_data:
        command.connect.auth_data = _MASK
    if command.connect.original_auth_data:
        command.connect.original_auth_data = _MASK.decode()
    for exchanged in (command.authResponse.response, command.authChallenge.challenge):
        if exchanged.auth_data:
            exchanged.auth_data = _MASK
    for request in (command.lookupTopic, command.partitionMetadata):
        if request.original_auth_data:
            request.original_auth_data = _MASK.decode()


class TracedScanner:
    """A scanner that traces passing frames."""

    def __init__(self, inner: Scanner, direction: Direction, trace: Trace) -> None:
        self._inner = inner
        self._direction = direction
        self._trace = trace

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
            total, size = HEAD.unpack_from(chunk, pos)
            here = min(pos + 8 + size, cleared)
            self._trace(self._direction, describe(chunk[pos:here]), total + 4, "pass")
            pos += total + 4
        return cleared


class TracedSession:
    """A session that traces its decisions."""

    def __init__(self, inner: Session, trace: Trace) -> None:
        self._inner = inner
        self._holding = inner.holding
        self._trace = trace
        to_broker, to_client = inner.scanners
        self._scanners = (
            TracedScanner(to_broker, Direction.TO_BROKER, trace),
            TracedScanner(to_client, Direction.TO_CLIENT, trace),
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
            self._trace(direction, describe(frame), len(frame), "violation")
            raise
        self._trace(direction, describe(frame), len(frame), decision(effects))
        return self._traced(effects)

    def _traced(self, effects: Effects) -> Effects:
        """Return the effects, changed to trace the decisions of their `then` functions."""
        return tuple(map(self._traced_effect, effects))

    def _traced_effect(self, effect: Effect) -> Effect:
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
        self._trace(Direction.TO_CLIENT, _outcome(result), size, told)
        return self._traced(effects)

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
        """See `contract.Holding`. No frame follows: each is decided and traced by itself."""
        return start

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.delivered(now)
        return None if effects is None else self._traced(effects)

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`."""
        assert self._holding is not None
        effects = self._holding.reset(account)
        return None if effects is None else self._traced(effects)

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`."""
        return self._traced(self._inner.revoke(account, denial, now))

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        effects = self._inner.leave(now)
        return None if effects is None else self._traced(effects)

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        return self._inner.farewell(reason, detail)

    def close(self) -> bool:
        """See `contract.Session`."""
        return self._inner.close()


def _outcome(result: bytes | Denial) -> str:
    """Describe the result of a job; it is empty after a `Later`."""
    if isinstance(result, Denial):
        return result.text or result.refusal.value
    return describe(result) if result else "its time has come"


def decision(effects: Effects) -> str:
    """Return the names of effects."""
    return " + ".join(type(effect).__name__.lower() for effect in effects)
