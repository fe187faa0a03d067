"""A client that behaves like the libraries: after a reopening, it resends messages without a
receipt in order."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.playbooks import frames
from tests.playbooks.frames import Fields, read

from .broker import SHARED_TYPE, SUBSCRIPTION, send
from .links import Direct


class State(Enum):
    CLOSED = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSING = auto()
    GONE = auto()


@dataclass
class Producer:
    """`pending`: sequence ids without a receipt; `done`: those with one."""

    name: str
    id: int
    topic: str
    state: State = State.CLOSED
    request: int = 0
    link: Direct | None = None
    next: int = 0
    pending: deque[int] = field(default_factory=deque)
    done: list[int] = field(default_factory=list)


@dataclass
class Consumer:
    """`received`: indexes of the topic's log. `queue`: messages requested at a time. With a queue
    of one the application waits for each message, and requests one even before SUCCESS, as Go does.
    """

    id: int
    topic: str
    queue: int = 1000
    state: State = State.CLOSED
    request: int = 0
    link: Direct | None = None
    received: list[int] = field(default_factory=list)


Party = Producer | Consumer


class Client:
    """One client. `link`: where it opens producers and consumers without a broker of their own."""

    def __init__(self, link: Direct) -> None:
        self.link = link
        self.patient = (
            True  # ignores a close during an opening: the close is for the previous incarnation
        )
        self.said: Counter[int] = Counter()  # SENDs by the request that opened their producer
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self._requests = 0

    def lose(self, link: Direct) -> None:
        """A connection is lost: its producers and consumers have to be opened again."""
        for party in self.parties_on(link):
            party.link = None
            if party.state is State.CLOSING:
                party.state = State.GONE
            elif party.state is not State.GONE:
                party.state = State.CLOSED

    def parties_on(self, link: Direct) -> list[Party]:
        """Return the producers and consumers whose current or last connection is `link`."""
        return [party for party in self._parties() if party.link is link]

    def _parties(self) -> list[Party]:
        return [*self.producers.values(), *self.consumers.values()]

    def _request(self) -> int:
        self._requests += 1
        return self._requests

    # -- actions of the application ------------------------------------------------------------

    def open(self, party: Party) -> None:
        """Open or reopen a producer or consumer."""
        party.state, party.request = State.OPENING, self._request()
        party.link = party.link or self.link
        if isinstance(party, Producer):
            asked = frames.producer(party.id, request=party.request, topic=party.topic)
            party.link.client_says(asked)
            return
        party.link.client_says(_subscribe(party))
        if party.queue == 1:
            self._ask(party)

    def _ask(self, consumer: Consumer) -> None:
        assert consumer.link is not None
        flow = frames.frame(Kind.FLOW, consumer_id=consumer.id, messagePermits=consumer.queue)
        consumer.link.client_says(flow)

    def submit(self, producer: Producer) -> None:
        """Submit one more message."""
        producer.pending.append(producer.next)
        producer.next += 1
        if producer.state is State.OPEN:
            self._send(producer, producer.pending[-1])

    def _send(self, producer: Producer, sequence: int) -> None:
        self.said[producer.request] += 1
        frame = send(producer.id, producer.name, producer.request, sequence)
        assert producer.link is not None
        producer.link.client_says(frame)

    def close(self, party: Party) -> None:
        """Close for good. A producer's messages without a receipt have failed."""
        close = frames.close_producer if isinstance(party, Producer) else frames.close_consumer
        party.state, party.request = State.CLOSING, self._request()
        assert party.link is not None
        party.link.client_says(close(party.id, request=party.request))
        if isinstance(party, Producer):
            party.pending.clear()

    # -- received frames -----------------------------------------------------------------------

    def read(self, link: Direct) -> None:  # noqa: C901 - an arm for each command
        """Handle the next frame of a connection."""
        command = read(link.to_client.popleft())
        match command.type:
            case Kind.PRODUCER_SUCCESS:
                self._answered(command.producer_success.request_id)
            case Kind.SUCCESS:
                self._answered(command.success.request_id)
            case Kind.ERROR:
                self._refused(command.error.request_id, command.error.error)
            case Kind.SEND_ERROR:
                self._failed(self.producers[command.send_error.producer_id], link)
            case Kind.SEND_RECEIPT:
                receipt = command.send_receipt
                producer = self.producers[receipt.producer_id]
                if producer.link is link:
                    self._receipt(producer, receipt.sequence_id)
            case Kind.CLOSE_PRODUCER:
                close = command.close_producer
                producer = self.producers[close.producer_id]
                self._closed(link, producer, close.assignedBrokerServiceUrl)
            case Kind.CLOSE_CONSUMER:
                shut = command.close_consumer
                consumer = self.consumers[shut.consumer_id]
                self._closed(link, consumer, shut.assignedBrokerServiceUrl)
            case Kind.TOPIC_MIGRATED:
                news = command.topicMigrated
                parties = self.consumers if news.resource_type else self.producers
                self._migrated(link, parties[news.resource_id])
            case Kind.MESSAGE:
                got = command.message
                consumer = self.consumers[got.consumer_id]
                if consumer.link is link:
                    self._message(consumer, got.message_id.entryId)
            case Kind.REACHED_END_OF_TOPIC:
                pass
            case other:
                raise AssertionError(f"the model client knows no command {other}")

    def _asked(self, request: int) -> Party | None:
        return next((party for party in self._parties() if party.request == request), None)

    def _answered(self, request: int) -> None:
        party = self._asked(request)
        if party is None:
            return
        if party.state is State.CLOSING:
            party.state = State.GONE
        elif party.state is State.OPENING:
            self._opened(party)

    def _opened(self, party: Party) -> None:
        party.state = State.OPEN
        if isinstance(party, Consumer):
            self._ask(party)
            return
        for sequence in party.pending:
            self._send(party, sequence)

    def _refused(self, request: int, code: ServerError.ValueType) -> None:
        party = self._asked(request)
        if party is not None and party.state is State.OPENING:
            party.state = State.CLOSED
            if code == ServerError.TopicTerminatedError and isinstance(party, Producer):
                party.state = State.GONE
                party.pending.clear()

    def _failed(self, producer: Producer, link: Direct) -> None:
        """A SEND_ERROR: the topic is terminated. Go drops the producer for this alone, and does not
        reopen it; a client that was told of the close reopens it, and is refused."""
        if producer.link is link:
            assert producer.state is not State.OPEN, "the SEND_ERROR overtakes the close before it"

    def _closed(self, link: Direct, party: Party, elsewhere: str) -> None:
        """Libraries treat a close during an opening differently; the gateway must handle both."""
        if party.link is not link:
            return
        if party.state is State.OPEN or (party.state is State.OPENING and not self.patient):
            party.state, party.request = State.CLOSED, 0
            if elsewhere:
                party.link = None

    def _migrated(self, link: Direct, party: Party) -> None:
        """Reopen in the other cluster, which is the same one in this model."""
        if party.link is link and party.state in (State.OPEN, State.OPENING):
            party.state, party.request, party.link = State.CLOSED, 0, None

    def _receipt(self, producer: Producer, sequence: int) -> None:
        if not producer.pending or sequence < producer.pending[0]:
            return  # a message that was sent twice, or whose producer was closed
        assert sequence == producer.pending[0], (
            f"a receipt for {sequence} before that for {producer.pending[0]}: the client reconnects"
        )
        producer.done.append(producer.pending.popleft())

    def _message(self, consumer: Consumer, index: int) -> None:
        if consumer.state is not State.OPEN:
            return  # for the previous incarnation: it is redelivered
        consumer.received.append(index)
        entry = {"ledgerId": 1, "entryId": index}
        ack = frames.frame(Kind.ACK, consumer_id=consumer.id, ack_type=0, message_id=[entry])
        assert consumer.link is not None
        consumer.link.client_says(ack)
        if consumer.queue == 1:
            self._ask(consumer)


def _subscribe(consumer: Consumer) -> bytes:
    fields: Fields = {"topic": consumer.topic, "subscription": SUBSCRIPTION, "subType": SHARED_TYPE}
    return frames.frame(
        Kind.SUBSCRIBE, consumer_id=consumer.id, request_id=consumer.request, **fields
    )
