"""Servers for a crowd: what it says to each of them, and how much they have stored."""

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gateway.wire.pulsar._proto import pulsar_wire_pb2 as pulsar
from gateway.wire.pulsar.frames import Kind
from gateway.wire.tubemq import frames as tube_frames
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.errors import ErrorCode
from tests.apache_kafka.broker import HOST as KAFKAS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.greedy import READ, SENT
from tests.apache_kafka.limiting import end_of, topic_of
from tests.apache_kafka.test_attacks import Client, batch_of
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.gateways import in_front_of
from tests.apache_tubemq.raw import Connection
from tests.bench.machine import cpu_seconds, family
from tests.playbooks import frames
from tests.playbooks_kafka.frames import ask
from tests.playbooks_tubemq import script as tube
from tests.real.brokers.admin import AdminError
from tests.real.brokers.jars import Say, pulsar_jars
from tests.real.brokers.standalone import Standalone
from tests.real.clients import wait_until
from tests.real.gateways import Gateway, Plan, Upstream
from tests.support.crowd import Crowd, Heard, Talk

STORED = 2_000
"""Messages that each client may receive of Pulsar: three times what a limit lets pass."""

STORED_OF_TUBEMQ = 45_000
"""More than one client receives in a minute and the time before it."""

IDENTITY = {"mode": "verify", "anonymous": {"principal": "crowd"}}
"""All of a crowd are one principal."""

PATIENCE_S = 60
PRODUCE, FETCH = 0, 1


