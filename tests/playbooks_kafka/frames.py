"""Frames by API, version and fields, written by the generic codec."""

from __future__ import annotations

import struct
from typing import Any

from gateway.wire.kafka import frames
from gateway.wire.kafka.codec import decode, encode
from gateway.wire.kafka.pieces import HEAD, SHORT
from gateway.wire.kafka.schema import Api, api, apis
from gateway.wire.kafka.versions import is_offered

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT = 0, 1, 2, 3, 8
FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 10, 11, 12, 14
SASL_HANDSHAKE, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER = 17, 18, 19, 22
DESCRIBE_CONFIGS, SASL_AUTHENTICATE, SHARE_FETCH = 32, 36, 78

CLIENT = b"client"

Fields = dict[str, Any]


def known(key: int) -> Api:
    """Return an API that there is."""
    found = api(key)
    assert found is not None
    return found


OFFERED = [it for it in apis() if is_offered(it.key)]
EVERY_VERSION = [
    (it.key, version) for it in OFFERED for version in range(it.request.first, it.request.last + 1)
]


def ask(
    key: int, version: int, correlation: int = 1, client: bytes | None = CLIENT, /, **fields: Any
) -> bytes:
    """Return a request: of a consumer, as long as no replica is named."""
    it = known(key)
    if any(of.name == "ReplicaId" for of in it.request.of(version)):
        fields = {"ReplicaId": -1, **fields}
    body = encode(it.request, version, fields)
    return frames.written(it, version, correlation, client, body)


def tell(key: int, version: int, correlation: int = 1, /, **fields: Any) -> bytes:
    """Return a response."""
    it = known(key)
    return frames.response(it, version, correlation, encode(it.response, version, fields))


def asked(frame: bytes) -> Fields:
    """Return the body of a request."""
    head = frames.request(frame)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    return decode(known(head.key).request, head.version, frame[head.body :])


def told(key: int, version: int, frame: bytes) -> Fields:
    """Return the body of a response."""
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    it = known(key)
    return decode(it.response, version, frame[frames.body_of_response(it, version, frame) :])


def split(stream: bytes) -> list[bytes]:
    """Return the frames of a stream. Fails if one is cut."""
    found: list[bytes] = []
    while stream:
        size = 4 + int.from_bytes(stream[:4])
        assert 4 < size <= len(stream)
        found.append(stream[:size])
        stream = stream[size:]
    return found


def correlations(stream: bytes) -> list[int]:
    """Return to which requests the responses of a stream are."""
    return [frames.correlation(frame) for frame in split(stream)]


# -- records -------------------------------------------------------------------------------------


def batch(count: int, size: int = 20) -> bytes:
    """Return a batch of format 2 that says that it has so many messages."""
    return struct.pack(">qiib40xi", 0, HEAD - 12 + size, 0, 2, count) + bytes(size)


def old(size: int = 30) -> bytes:
    """Return a message of format 1."""
    return struct.pack(">qiib", 0, SHORT - 12 + size, 0, 1) + bytes(size)


def id_of(name: str) -> bytes:
    """Return an id that a topic may have."""
    return (name.encode() * 16)[:16]


# -- Produce and Fetch -----------------------------------------------------------------------------

BY_ID = 13
"""The first version of both that names topics by ids."""


def named(version: int, topic: str, field: str = "Name") -> Fields:
    """Return how a version names a topic."""
    return {"TopicId": id_of(topic)} if version >= BY_ID else {field: topic}


def produce(
    version: int,
    correlation: int = 1,
    acks: int = 1,
    transaction: str | None = None,
    /,
    **topics: bytes,
) -> bytes:
    """Return a request of Produce with these records, by topic."""
    data = [
        {**named(version, topic), "PartitionData": [{"Index": 0, "Records": records}]}
        for topic, records in topics.items()
    ]
    body = {"TransactionalId": transaction, "Acks": acks, "TimeoutMs": 1000, "TopicData": data}
    return ask(PRODUCE, version, correlation, **body)


def produced(version: int, correlation: int = 1, /, **errors: int) -> bytes:
    """Return a response to Produce with these errors, by topic."""
    responses = [
        {**named(version, topic), "PartitionResponses": [{"Index": 0, "ErrorCode": error}]}
        for topic, error in errors.items()
    ]
    return tell(PRODUCE, version, correlation, Responses=responses)


def fetch(version: int, correlation: int = 1, /, *topics: str) -> bytes:
    """Return a request of Fetch."""
    wanted = [
        {**named(version, topic, "Topic"), "Partitions": [{"Partition": 0}]} for topic in topics
    ]
    return ask(FETCH, version, correlation, MaxWaitMs=500, Topics=wanted)


def fetched(version: int, correlation: int = 1, /, **topics: bytes) -> bytes:
    """Return a response to Fetch with these records, by topic."""
    responses = [
        {
            **named(version, topic, "Topic"),
            "Partitions": [{"PartitionIndex": 0, "Records": records}],
        }
        for topic, records in topics.items()
    ]
    return tell(FETCH, version, correlation, Responses=responses)


# -- Metadata --------------------------------------------------------------------------------------


def metadata(version: int, correlation: int = 1, /, *topics: str) -> bytes:
    """Return a request of Metadata; of all topics without any."""
    names = [{"Name": topic} for topic in topics] or None
    return ask(METADATA, version, correlation, Topics=names)


def described(
    version: int, correlation: int = 1, /, *topics: str, brokers: dict[int, str] | None = None
) -> bytes:
    """Return a response to Metadata with these topics, and with brokers' hosts by their ids."""
    nodes = [{"NodeId": id, "Host": host, "Port": 9092} for id, host in (brokers or {}).items()]
    found = [{"Name": topic, "TopicId": id_of(topic)} for topic in topics]
    return tell(METADATA, version, correlation, Brokers=nodes, Topics=found)


# -- what members of a group tell each other -------------------------------------------------------


def subscription(*topics: str) -> bytes:
    """Return what a consumer tells its group: a version, topics, and no data of its own."""
    names = b"".join(struct.pack(">h", len(it)) + it.encode() for it in topics)
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"


def assignment(*topics: str) -> bytes:
    """Return what a leader assigns: a version, topics with two partitions each, and no data."""
    names = b"".join(
        struct.pack(">h", len(it)) + it.encode() + struct.pack(">iii", 2, 0, 1) for it in topics
    )
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"
