"""Handlers of producers' requests: batches, and ids for idempotent producers.

Sources: KIP-98 (idempotence), KIP-467 (errors of a partition), KIP-951 (new leaders).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.errors import PeerError
from gateway.lab.kafka.batches import MOST_BATCH, ZSTD, format_of, parse, split
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.leading import current, led, topic_of
from gateway.lab.kafka.metadata import endpoints
from gateway.wire.kafka.pieces import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.kafka.batches import Batch
    from gateway.lab.kafka.cluster import Partition, Topic
    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

_NO_RESPONSE, _LEADER, _ALL = 0, 1, -1
"""Which replicas must have a batch before the response; here all values wait equally."""

_FIRST_WITH_ZSTD = 7
_NOWHERE = -1
"""Stands for an offset or a time that a response does not have."""


async def produce(session: KafkaSession, request: Request) -> Struct | None:
    """Append batches to their partitions (Produce), and return the response. With `acks=0` the
    client wants no response: return None, or raise `PeerError` after an error, which ends the
    connection, as with real brokers."""
    acks, is_failing, leaders = request.body["Acks"], False, set[int]()
    responses = []
    for wanted in request.body["TopicData"]:
        topic = topic_of(session.cluster, wanted)
        partitions = []
        for data in wanted["PartitionData"]:
            partition = _partition(session, topic, data, request)
            is_failing = is_failing or bool(partition["ErrorCode"])
            if "CurrentLeader" in partition:
                leaders.add(partition["CurrentLeader"]["LeaderId"])
            partitions.append(partition)
        responses.append({**_named(wanted), "PartitionResponses": partitions})
    if acks == _NO_RESPONSE:
        if is_failing:
            raise PeerError("batches that cannot be kept, by a client that wants no answer")
        return None
    body = {"Responses": responses}
    return {**body, "NodeEndpoints": endpoints(session.cluster, leaders)} if leaders else body


def _named(wanted: Struct) -> Struct:
    return {name: wanted[name] for name in ("Name", "TopicId") if name in wanted}


def _partition(
    session: KafkaSession, topic: Topic | Error, wanted: Struct, request: Request
) -> Struct:
    number = wanted["Index"]
    placed = _appended(session, led(session, topic, number), wanted["Records"], request)
    if isinstance(placed, Error):
        refused = {"Index": number, "ErrorCode": placed, "BaseOffset": _NOWHERE}
        leader = current(topic, number) if placed == Error.NOT_LEADER_OR_FOLLOWER else {}
        return {**refused, "LogAppendTimeMs": _NOWHERE, "LogStartOffset": _NOWHERE, **leader}
    assert not isinstance(topic, Error)
    start = topic.partitions[number].log.start
    rest = {"LogAppendTimeMs": _NOWHERE, "LogStartOffset": start}
    return {"Index": number, "ErrorCode": Error.NONE, "BaseOffset": placed.base, **rest}


def _appended(
    session: KafkaSession, partition: Partition | Error, data: bytes | None, request: Request
) -> Batch | Error:
    if isinstance(partition, Error):
        return partition
    if request.body["Acks"] not in (_NO_RESPONSE, _LEADER, _ALL):
        return Error.INVALID_REQUIRED_ACKS
    batch = _checked(data or b"", request.version)
    return batch if isinstance(batch, Error) else session.cluster.append(partition, batch)


def _checked(data: bytes, version: int) -> Batch | Error:
    """Return the one batch that a partition gets by a request, or why it is refused."""
    parts = split(data)
    if parts is None:
        return Error.CORRUPT_MESSAGE
    if len(parts) != 1 or format_of(parts[0]) != FORMAT:
        return Error.INVALID_RECORD
    if len(parts[0]) > MOST_BATCH:
        return Error.MESSAGE_TOO_LARGE
    batch = parse(parts[0])
    if batch is None:
        return Error.CORRUPT_MESSAGE
    if batch.is_special or batch.record_count < 1 or batch.record_count != batch.last_delta + 1:
        return Error.INVALID_RECORD
    if batch.codec > ZSTD or (batch.codec == ZSTD and version < _FIRST_WITH_ZSTD):
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    return batch


async def init_producer_id(session: KafkaSession, request: Request) -> Struct:
    """Return an id for a new producer (InitProducerId). Transactional ids are refused."""
    nobody = {"OngoingTxnProducerId": -1, "OngoingTxnProducerEpoch": -1}
    if request.body["TransactionalId"] is not None:
        error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {"ErrorCode": error, "ProducerId": -1, "ProducerEpoch": -1, **nobody}
    return {"ProducerId": session.cluster.producer(), "ProducerEpoch": 0, **nobody}


HANDLERS: Mapping[int, Handler] = {
    Key.PRODUCE: produce,
    Key.INIT_PRODUCER_ID: init_producer_id,
}