class Door(NamedTuple):
    """A gateway that a crowd connects to. `crowded`: the port."""

    gateway: Gateway
    crowded: int

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used."""
        return sum(map(cpu_seconds, family(self.gateway.process)))


class Server(Protocol):
    """A server of one protocol."""

    def gateway(self, rules: Path, folder: Path) -> AbstractContextManager[Door]:
        """Open a gateway in front of it."""

    def topic(self, kind: str) -> str:
        """Return the name of a topic that nobody has used."""

    def sends(self, topic: str, size: int) -> Talk: ...

    def reads(self, topic: str, size: int) -> Talk:
        """Store messages to be read."""

    def stored(self, topic: str) -> int:
        """Return how many messages are stored, each in a frame of its own."""


@contextmanager
def _door(broker: Upstream, plan: Plan, folder: Path, port: int = 0) -> Iterator[Door]:
    gateway = Gateway(broker, plan, folder)
    gateway.start()
    try:
        yield Door(gateway, port or gateway.port)
    finally:
        gateway.stop()


# -- Kafka ---------------------------------------------------------------------------------------


class OfKafka:
    """See `Server`."""

    def __init__(self, broker: Kafka, direct: Client) -> None:
        self._broker, self._direct = broker, direct
        self._address = f"{KAFKAS_HOST}:{broker.port}"

    def gateway(self, rules: Path, folder: Path) -> AbstractContextManager[Door]:
        return _door(self._broker, KafkaPlan(IDENTITY, rules=rules), folder)

    def topic(self, kind: str) -> str:
        return topic_of(kind, self._address)

    def sends(self, topic: str, size: int) -> Talk:
        fields = _produce(topic, _batch(size))
        return Talk(size, lambda _: ask(PRODUCE, 9, 1, **fields))

    def reads(self, topic: str, size: int) -> Talk:
        """Store one message, which is read again and again, in no session."""
        response = self._direct(PRODUCE, 9, **_produce(topic, _batch(size)))
        assert not response["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
        partition = {"PartitionMaxBytes": 50 << 20, "CurrentLeaderEpoch": -1}
        fields = {"MaxWaitMs": 100, "MinBytes": 1, "MaxBytes": 50 << 20, "SessionEpoch": -1}
        topics = [{"Topic": topic, "Partitions": [partition]}]
        return Talk(size, lambda _: ask(FETCH, 12, 1, Topics=topics, **fields))

    def stored(self, topic: str) -> int:
        return end_of(topic, self._address)


def _batch(size: int) -> bytes:
    """Return a batch of one message, of `size` bytes in all."""
    beside = len(batch_of(bytes(size))) - size
    return next(
        batch for less in range(beside, 0, -1) if len(batch := batch_of(bytes(size - less))) == size
    )


def _produce(topic: str, batch: bytes) -> dict[str, Any]:
    data = [{"Name": topic, "PartitionData": [{"Index": 0, "Records": batch}]}]
    return {"Acks": 1, "TimeoutMs": 30_000, "TopicData": data}


@contextmanager
def _kafka(folder: Path, say: Say) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    broker = Kafka(folder, say)
    broker.start()
    try:
        with closing(Client(broker.port, KAFKAS_HOST)) as direct:
            yield OfKafka(broker, direct)
    finally:
        broker.stop()


# -- Pulsar --------------------------------------------------------------------------------------

_OPENS = frozenset({Kind.PRODUCER_SUCCESS, Kind.SUCCESS})
_CLOSES = frozenset({Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER, Kind.ERROR, Kind.SEND_ERROR})
_CONNECT = frames.connect(auth_method_name="none", auth_data=b"")
_PERMITS = frames.frame(Kind.FLOW, consumer_id=1, messagePermits=1_000_000)


def _send(size: int) -> bytes:
    """Return a frame with a message, of `size` bytes in all."""
    body = pulsar.CommandSend(producer_id=1, sequence_id=1).SerializeToString()
    metadata = b"\x0a\x01p\x10\x01" + frames.number_field(3, int(1000 * time.time()))
    head = struct.pack(">I", len(metadata)) + metadata
    return frames.raw(Kind.SEND, body, head + bytes(size - len(frames.raw(Kind.SEND, body, head))))


def _reopens(opening: Callable[[int], bytes], after: bytes) -> Callable[..., Heard]:
    """Return what a client does with a frame: it says `after`, and sends, once its producer or its
    consumer is open, and opens another one when that is closed."""

    def heard(frame: bytes, number: int, sends: bool) -> Heard:
        kind = Kind(frames.read(frame).type)
        if kind in _OPENS:
            return after, not after
        if kind in _CLOSES:
            return opening(number), False
        return (frames.frame(Kind.PONG) if kind == Kind.PING else b""), sends

    return heard


class OfPulsar:
    """See `Server`."""

    def __init__(self, broker: Standalone) -> None:
        self._broker = broker
        self._topics = count()

    def gateway(self, rules: Path, folder: Path) -> AbstractContextManager[Door]:
        return _door(self._broker, Plan(rules=rules), folder)

    def topic(self, kind: str) -> str:
        """Create a topic: a broker opens no producer of one whose bundle nobody has looked up."""
        name = f"{kind}{next(self._topics)}"
        self._broker.admin.request("PUT", f"admin/v2/persistent/public/default/{name}")
        return f"persistent://public/default/{name}"

    def sends(self, topic: str, size: int) -> Talk:
        def opening(_number: int) -> bytes:
            return frames.producer(1, topic=topic)

        frame = _send(size)
        greeting = _CONNECT + opening(0)
        return Talk(size, lambda _: frame, lambda _: greeting, heard=_reopens(opening, b""))

    def reads(self, topic: str, size: int) -> Talk:
        """Store messages, which each client reads in a subscription of its own."""
        with Crowd(self._broker.port, 1, self.sends(topic, size), self._broker.host).at_work():
            wait_until(lambda: self.stored(topic) > STORED, PATIENCE_S)

        def opening(number: int) -> bytes:
            wanted = {"subscription": f"s{number}", "subType": 1, "initialPosition": 1}
            fields: Any = {"topic": topic, "consumer_id": 1, "request_id": 1, **wanted}
            return frames.frame(Kind.SUBSCRIBE, **fields)

        return Talk(
            size,
            greeting=lambda number: _CONNECT + opening(number),
            heard=_reopens(opening, _PERMITS),
        )

    def stored(self, topic: str) -> int:
        path = topic.replace("://", "/")
        try:
            found = self._broker.admin.request("GET", f"admin/v2/{path}/internalStats")
        except AdminError:  # nobody has opened it
            return 0
        entries: int = found["entriesAddedCounter"]
        return entries


@contextmanager
def _pulsar(folder: Path, say: Say) -> Iterator[Server]:
    broker = Standalone(pulsar_jars(say), folder)
    broker.start()
    try:
        yield OfPulsar(broker)
    finally:
        broker.stop()


# -- TubeMQ --------------------------------------------------------------------------------------

_BROKER = 1
_INDEX = 28
"""Bytes by which a message raises the offset of a partition."""

_TOPICS = 8
"""Topics of each kind: servers know them from their start."""

_REGISTERS = 31

_BEATS = 5
"""Requests of which one is a heartbeat: brokers forget a consumer that sends none for 33 s."""


def _consumer(topic: str, group: str) -> dict[str, Any]:
    id = f"{group}_127.0.0.1-77-1-1-Pull-1.13.0"
    return {"clientId": id, "groupName": group, "topicName": topic, "partitionId": 0}


def _numbered(fields: Callable[[int], dict[str, Any]], method: int) -> Callable[[int], bytes]:
    """Return what makes a client's requests: none has the serial number of another one."""
    serials = count(2)
    made = cache(lambda number: tube.ask(method, 0, **fields(number)))

    def frame(number: int) -> bytes:
        request = made(number)
        serial = tube_frames.HEAD.pack(tube_frames.TOKEN, next(serials), 0)[4:8]
        return request[:4] + serial + request[8:]

    return frame


