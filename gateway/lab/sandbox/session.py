"""One connection to a broker of the sandbox: whole frames in, frames out, no I/O.

`handlers` maps commands to functions. A request without a handler gets an ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors import PeerError
from gateway.lab.sandbox import answers
from gateway.lab.sandbox.answers import INVALID_NAME, ErrorReply
from gateway.lab.sandbox.identity import Authenticator, ClientRoles
from gateway.lab.sandbox.names import parse_topic
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.commands import NO_REQUEST, decode, kind_of, text
from gateway.wire.pulsar.frames import HEAD, Kind, kind_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gateway.lab.sandbox.cluster import SandboxCluster
    from gateway.lab.sandbox.consumer import Consumer, Producer
    from gateway.lab.sandbox.faults import Faults
    from gateway.lab.sandbox.names import FullTopicName
    from gateway.lab.sandbox.subscription import Subscription
    from gateway.lab.sandbox.topic import Topic

    Handler = Callable[["BrokerSession", Any, bytes], None]
    """Takes the session, the command, and the bytes after it in the frame."""

MOST_HANDLES = 10_000
"""Most producers and consumers of one connection."""


class OpenConsumer(NamedTuple):
    """A consumer with its topic and its subscription. `name`: name of the subscription."""

    consumer: Consumer
    topic: Topic
    name: str
    subscription: Subscription


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """What all sessions of one broker share. `broker`: the broker's number in the cluster."""

    cluster: SandboxCluster
    broker: int
    authenticator: Authenticator
    faults: Faults


class BrokerSession:
    """The broker's side of one connection. `send`: takes frames for the client. `congested`:
    returns whether too many bytes wait to be sent.

    `handlers`: functions by type of command. `is_ended`: the session receives no more frames, and
    the connection closes when all frames are sent.
    """

    def __init__(
        self,
        context: BrokerContext,
        send: Callable[[bytes], None],
        congested: Callable[[], bool],
        handlers: Mapping[int, Handler],
    ) -> None:
        self.context = context
        self.cluster = context.cluster
        self.send = send
        self.roles = ClientRoles()
        self.now = 0.0
        self.is_open = False
        self.is_ended = False
        self.producers: dict[int, tuple[Producer, Topic]] = {}
        self.consumers: dict[int, OpenConsumer] = {}
        # Producers that the broker has just closed: SENDs already in flight are ignored.
        self.closed: set[int] = set()
        self._congested = congested
        self._handlers = handlers

    @property
    def is_congested(self) -> bool:
        return self._congested()

    # -- frames ----------------------------------------------------------------------------------

    def receive(self, frame: bytes, now: float) -> None:
        """Handle one whole frame of the client. `now`: wall time in seconds. Raises `PeerError`."""
        if self.is_ended:
            return
        self.now = now
        command = decode(frame)
        kind = kind_of(frame)
        if self.is_open == (kind == Kind.CONNECT):
            raise PeerError(f"{kind_name(kind)} is out of place")
        if kind in self.context.faults.replies:
            self.is_open = True
            self.send(self.context.faults.replies[kind])
            return
        field = answers.FIELDS.get(kind)
        if field is None:
            raise PeerError(f"{kind_name(kind)} is not known")
        tail = frame[HEAD.size + HEAD.unpack_from(frame)[1] :]
        self._handlers.get(kind, _unsupported)(self, getattr(command, field.name), tail)

    def refuse(self, request_id: int, error: ServerError.ValueType, text: str) -> None:
        """Send an ERROR that refuses a request."""
        self.send(answers.error(request_id, ErrorReply(error, text)))

    def end(self, refusal: ErrorReply) -> None:
        """Send an ERROR that belongs to no request, and end the session."""
        self.send(answers.error(NO_REQUEST, refusal))
        self.is_ended = True

    # -- topics ----------------------------------------------------------------------------------

    def served(self, topic: str, request_id: int) -> Topic | None:
        """Return a topic that this broker owns; create it if it does not exist. If the topic cannot
        be served, send an error for the request and return None."""
        name = parse_topic(text(topic))
        served = INVALID_NAME if name is None else self._served(name)
        if isinstance(served, ErrorReply):
            self.send(answers.error(request_id, served))
            return None
        return served

    def _served(self, name: FullTopicName) -> Topic | ErrorReply:
        if self.cluster.owner(name) != self.context.broker:
            reason = f"{name} is not served by this broker; please redo the lookup"
            return ErrorReply(ServerError.ServiceNotReady, reason)
        if name in self.cluster.partitions:
            reason = f"{name} is partitioned: use its partitions"
            return ErrorReply(ServerError.NotAllowedError, reason)
        if len(self.producers) + len(self.consumers) >= MOST_HANDLES:
            reason = f"a connection has {MOST_HANDLES} producers and consumers at most"
            return ErrorReply(ServerError.NotAllowedError, reason)
        reason = "the sandbox keeps no more topics"
        return self.cluster.topic(name) or ErrorReply(ServerError.NotAllowedError, reason)

    # -- closing ---------------------------------------------------------------------------------

    def close_producer(self, producer: Producer, url: str | None) -> None:
        """Close a producer, and send the client a CLOSE_PRODUCER. `url`: the topic's new broker,
        which that command states; None: it states no broker."""
        self.drop_producer(producer.id)
        if len(self.closed) >= MOST_HANDLES:  # no client has SENDs of so many producers in flight
            self.closed.clear()
        self.closed.add(producer.id)
        self.send(_closing(Kind.CLOSE_PRODUCER, producer_id=producer.id, url=url))

    def close_consumer(self, consumer: Consumer, url: str | None) -> None:
        """Close a consumer, and send the client a CLOSE_CONSUMER. `url`: the topic's new broker,
        which that command states; None: it states no broker."""
        self.drop_consumer(consumer.id)
        self.send(_closing(Kind.CLOSE_CONSUMER, consumer_id=consumer.id, url=url))

    def drop_producer(self, id: int) -> None:
        """Remove the producer with this id from the session and from its topic."""
        opened = self.producers.pop(id, None)
        if opened is not None:
            opened[1].remove_producer(opened[0])

    def drop_consumer(self, id: int) -> None:
        """Remove the consumer with this id from the session and from its subscription."""
        opened = self.consumers.pop(id, None)
        if opened is not None:
            opened.topic.detach(opened.name, opened.consumer)

    def resume(self) -> None:
        """Dispatch messages to all consumers again, because enough bytes were sent to the
        client."""
        for opened in list(self.consumers.values()):
            opened.subscription.dispatch()

    def close(self) -> None:
        """Remove all producers and consumers, because the connection is lost."""
        for id in list(self.producers):
            self.drop_producer(id)
        # No consumer of this connection may get the entries of another.
        for opened in self.consumers.values():
            opened.consumer.permits = 0
        for id in list(self.consumers):
            self.drop_consumer(id)


def _unsupported(session: BrokerSession, message: Any, _: bytes) -> None:
    request_id = getattr(message, "request_id", None)
    if request_id is not None:
        reason = f"the sandbox has no {message.DESCRIPTOR.name}: try a real broker"
        session.refuse(request_id, ServerError.NotAllowedError, reason)


def _closing(kind: Kind, *, url: str | None, **id: int) -> bytes:
    fields: dict[str, Any] = {"request_id": NO_REQUEST, **id}
    if url is not None:
        fields["assignedBrokerServiceUrl"] = url
    return answers.frame(kind, **fields)
