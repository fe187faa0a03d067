"""What becomes of batches."""

from __future__ import annotations

import struct

import pytest

from gateway.errors import PeerError
from gateway.lab.kafka.batches import MOST_BATCH, Record, UnreadableError, parse, records
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.log import REMEMBERED
from tests.unit.lab.kafka.conftest import TOPIC
from tests.unit.lab.kafka.playbook import Brokers, Client, batch, produce, produced

GZIP, ZSTD = 1, 4
OUT_OF_ORDER = Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def kept(brokers: Brokers, partition: int = 0) -> list[Record]:
    log = brokers.cluster.topics[TOPIC].partitions[partition].log
    return [record for it in log.batches for record in records(it)]


def attributed(data: bytes, attributes: int) -> bytes:
    """Return a batch with other attributes, and the checksum that goes with them."""
    import crc32c

    data = data[:21] + struct.pack(">h", attributes) + data[23:]
    return data[:17] + struct.pack(">I", crc32c.crc32c(data[21:])) + data[21:]


@pytest.mark.parametrize("version", range(3, 13))
async def test_records_get_offsets_in_turn(brokers: Brokers, client: Client, version: int) -> None:
    first = await produce(client, TOPIC, batch(b"a", b"b"), version)
    second = await produce(client, TOPIC, batch(b"c"), version)
    assert [(it["ErrorCode"], it["BaseOffset"]) for it in (first, second)] == [(0, 0), (0, 2)]
    assert kept(brokers) == [
        Record(0, 1000, b"k", b"a", (("h", b"0"),)),
        Record(1, 1001, b"k", b"b", (("h", b"1"),)),
        Record(2, 1000, b"k", b"c", (("h", b"0"),)),
    ]


async def test_the_newest_version_names_topics_by_id(brokers: Brokers, client: Client) -> None:
    data = [{"Index": 0, "Records": batch(b"a")}]
    ids = [brokers.cluster.topics[TOPIC].id, bytes(15) + b"\1"]
    topics = [{"TopicId": id, "PartitionData": data} for id in ids]
    told = await client.ask(Key.PRODUCE, 13, Acks=1, TopicData=topics)
    assert [it["TopicId"] for it in told["Responses"]] == ids
    found = [it["PartitionResponses"][0]["ErrorCode"] for it in told["Responses"]]
    assert found == [Error.NONE, Error.UNKNOWN_TOPIC_ID]


async def test_compressed_batches_are_kept_as_they_are(brokers: Brokers, client: Client) -> None:
    await produce(client, TOPIC, batch(b"a" * 100, codec=GZIP))
    (record,) = kept(brokers)
    assert record.value == b"a" * 100


async def test_a_client_that_wants_no_answer_gets_none(brokers: Brokers, client: Client) -> None:
    body = produced(TOPIC, batch(b"a"), acks=0)
    assert await client.say(Key.PRODUCE, 9, **body) is None
    assert len(kept(brokers)) == 1


async def test_without_answers_an_error_ends_the_connection(client: Client) -> None:
    with pytest.raises(PeerError, match="wants no answer"):
        await client.say(Key.PRODUCE, 9, **produced("u", batch(b"a"), acks=0))


async def test_a_broker_that_does_not_lead_names_the_leader(brokers: Brokers) -> None:
    told = await brokers.client(2).ask(Key.PRODUCE, 10, **produced(TOPIC, batch(b"a")))
    found = told["Responses"][0]["PartitionResponses"][0]
    assert found["ErrorCode"] == Error.NOT_LEADER_OR_FOLLOWER
    assert found["CurrentLeader"] == {"LeaderId": 1, "LeaderEpoch": 0}
    (node,) = told["NodeEndpoints"]
    assert (node["NodeId"], node["Host"], node["Port"]) == (1, "127.0.0.1", 19092)
    assert kept(brokers) == []


async def test_an_old_version_has_no_place_for_the_leader(brokers: Brokers) -> None:
    found = await produce(brokers.client(2), TOPIC, batch(b"a"), 9)
    assert found["ErrorCode"] == Error.NOT_LEADER_OR_FOLLOWER
    assert "CurrentLeader" not in found


GOOD = batch(b"a")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (GOOD[:-1], Error.CORRUPT_MESSAGE),
        (GOOD[:10], Error.CORRUPT_MESSAGE),
        (GOOD[:-1] + b"\xff", Error.CORRUPT_MESSAGE),
        (GOOD + GOOD, Error.INVALID_RECORD),
        (b"", Error.INVALID_RECORD),
        (None, Error.INVALID_RECORD),
        (GOOD[:16] + b"\1" + GOOD[17:], Error.INVALID_RECORD),
        (attributed(GOOD, 16), Error.INVALID_RECORD),
        (attributed(GOOD, 32), Error.INVALID_RECORD),
        (attributed(GOOD, 5), Error.UNSUPPORTED_COMPRESSION_TYPE),
        (batch(b"a" * MOST_BATCH), Error.MESSAGE_TOO_LARGE),
    ],
    ids=[
        *("cut", "no head", "a wrong checksum", "two", "empty", "null", "an old format"),
        *("of a transaction", "control", "an unknown compression", "too large"),
    ],
)
async def test_a_batch_that_is_not_right_is_refused(
    brokers: Brokers, client: Client, data: bytes | None, error: Error
) -> None:
    assert (await produce(client, TOPIC, data))["ErrorCode"] == error
    assert kept(brokers) == []


