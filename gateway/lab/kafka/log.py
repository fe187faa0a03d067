"""The batches of one partition, in memory, and the sequence numbers of its producers.

Sequence numbers are checked as brokers check them, but producers are not forgotten over time. An
unknown producer begins with any number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gateway.lab.kafka.batches import UnreadableError, records
from gateway.lab.kafka.codes import Error

if TYPE_CHECKING:
    from gateway.lab.kafka.batches import Batch

MOST_PRODUCERS = 1000
"""Producers whose sequences one partition remembers; the one that was silent longest goes first."""

REMEMBERED = 5
"""Batches of a producer that are recognized if repeated, as in brokers: clients have no more in
flight."""

OVERHEAD = 500
"""Bytes that a batch takes beside its own."""

_SEQUENCES = 2**31
"""Sequence numbers go back to zero after so many."""


class Sent(NamedTuple):
    """A batch that a producer sent: its first and last sequence number, and its offset."""

    first: int
    last: int
    base: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    sent: deque[Sent] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class PartitionLog:
    """The batches of one partition. `start`: the first offset that is still stored. `end`: the
    offset that the next record will get."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.batches: list[Batch] = []
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def append(self, batch: Batch, leader_epoch: int) -> Batch | Error:
        """Append a batch, and return it with its offset. A batch that a producer repeats is not
        appended again, and gets the offset that it got first. If the batch is refused, return the
        error."""
        state = None
        if batch.producer >= 0:
            outcome = self._sequence(batch)
            if isinstance(outcome, Error):
                return outcome
            if isinstance(outcome, Sent):
                return batch.placed(outcome.base, leader_epoch)
            state = outcome
        placed = batch.placed(self.end, leader_epoch)
        if state is not None:
            last = (batch.sequence + batch.last_delta) % _SEQUENCES
            state.sent.append(Sent(batch.sequence, last, placed.base))
        self.batches.append(placed)
        self.end = placed.end
        return placed

    def evict_oldest(self) -> int:
        """Evict the oldest batch. Return how many bytes it took."""
        batch = self.batches.pop(0)
        self.start = batch.end
        return cost(batch)

    def read(self, offset: int, most: int, *, at_least_one: bool) -> bytes:
        """Return the bytes of whole batches, from the batch that contains `offset` on, at most
        `most` bytes. `at_least_one`: the first batch is returned even if it is larger (KIP-74)."""
        batches: list[bytes] = []
        for number in range(self._index(offset), len(self.batches)):
            data = self.batches[number].data
            if len(data) > most and not (at_least_one and not batches):
                break
            batches.append(data)
            most -= len(data)
        return b"".join(batches)

    def at_time(self, time: int) -> tuple[int, int] | None:
        """Return the offset and the time of the first record that is not older than `time`
        (milliseconds); None if there is no such record. If a batch's records cannot be read, its
        first offset is returned."""
        for batch in self.batches:
            if batch.last_time >= time:
                return _first_in(batch, time)
        return None

    def newest(self) -> tuple[int, int] | None:
        """Return the offset and the time of the record with the latest time; None if the partition
        has no records."""
        if not self.batches:
            return None
        batch = max(self.batches, key=lambda kept: kept.last_time)
        return _first_in(batch, batch.last_time)

    def _index(self, offset: int) -> int:
        """Return the number of the batch that holds an offset, or of the next one."""
        index = bisect_right(self.batches, offset, key=lambda batch: batch.base) - 1
        return index if index >= 0 and self.batches[index].end > offset else index + 1

    def _sequence(self, batch: Batch) -> _Producer | Sent | Error:
        """Return the producer if this batch is its next one, or what it repeats, or an error."""
        state = self._producers.get(batch.producer)
        if state is None or batch.epoch > state.epoch:
            if state is not None and batch.sequence != 0:
                return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
            state = self._producers[batch.producer] = _Producer(batch.epoch)
            if len(self._producers) > MOST_PRODUCERS:
                self._producers.popitem(last=False)
        self._producers.move_to_end(batch.producer)
        if batch.epoch < state.epoch:
            return Error.INVALID_PRODUCER_EPOCH
        last = (batch.sequence + batch.last_delta) % _SEQUENCES
        for sent in state.sent:
            if (sent.first, sent.last) == (batch.sequence, last):
                return sent
        if state.sent and batch.sequence != (state.sent[-1].last + 1) % _SEQUENCES:
            return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        return state


def cost(batch: Batch) -> int:
    """Return how many bytes of memory a batch takes."""
    return len(batch.data) + OVERHEAD


def _first_in(batch: Batch, time: int) -> tuple[int, int]:
    try:
        first = next((record for record in records(batch) if record.time >= time), None)
    except UnreadableError:
        first = None
    return (first.offset, first.time) if first else (batch.base, batch.last_time)
