"""A broker for producers and consumers: what it stores, answers, and treats as an error.

It behaves as Pulsar's `ServerCnx`; `tests/orders` plays the same orders of events against it and
against real brokers. Opening takes a while: until then the id is taken, permits are lost, and a
SEND ends the connection.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.playbooks import frames
from tests.playbooks.frames import read
from tests.support.requests import FIRST_OWN

from .links import Direct

SHARED_ACCESS, EXCLUSIVE, WAIT, FENCING = range(4)
"""Access modes of producers."""

EXCLUSIVE_TYPE, SHARED_TYPE, FAILOVER_TYPE = range(3)
"""Types of subscriptions."""

SUBSCRIPTION = "s"
"""The model client's subscription."""

MOST_PERMITS = 2**31
"""From this number on, a broker reads a FLOW as negative."""


class Closed(Exception):  # noqa: N818 - not an error: brokers do this
    """The broker ends the connection."""


class Stored(NamedTuple):
    """One message of a topic: its producer, its sequence id, and what follows its command."""

    producer: str
    sequence: int
    tail: bytes


@dataclass
class Subscription:
    """`taken`: delivered and unacknowledged messages with their consumer, by index."""

    kind: int
    acknowledged: set[int] = field(default_factory=set)
    taken: dict[int, Consumer] = field(default_factory=dict)
    consumers: list[Consumer] = field(default_factory=list)

    def release(self, consumer: Consumer) -> None:
        """Make this consumer's unacknowledged messages available again."""
        self.taken = {index: who for index, who in self.taken.items() if who is not consumer}


@dataclass(eq=False)
class Topic:
    """`owner`: the producer with exclusive access, for which others wait."""

    name: str
    log: list[Stored] = field(default_factory=list)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    producers: list[Producer] = field(default_factory=list)
    owner: Producer | None = None
    waiting: list[Producer] = field(default_factory=list)
    terminated: bool = False

    @property
    def acknowledged(self) -> set[int]:
        """Return the indexes acknowledged by the model client's subscription."""
        found = self.subscriptions.get(SUBSCRIPTION)
        return set() if found is None else found.acknowledged


@dataclass(eq=False)
class Producer:
    """`opened_by`: the request, which every SEND repeats. `got`: the number of its SENDs.

    `writing`: stored sequence ids without a receipt. `closing`: the request that closes the
    producer, answered after all receipts. `given_up`: closed before it was open, and open
    nevertheless.
    """

    connection: Connection
    id: int
    topic: Topic
    opened_by: int
    name: str = ""
    access: int = SHARED_ACCESS
    got: int = 0
    writing: deque[int] = field(default_factory=deque)
    closing: int = 0
    given_up: bool = False


@dataclass(eq=False)
class Consumer:
    connection: Connection
    id: int
    topic: Topic
    subscription: Subscription
    permits: int = 0


@dataclass
class Late:
    """SENDs of a producer that the broker has closed and may still answer."""

    id: int
    writing: deque[int]


class Connections(list["Connection"]):
    """All connections of the broker.

    `crossed`: messages about closes are late, so that one producer may be open on two connections
    for a moment; a real broker then answers ProducerBusy to the second.
    """

    crossed = False


Opening = Callable[[], None]


