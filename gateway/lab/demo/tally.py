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
    """Return the payload of message `number` of the run `run`: `size` bytes, or more if the header
    is longer."""
    return _HEAD.pack(run, number).ljust(size, b".")


def number_of(run: bytes, data: bytes) -> int | None:
    """Return the number in a message's payload, if the message is from this run, else None."""
    if len(data) < _HEAD.size:
        return None
    owner, number = _HEAD.unpack_from(data)
    return number if owner == run else None


@dataclass(slots=True)
class SequenceSet:
    """A set of whole numbers from 0 on, which are added almost in order."""

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
        """Add a number. Return whether the set did not have it yet."""
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
    """What the clients counted for one topic.

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
        """Return how many messages have the broker's receipt and reached no consumer."""
        return max(0, self.acknowledged - self.distinct)

    @property
    def doubled(self) -> int:
        """Return how many deliveries were repetitions of an earlier one."""
        return self.received - self.distinct - self.foreign


class Tally:
    """What the clients have counted so far for one topic. It is not thread-safe: the object that
    owns it holds a lock."""

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
        """Count the broker's receipt for one message. `ledger`: where the broker stored the
        message; if earlier messages of the partition are in another ledger, the topic has moved."""
        self.acknowledged += 1
        if self._ledgers.setdefault(partition, ledger) != ledger:
            self._moved = True

    def receive(self, data: bytes) -> None:
        """Count a message that a consumer received. `data`: its payload."""
        self._received += 1
        number = number_of(self._run, data)
        if number is None:
            self._foreign += 1
        else:
            self._numbers.add(number)

    @property
    def is_answered(self) -> bool:
        """Return whether every sent message has got a receipt or an error."""
        return self.acknowledged + self.failed == self.sent

    @property
    def is_complete(self) -> bool:
        """Return whether every message with a receipt has reached a consumer."""
        return self._numbers.count >= self.acknowledged

    def counts(self) -> ClientCounts:
        """Return what was counted so far."""
        return ClientCounts(
            sent=self.sent,
            acknowledged=self.acknowledged,
            failed=self.failed,
            received=self._received,
            distinct=self._numbers.count,
            foreign=self._foreign,
            moved=self._moved,
        )
