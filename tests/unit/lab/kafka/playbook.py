"""A client of the sandbox without sockets: bodies in, bodies out."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from gateway.lab.kafka.cluster import KafkaCluster
from gateway.lab.kafka.codes import Key
from gateway.lab.kafka.connection import HANDLERS
from gateway.lab.kafka.groups import Groups
from gateway.lab.kafka.session import BrokerContext, KafkaSession, Seen
from gateway.lab.kafka.users import Users
from gateway.wire.address import Address
from gateway.wire.kafka import codec, frames
from gateway.wire.kafka.schema import Api, api

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_735_689_600.0
"""Wall time in seconds."""

NODES = {1: Address("127.0.0.1", 19092), 2: Address("127.0.0.2", 19093)}

Body = dict[str, Any]


class Brokers:
    """A cluster of two brokers. `requests`: what they have got."""

    def __init__(self, users: Users | None = None, **options: Any) -> None:
        self.cluster = KafkaCluster(NODES, **options)
        self.groups = Groups()
        self.users = users or Users()
        self.requests: deque[Seen] = deque()

    def client(self, node: int = 1, number: int = 1) -> Client:
        """Return a new connection to one broker."""
        users, requests = self.users, self.requests
        context = BrokerContext(self.cluster, self.groups, node, users, requests, HANDLERS)
        return Client(KafkaSession(context, number, "127.0.0.9"))

    def leader(self, topic: str, partition: int = 0) -> Client:
        """Return a new connection to the leader of a partition."""
        return self.client(self.cluster.topics[topic].partitions[partition].leader)

    def coordinator(self, group: str) -> Client:
        """Return a new connection to the coordinator of a group."""
        return self.client(self.cluster.coordinator(group))


class Client:
    """One connection."""

    def __init__(self, session: KafkaSession) -> None:
        self.session = session
        self._correlation = 0

    async def ask(self, key: Key, version: int = -1, **body: Any) -> Body:
        """Send a request, of the newest version by default; return the body of its answer."""
        told = await self.say(key, version, **body)
        assert told is not None
        return told

    async def say(self, key: Key, version: int = -1, **body: Any) -> Body | None:
        """The same for a request that may have no answer."""
        known = known_api(key)
        version = known.request.last if version < 0 else version
        self._correlation += 1
        data = codec.encode(known.request, version, body)
        flexible = version >= known.request.flexible
        answer = await self.send(request(key, version, self._correlation, data, flexible=flexible))
        if answer is None:
            return None
        assert frames.correlation(answer) == self._correlation
        at = frames.body_of_response(known, version, answer)
        return codec.decode(known.response, version, answer[at:])

    async def send(self, frame: bytes) -> bytes | None:
        """Send any frame; return the answer."""
        answer = await self.session.answer(frame, NOW)
        if answer is not None:
            assert struct.unpack_from(">i", answer)[0] == len(answer) - 4
        return answer


def known_api(key: int) -> Api:
    found = api(key)
    assert found is not None
    return found


def request(
    key: int, version: int, correlation: int, body: bytes, *, flexible: bool = False
) -> bytes:
    """Return the frame of a request by the client `me`."""
    rest = struct.pack(">hhih", key, version, correlation, 2) + b"me"
    rest += (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(rest)) + rest


def batch(
    *values: bytes,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    time: int = 1000,
    codec: int = 0,
) -> bytes:
    """Return a batch, as aiokafka writes it; each record is a millisecond after the one before."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, producer, epoch, sequence, 2**20)
    for number, value in enumerate(values):
        headers = [("h", b"%d" % number)]
        builder.append(number, timestamp=time + number, key=b"k", value=value, headers=headers)
    return bytes(builder.build())


def produced(topic: str, data: bytes | None, *, acks: int = -1, partition: int = 0) -> Body:
    """Return the body of a Produce up to version 12."""
    partitions = [{"Index": partition, "Records": data}]
    topics = [{"Name": topic, "PartitionData": partitions}]
    return {"Acks": acks, "TimeoutMs": 1000, "TopicData": topics}


def fetched(topic: str, offset: int, *, partition: int = 0, **fields: Any) -> Body:
    """Return the body of a Fetch up to version 12, which does not wait."""
    whole = {"PartitionMaxBytes": 2**20, "CurrentLeaderEpoch": -1}
    whole |= {name: fields.pop(name) for name in list(fields) if name in whole}
    partitions = [{"Partition": partition, "FetchOffset": offset, **whole}]
    topics = [{"Topic": topic, "Partitions": partitions}]
    return {"MaxWaitMs": 0, "MinBytes": 1, "MaxBytes": 2**20, "Topics": topics, **fields}


async def produce(client: Client, topic: str, data: bytes | None, version: int = 12) -> Body:
    """Produce one batch; return the answer about its partition."""
    told = await client.ask(Key.PRODUCE, version, **produced(topic, data))
    found: Body = told["Responses"][0]["PartitionResponses"][0]
    return found


async def fetch(client: Client, topic: str, offset: int, version: int = 12, **options: Any) -> Body:
    """Fetch one partition; return the answer about it."""
    told = await client.ask(Key.FETCH, version, **fetched(topic, offset, **options))
    found: Body = told["Responses"][0]["Partitions"][0]
    return found


def errors(bodies: Sequence[Body]) -> list[int]:
    return [it["ErrorCode"] for it in bodies]