class Connection:
    """The broker's side of one connection.

    `opens_after_close`: a producer that is closed during its opening is opened nevertheless, as
    4.2.4 may do; otherwise it is never opened, as in 4.0.8.
    """

    def __init__(
        self,
        link: Direct,
        topics: dict[str, Topic],
        said: Counter[int],
        others: Connections,
        *,
        opens_after_close: bool = False,
    ) -> None:
        self.link = link
        self.topics = topics
        self.said = said
        self.others = others
        self.opens_after_close = opens_after_close
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.late: list[Late] = []
        self._closed: set[int] = set()  # producers that the broker closed
        self._given_up: set[int] = set()  # producers closed during their opening
        self._opening: dict[tuple[str, int], Opening] = {}
        self._soon: deque[Callable[[], None]] = deque()  # delayed answers
        self._asked: dict[tuple[str, int], int] = {}  # the latest request about each id
        self.refuse_next = False
        self.elsewhere = ""  # where the topic of the next opening has migrated to

    # -- received frames -----------------------------------------------------------------------

    def read(self) -> None:
        """Handle the next frame. Raises `Closed`."""
        frame = self.link.to_broker.popleft()
        command = read(frame)
        self._check_order(command)
        match command.type:
            case Kind.PRODUCER:
                self._producer(command.producer)
            case Kind.SEND:
                self._send(command.send, frame)
            case Kind.CLOSE_PRODUCER:
                self._close_producer(command.close_producer)
            case Kind.SUBSCRIBE:
                self._subscribe(command.subscribe)
            case Kind.FLOW:
                self._flow(command.flow)
            case Kind.ACK:
                self._ack(command.ack)
            case Kind.SEEK:
                self._seek(command.seek)
            case Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES:
                self._redeliver(command.redeliverUnacknowledgedMessages)
            case Kind.UNSUBSCRIBE:
                self._unsubscribe(command.unsubscribe)
            case Kind.CLOSE_CONSUMER:
                self._close_consumer(command.close_consumer)
            case other:
                raise AssertionError(f"the model broker knows no command {other}")

    def _check_order(self, command: BaseCommand) -> None:
        """Check that requests arrive in order. A client numbers its requests; a gateway's own
        requests have numbers beyond those."""
        for asked, party, id in (
            (command.producer, "producer", command.producer.producer_id),
            (command.close_producer, "producer", command.close_producer.producer_id),
            (command.subscribe, "consumer", command.subscribe.consumer_id),
            (command.close_consumer, "consumer", command.close_consumer.consumer_id),
        ):
            request = asked.request_id
            if 0 < request < FIRST_OWN:
                before = self._asked.get((party, id), 0)
                assert request > before, f"request {before} about {party} {id} overtakes {request}"
                self._asked[party, id] = request

    def _say(self, frame: bytes) -> None:
        self.link.broker_says(frame)

    def _refuse(self, request: int, code: ServerError.ValueType) -> None:
        self._say(frames.error(request, code))

    # -- opening -------------------------------------------------------------------------------

    @property
    def openings(self) -> list[Opening]:
        """Return the delayed actions that may run now."""
        responses = [self._response] if self._soon else []
        ready = [which for which in self._opening if not self._is_closing(which)]
        return [partial(self._open, which) for which in ready] + responses

    def _is_closing(self, which: tuple[str, int]) -> bool:
        """Return True if the previous producer of this id is not closed yet. A real broker says yes
        to the new one, and closes the old."""
        return which[0] == "producer" and which[1] in self.producers

    def _open(self, which: tuple[str, int]) -> None:
        self._opening.pop(which)()

    def _response(self) -> None:
        self._soon.popleft()()

    def _is_refused(self, request: int) -> bool:
        refused, self.refuse_next = self.refuse_next, False
        if refused:
            self._refuse(request, ServerError.UnknownError)
        return refused

    def _is_gone(self, id: int, *, produces: bool) -> bool:
        """Return True if the topic has migrated, and answer by these two frames alone."""
        url, self.elsewhere = self.elsewhere, ""
        if url:
            self._say(frames.migrated(id, 0 if produces else 1, url))
            self._say(frames.close_producer(id) if produces else frames.close_consumer(id))
        return bool(url)

    def _producer(self, asked: Any) -> None:
        which = ("producer", asked.producer_id)
        known = self.producers.get(asked.producer_id)
        if which in self._opening or self._waits(asked.producer_id):
            self._refuse(asked.request_id, ServerError.ServiceNotReady)
        elif known is not None and not known.closing:  # for any topic
            if not self._is_refused(asked.request_id):
                known.opened_by, known.got, known.given_up = asked.request_id, 0, False
                self._say(frames.producer_success(asked.request_id))
        else:
            self._opening[which] = lambda: self._open_producer(asked)

    def _waits(self, id: int) -> bool:
        """Return True if this producer waits for exclusive access."""
        waiting = (it for topic in self.topics.values() for it in topic.waiting)
        return any((it.connection, it.id) == (self, id) for it in waiting)

    def _open_producer(self, asked: Any) -> None:
        id, request = asked.producer_id, asked.request_id
        if self._is_gone(id, produces=True) or self._is_refused(request):
            return
        assert self.others.crossed or not self._is_open_elsewhere(id, asked.topic), (
            f"producer {id} is opened on this connection before it is closed on another"
        )
        topic = self.topics[asked.topic]
        opened = Producer(self, id, topic, request, asked.producer_name, asked.producer_access_mode)
        opened.given_up = id in self._given_up
        self._given_up.discard(id)
        refusal = _refusal(topic, opened)
        if refusal is not None:
            self._refuse(request, refusal)
        elif opened.access == WAIT and topic.producers:
            topic.waiting.append(opened)
            self._say(frames.queued(request))
        else:
            self._admit(opened)

    def _admit(self, opened: Producer) -> None:
        topic = opened.topic
        if opened.access == FENCING:  # without telling their clients
            for other in tuple(topic.producers):
                other.connection.forget_producer(other)
        topic.producers.append(opened)
        if opened.access != SHARED_ACCESS:
            topic.owner = opened
        self.producers[opened.id] = opened
        self._say(frames.producer_success(opened.opened_by))

    def forget_producer(self, producer: Producer) -> None:
        """Remove an open producer and its access to the topic."""
        self.producers.pop(producer.id, None)
        topic = producer.topic
        if producer in topic.producers:
            topic.producers.remove(producer)
        if topic.owner is producer:
            topic.owner = None

    def _admit_waiting(self, topic: Topic) -> None:
        if topic.waiting and not topic.producers:
            waited = topic.waiting.pop(0)
            waited.connection._admit(waited)

    def _is_open_elsewhere(self, id: int, topic: str) -> bool:
        """Return True if another connection has this producer open: a client numbers its producers,
        so the same number on the same topic is the same producer."""
        found = (other.producers.get(id) for other in self.others if other is not self)
        return any(it is not None and it.topic.name == topic and not it.given_up for it in found)

    def _subscribe(self, asked: Any) -> None:
        which = ("consumer", asked.consumer_id)
        if which in self._opening:
            self._refuse(asked.request_id, ServerError.ServiceNotReady)
        elif asked.consumer_id in self.consumers:  # it stays open, with all its permits
            if not self._is_refused(asked.request_id):
                self._say(frames.success(asked.request_id))
        else:
            self._opening[which] = lambda: self._open_consumer(asked)

    def _open_consumer(self, asked: Any) -> None:
        id, request = asked.consumer_id, asked.request_id
        if self._is_gone(id, produces=False) or self._is_refused(request):
            return
        topic = self.topics[asked.topic]
        subscription = topic.subscriptions.get(asked.subscription)
        if subscription is None:
            subscription = topic.subscriptions[asked.subscription] = Subscription(asked.subType)
        if subscription.kind == EXCLUSIVE_TYPE and subscription.consumers:
            self._refuse(request, ServerError.ConsumerBusy)
            return
        subscription.kind = asked.subType
        consumer = Consumer(self, id, topic, subscription)
        subscription.consumers.append(consumer)
        self.consumers[id] = consumer
        self._say(frames.success(request))

    # -- producers -----------------------------------------------------------------------------

    def _send(self, sent: Any, frame: bytes) -> None:
        producer = self.producers.get(sent.producer_id)
        name, request, sequence, tail = payload_of(frame, sent.sequence_id)
        if producer is None or producer.closing:
            if sent.producer_id not in self._closed:
                raise Closed(f"SEND {name} {sequence}, and its producer is not open")
            return
        assert request in (0, producer.opened_by), (
            f"SEND {name} {sequence} was meant for the previous incarnation, {request}"
        )
        producer.got += 1
        producer.topic.log.append(Stored(name, sequence, tail))
        producer.writing.append(sequence)

    def _close_producer(self, close: Any) -> None:
        id, request = close.producer_id, close.request_id
        producer = self.producers.get(id)
        if producer is None:
            self._close_unopened(id, request)
            return
        # A gateway that stops, or resets a producer, keeps SENDs back: their client gets no
        # receipt.
        kept_back = self.link.stops or self.link.resets
        if not kept_back and not self.others.crossed:
            said = self.said.get(producer.opened_by, producer.got)
            assert producer.got == said, f"a close overtakes {said - producer.got} SENDs"
        producer.closing = request
        self._finish_closing(producer)

    def _close_unopened(self, id: int, request: int) -> None:
        if ("producer", id) in self._opening:
            if self.opens_after_close:
                self._given_up.add(id)
            else:
                del self._opening["producer", id]
        for topic in self.topics.values():
            topic.waiting = [it for it in topic.waiting if (it.connection, it.id) != (self, id)]
        self._say(frames.success(request))

    def _finish_closing(self, producer: Producer) -> None:
        if producer.closing and not producer.writing:
            self.forget_producer(producer)
            self._say(frames.success(producer.closing))
            self._admit_waiting(producer.topic)

    # -- consumers -----------------------------------------------------------------------------

    def _flow(self, flow: Any) -> None:
        consumer = self.consumers.get(flow.consumer_id)
        if consumer is None:
            return
        if not 0 < flow.messagePermits < MOST_PERMITS:
            raise Closed("a FLOW of nothing")
        consumer.permits += flow.messagePermits
        self._end_of_topic(consumer)

    def _ack(self, ack: Any) -> None:
        consumer = self.consumers.get(ack.consumer_id)
        if consumer is not None:
            indexes = {id.entryId for id in ack.message_id}
            consumer.subscription.acknowledged |= indexes
            for index in indexes:
                consumer.subscription.taken.pop(index, None)
            self._end_of_topic(consumer)

    def _end_of_topic(self, consumer: Consumer) -> None:
        topic, acknowledged = consumer.topic, consumer.subscription.acknowledged
        if topic.terminated and acknowledged >= set(range(len(topic.log))):
            self._say(frames.frame(Kind.REACHED_END_OF_TOPIC, consumer_id=consumer.id))

    def _redeliver(self, asked: Any) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is not None:
            consumer.subscription.release(consumer)

    def _seek(self, asked: Any) -> None:
        """Seek to the beginning: close all consumers, and answer after that."""
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is None:
            self._refuse(asked.request_id, ServerError.MetadataError)
            return
        subscription = consumer.subscription
        for each in tuple(subscription.consumers):
            each.connection.close_consumer(each.id)
        subscription.acknowledged.clear()
        self._soon.append(lambda: self._say(frames.success(asked.request_id)))

    def _unsubscribe(self, asked: Any) -> None:
        consumer = self.consumers.get(asked.consumer_id)
        if consumer is None or len(consumer.subscription.consumers) > 1:
            self._refuse(asked.request_id, ServerError.MetadataError)
            return
        self._forget_consumer(consumer)
        subscriptions = consumer.topic.subscriptions
        for name in [name for name, it in subscriptions.items() if it is consumer.subscription]:
            del subscriptions[name]
        self._soon.append(lambda: self._say(frames.success(asked.request_id)))

    def _close_consumer(self, close: Any) -> None:
        consumer = self.consumers.get(close.consumer_id)
        if consumer is not None:
            self._forget_consumer(consumer)
        elif not self.opens_after_close:
            self._opening.pop(("consumer", close.consumer_id), None)
        self._say(frames.success(close.request_id))

    def _forget_consumer(self, consumer: Consumer) -> None:
        del self.consumers[consumer.id]
        consumer.subscription.consumers.remove(consumer)
        consumer.subscription.release(consumer)

    # -- actions of the broker -----------------------------------------------------------------

    def acknowledge(self, id: int, most: int) -> None:
        """Send receipts for up to `most` of the producer's messages."""
        producer = self.producers[id]
        for _ in range(min(most, len(producer.writing))):
            self._say(frames.receipt(id, producer.writing.popleft()))
        self._finish_closing(producer)

    def answer_late(self, late: Late, most: int, code: ServerError.ValueType | None) -> None:
        """Answer up to `most` messages of a closed producer, by receipts or by errors (`code`)."""
        for _ in range(min(most, len(late.writing))):
            sequence = late.writing.popleft()
            if code is None:
                self._say(frames.receipt(late.id, sequence))
            else:
                self._say(send_error(late.id, sequence, code))

    def close_producer(self, id: int, **where: Any) -> None:
        """Close the producer since its topic moves; `where` may name the new broker."""
        producer = self.producers[id]
        self.forget_producer(producer)
        self._closed.add(id)
        self._say(frames.close_producer(id, **where))
        if producer.writing:
            self.late.append(Late(id, producer.writing))
        if producer.closing:
            self._say(frames.success(producer.closing))

    def close_consumer(self, id: int, **where: Any) -> None:
        """Close the consumer since its topic moves; `where` may name the new broker."""
        self._forget_consumer(self.consumers[id])
        self._say(frames.close_consumer(id, **where))

    def unload(self, topic: Topic, **where: Any) -> None:
        """Close all producers and consumers of a topic on this connection."""
        for producer in [it for it in self.producers.values() if it.topic is topic]:
            self.close_producer(producer.id, **where)
        for waited in [it for it in topic.waiting if it.connection is self]:
            topic.waiting.remove(waited)
            self._refuse(waited.opened_by, ServerError.ServiceNotReady)
        for consumer in [it for it in self.consumers.values() if it.topic is topic]:
            self.close_consumer(consumer.id, **where)

    def terminate(self, topic: Topic) -> None:
        """Close the topic for writing: close its producers, and then refuse their unanswered
        messages."""
        topic.terminated = True
        for producer in [it for it in self.producers.values() if it.topic is topic]:
            self.close_producer(producer.id)
        for late in self.late:
            self.answer_late(late, len(late.writing), ServerError.TopicTerminatedError)
        self.late.clear()

    def migrate(self, topic: Topic, url: str) -> None:
        """Move a topic with its producers and consumers to another cluster."""
        for id in [id for id, it in self.producers.items() if it.topic is topic]:
            self._say(frames.migrated(id, 0, url))
            self.close_producer(id)
        for id in [id for id, it in self.consumers.items() if it.topic is topic]:
            self._say(frames.migrated(id, 1, url))
            self.close_consumer(id)

    def dispatch(self, id: int) -> bool:
        """Send a consumer its next message. Return False if it has no message or no permit."""
        consumer = self.consumers[id]
        index = next(_undelivered(consumer), None)
        if index is None or not consumer.permits:
            return False
        consumer.permits -= 1
        consumer.subscription.taken[index] = consumer
        self._say(message(id, index, consumer.topic.log[index].tail))
        return True

    def end(self) -> None:
        """End the connection."""
        for producer in tuple(self.producers.values()):
            self.forget_producer(producer)
        for consumer in tuple(self.consumers.values()):
            self._forget_consumer(consumer)
        self._opening.clear()
        self._soon.clear()


