"""A broker as far as producers and consumers go: what it stores, answers, and takes amiss.

It behaves as Pulsar's `ServerCnx`: a SEND of a producer that it closed itself is ignored, a SEND of
any other producer that is not open ends the connection.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import FIRST_OWN_REQUEST
from gateway.wire.pulsar.frames import Kind
from tests.playbooks import frames
from tests.playbooks.frames import read

from .links import Direct


class Stored(NamedTuple):
    """One message of a topic: who sent it, and its number there."""

    producer: str
    sequence: int


@dataclass
class Topic:
    """`acknowledged`: of the one subscription there is, by index."""

    name: str
    log: list[Stored] = field(default_factory=list)
    acknowledged: set[int] = field(default_factory=set)


@dataclass
class Producer:
    """`opened_by`: the request; every SEND says which one it belongs to. `got`: SENDs of it.

    `writing`: stored, without a receipt so far; if it is closed meanwhile they never get one.
    """

    topic: Topic
    opened_by: int
    got: int = 0
    writing: deque[int] = field(default_factory=deque)


@dataclass
class Consumer:
    """`next`: what is dispatched next."""

    topic: Topic
    permits: int = 0
    next: int = 0
    sent: set[int] = field(default_factory=set)


class Connections(list["Connection"]):
    """All connections of the broker. `crossed`: it was late, or a client ahead of its news, so one
    producer may be open on two of them for a moment; a real broker then says busy to the second.
    """

    crossed = False


class Connection:
    """One connection as the broker has it."""

    def __init__(
        self, link: Direct, topics: dict[str, Topic], said: Counter[int], others: Connections
    ) -> None:
        self.link = link
        self.topics = topics
        self.said = said
        self.others = others
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self._closed: set[int] = set()  # producers that we closed
        self._asked: dict[tuple[str, int], int] = {}  # the latest request about each id
        self.refuse_next = False
        self.elsewhere = ""  # where the topic of the next one to be opened has migrated to

    # -- what comes ----------------------------------------------------------------------------

    def read(self) -> None:
        """Handle the next frame."""
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
            case Kind.CLOSE_CONSUMER:
                self.consumers.pop(command.close_consumer.consumer_id, None)
                self._say(frames.success(command.close_consumer.request_id))
            case other:
                raise AssertionError(f"the model broker knows no command {other}")

    def _check_order(self, command: BaseCommand) -> None:
        """A client numbers its requests; those of a gateway are beyond all that it counts to."""
        for asked, party, id in (
            (command.producer, "producer", command.producer.producer_id),
            (command.close_producer, "producer", command.close_producer.producer_id),
            (command.subscribe, "consumer", command.subscribe.consumer_id),
            (command.close_consumer, "consumer", command.close_consumer.consumer_id),
        ):
            request = asked.request_id
            if 0 < request < FIRST_OWN_REQUEST:
                before = self._asked.get((party, id), 0)
                assert request > before, f"request {before} about {party} {id} overtakes {request}"
                self._asked[party, id] = request

    def _say(self, frame: bytes) -> None:
        self.link.broker_says(frame)

    def _refuses(self, request: int) -> bool:
        refused, self.refuse_next = self.refuse_next, False
        if refused:
            self._say(frames.error(request))
        return refused

    def _is_gone(self, id: int, *, produces: bool) -> bool:
        """Whether the topic has migrated; these two frames are all of the answer then."""
        url, self.elsewhere = self.elsewhere, ""
        if url:
            self._say(frames.migrated(id, 0 if produces else 1, url))
            self._say(frames.close_producer(id) if produces else frames.close_consumer(id))
        return bool(url)

    def _producer(self, asked: Any) -> None:
        known = self.producers.get(asked.producer_id)
        if known is None and self._is_gone(asked.producer_id, produces=True):
            return
        if self._refuses(asked.request_id):
            return
        assert self.others.crossed or not self._is_open_elsewhere(asked.producer_id), (
            f"producer {asked.producer_id} is opened here before it is closed there"
        )
        topic = self.topics[asked.topic]
        if known is None or known.topic is not topic:
            known = self.producers[asked.producer_id] = Producer(topic, asked.request_id)
        known.opened_by, known.got = asked.request_id, 0
        self._say(frames.producer_success(asked.request_id))

    def _is_open_elsewhere(self, id: int) -> bool:
        return any(id in other.producers for other in self.others if other is not self)

    def _send(self, sent: Any, frame: bytes) -> None:
        producer = self.producers.get(sent.producer_id)
        name, request, sequence = payload_of(frame)
        if producer is None:
            assert sent.producer_id in self._closed, (
                f"the broker cuts the connection: SEND {name} {sequence}, and it is not open"
            )
            return
        assert producer.opened_by == request, (
            f"SEND {name} {sequence} was meant for the incarnation before, {request}"
        )
        producer.got += 1
        producer.topic.log.append(Stored(name, sequence))
        producer.writing.append(sequence)

    def _close_producer(self, close: Any) -> None:
        producer = self.producers.pop(close.producer_id, None)
        # A gateway that stops, or resets, keeps SENDs back: their client has no receipt.
        kept_back = self.link.stops or self.link.resets
        if producer is not None and not kept_back and not self.others.crossed:
            said = self.said[producer.opened_by]
            assert producer.got == said, f"a close overtakes {said - producer.got} SENDs"
        self._say(frames.success(close.request_id))

    def _subscribe(self, asked: Any) -> None:
        known = asked.consumer_id in self.consumers
        if not known and self._is_gone(asked.consumer_id, produces=False):
            return
        if self._refuses(asked.request_id):
            return
        self.consumers[asked.consumer_id] = Consumer(self.topics[asked.topic])
        self._say(frames.success(asked.request_id))

    def _flow(self, flow: Any) -> None:
        consumer = self.consumers.get(flow.consumer_id)
        if consumer is not None:
            consumer.permits += flow.messagePermits

    def _ack(self, ack: Any) -> None:
        consumer = self.consumers.get(ack.consumer_id)
        if consumer is not None:
            consumer.topic.acknowledged.update(id.entryId for id in ack.message_id)

    # -- what the broker does by itself --------------------------------------------------------

    def acknowledge(self, id: int, most: int) -> None:
        """Some of its messages are on disk."""
        writing = self.producers[id].writing
        for _ in range(min(most, len(writing))):
            self._say(frames.receipt(id, writing.popleft()))

    def close_producer(self, id: int, **where: Any) -> None:
        """Its topic goes elsewhere; the client may be told where that is."""
        del self.producers[id]
        self._closed.add(id)
        self._say(frames.close_producer(id, **where))

    def close_consumer(self, id: int, **where: Any) -> None:
        """Its topic goes elsewhere; the client may be told where that is."""
        del self.consumers[id]
        self._say(frames.close_consumer(id, **where))

    def migrate(self, topic: Topic, url: str) -> None:
        """All of a topic goes to another cluster."""
        for id in [id for id, it in self.producers.items() if it.topic is topic]:
            self._say(frames.migrated(id, 0, url))
            self.close_producer(id)
        for id in [id for id, it in self.consumers.items() if it.topic is topic]:
            self._say(frames.migrated(id, 1, url))
            self.close_consumer(id)

    def dispatch(self, id: int) -> bool:
        """Send a consumer its next message; False where there is none, or no permit."""
        consumer = self.consumers[id]
        topic = consumer.topic
        left = (n for n in range(consumer.next, len(topic.log)) if n not in topic.acknowledged)
        index = next(left, None)
        if index is None or not consumer.permits:
            return False
        consumer.permits -= 1
        consumer.next = index + 1
        self._say(message(id, index))
        return True


# -- payloads ----------------------------------------------------------------------------------


def send(id: int, name: str, request: int, sequence: int) -> bytes:
    """A SEND that says to which incarnation it belongs."""
    body = frames.number_field(1, id) + frames.number_field(2, sequence)
    return frames.raw(
        Kind.SEND, body, b"\x00\x00\x00\x00" + f"{name} {request} {sequence}".encode()
    )


def payload_of(frame: bytes) -> tuple[str, int, int]:
    """Producer, request and sequence id of a SEND."""
    command = int.from_bytes(frame[4:8])
    name, request, sequence = frame[8 + command + 4 :].decode().split()
    return name, int(request), int(sequence)


def message(id: int, index: int) -> bytes:
    """A MESSAGE with the entry of an index."""
    body = frames.number_field(1, id) + b"\x12\x04\x08\x01\x10" + frames.varint(index)
    assert index < 128
    return frames.raw(
        Kind.MESSAGE, body, b"\x0e\x01\x00\x00\x00\x00\x00\x00\x00\x07\x0a\x01p\x10\x00\x18\x01"
    )
