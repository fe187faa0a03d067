"""Whether the cost of one connection grows faster than the work on it.

The same work is done N times and 4 N times on one connection, up to its bounds. Four times the work
may take a little more than four times as long (caches, the garbage collector); quadratic work takes
sixteen times as long.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.session import PulsarSession
from tests.playbooks import frames
from tests.soak import report
from tests.soak.listeners import Way, listener_of, session_of
from tests.soak.runner import claim
from tests.support.effects import at_once

LINEAR = 8.0
"""The most that four times the work may take: between 4 and 16."""

RUNS = 3
"""The best run counts."""

HANDLES = 20_000
LOOKUPS = 5_000
"""The bounds of one connection."""

TO_BROKER, TO_CLIENT = Direction


class Work:
    """One connection of a listener with rules, and the work on it."""

    def __init__(self) -> None:
        self.session: PulsarSession = session_of(_LISTENER)

    def client(self, frame: bytes) -> None:
        self._say(TO_BROKER, frame)

    def broker(self, frame: bytes) -> None:
        self._say(TO_CLIENT, frame)

    def _say(self, direction: Direction, frame: bytes) -> None:
        scanner = self.session.scanners[direction]
        scanner.scan(bytearray(frame), 0, len(frame))
        if scanner.stop:
            at_once(self.session.decide(direction, frame, now=0.0))

    def accounts(self, action: Action) -> list[Account]:
        table = self.session.incarnations.handles.table(action)
        return [handle.account for handle in table]

    # -- kinds of work -------------------------------------------------------------------------

    def opens_producers(self, number: int) -> None:
        for id in range(number):
            self.client(frames.producer(id, request=id))
            self.broker(frames.producer_success(id))

    def opens_consumers(self, number: int) -> None:
        for id in range(number):
            self.client(frames.subscribe(id, request=id))
            self.broker(frames.success(id))

    def closes_producers(self, number: int) -> None:
        for id in range(number):
            self.client(frames.close_producer(id, request=number + id))
        for id in range(number):
            self.broker(frames.success(number + id))

    def is_left_with_receipts(self, number: int) -> None:
        for id in range(number):
            self.client(frames.send(id))
            self.broker(frames.close_producer(id))
        for id in range(number):
            self.broker(frames.receipt(id))
        self.session.delivered(0.0)

    def unsubscribes(self, number: int) -> None:
        for id in range(number):
            self.client(frames.unsubscribe(id, request=number + id))
        for id in range(number):
            self.broker(frames.success(number + id))

    def is_reset(self, _number: int) -> None:
        for account in reversed(self.accounts(Action.PRODUCE)):
            self.session.reset(account)

    def leaves(self, _number: int) -> None:
        for step in range(4):
            self.session.leave(now=float(step))

    def is_closed(self, _number: int) -> None:
        self.session.close()

    def grants_permits(self, number: int) -> None:
        """Grant permits to consumers that wait, having used up their limit."""
        for account in self.accounts(Action.CONSUME):
            account.messages = 1
            account.messages_ceiling = 1
        for id in range(number):
            self.client(frames.frame(Kind.FLOW, consumer_id=id, messagePermits=1000))
        for _ in range(10):
            self.session.delivered(0.0)

    def looks_up(self, number: int) -> None:
        for id in range(number):
            self.client(frames.lookup(id))
        for id in range(number):
            self.broker(frames.connect_to("pulsar://broker-1.internal:6650", id))


@dataclass(frozen=True, slots=True)
class Case:
    """Work done `number` times; `before` is done first, and timed separately."""

    what: str
    number: int
    work: Callable[[Work, int], None]
    before: Callable[[Work, int], None] = lambda _work, _number: None


CASES = (
    Case("producers are opened", HANDLES, Work.opens_producers),
    Case("producers are closed", HANDLES, Work.closes_producers, Work.opens_producers),
    Case("producers are reset", HANDLES, Work.is_reset, Work.opens_producers),
    Case("producers leave", HANDLES, Work.leaves, Work.opens_producers),
    Case(
        "producers are closed before their receipts",
        HANDLES,
        Work.is_left_with_receipts,
        Work.opens_producers,
    ),
    Case("consumers are opened", HANDLES, Work.opens_consumers),
    Case("consumers unsubscribe", HANDLES, Work.unsubscribes, Work.opens_consumers),
    Case("consumers wait with their permits", HANDLES, Work.grants_permits, Work.opens_consumers),
    Case("consumers are given back at the end", HANDLES, Work.is_closed, Work.opens_consumers),
    Case("lookups are answered", LOOKUPS, Work.looks_up),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of CPU time for a quarter of the work, and for all of it."""

    case: Case
    quarter: float
    whole: float

    @property
    def ratio(self) -> float:
        return self.whole / self.quarter


def run(cases: tuple[Case, ...] = CASES, divided_by: int = 1) -> list[Growth]:
    """Measure all cases. `divided_by`: divides the work, for a quick try."""
    found = []
    for case in cases:
        number = case.number // divided_by
        found.append(Growth(case, _best(case, number // 4), _best(case, number)))
    return found


def table(found: list[Growth]) -> str:
    """Return the table. Claims that no cost grows faster than the work."""
    head = ("on one connection", "how often", "CPU for each", "four times as much takes")
    rows = [
        (it.case.what, f"{it.case.number:,}", _each(it), f"{it.ratio:.1f} times as long")
        for it in found
    ]
    text = report.table(head, rows)
    claim(all(it.ratio < LINEAR for it in found), f"some work grows faster than linearly:\n{text}")
    return text


def _each(growth: Growth) -> str:
    return f"{growth.whole / growth.case.number * 1e6:.1f} µs"


def _best(case: Case, number: int) -> float:
    return min(_seconds(case, number) for _ in range(RUNS))


def _seconds(case: Case, number: int) -> float:
    work = Work()
    case.before(work, number)
    gc.collect()
    begin = time.process_time()
    case.work(work, number)
    took = time.process_time() - begin
    work.session.close()
    return took


_LISTENER = listener_of(Way("rules", rules=3))
