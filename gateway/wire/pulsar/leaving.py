"""Moves the producers and consumers of one pair to another gateway, when this one stops.

Each goes its own way, in this order:

1. *leaving*: nothing of a producer is forwarded any more. Its client has no receipt for what it
   sends now, and sends it again later. The receipts of what the broker has are awaited.
2. *moving*: it is closed at the broker, by a request of ours.
3. Only then is the client told, by a close that names an *alias*: another name of the same broker.
   Its pool has no connection of that name, so it dials the service's address, where another
   gateway listens.

A client that is told first doubles messages, for its newer incarnation overtakes receipts. One
that is told the name it knows comes back on this connection. The order is the same for the
Python, Go and Java clients, and loses and doubles nothing with any of them.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.wire.contract import Action, Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.addresses import Veil
from gateway.wire.pulsar.commands import NO_REQUEST, encode
from gateway.wire.pulsar.ids import Handle

PATIENCE = 2.0
"""Seconds for the receipts of a producer, and again for the broker's answer to a close. Brokers
need milliseconds; one that needs longer is in trouble, and its clients are better off elsewhere."""


class Leaving:
    """What is known of those that leave. `broker`: whose connection this is; None: of whichever
    broker another gateway chose. `draw` gives the ids of our requests.
    """

    __slots__ = ("_broker", "_draw", "_since", "_veil", "_waiting")

    def __init__(self, veil: Veil, broker: Address | None, draw: Callable[[], int]) -> None:
        self._veil = veil
        self._broker = broker
        self._draw = draw
        self._waiting: dict[int, Handle] = {}  # by our request
        self._since: dict[Handle, float] = {}

    def begin(self, handle: Handle, now: float) -> None:
        """The first step of a handle is taken."""
        self._since[handle] = now

    def is_late(self, handle: Handle, now: float) -> bool:
        """Whether its step takes too long."""
        return now >= self._since.get(handle, now) + PATIENCE

    def close(self, handle: Handle, now: float) -> bytes:
        """The frame that closes it at the broker."""
        request = self._draw()
        self._waiting[request] = handle
        self._since[handle] = now
        return encode(closing(handle, request))

    def awaits(self, request_id: int) -> bool:
        """Whether the request was ours."""
        return request_id in self._waiting

    def answered(self, request_id: int) -> Handle | None:
        """Whose close is answered by this; None: nobody's."""
        return self._waiting.pop(request_id, None)

    def over(self, handle: Handle) -> None:
        """It is gone, this way or another."""
        self._since.pop(handle, None)

    def told(self, handle: Handle) -> bytes:
        """The frame that tells its client where to go on.

        A broker without an alias is left out: then the client looks up again.
        """
        command = closing(handle, NO_REQUEST)
        alias = None if self._broker is None else self._veil.alias_url(self._broker)
        if isinstance(alias, str):
            of_producer = handle.action is Action.PRODUCE
            close = command.close_producer if of_producer else command.close_consumer
            close.assignedBrokerServiceUrl = close.assignedBrokerServiceUrlTls = alias
        return encode(command)


def closing(handle: Handle, request_id: int) -> BaseCommand:
    """The command that closes a producer or a consumer, by either side."""
    if handle.action is Action.PRODUCE:
        command = BaseCommand(type=BaseCommand.CLOSE_PRODUCER)
        command.close_producer.producer_id = handle.id
        command.close_producer.request_id = request_id
        return command
    command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = handle.id
    command.close_consumer.request_id = request_id
    return command
