"""One topic, or one partition: its log, producers and subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.sandbox.log import Log
from gateway.lab.sandbox.subscription import Subscription

if TYPE_CHECKING:
    from gateway.lab.sandbox.consumer import Consumer, Producer
    from gateway.lab.sandbox.log import Position
    from gateway.lab.sandbox.names import FullTopicName
    from gateway.lab.sandbox.record import Record

MOST_SUBSCRIPTIONS = 1000
"""Per topic. Each subscription costs time with every entry."""


class Topic:
    """A topic, or one partition of a topic. `owner`: the number of its broker. `ledger`: the id of
    its first ledger."""

    def __init__(self, name: FullTopicName, owner: int, ledger: int) -> None:
        self.name = name
        self.partition = name.partition
        self.owner = owner
        self.log = Log(ledger)
        self.producers: dict[str, Producer] = {}
        self.subscriptions: dict[str, Subscription] = {}

    # -- entries ---------------------------------------------------------------------------------

    def publish(self, record: Record) -> Position:
        """Append an entry, deliver it, and return its position. If the topic is not persistent, its
        subscriptions lose entries that cannot be delivered at once."""
        offset = self.log.append(record)
        for subscription in self.subscriptions.values():
            subscription.dispatch()
            if not self.name.is_persistent:
                subscription.acknowledge(offset)
        return self.log.position(offset)

    def evict_oldest(self) -> int:
        """Evict the oldest entry. Return how many bytes it took."""
        cost = self.log.evict_oldest()
        for subscription in self.subscriptions.values():
            subscription.trim()
        return cost

    # -- producers -------------------------------------------------------------------------------

    def add_producer(self, producer: Producer) -> bool:
        """Add a producer. Return False, and add nothing, if another producer has the same name.

        A producer that reconnects, and whose name the broker chose, replaces the earlier producer
        of that name: the old connection broke, and the broker has not noticed yet.
        """
        other = self.producers.get(producer.name)
        if other is not None and not _replaces(producer, other):
            return False
        if other is not None:
            other.link.close_producer(other, None)
        self.producers[producer.name] = producer
        return True

    def remove_producer(self, producer: Producer) -> None:
        if self.producers.get(producer.name) is producer:
            del self.producers[producer.name]

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, name: str, start: int, *, durable: bool) -> Subscription | None:
        """Return the subscription of this name; create it, beginning at the offset `start`, if it
        does not exist. Return None if the topic has too many subscriptions."""
        subscription = self.subscriptions.get(name)
        if subscription is not None:
            return subscription
        if len(self.subscriptions) >= MOST_SUBSCRIPTIONS:
            return None
        start = start if self.name.is_persistent else self.log.end
        subscription = Subscription(self.log, start, durable=durable, partition=self.partition)
        self.subscriptions[name] = subscription
        return subscription

    def detach(self, name: str, consumer: Consumer) -> None:
        """Remove a consumer from a subscription. A subscription that is not durable is removed with
        its last consumer."""
        subscription = self.subscriptions[name]
        subscription.detach(consumer)
        if not subscription.durable and not subscription.consumers:
            del self.subscriptions[name]

    # -- moves -----------------------------------------------------------------------------------

    def move(self, owner: int, ledger: int, url: str | None) -> None:
        """Move the topic to another broker, and close all its producers and consumers. `owner`: the
        number of the new broker. `ledger`: the id of the next ledger. `url`: the new broker's URL,
        which clients are sent; None: clients are sent no URL."""
        self.owner = owner
        self.log.begin_ledger(ledger)
        for producer in list(self.producers.values()):
            producer.link.close_producer(producer, url)
        for subscription in list(self.subscriptions.values()):
            close_consumers(subscription, url)


def close_consumers(subscription: Subscription, url: str | None = None) -> None:
    """Close all consumers of a subscription. `url`: the URL of the topic's new broker, which
    clients are sent; None: clients are sent no URL."""
    # Consumers that are closed next must not get the entries of the first.
    for consumer in list(subscription.consumers):
        consumer.permits = 0
    for consumer in list(subscription.consumers):
        consumer.link.close_consumer(consumer, url)


def _replaces(producer: Producer, other: Producer) -> bool:
    if producer.link is other.link and producer.id == other.id:
        return True
    same = producer.id == other.id and not (producer.is_user_named or other.is_user_named)
    return same and producer.epoch > other.epoch