def _undelivered(consumer: Consumer) -> Iterator[int]:
    """Yield the indexes of messages that may go to this consumer. A failover subscription serves
    its first consumer only."""
    subscription = consumer.subscription
    if subscription.kind == FAILOVER_TYPE and subscription.consumers[0] is not consumer:
        return
    for index in range(len(consumer.topic.log)):
        if index not in subscription.acknowledged and index not in subscription.taken:
            yield index


def _refusal(topic: Topic, asked: Producer) -> ServerError.ValueType | None:
    """Return the error for a producer that the topic refuses, or None."""
    if topic.terminated:
        return ServerError.TopicTerminatedError
    if asked.name and any(it.name == asked.name for it in topic.producers):
        return ServerError.ProducerBusy
    if asked.access == SHARED_ACCESS and topic.owner is not None:
        return ServerError.ProducerBusy
    if asked.access == EXCLUSIVE and topic.producers:
        return ServerError.ProducerFenced
    return None


# -- payloads ----------------------------------------------------------------------------------


def send(id: int, name: str, request: int, sequence: int) -> bytes:
    """Return a SEND that names its incarnation."""
    body = frames.number_field(1, id) + frames.number_field(2, sequence)
    return frames.raw(
        Kind.SEND, body, b"\x00\x00\x00\x00" + f"{name} {request} {sequence}".encode()
    )


def payload_of(frame: bytes, sequence: int) -> tuple[str, int, int, bytes]:
    """Return producer, request and sequence id of a SEND, and what follows its command. The first
    two are empty if the SEND does not name its incarnation."""
    command = int.from_bytes(frame[4:8])
    tail = frame[8 + command :]
    words = tail[4:].split()
    if len(words) != 3:
        return "", 0, sequence, tail
    name, request, sequence = words[0].decode(), int(words[1]), int(words[2])
    return name, request, sequence, tail


def send_error(id: int, sequence: int, code: ServerError.ValueType) -> bytes:
    return frames.frame(
        Kind.SEND_ERROR, producer_id=id, sequence_id=sequence, error=code, message="no"
    )


def message(id: int, index: int, tail: bytes) -> bytes:
    """Return a MESSAGE with the entry of an index. `tail`: metadata and payload."""
    body = frames.number_field(1, id) + b"\x12\x04\x08\x01\x10" + frames.varint(index)
    assert index < 128
    return frames.raw(Kind.MESSAGE, body, b"\x0e\x01\x00\x00\x00\x00" + tail)
