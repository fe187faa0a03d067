"""The clients' counts of one topic, whatever the order of its messages.

Each message carries the id of the run and its number, from 0 on. At any time a tally knows how many
messages arrived for the first time, and how many again, within bounded memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

AHEAD = 100_000
"""Most numbers remembered beyond a gap. No topic of the demonstration has more in flight: a gap
that old is a lost message, and the tally stops waiting for it.
"""

_HEAD = struct.Struct(">8sQ")
RUN_SIZE = 8
"""Bytes of a run's id."""


def payload(run: bytes, number: int, size: int) -> bytes:
    """Return a message's payload of `size` bytes, or more if its header is longer."""
    return _HEAD.pack(run, number).ljust(size, b".")


def number_of(run: bytes, data: bytes) -> int | None:
    """Return the number of a message of this run; None for any other message."""
    if len(data) < _HEAD.size:
        return None
    owner, number = _HEAD.unpack_from(data)
    return number if owner == run else None


@dataclass(slots=True)
class SequenceSet:
    """A set of numbers from 0 on that arrive almost in order."""

    below: int = 0
    """All numbers below it were added or given up."""
    missing: int = 0
    """Count of numbers given up."""
    ahead: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Return how many different numbers were added."""
        return self.below - self.missing + len(self.ahead)

    def add(self, number: int) -> bool:
        """Add a number; return whether it is new."""
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
class ClientCounts:
    """The clients' counts of one topic.

    `received`: all deliveries. `distinct`: messages of this run that arrived at least once.
    `foreign`: deliveries of other senders' messages. `moved`: the topic continued in another
    ledger, as it does at each change of its broker.
    """

    sent: int
    acknowledged: int
    failed: int
    received: int
    distinct: int
    foreign: int
    moved: bool

    @property
    def lost(self) -> int:
        """Return the number of messages that the broker acknowledged and no consumer received."""
        return max(0, self.acknowledged - self.distinct)

    @property
    def doubled(self) -> int:
        """Return the number of repeated deliveries."""
        return self.received - self.distinct - self.foreign


class Tally:
    """The running count of one topic. It is not thread-safe: its owner locks."""

    def __init__(self, run: bytes) -> None:
        self._run = run
        self._numbers = SequenceSet()
        self._ledgers: dict[int, int] = {}
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self._received = 0
        self._foreign = 0
        self._moved = False

    def acknowledge(self, partition: int, ledger: int) -> None:
        """Count a message's receipt, with the position at which the broker stored it."""
        self.acknowledged += 1
        if self._ledgers.setdefault(partition, ledger) != ledger:
            self._moved = True

    def receive(self, data: bytes) -> None:
        """Count a delivered message."""
        self._received += 1
        number = number_of(self._run, data)
        if number is None:
            self._foreign += 1
        else:
            self._numbers.add(number)

    @property
    def is_answered(self) -> bool:
        """Return whether every sent message has a receipt or an error."""
        return self.acknowledged + self.failed == self.sent

    @property
    def is_complete(self) -> bool:
        """Return whether every message with a receipt was received."""
        return self._numbers.count >= self.acknowledged

    def counts(self) -> ClientCounts:
        """Return the current counts."""
        return ClientCounts(
            sent=self.sent,
            acknowledged=self.acknowledged,
            failed=self.failed,
            received=self._received,
            distinct=self._numbers.count,
            foreign=self._foreign,
            moved=self._moved,
        )