class OfTubeMQ:
    """See `Server`. Only one partition of one broker is used."""

    def __init__(self, servers: TubeMQ, topics: Mapping[str, Iterator[str]]) -> None:
        self._servers, self._topics = servers, topics
        self._groups = count()

    def gateway(self, rules: Path, folder: Path) -> AbstractContextManager[Door]:
        plan = in_front_of(self._servers, rules=rules)
        return _door(self._servers, plan, folder, plan.first_port + _BROKER)

    def topic(self, kind: str) -> str:
        return next(self._topics[kind])

    def sends(self, topic: str, size: int) -> Talk:
        fields: Any = {"clientId": "p_127.0.0.1-77-1-1.13.0", "topicName": topic, "partitionId": 0}
        fields |= {"flag": 0, "data": bytes(size), "checkSum": -1, "sentAddr": 2130706433}
        return Talk(size, _numbered(lambda _: fields, m.SEND_MESSAGE), length=tube_frames.length)

    def reads(self, topic: str, size: int) -> Talk:
        """Store messages, which each client reads in a group of its own."""
        host, port = self._servers.brokers[_BROKER]
        with Crowd(port, 1, self.sends(topic, size), host).at_work():
            wait_until(lambda: self.stored(topic) > STORED_OF_TUBEMQ, PATIENCE_S)

        def registers(number: int) -> bytes:
            names = _consumer(topic, f"g{number}")
            return tube.ask(m.REGISTER_PARTITION, 1, **names, opType=_REGISTERS, readStatus=0)

        def heard(frame: bytes, number: int, sends: bool) -> Heard:
            if tube.serial_of(frame) == 1:
                return (b"", True) if tube.told(frame).success else (registers(number), False)
            if len(frame) < size and tube.told(frame).errCode == ErrorCode.NOT_REGISTERED:
                raise EOFError  # brokers forget who sends no heartbeats, so it comes anew
            return b"", sends

        def beat(number: int) -> dict[str, Any]:
            names = _consumer(topic, f"g{number}")
            place = f"{_BROKER}:{host}:{port}#{topic}:0"
            kept = {name: names[name] for name in ("clientId", "groupName")}
            return {**kept, "readStatus": 0, "partitionInfo": [place]}

        gets = _numbered(lambda number: _consumer(topic, f"g{number}"), m.GET_MESSAGES)
        beats = _numbered(beat, m.BEAT_PARTITIONS)
        asked: Counter[int] = Counter()

        def asks(number: int) -> bytes:
            asked[number] += 1
            return (gets if asked[number] % _BEATS else beats)(number)

        return Talk(size, asks, registers, tube_frames.length, heard)

    def stored(self, topic: str) -> int:
        host, port = self._servers.brokers[_BROKER]
        names = _consumer(topic, f"looks{next(self._groups)}")
        with closing(Connection(port, host)) as direct:
            told = direct(m.REGISTER_PARTITION, **names, opType=_REGISTERS, readStatus=0)
        assert told.success, told
        end: int = told.maxOffset // _INDEX
        return end


@contextmanager
def _tubemq(folder: Path, say: Say) -> Iterator[Server]:
    topics = {kind: [f"{kind}_{number}" for number in range(_TOPICS)] for kind in (SENT, READ)}
    folder.mkdir(parents=True, exist_ok=True)
    servers = TubeMQ(folder, say, topics=[name for names in topics.values() for name in names])
    servers.start()
    try:
        yield OfTubeMQ(servers, {kind: iter(names) for kind, names in topics.items()})
    finally:
        servers.stop()


SERVERS = {"kafka": _kafka, "pulsar": _pulsar, "tubemq": _tubemq}
"""How to start a server of each protocol."""