async def test_zstd_needs_a_version_that_knows_it(client: Client) -> None:
    data = attributed(GOOD, ZSTD)
    refused = await produce(client, TOPIC, data, 6)
    assert refused["ErrorCode"] == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert (await produce(client, TOPIC, data, 7))["ErrorCode"] == Error.NONE


@pytest.mark.parametrize(("topic", "partition"), [("u", 0), (TOPIC, 2), (TOPIC, -1)])
async def test_what_is_not_there_is_unknown(client: Client, topic: str, partition: int) -> None:
    told = await client.ask(Key.PRODUCE, 9, **produced(topic, GOOD, partition=partition))
    found = told["Responses"][0]["PartitionResponses"][0]
    assert found["ErrorCode"] == Error.UNKNOWN_TOPIC_OR_PARTITION


async def test_acks_are_none_one_or_all(client: Client) -> None:
    told = await client.ask(Key.PRODUCE, 9, **produced(TOPIC, GOOD, acks=2))
    found = told["Responses"][0]["PartitionResponses"][0]
    assert found["ErrorCode"] == Error.INVALID_REQUIRED_ACKS


# -- idempotent producers ----------------------------------------------------------------------


async def test_each_producer_gets_an_id_of_its_own(client: Client) -> None:
    told = [await client.ask(Key.INIT_PRODUCER_ID, TransactionalId=None) for _ in range(2)]
    assert told[0]["ProducerId"] != told[1]["ProducerId"]
    assert [it["ProducerEpoch"] for it in told] == [0, 0]


async def test_there_are_no_transactions(client: Client) -> None:
    told = await client.ask(Key.INIT_PRODUCER_ID, TransactionalId="x")
    assert told["ErrorCode"] == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def numbered(
    client: Client, sequence: int, *, epoch: int = 0, count: int = 1
) -> tuple[int, int]:
    """Produce a batch of producer 7; return the error and the offset."""
    data = batch(*[b"a"] * count, producer=7, epoch=epoch, sequence=sequence)
    found = await produce(client, TOPIC, data)
    return found["ErrorCode"], found["BaseOffset"]


async def test_a_repeated_batch_is_answered_and_kept_once(brokers: Brokers, client: Client) -> None:
    assert await numbered(client, 0, count=2) == (0, 0)
    assert await numbered(client, 2) == (0, 2)
    assert await numbered(client, 0, count=2) == (0, 0)
    assert await numbered(client, 2) == (0, 2)
    assert len(kept(brokers)) == 3


async def test_a_gap_in_the_sequence_is_refused(client: Client) -> None:
    await numbered(client, 0)
    assert (await numbered(client, 2))[0] == OUT_OF_ORDER
    assert await numbered(client, 1) == (0, 1)


async def test_a_batch_that_was_forgotten_is_out_of_order(client: Client) -> None:
    for sequence in range(REMEMBERED + 1):
        await numbered(client, sequence)
    assert (await numbered(client, 0))[0] == OUT_OF_ORDER
    assert await numbered(client, 1) == (0, 1)


async def test_a_new_epoch_begins_with_zero_and_fences_the_old_one(client: Client) -> None:
    await numbered(client, 0)
    assert (await numbered(client, 1, epoch=1))[0] == OUT_OF_ORDER
    assert await numbered(client, 0, epoch=1) == (0, 1)
    assert (await numbered(client, 1))[0] == Error.INVALID_PRODUCER_EPOCH


async def test_sequences_begin_anew_after_the_last_number(client: Client) -> None:
    assert await numbered(client, 2**31 - 1) == (0, 0)
    assert await numbered(client, 0) == (0, 1)


# -- memory ------------------------------------------------------------------------------------


async def test_the_oldest_batches_are_evicted_beyond_the_bound() -> None:
    brokers = Brokers(memory=3000)
    brokers.cluster.create(TOPIC, 1, leaders=[1])
    client = brokers.client()
    for _ in range(10):
        await produce(client, TOPIC, batch(b"a" * 100))
    log = brokers.cluster.topics[TOPIC].partitions[0].log
    assert 0 < log.start < 10 == log.end
    assert brokers.cluster.used <= 3000
    topic = brokers.cluster.topics[TOPIC]
    brokers.cluster.delete(topic)
    assert brokers.cluster.used == 0


def test_what_python_cannot_decompress_is_told() -> None:
    found = parse(attributed(GOOD, ZSTD))
    assert found is not None
    with pytest.raises(UnreadableError, match="compression 4"):
        list(records(found))


@pytest.mark.parametrize("end", range(61, len(GOOD)))
def test_records_that_are_torn_are_unreadable(end: int) -> None:
    found = parse(attributed(GOOD[:end], 0))
    assert found is not None
    with pytest.raises(UnreadableError):
        list(records(found))
