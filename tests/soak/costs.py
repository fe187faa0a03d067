"""The cost of the costliest frame of each command: CPU time, and memory during its decision.

Scanner, session and services are the real ones; there are no sockets. CPU time is that of the
process, the best of several runs, beyond the cost of relaying the frame: walking, copying,
decoding, deciding and encoding it. Memory is the growth of a process that does so for the first
time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import Pool
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.contract import Dialled, Direction, Effects, End, EndReason, Refused
from gateway.wire.pulsar.context import ListenerContext
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.frames import KNOWN, Kind, kind_name
from gateway.wire.pulsar.opening import open_pair
from gateway.wire.pulsar.session import PulsarSession
from tests.playbooks import frames
from tests.playbooks.services import ORIGIN
from tests.soak import report
from tests.soak.largest import KINDS, Costly, costly_frames, directions
from tests.soak.listeners import (
    BROKER,
    WAYS,
    Way,
    authenticating,
    listener_of,
    session_of,
    token,
    tokens,
)
from tests.soak.runner import CHUNK, claim
from tests.support.effects import at_once
from tests.support.memory import peak

BOUND = 5.0
"""Milliseconds of CPU time for one frame."""

RUNS = 5
"""Runs of the costliest frames; the best one counts."""

REPEATED = 10
"""Frames of a command that are measured again: the slowest ones of the first run."""


class Cost(NamedTuple):
    """The cost of one frame. `milliseconds`: of CPU time."""

    milliseconds: float
    frame: Costly
    way: Way


@dataclass(frozen=True, slots=True)
class Row:
    """The costs of one command. `largest`: bytes of the largest frame that was decided or passed.
    `memory`: bytes by which the process grew at most."""

    kind: int
    direction: Direction
    largest: int
    cost: Cost
    memory: int


def run(kinds: Iterable[int] = KINDS) -> list[Row]:
    """Measure all commands, for all ways of serving clients."""
    listeners = [(way, listener_of(way)) for way in WAYS]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with context.Pool(1, maxtasksperchild=1) as fresh:
        return [
            _row(kind, direction, listeners, fresh)
            for kind in kinds
            for direction in directions(kind)
        ]


def _row(
    kind: int, direction: Direction, listeners: Sequence[tuple[Way, ListenerContext]], fresh: Pool
) -> Row:
    """Measure one command. `fresh`: processes that have decided nothing yet."""
    frames = [*costly_frames(kind, direction), *_credentials(kind)]
    cost, largest = _costliest(kind, direction, frames, listeners)
    asked = [(kind, direction, it.frame) for it in frames if len(it.frame) > CHECKED_FROM // 2]
    return Row(kind, direction, largest, cost, max(fresh.imap(_memory, asked)))


def table(rows: list[Row]) -> str:
    """Return the table. Claims that no frame costs more than the bound."""
    head = ("command", "to", "largest frame", "what is costly in it", "CPU", "memory")
    text = report.table(head, map(_cells, rows))
    above = [_cells(row) for row in rows if row.cost.milliseconds > BOUND]
    claim(not above, f"frames that cost more than {BOUND} ms, {above}:\n{text}")
    return text


def _cells(row: Row) -> tuple[str, ...]:
    to = "broker" if row.direction is Direction.TO_BROKER else "client"
    what = row.cost.frame.what or "its bytes"
    cpu = f"{row.cost.milliseconds:.1f} ms"
    name = f"`{kind_name(row.kind)}`" if row.kind in KNOWN else "an unknown one"
    memory = report.mib(row.memory)
    return (name, to, f"{row.largest:,}", f"{what} ({row.cost.way.name})", cpu, memory)


# -- CPU time ----------------------------------------------------------------------------------


def _costliest(
    kind: int,
    direction: Direction,
    frames: Sequence[Costly],
    listeners: Sequence[tuple[Way, ListenerContext]],
) -> tuple[Cost, int]:
    """Return the costliest frame, and the size of the largest one that was not refused."""
    found: list[tuple[Cost, ListenerContext]] = []
    largest = 0
    for costly in frames:
        for way, listener in listeners:
            took, allowed = _timed(listener, kind, direction, costly.frame)
            found.append((Cost(took, costly, way), listener))
            largest = max(largest, len(costly.frame) if allowed else 0)
    found.sort(key=lambda it: it[0].milliseconds, reverse=True)
    again = (
        cost._replace(milliseconds=_best(listener, kind, direction, cost.frame.frame))
        for cost, listener in found[:REPEATED]
    )
    return max(again, key=lambda it: it.milliseconds), largest


def _credentials(kind: int) -> Iterator[Costly]:
    if kind in (Kind.CONNECT, Kind.AUTH_RESPONSE):
        for what, data in tokens():
            yield Costly(what, frames.raw(kind, authenticating(kind, data)))


def _best(listener: ListenerContext, kind: int, direction: Direction, frame: bytes) -> float:
    return min(_timed(listener, kind, direction, frame)[0] for _ in range(RUNS))


def _timed(
    listener: ListenerContext, kind: int, direction: Direction, frame: bytes
) -> tuple[float, bool]:
    """Return the milliseconds that one frame takes, and True if its sender is not at fault."""
    receive = _ready(listener, kind, direction)
    begin = time.process_time()
    try:
        effects = receive(frame)
    except PeerError:
        effects = (End(EndReason.CLIENT_VIOLATION),)
    took = (time.process_time() - begin) * 1000
    return took, not any(isinstance(effect, End) for effect in effects)


# -- a connection ready for a command ----------------------------------------------------------


def _ready(
    listener: ListenerContext, kind: int, direction: Direction
) -> Callable[[bytes], Effects]:
    if kind in (Kind.CONNECT, Kind.CONNECTED):
        return _opening(listener, kind)
    session = session_of(listener)
    for to, frame in _before(kind):
        _receive(session, to, frame)
    return partial(_receive, session, direction)


def _before(kind: int) -> Iterator[tuple[Direction, bytes]]:
    """Yield the frames that give the command something to refer to: ids are 1."""
    to_broker, to_client = Direction
    match kind:
        case Kind.LOOKUP_RESPONSE:
            yield to_broker, frames.lookup(1)
        case Kind.PRODUCER_SUCCESS:
            yield to_broker, frames.producer(1, request=1)
        case Kind.SUCCESS | Kind.ERROR:
            yield to_broker, frames.subscribe(1, request=1)
        case _:
            yield to_broker, frames.producer(1, request=11)
            yield to_client, frames.producer_success(11)
            yield to_broker, frames.subscribe(1, request=12)
            yield to_client, frames.success(12)


def _receive(session: PulsarSession, direction: Direction, frame: bytes) -> Effects:
    """Receive as a pump does: chunk by chunk, collecting an incomplete stop frame."""
    scanner = session.scanners[direction]
    carried = b""
    for begin in range(0, len(frame), CHUNK):
        chunk = bytearray(carried + frame[begin : begin + CHUNK])
        cleared = scanner.scan(chunk, 0, len(chunk))
        if scanner.stop:
            stopped = _collected(chunk, frame[begin + CHUNK :])
            return at_once(session.decide(direction, stopped, now=0.0))
        carried = bytes(chunk[cleared:])
    return ()


def _collected(chunk: bytearray, rest: bytes) -> bytes:
    for begin in range(0, len(rest), CHUNK):
        chunk += rest[begin : begin + CHUNK]
    return bytes(chunk)


def _opening(listener: ListenerContext, kind: int) -> Callable[[bytes], Effects]:
    steps = open_pair(listener, ORIGIN)
    next(steps)
    if kind == Kind.CONNECTED:
        steps.send(frames.connect(auth_data=token()))
        steps.send(Dialled(BROKER, fresh=True))
        steps.send(None)

    def receive(frame: bytes) -> Effects:
        try:
            steps.send(frame)
        except StopIteration as stop:
            refused = isinstance(stop.value, Refused)
            return (End(stop.value.reason, b"", stop.value.detail),) if refused else ()
        return ()

    return receive


# -- memory ------------------------------------------------------------------------------------


def _memory(asked: tuple[int, Direction, bytes]) -> int:
    """Return the largest growth of this fresh process in bytes."""
    kind, direction, frame = asked
    listener = listener_of(Way("rules", rules=3))
    receive = _ready(listener, kind, direction)
    before = peak(os.getpid(), reset=True)
    with contextlib.suppress(PeerError):
        receive(frame)
    return max(0, peak(os.getpid()) - before)
