"""Which consumer gets the next entry: one dispatcher per type of subscription.

`next_delivery` returns a ready consumer and an offset, or None. Its cost is independent of the
backlog.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

if TYPE_CHECKING:
    from gateway.lab.sandbox.consumer import Consumer
    from gateway.lab.sandbox.cursor import Cursor
    from gateway.lab.sandbox.log import Log

LOOK_AHEAD = 1000
"""Most entries that a Key_Shared subscription reads ahead while their consumers are not ready. A
slow consumer then does not stop the others at once, and none fills the memory.
"""

SLOTS = 1 << 16
"""Number of hash slots, as in Pulsar."""


class Dispatcher(Protocol):
    def attach(self, consumer: Consumer) -> None: ...

    def detach(self, consumer: Consumer) -> list[int]:
        """Remove a consumer. Return the offsets of entries that were chosen for this consumer and
        not delivered."""

    def next_delivery(self) -> tuple[Consumer, int] | None: ...

    def release(self, offset: int) -> None:
        """Forget which consumer the entry at an offset was sent to, because the entry was
        acknowledged, or will be redelivered."""

    @property
    def active(self) -> Consumer | None:
        """Return the only consumer that gets entries; None if there is no consumer, or if the type
        of the subscription lets several consumers get entries."""


class Single:
    """Dispatches for Exclusive and Failover: one active consumer gets all entries in order; the
    others stand by.

    The active consumer has the highest priority (the lowest number). Consumers with the same
    priority are sorted by name, and the number of the partition selects one, so that the partitions
    of a topic are spread over the consumers.
    """

    def __init__(self, cursor: Cursor, partition: int = -1) -> None:
        self._cursor = cursor
        self._partition = max(partition, 0)
        self._consumers: list[Consumer] = []
        self.active: Consumer | None = None

    def attach(self, consumer: Consumer) -> None:
        self._consumers.append(consumer)
        self._elect()

    def detach(self, consumer: Consumer) -> list[int]:
        self._consumers.remove(consumer)
        self._elect()
        return []

    def _elect(self) -> None:
        first = min((consumer.priority for consumer in self._consumers), default=0)
        able = [consumer for consumer in self._consumers if consumer.priority == first]
        able.sort(key=lambda consumer: consumer.name)
        self.active = able[self._partition % len(able)] if able else None

    def next_delivery(self) -> tuple[Consumer, int] | None:
        if self.active is None or not self.active.is_ready:
            return None
        offset = self._cursor.take()
        return None if offset is None else (self.active, offset)

    def release(self, offset: int) -> None:
        pass


class Shared:
    """Dispatches for Shared: each entry is sent to one of the ready consumers, round robin."""

    active = None

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._consumers: deque[Consumer] = deque()

    def attach(self, consumer: Consumer) -> None:
        self._consumers.append(consumer)

    def detach(self, consumer: Consumer) -> list[int]:
        self._consumers.remove(consumer)
        return []

    def next_delivery(self) -> tuple[Consumer, int] | None:
        for index, consumer in enumerate(self._consumers):
            if consumer.is_ready:
                offset = self._cursor.take()
                if offset is None:
                    return None
                self._consumers.rotate(-index - 1)
                return consumer, offset
        return None

    def release(self, offset: int) -> None:
        pass


class KeyShared:
    """Dispatches for Key_Shared: entries with the same key are sent to the same consumer, in order.

    A key stays with its consumer while entries with this key are in flight, even if other consumers
    come and go. This keeps the key's order.
    """

    active = None

    def __init__(self, cursor: Cursor, log: Log) -> None:
        self._cursor = cursor
        self._log = log
        # Entries read for a consumer that was not ready.
        self._waiting: dict[Consumer, deque[int]] = {}
        # The slot of each entry in flight; per slot its consumer and the number of entries in
        # flight.
        self._slots: dict[int, int] = {}
        self._assigned: dict[int, tuple[Consumer, int]] = {}

    def attach(self, consumer: Consumer) -> None:
        self._waiting[consumer] = deque()

    def detach(self, consumer: Consumer) -> list[int]:
        waiting = list(self._waiting.pop(consumer))
        for offset in waiting:
            self.release(offset)
        return waiting

    def next_delivery(self) -> tuple[Consumer, int] | None:
        return self._next_waiting() or self._next_unread()

    def _next_waiting(self) -> tuple[Consumer, int] | None:
        for consumer, waiting in self._waiting.items():
            while waiting and consumer.is_ready:
                offset = waiting.popleft()
                if not self._cursor.is_acknowledged(offset):
                    return consumer, offset
                self.release(offset)
        return None

    def _next_unread(self) -> tuple[Consumer, int] | None:
        while self._may_read() and (offset := self._cursor.take()) is not None:
            consumer = self._route(offset)
            if consumer.is_ready and not self._waiting[consumer]:
                return consumer, offset
            self._waiting[consumer].append(offset)
        return None

    def _may_read(self) -> bool:
        waiting = sum(map(len, self._waiting.values()))
        return waiting < LOOK_AHEAD and any(consumer.is_ready for consumer in self._waiting)

    def _route(self, offset: int) -> Consumer:
        slot = crc32(self._log[offset].key) % SLOTS
        consumer, held = self._assigned.get(slot) or (self._consumer_of(slot), 0)
        self._slots[offset] = slot
        self._assigned[slot] = consumer, held + 1
        return consumer

    def _consumer_of(self, slot: int) -> Consumer:
        consumers = list(self._waiting)
        return consumers[slot % len(consumers)]

    def release(self, offset: int) -> None:
        slot = self._slots.pop(offset, None)
        if slot is None:
            return
        consumer, held = self._assigned.pop(slot)
        if held > 1:
            self._assigned[slot] = consumer, held - 1
