"""One subscription of a topic: who consumes, what is on the way to whom, what is acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.sandbox import answers
from gateway.sandbox.cursor import Cursor
from gateway.sandbox.dispatch import Dispatcher, KeyShared, Shared, Single
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandSubscribe
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.sandbox.consumer import Consumer
    from gateway.sandbox.log import Log

Type = CommandSubscribe.SubType
SHARING = frozenset({CommandSubscribe.Shared, CommandSubscribe.Key_Shared})
"""Types whose messages are acknowledged and delivered again one by one."""


class Subscription:
    """`start`: the offset that it begins at. Not durable: it ends with its last consumer.

    `pending`: what was delivered and is not acknowledged, and to whom.
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
        # How often an entry came back by a negative acknowledgement.
        self._returns: dict[int, int] = {}

    # -- consumers -------------------------------------------------------------------------------

    def refusal(self, type: Type.ValueType) -> str | None:
        """Why a consumer of this type cannot come in now."""
        if not self.consumers:
            return None
        if type != self.type:
            return "the subscription has consumers of another type"
        if type == CommandSubscribe.Exclusive:
            return "an exclusive consumer is already connected"
        return None

    def attach(self, consumer: Consumer, type: Type.ValueType) -> None:
        """A consumer comes in; `refusal` was asked."""
        if not self.consumers:
            self.type = type
            self._dispatcher = self._new_dispatcher()
        before = self._dispatcher.active
        self.consumers.append(consumer)
        self._dispatcher.attach(consumer)
        if self._dispatcher.active is before:
            self._tell_active([consumer])
        else:
            self._activate()

    def detach(self, consumer: Consumer) -> None:
        """A consumer goes; what it did not acknowledge is for others."""
        before = self._dispatcher.active
        self.consumers.remove(consumer)
        self._return(offset for offset, its in self.pending.items() if its is consumer)
        for offset in self._dispatcher.detach(consumer):
            self.cursor.put_back(offset)
        if self._dispatcher.active is not before:
            self._activate()
        self.dispatch()

    def _new_dispatcher(self) -> Dispatcher:
        if self.type == CommandSubscribe.Shared:
            return Shared(self.cursor)
        if self.type == CommandSubscribe.Key_Shared:
            return KeyShared(self.cursor, self._log)
        return Single(self.cursor, self._partition)

    def _activate(self) -> None:
        """Another consumer is the active one: it gets anew what the last one had."""
        self._return(list(self.pending))
        self._tell_active(self.consumers)

    def _tell_active(self, told: Iterable[Consumer]) -> None:
        """Those of a Failover subscription are told whether they are it."""
        if self.type != CommandSubscribe.Failover:
            return
        for consumer in told:
            fields = {"consumer_id": consumer.id, "is_active": consumer is self._dispatcher.active}
            consumer.link.send(answers.frame(Kind.ACTIVE_CONSUMER_CHANGE, **fields))

    # -- deliveries ------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Deliver what can be delivered now."""
        while (found := self._dispatcher.next_delivery()) is not None:
            self._deliver(*found)

    def _deliver(self, consumer: Consumer, offset: int) -> None:
        record = self._log[offset]
        left = self.cursor.left(offset)
        self.pending[offset] = consumer
        consumer.permits -= record.messages if left is None else left.bit_count()
        delivery = answers.Delivery(
            consumer.id,
            self._log.position(offset),
            self._partition,
            self._returns.get(offset, 0),
            left,
            consumer.epoch,
        )
        consumer.link.send(answers.message(delivery, record.content))

    def redeliver(self, consumer: Consumer, offsets: list[int]) -> None:
        """Some or (without `offsets`, or where order matters) all of what a consumer has."""
        if self.type not in SHARING or not offsets:
            offsets = [offset for offset, its in self.pending.items() if its is consumer]
        offsets = [offset for offset in offsets if self.pending.get(offset) is consumer]
        if self.type in SHARING:
            for offset in offsets:
                self._returns[offset] = self._returns.get(offset, 0) + 1
        self._return(offsets)
        self.dispatch()

    def _return(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            del self.pending[offset]
            self._dispatcher.settle(offset)
            self.cursor.put_back(offset)

    # -- acknowledgements ------------------------------------------------------------------------

    def acknowledge(self, offset: int, left: int | None = None) -> None:
        """One entry, or of a batch what is not in `left` (a bit for each message)."""
        if left is None:
            self.cursor.acknowledge(offset)
        elif not self.cursor.acknowledge_some(offset, left):
            return
        self._forget(offset)

    def acknowledge_to(self, offset: int, left: int | None = None) -> None:
        """All entries before one, and that one."""
        mark = self.cursor.mark
        self.cursor.acknowledge_before(offset)
        for done in range(mark, offset):
            self._forget(done)
        self.acknowledge(offset, left)

    def trim(self) -> None:
        """The log has forgotten its oldest entries: they are as good as acknowledged."""
        mark = self.cursor.mark
        self.cursor.trim()
        for gone in range(mark, self.cursor.mark):
            self._forget(gone)

    def reset(self, offset: int) -> None:
        """Go to an offset; the consumers were closed."""
        self.cursor.reset(offset)
        self.pending.clear()
        self._returns.clear()
        self._dispatcher = self._new_dispatcher()

    def _forget(self, offset: int) -> None:
        self.pending.pop(offset, None)
        self._returns.pop(offset, None)
        self._dispatcher.settle(offset)
