"""One connection to a broker of the sandbox: whole frames in, frames out, no I/O.

The table of `handlers` says which function handles a command. A request that none of them handles
is answered by ERROR, so that no client waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors import PeerError
from gateway.sandbox import answers
from gateway.sandbox.answers import NO_NAME, Refusal
from gateway.sandbox.identity import Doorkeeper, Who
from gateway.sandbox.names import parse
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.commands import NO_REQUEST, decode, kind_of, text
from gateway.wire.pulsar.frames import HEAD, Kind, kind_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gateway.sandbox.cluster import Cluster
    from gateway.sandbox.consumer import Consumer, Producer
    from gateway.sandbox.faults import Faults
    from gateway.sandbox.names import TopicName
    from gateway.sandbox.subscription import Subscription
    from gateway.sandbox.topic import Topic

    Handler = Callable[["Session", Any, bytes], None]
    """Takes the session, the command, and what follows it in the frame."""

MOST_HANDLES = 10_000
"""Producers and consumers of one connection."""


class Seat(NamedTuple):
    """A consumer, and where it consumes. `name`: of the subscription."""

    consumer: Consumer
    topic: Topic
    name: str
    subscription: Subscription


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session is: a broker (its number) of a cluster."""

    cluster: Cluster
    broker: int
    doorkeeper: Doorkeeper
    faults: Faults


class Session:
    """`send` takes frames for the client; `congested` says whether too much of them waits.

    `handlers`: by the type of the command.
    `is_ended`: nothing more is received, and the connection closes when all was sent.
    """

    def __init__(
        self,
        place: Place,
        send: Callable[[bytes], None],
        congested: Callable[[], bool],
        handlers: Mapping[int, Handler],
    ) -> None:
        self.place = place
        self.cluster = place.cluster
        self.send = send
        self.who = Who()
        self.now = 0.0
        self.is_open = False
        self.is_ended = False
        self.producers: dict[int, tuple[Producer, Topic]] = {}
        self.consumers: dict[int, Seat] = {}
        # Closed by us a moment ago: what their clients had sent before they knew is ignored.
        self.closed: set[int] = set()
        self._congested = congested
        self._handlers = handlers

    @property
    def is_congested(self) -> bool:
        return self._congested()

    # -- frames ----------------------------------------------------------------------------------

    def receive(self, frame: bytes, now: float) -> None:
        """Handle a whole frame, at a wall time in seconds. Raises `PeerError`."""
        if self.is_ended:
            return
        self.now = now
        command = decode(frame)
        kind = kind_of(frame)
        if self.is_open == (kind == Kind.CONNECT):
            raise PeerError(f"{kind_name(kind)} is out of place")
        if kind in self.place.faults.words:
            self.is_open = True
            self.send(self.place.faults.words[kind])
            return
        field = answers.FIELDS.get(kind)
        if field is None:
            raise PeerError(f"{kind_name(kind)} is not known")
        tail = frame[HEAD.size + HEAD.unpack_from(frame)[1] :]
        self._handlers.get(kind, _unsupported)(self, getattr(command, field.name), tail)

    def refuse(self, request_id: int, error: ServerError.ValueType, text: str) -> None:
        """Answer a request by ERROR."""
        self.send(answers.error(request_id, Refusal(error, text)))

    def end(self, refusal: Refusal) -> None:
        """Say why, and close."""
        self.send(answers.error(NO_REQUEST, refusal))
        self.is_ended = True

    # -- topics ----------------------------------------------------------------------------------

    def served(self, topic: str, request_id: int) -> Topic | None:
        """The topic for a producer or consumer; None where there is none, which was answered."""
        name = parse(text(topic))
        found = NO_NAME if name is None else self._served(name)
        if isinstance(found, Refusal):
            self.send(answers.error(request_id, found))
            return None
        return found

    def _served(self, name: TopicName) -> Topic | Refusal:
        if self.cluster.owner(name) != self.place.broker:
            said = f"{name} is not served by this broker; please redo the lookup"
            return Refusal(ServerError.ServiceNotReady, said)
        if name in self.cluster.partitions:
            said = f"{name} has partitions: use these"
            return Refusal(ServerError.NotAllowedError, said)
        if len(self.producers) + len(self.consumers) >= MOST_HANDLES:
            said = f"a connection has {MOST_HANDLES} producers and consumers at most"
            return Refusal(ServerError.NotAllowedError, said)
        said = "the sandbox keeps no more topics"
        return self.cluster.topic(name) or Refusal(ServerError.NotAllowedError, said)

    # -- what others do to this connection -------------------------------------------------------

    def close_producer(self, producer: Producer, url: str | None) -> None:
        """The broker closes a producer."""
        self.drop_producer(producer.id)
        if len(self.closed) >= MOST_HANDLES:  # nobody has so many SENDs on the way
            self.closed.clear()
        self.closed.add(producer.id)
        self.send(_closing(Kind.CLOSE_PRODUCER, producer_id=producer.id, url=url))

    def close_consumer(self, consumer: Consumer, url: str | None) -> None:
        """The broker closes a consumer."""
        self.drop_consumer(consumer.id)
        self.send(_closing(Kind.CLOSE_CONSUMER, consumer_id=consumer.id, url=url))

    def drop_producer(self, id: int) -> None:
        """A producer is over."""
        found = self.producers.pop(id, None)
        if found is not None:
            found[1].remove_producer(found[0])

    def drop_consumer(self, id: int) -> None:
        """A consumer is over."""
        seat = self.consumers.pop(id, None)
        if seat is not None:
            seat.topic.detach(seat.name, seat.consumer)

    def resume(self) -> None:
        """There is room again for messages."""
        for seat in list(self.consumers.values()):
            seat.subscription.dispatch()

    def close(self) -> None:
        """The connection is gone, and all that was opened on it."""
        for id in list(self.producers):
            self.drop_producer(id)
        # None of them gets what another one had.
        for seat in self.consumers.values():
            seat.consumer.permits = 0
        for id in list(self.consumers):
            self.drop_consumer(id)


def _unsupported(session: Session, message: Any, _: bytes) -> None:
    request_id = getattr(message, "request_id", None)
    if request_id is not None:
        said = f"the sandbox has no {message.DESCRIPTOR.name}: try a real broker"
        session.refuse(request_id, ServerError.NotAllowedError, said)


def _closing(kind: Kind, *, url: str | None, **id: int) -> bytes:
    fields: dict[str, Any] = {"request_id": NO_REQUEST, **id}
    if url is not None:
        fields["assignedBrokerServiceUrl"] = url
    return answers.frame(kind, **fields)
