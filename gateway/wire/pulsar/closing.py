"""Closes that wait for receipts: closes by the broker, and closes by a gateway that drains.

Receipts that come after a close
================================
A broker closes a producer, or fences its topic, before it has sent receipts for all messages that
it has stored. A client that hears of the close opens the producer again at once, perhaps elsewhere,
and repeats the messages without receipts, which are then stored twice. So the gateway tells the
client of the close only when no receipt is awaited any more, or when none has come for a while.

Only receipts overtake the close. All other commands of the broker about the producer come behind
the close: the Go client forgets a producer at a SEND_ERROR TopicTerminatedError, and ignores a
close after that.

Leaving
=======
When the gateway stops, it moves the producers and consumers of a pair to another gateway, each by
itself, in this order:

1. *leaving*: the gateway forwards no more SENDs of a producer. Their client gets no receipts for
   them, and repeats them later. The gateway awaits the receipts of earlier SENDs.
2. *moving*: the gateway closes the producer or consumer at the broker, by a request of its own.
3. Only then the gateway tells the client, by a close that names an *alias*: another name of the
   same broker. The client's pool has no connection of that name, so the client dials the service's
   address, where another gateway listens.

If the client were told first, messages would be doubled, because its new incarnation would overtake
receipts. If it were told the name that it knows, it would come back on this connection. This order
loses and doubles nothing with the Python, Go and Java clients.
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
from gateway.wire.pulsar.addresses import AddressRewriter
from gateway.wire.pulsar.commands import close_command, encode
from gateway.wire.pulsar.handles import Handle

FIRST = 0.1
"""Seconds to wait for the first receipt. Mostly none comes, as SENDs without one were still on
their way to the broker. A producer that moves is away for as long anyway."""

QUIET = 0.2
"""Seconds to wait for another receipt after some came. A broker that was frozen sent receipts in
bursts, 0.1 s apart."""

LATEST = 2.0
"""The most seconds until the client gets the close. Its producer could be open elsewhere."""

LOOKS = 64
"""Closed producers that `complete` looks at in one call. It is called for every chunk that goes to
the client, so looking at thousands would cost more than the chunk. `_look` finds the others."""


class _Closed(NamedTuple):
    """A producer that the broker closed. `close`: the frame for its client. `unanswered`: in-flight
    frames at the last look. `until`: when the client gets the close in any case."""

    close: bytes
    unanswered: int
    until: float


class LateReceipts:
    """Keeps the close of each producer that the broker closed before it had sent all receipts. The
    client gets the close after the receipts, or when none has come for a while.

    `tell`: returns the effects that send the close of a producer to its client. No method takes
    longer if more producers are closed.
    """

    __slots__ = ("_closed", "_tell")

    def __init__(self, tell: Callable[[Handle], Effects]) -> None:
        self._closed: OrderedDict[Handle, _Closed] = OrderedDict()
        self._tell = tell

    def __bool__(self) -> bool:
        return bool(self._closed)

    def begin(self, handle: Handle, close: bytes, now: float) -> Later:
        """Begin to wait for the receipts of a producer that the broker closed. Return the effect
        that checks later whether they have come. `close`: the frame that will tell the client of
        the close."""
        return self._look_later(handle, close, now + FIRST, now + LATEST)

    def _look_later(self, handle: Handle, close: bytes, when: float, until: float) -> Later:
        closed = self._closed[handle] = _Closed(close, handle.unanswered, until)
        return Later(min(when, until), partial(self._look, handle, closed))

    def _look(self, handle: Handle, closed: _Closed, now: float) -> Effects:
        """Send the client the close, unless receipts have come and more may come."""
        if self._closed.get(handle) is not closed:
            return ()  # the incarnation is over
        if 0 < handle.unanswered < closed.unanswered and now < closed.until:
            return (self._look_later(handle, closed.close, now + QUIET, closed.until),)
        return self._tell(handle)

    def complete(self) -> list[Handle]:
        """Check the next producers that wait for receipts, at most `LOOKS`. Return the producers
        whose receipts have all come."""
        finished = []
        for handle in tuple(islice(self._closed, LOOKS)):
            if handle.unanswered:
                self._closed.move_to_end(handle)
            else:
                finished.append(handle)
        return finished

    def over(self, handle: Handle) -> bytes:
        """Stop waiting for a producer's receipts. Return the frame that tells the client of the
        close; empty if no receipts were awaited for the producer."""
        closed = self._closed.pop(handle, None)
        return b"" if closed is None else closed.close


PATIENCE = 2.0
"""Seconds to wait for the next of a producer's receipts, and again for the broker's response to a
close. Brokers need milliseconds; the clients of a broker that is silent for longer are better off
elsewhere. A broker that is slow with a thousand messages is not silent: if it were left with half
of them stored, the client would repeat these."""


class _Step(NamedTuple):
    """A step of leaving. `since`: when it began, or when the last receipt came. `unanswered`:
    in-flight frames then."""

    since: float
    unanswered: int


class Leaving:
    """Closes producers and consumers at the broker and at the client, to move them to another
    gateway, or because rules revoke them.

    `broker`: the broker of this connection; None if an upstream gateway chose the broker. `draw`:
    returns ids for the gateway's own requests.
    """

    __slots__ = ("_broker", "_draw", "_revoked", "_rewriter", "_steps", "_waiting")

    def __init__(
        self, rewriter: AddressRewriter, broker: Address | None, draw: Callable[[], int]
    ) -> None:
        self._rewriter = rewriter
        self._broker = broker
        self._draw = draw
        self._waiting: dict[int, Handle] = {}  # by the gateway's request
        self._steps: dict[Handle, _Step] = {}
        self._revoked: set[Handle] = set()

    def begin(self, handle: Handle, now: float) -> None:
        """Begin to measure how long the broker takes for the next step of moving or closing a
        producer or consumer. The step begins at the time `now`."""
        self._steps[handle] = _Step(now, handle.unanswered)

    def is_late(self, handle: Handle, now: float) -> bool:
        """Return whether, in the current step of moving or closing a producer or consumer, the
        broker has sent no receipt and no response for `PATIENCE` seconds."""
        step = self._steps.get(handle)
        if step is None:
            return False
        if handle.unanswered < step.unanswered:
            self.begin(handle, now)
            return False
        return now >= step.since + PATIENCE

    def close(self, handle: Handle, now: float, *, revoked: bool = False) -> bytes:
        """Return the frame that closes a producer or consumer at the broker, and begin to wait for
        the response. `revoked`: the reason is a rule, so the client is not moved to another
        gateway."""
        if revoked:
            self._revoked.add(handle)
        request = self._draw()
        self._waiting[request] = handle
        self.begin(handle, now)
        return encode(close_command(handle.action, handle.id, request))

    def answered(self, request_id: int) -> Handle | None:
        """Return the producer or consumer that the broker has closed, given the request id of its
        response; None if the response is to another request."""
        return self._waiting.pop(request_id, None)

    def over(self, handle: Handle) -> None:
        """Forget a producer or consumer that no longer exists."""
        self._steps.pop(handle, None)
        self._revoked.discard(handle)

    def close_for_client(self, handle: Handle) -> bytes:
        """Return the frame that tells the client of the close. The frame names an alias of the
        broker. The client has no connection under this name, so it opens one, which another gateway
        accepts.

        If there is no alias, or rules revoked the producer or consumer, the frame names no broker,
        and the client looks the topic up again.
        """
        command = close_command(handle.action, handle.id)
        elsewhere = None if handle in self._revoked else self._broker
        alias = None if elsewhere is None else self._rewriter.alias_url(elsewhere)
        if isinstance(alias, str):
            of_producer = handle.action is Action.PRODUCE
            message = command.close_producer if of_producer else command.close_consumer
            message.assignedBrokerServiceUrl = message.assignedBrokerServiceUrlTls = alias
        return encode(command)
