"""The quantities that rules can limit: a table with one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Self

from gateway.wire.account import Action


class Unit(IntEnum):
    """The counter of an account that a traffic limit charges."""

    MESSAGES = 0
    BYTES = 1


class Dimension(StrEnum):
    """A quantity that a rule can limit.

    `action`: the client's action that it limits. A row with a `unit` limits a rate of traffic; one
    with a `longest_wait` limits a rate of requests, each of which may wait for so many seconds; one
    with neither limits the number that is open at the same time.

    A client that opens its first producer requests partitions, looks the topic up and opens the
    producer, one after the other. Their longest waits add up to 10 s, a third of the time after
    which the client gives up. These requests go over several connections, of several gateways too,
    so no step can know how long the others waited: each has its part. Opening has most, since a
    client opens many producers at the same time. The two connections that the client makes
    meanwhile, once for each broker, may add half of that again.
    """

    action: Action
    unit: Unit | None
    longest_wait: float | None

    def __new__(
        cls, text: str, action: Action, unit: Unit | None = None, longest_wait: float | None = None
    ) -> Self:
        row = str.__new__(cls, text)
        row._value_ = text
        row.action, row.unit, row.longest_wait = action, unit, longest_wait
        return row

    PUBLISH_MESSAGES = "publish.messages", Action.PRODUCE, Unit.MESSAGES
    PUBLISH_BYTES = "publish.bytes", Action.PRODUCE, Unit.BYTES
    DISPATCH_MESSAGES = "dispatch.messages", Action.CONSUME, Unit.MESSAGES
    DISPATCH_BYTES = "dispatch.bytes", Action.CONSUME, Unit.BYTES
    LOOKUPS = "lookups", Action.LOOKUP, None, 2.5
    CONNECTS = "connects", Action.CONNECT, None, 2.5
    PRODUCER_CREATIONS = "producer_creations", Action.PRODUCE, None, 5.0
    CONSUMER_CREATIONS = "consumer_creations", Action.CONSUME, None, 5.0
    PRODUCERS = "producers", Action.PRODUCE
    CONSUMERS = "consumers", Action.CONSUME

    @property
    def is_concurrency(self) -> bool:
        """Return whether this limits a number that is open at the same time, not a rate."""
        return self.unit is None and self.longest_wait is None


DIMENSIONS: Mapping[str, tuple[Dimension, ...]] = {
    action: tuple(dimension for dimension in Dimension if dimension.action is action)
    for action in Action
}
"""The dimensions that limit each action."""
