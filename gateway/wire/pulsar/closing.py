"""Closes that wait for receipts: those that a broker says, and those that the gateway makes.

Receipts that come after a close
================================
A broker closes a producer, or fences its topic, before it has given receipts for all that it has
stored. A client that hears of the close opens the producer anew, at once and perhaps elsewhere, and
sends again what has no receipt: it is stored twice. So the close is told when no receipt is awaited
any more, or when none has come for a while.

Only receipts go ahead of the close. Whatever else the broker says of the producer comes behind it:
the Go client forgets a producer by a SEND_ERROR TopicTerminatedError, and a close that it hears
after that it ignores.

Leaving
=======
When the gateway stops, it moves the producers and consumers of a pair to another one. Each goes its
own way, in this order:

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

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import NamedTuple

from gateway.wire.account import Action
from gateway.wire.address import Address
from gateway.wire.contract import Effects, Later
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.addresses import Veil
from gateway.wire.pulsar.commands import NO_REQUEST, encode
from gateway.wire.pulsar.ids import Handle

FIRST = 0.1
"""Seconds for the first receipt: mostly none comes, as what has none was still on its way to the
broker. A producer that moves is away for as long anyway."""

QUIET = 0.2
"""Seconds for another one, where some came: a broker that was frozen gave them in bursts, with
0.1 s in between."""

IGNORANCE = 2.0
"""Seconds that a client is kept in ignorance at most. Its producer could be open elsewhere."""

LOOKS = 64
"""Closed producers that `complete` looks at in one call. It is called for every chunk that goes to
the client, so looking at all of thousands would cost more than the chunk; whom it does not come to,
the next `look` finds."""


class _Closed(NamedTuple):
    """`told`: the close, as the client may see it. `unanswered`: frames without a receipt when it
    was looked at last. `until`: when the client is told anyway."""

    told: bytes
    unanswered: int
    until: float


class LateReceipts:
    """The closed producers of one pair. Made when it is needed: idle pairs are many.

    `tell` returns the effects by which the client of a closed producer hears of it. No method's
    cost grows with the number of closed producers.
    """

    __slots__ = ("_closed", "_tell")

    def __init__(self, tell: Callable[[Handle], Effects]) -> None:
        self._closed: OrderedDict[Handle, _Closed] = OrderedDict()
        self._tell = tell

    def __bool__(self) -> bool:
        return bool(self._closed)

    def begin(self, handle: Handle, told: bytes, now: float) -> Later:
        """Await the receipts of a producer. `told`: the close, as its client may see it."""
        return self._look_later(handle, told, now + FIRST, now + IGNORANCE)

    def _look_later(self, handle: Handle, told: bytes, when: float, until: float) -> Later:
        closed = self._closed[handle] = _Closed(told, handle.unanswered, until)
        return Later(min(when, until), partial(self._look, handle, closed))

    def _look(self, handle: Handle, closed: _Closed, now: float) -> Effects:
        """Tell the client, unless receipts have come and more may come."""
        if self._closed.get(handle) is not closed:
            return ()  # it is over meanwhile
        if 0 < handle.unanswered < closed.unanswered and now < closed.until:
            return (self._look_later(handle, closed.told, now + QUIET, closed.until),)
        return self._tell(handle)

    def complete(self) -> list[Handle]:
        """Return those whose receipts are all here, among the next few."""
        found = []
        for handle in tuple(islice(self._closed, LOOKS)):
            if handle.unanswered:
                self._closed.move_to_end(handle)
            else:
                found.append(handle)
        return found

    def over(self, handle: Handle) -> bytes:
        """Await nothing for a producer any more; return what its client is to be told."""
        closed = self._closed.pop(handle, None)
        return b"" if closed is None else closed.told


PATIENCE = 2.0
"""Seconds for the receipts of a producer, and again for the broker's answer to a close. Brokers
need milliseconds; one that needs longer is in trouble, and its clients are better off elsewhere."""


class Leaving:
    """What is known of those that leave. `broker`: whose connection this is; None: of whichever
    broker another gateway chose. `draw` gives the ids of our requests.
    """

    __slots__ = ("_broker", "_draw", "_revoked", "_since", "_veil", "_waiting")

    def __init__(self, veil: Veil, broker: Address | None, draw: Callable[[], int]) -> None:
        self._veil = veil
        self._broker = broker
        self._draw = draw
        self._waiting: dict[int, Handle] = {}  # by our request
        self._since: dict[Handle, float] = {}
        self._revoked: set[Handle] = set()

    def begin(self, handle: Handle, now: float) -> None:
        """The first step of a handle is taken."""
        self._since[handle] = now

    def is_late(self, handle: Handle, now: float) -> bool:
        """Whether its step takes too long."""
        return now >= self._since.get(handle, now) + PATIENCE

    def close(self, handle: Handle, now: float, *, revoked: bool = False) -> bytes:
        """Return the frame that closes it at the broker. `revoked`: its client stays here."""
        if revoked:
            self._revoked.add(handle)
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
        self._revoked.discard(handle)

    def told(self, handle: Handle) -> bytes:
        """The frame that tells its client where to go on.

        A broker without an alias is left out: then the client looks up again.
        """
        command = closing(handle, NO_REQUEST)
        elsewhere = None if handle in self._revoked else self._broker
        alias = None if elsewhere is None else self._veil.alias_url(elsewhere)
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
