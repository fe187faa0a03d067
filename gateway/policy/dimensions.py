"""The quantities that rules can limit, as a table with one row for each quantity."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Self

from gateway.wire.account import Action


class Unit(IntEnum):
    """The unit of a traffic limit, messages or bytes: it says which counter of an account the limit
    charges."""

    MESSAGES = 0
    BYTES = 1


class Dimension(StrEnum):
    """A quantity that a rule can limit.

    `action`: the client's action that is limited. A dimension with a `unit` limits a rate of
    traffic. A dimension with a `longest_wait` limits a rate of requests, each of which may wait at
    most that many seconds. A dimension with neither limits how many producers or consumers are open
    at the same time.

    The longest waits divide the time that a client has for opening its first producer. The client
    requests partitions, looks the topic up and opens the producer, one after the other. The longest
    waits of these three requests add up to 10 s, a third of the time after which the client gives
    up. The requests may use several connections, even to several gateways, so no gateway can know
    how long the earlier requests have waited. That is why each kind of request has a bound of its
    own. Opening has the largest bound, because a client opens many producers at the same time. The
    client also makes two connections, once for each broker, whose waits may add another 5 s.
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
        """Return whether this dimension limits the number of open producers or consumers, not a
        rate."""
        return self.unit is None and self.longest_wait is None


DIMENSIONS: Mapping[str, tuple[Dimension, ...]] = {
    action: tuple(dimension for dimension in Dimension if dimension.action is action)
    for action in Action
}
"""The dimensions that limit each action."""
