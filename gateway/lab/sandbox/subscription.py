"""One subscription of a topic: its consumers, deliveries and acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.sandbox import answers
from gateway.lab.sandbox.cursor import Cursor
from gateway.lab.sandbox.dispatch import Dispatcher, KeyShared, Shared, Single
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandSubscribe
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.lab.sandbox.consumer import Consumer
    from gateway.lab.sandbox.log import Log

Type = CommandSubscribe.SubType
SHARING = frozenset({CommandSubscribe.Shared, CommandSubscribe.Key_Shared})
"""Types whose messages are acknowledged and redelivered one by one."""


class Subscription:
    """One subscription of a topic. `start`: the offset at which it begins. `durable`: if False, the
    subscription ends with its last consumer.

    `pending`: entries that were delivered and not acknowledged, with the consumer of each.
    """

    def __init__(self, log: Log, start: int, *, durable: bool = True, partition: int = -1) -> None:
        self.cursor = Cursor(log, start)
        self.durable = durable
        self.consumers: list[Consumer] = []
        self.pending: dict[int, Consumer] = {}
        self.type: Type.ValueType = CommandSubscribe.Exclusive
        self._log = log
        self._partition = partition
        self._dispatcher: Dispatcher = Single(self.cursor)
        # Redeliveries of each entry after negative acknowledgements.
        self._redelivery_counts: dict[int, int] = {}

    # -- consumers -------------------------------------------------------------------------------

    def refusal(self, type: Type.ValueType) -> str | None:
        """Return why a consumer of this type cannot be attached now; None if it can."""
        if not self.consumers:
            return None
        if type != self.type:
            return "the subscription has consumers of another type"
        if type == CommandSubscribe.Exclusive:
            return "an exclusive consumer is already connected"
        return None

    def attach(self, consumer: Consumer, type: Type.ValueType) -> None:
        """Add a consumer, for which `refusal` has returned None."""
        if not self.consumers:
            self.type = type
            self._dispatcher = self._new_dispatcher()
        before = self._dispatcher.active
        self.consumers.append(consumer)
        self._dispatcher.attach(consumer)
        if self._dispatcher.active is before:
            self._notify_active([consumer])
        else:
            self._change_active()

    def detach(self, consumer: Consumer) -> None:
        """Remove a consumer. Its unacknowledged entries are delivered to other consumers."""
        before = self._dispatcher.active
        self.consumers.remove(consumer)
        self._requeue(offset for offset, holder in self.pending.items() if holder is consumer)
        for offset in self._dispatcher.detach(consumer):
            self.cursor.redeliver(offset)
        if self._dispatcher.active is not before:
            self._change_active()
        self.dispatch()

    def _new_dispatcher(self) -> Dispatcher:
        if self.type == CommandSubscribe.Shared:
            return Shared(self.cursor)
        if self.type == CommandSubscribe.Key_Shared:
            return KeyShared(self.cursor, self._log)
        return Single(self.cursor, self._partition)

    def _change_active(self) -> None:
        """Redeliver the entries of the last active consumer to the new one."""
        self._requeue(list(self.pending))
        self._notify_active(self.consumers)

    def _notify_active(self, consumers: Iterable[Consumer]) -> None:
        """Tell consumers of a Failover subscription whether each is the active one."""
        if self.type != CommandSubscribe.Failover:
            return
        for consumer in consumers:
            fields = {"consumer_id": consumer.id, "is_active": consumer is self._dispatcher.active}
            consumer.link.send(answers.frame(Kind.ACTIVE_CONSUMER_CHANGE, **fields))

    # -- deliveries ------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Deliver all entries that can be delivered now."""
        while (delivery := self._dispatcher.next_delivery()) is not None:
            self._deliver(*delivery)

    def _deliver(self, consumer: Consumer, offset: int) -> None:
        record = self._log[offset]
        ack_set = self.cursor.ack_set(offset)
        self.pending[offset] = consumer
        consumer.permits -= record.messages if ack_set is None else ack_set.bit_count()
        delivery = answers.Delivery(
            consumer.id,
            self._log.position(offset),
            self._partition,
            self._redelivery_counts.get(offset, 0),
            ack_set,
            consumer.epoch,
        )
        consumer.link.send(answers.message(delivery, record.content))

    def redeliver(self, consumer: Consumer, offsets: list[int]) -> None:
        """Deliver a consumer's unacknowledged entries at these offsets again. If `offsets` is
        empty, or if the type of subscription keeps order, deliver all its unacknowledged entries
        again."""
        if self.type not in SHARING or not offsets:
            offsets = [offset for offset, holder in self.pending.items() if holder is consumer]
        offsets = [offset for offset in offsets if self.pending.get(offset) is consumer]
        if self.type in SHARING:
            for offset in offsets:
                self._redelivery_counts[offset] = self._redelivery_counts.get(offset, 0) + 1
        self._requeue(offsets)
        self.dispatch()

    def _requeue(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            del self.pending[offset]
            self._dispatcher.release(offset)
            self.cursor.redeliver(offset)

    # -- acknowledgements ------------------------------------------------------------------------

    def acknowledge(self, offset: int, ack_set: int | None = None) -> None:
        """Acknowledge the entry at an offset. With `ack_set`, acknowledge only those messages of
        the entry's batch whose bits in `ack_set` are 0."""
        if ack_set is None:
            self.cursor.acknowledge(offset)
        elif not self.cursor.acknowledge_part(offset, ack_set):
            return
        self._forget(offset)

    def acknowledge_to(self, offset: int, ack_set: int | None = None) -> None:
        """Acknowledge all entries before an offset, and the entry at that offset as `acknowledge`
        does."""
        mark_delete = self.cursor.mark_delete
        self.cursor.acknowledge_before(offset)
        for done in range(mark_delete, offset):
            self._forget(done)
        self.acknowledge(offset, ack_set)

    def trim(self) -> None:
        """Treat entries as acknowledged that the log no longer has, because it has evicted them."""
        mark_delete = self.cursor.mark_delete
        self.cursor.trim()
        for gone in range(mark_delete, self.cursor.mark_delete):
            self._forget(gone)

    def reset(self, offset: int) -> None:
        """Move the subscription to an offset. All its consumers must have been closed before."""
        self.cursor.reset(offset)
        self.pending.clear()
        self._redelivery_counts.clear()
        self._dispatcher = self._new_dispatcher()

    def _forget(self, offset: int) -> None:
        self.pending.pop(offset, None)
        self._redelivery_counts.pop(offset, None)
        self._dispatcher.release(offset)
