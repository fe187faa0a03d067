"""What the clients of one topic counted, whatever order its messages come in.

Each message carries the name of the run and its number, from 0 on. A tally knows at any time how
many were received for the first time, and how many again, within bounded memory.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass, field
from typing import Any

AHEAD = 100_000
"""Numbers that are remembered beyond a gap. More are not in flight on any topic of the demo: a gap
that is as old as that is a lost message, and is no longer waited for."""

_HEAD = struct.Struct(">8sQ")
RUN_SIZE = 8
"""Bytes of a run's name."""


def payload(run: bytes, number: int, size: int) -> bytes:
    """The payload of one message, `size` bytes long, or as long as its head where that is more."""
    return _HEAD.pack(run, number).ljust(size, b".")


def number_of(run: bytes, data: bytes) -> int | None:
    """The number of a message of this run; None of any other message."""
    if len(data) < _HEAD.size:
        return None
    owner, number = _HEAD.unpack_from(data)
    return number if owner == run else None


@dataclass(slots=True)
class Numbers:
    """A set of numbers that come almost in order, from 0 on."""

    below: int = 0
    """All numbers below were added, or given up."""
    missing: int = 0
    """Those that were given up."""
    ahead: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many different ones were added."""
        return self.below - self.missing + len(self.ahead)

    def add(self, number: int) -> bool:
        """Add a number; say whether it was not there before."""
        if number < self.below or number in self.ahead:
            return False
        self.ahead.add(number)
        if len(self.ahead) > AHEAD:
            first = min(self.ahead)
            self.missing += first - self.below
            self.below = first
        while self.below in self.ahead:
            self.ahead.remove(self.below)
            self.below += 1
        return True


@dataclass(frozen=True, slots=True)
class Counts:
    """What the clients say of one topic.

    `received` is every delivery, `distinct` every message of this run that came at least once,
    `strange` the deliveries of messages that others sent. `moved`: the topic went on in another
    ledger, as it does with every change of its broker.
    """

    sent: int
    acknowledged: int
    failed: int
    received: int
    distinct: int
    strange: int
    moved: bool

    @property
    def lost(self) -> int:
        """Messages that the broker has acknowledged and nobody received."""
        return max(0, self.acknowledged - self.distinct)

    @property
    def doubled(self) -> int:
        """Deliveries of what had been delivered before."""
        return self.received - self.distinct - self.strange

    def as_json(self) -> dict[str, Any]:
        """The form in which a process tells it; `Counts(**form)` reads it."""
        return asdict(self)


class Tally:
    """The running count of one topic. It is not safe for threads: its owner locks."""

    def __init__(self, run: bytes) -> None:
        self._run = run
        self._numbers = Numbers()
        self._ledgers: dict[int, int] = {}
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self._received = 0
        self._strange = 0
        self._moved = False

    def acknowledge(self, partition: int, ledger: int) -> None:
        """A message has its receipt, with the place where the broker keeps it."""
        self.acknowledged += 1
        if self._ledgers.setdefault(partition, ledger) != ledger:
            self._moved = True

    def receive(self, data: bytes) -> None:
        """A message was delivered."""
        self._received += 1
        number = number_of(self._run, data)
        if number is None:
            self._strange += 1
        else:
            self._numbers.add(number)

    @property
    def is_answered(self) -> bool:
        """Every message that was sent has its receipt, or its error."""
        return self.acknowledged + self.failed == self.sent

    @property
    def is_complete(self) -> bool:
        """Every message with a receipt was received."""
        return self._numbers.count >= self.acknowledged

    def counts(self) -> Counts:
        """As it is now."""
        return Counts(
            sent=self.sent,
            acknowledged=self.acknowledged,
            failed=self.failed,
            received=self._received,
            distinct=self._numbers.count,
            strange=self._strange,
            moved=self._moved,
        )
