"""Who gets the next entry: one dispatcher for each type of subscription.

`next_delivery` answers a consumer that is ready and the offset for it, or None. It costs the same
however long the backlog is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

if TYPE_CHECKING:
    from gateway.sandbox.consumer import Consumer
    from gateway.sandbox.cursor import Cursor
    from gateway.sandbox.log import Log

LOOK_AHEAD = 1000
"""Entries that a Key_Shared subscription reads ahead while their own consumers are not ready: so
that a slow one does not stop the others at once, and none of them fills the memory."""

SLOTS = 1 << 16
"""Of hashes; Pulsar has as many."""


class Dispatcher(Protocol):
    def attach(self, consumer: Consumer) -> None: ...

    def detach(self, consumer: Consumer) -> list[int]:
        """Take a consumer out; answers offsets that were read for it, and not handed out."""

    def next_delivery(self) -> tuple[Consumer, int] | None: ...

    def settle(self, offset: int) -> None:
        """This was acknowledged, or will be delivered again."""

    @property
    def active(self) -> Consumer | None:
        """The only one that gets entries, where there is such."""


class Single:
    """Exclusive and Failover: all in order to one consumer; the others stand by.

    That is the one of the highest priority (the lowest number), then by name; partitions of a
    topic spread over those of the same priority.
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
        first = min((it.priority for it in self._consumers), default=0)
        able = [it for it in self._consumers if it.priority == first]
        able.sort(key=lambda consumer: consumer.name)
        self.active = able[self._partition % len(able)] if able else None

    def next_delivery(self) -> tuple[Consumer, int] | None:
        if self.active is None or not self.active.is_ready:
            return None
        offset = self._cursor.take()
        return None if offset is None else (self.active, offset)

    def settle(self, offset: int) -> None:
        pass


class Shared:
    """To whoever is ready, in turn."""

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

    def settle(self, offset: int) -> None:
        pass


class KeyShared:
    """Entries of one key to one consumer, in order.

    A key stays with its consumer until nothing of it is on the way, also when others come and go;
    so its order is kept.
    """

    active = None

    def __init__(self, cursor: Cursor, log: Log) -> None:
        self._cursor = cursor
        self._log = log
        # What was read for a consumer that was not ready.
        self._waiting: dict[Consumer, deque[int]] = {}
        # The slot of each entry on the way; who has a slot, and how many are on the way to it.
        self._slots: dict[int, int] = {}
        self._holders: dict[int, tuple[Consumer, int]] = {}

    def attach(self, consumer: Consumer) -> None:
        self._waiting[consumer] = deque()

    def detach(self, consumer: Consumer) -> list[int]:
        waiting = list(self._waiting.pop(consumer))
        for offset in waiting:
            self.settle(offset)
        return waiting

    def next_delivery(self) -> tuple[Consumer, int] | None:
        return self._waited() or self._fresh()

    def _waited(self) -> tuple[Consumer, int] | None:
        for consumer, waiting in self._waiting.items():
            while waiting and consumer.is_ready:
                offset = waiting.popleft()
                if not self._cursor.is_done(offset):
                    return consumer, offset
                self.settle(offset)
        return None

    def _fresh(self) -> tuple[Consumer, int] | None:
        while self._may_read() and (offset := self._cursor.take()) is not None:
            consumer = self._route(offset)
            if consumer.is_ready and not self._waiting[consumer]:
                return consumer, offset
            self._waiting[consumer].append(offset)
        return None

    def _may_read(self) -> bool:
        waiting = sum(map(len, self._waiting.values()))
        return waiting < LOOK_AHEAD and any(it.is_ready for it in self._waiting)

    def _route(self, offset: int) -> Consumer:
        slot = crc32(self._log[offset].key) % SLOTS
        consumer, held = self._holders.get(slot) or (self._consumer_of(slot), 0)
        self._slots[offset] = slot
        self._holders[slot] = consumer, held + 1
        return consumer

    def _consumer_of(self, slot: int) -> Consumer:
        consumers = list(self._waiting)
        return consumers[slot % len(consumers)]

    def settle(self, offset: int) -> None:
        slot = self._slots.pop(offset, None)
        if slot is None:
            return
        consumer, held = self._holders.pop(slot)
        if held > 1:
            self._holders[slot] = consumer, held - 1
