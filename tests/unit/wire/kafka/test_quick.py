"""What is read in one go is read as it is read in pieces."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.stream import Reader, Stream, length, skip, skip_tags
from gateway.wire.kafka.traffic import (
    WITH_LEADERS,
    Traffic,
    fetched,
    one_partition,
    produced,
)
from gateway.wire.kafka.walk import plan, unsigned
from tests.support.versions import versions

CLIENT = b"\x00\x07rdkafka\x00"
TRIALS = 3000


def batch(count: int, size: int = 40) -> bytes:
    """A batch of format 2 that says that it has so many messages."""
    return struct.pack(">qiib40xi", 0, 49 + size, 0, 2, count) + bytes(size)


def named(version: int, name: bytes) -> bytes:
    """A topic by its name, or by its id."""
    return name.ljust(16, b"-")[:16] if version >= 13 else unsigned(len(name) + 1) + name


def request(version: int, random: Random) -> bytes:
    """A Produce request of the usual form, from the client id on."""
    topics = [b"topic %d" % number for number in range(random.randrange(1, 4))]
    data = CLIENT + b"\0" + struct.pack(">hi", random.choice((0, 1, -1)), 30_000)
    data += unsigned(len(topics) + 1)
    for topic in topics:
        partitions = random.randrange(4)
        data += named(version, topic) + unsigned(partitions + 1)
        for _ in range(partitions):
            batches = b"".join(batch(random.randrange(9)) for _ in range(random.randrange(3)))
            data += bytes(4) + unsigned(len(batches) + 1) + batches + b"\0"
        data += b"\0"
    return data + b"\0"


def answer_to_fetch(version: int, random: Random) -> bytes:
    """A response to Fetch of the usual form, from the tagged fields of its head on."""
    topics = [b"topic %d" % number for number in range(random.randrange(1, 4))]
    data = b"\0" + bytes(10) + unsigned(len(topics) + 1)
    for topic in topics:
        partitions = random.randrange(4)
        data += named(version, topic) + unsigned(partitions + 1)
        for _ in range(partitions):
            batches = b"".join(batch(random.randrange(9)) for _ in range(random.randrange(3)))
            batches += random.choice((b"", batch(5)[:-3]))
            data += bytes(30) + unsigned(random.randrange(2)) + bytes(4)
            data += unsigned(len(batches) + 1) + batches + b"\0"
        data += b"\0"
    return data + b"\0"


def mutated(data: bytes, random: Random) -> bytearray:
    """The same with some other bytes, most of them where lengths are."""
    changed = bytearray(data)
    for _ in range(random.randrange(3)):
        changed[random.randrange(len(changed))] = random.choice((0, 1, 2, 126, 127, 128, 129, 255))
    return changed


def _slowly(reader: Reader, data: bytearray) -> bool:
    """Return whether a reader takes the data."""
    try:
        stream = Stream(reader, len(data))
        stream.feed(bytearray(data), 0, len(data))
    except PeerError:
        return False
    return stream.is_done


def _after_head(version: int, traffic: Traffic) -> Reader:
    yield from skip((yield from length(2)))
    yield from skip_tags()
    yield from produced(version, traffic)


def _after_tags(version: int, traffic: Traffic) -> Reader:
    yield from skip_tags()
    yield from fetched(version, traffic)


def _schema(key: int) -> Schema:
    found = api(key)
    assert found is not None
    return found.request if key == PRODUCE else found.response


def _versions(key: int) -> list[Any]:
    return versions(_schema(key), quick.FLEXIBLE[key])


@pytest.mark.parametrize("version", _versions(PRODUCE))
def test_a_request_is_read_as_in_pieces_or_not_at_all(version: int) -> None:
    random = Random(version)
    taken = 0
    for _ in range(TRIALS):
        data = mutated(request(version, random), random)
        found = quick.produced(data + b"\0\0\x07next", 0, len(data), version)
        if found is not None:
            traffic = Traffic()
            assert _slowly(_after_head(version, traffic), data)
            assert (found.acks, found.topics) == (traffic.acks, traffic.portions)
            taken += 1
    assert taken > TRIALS / 4


@pytest.mark.parametrize("version", _versions(FETCH))
def test_an_answer_to_fetch_is_read_as_in_pieces_or_not_at_all(version: int) -> None:
    random = Random(version)
    taken = 0
    for _ in range(TRIALS):
        data = mutated(answer_to_fetch(version, random), random)
        before = bytes(data)
        found = quick.fetched(data + b"\0\0\x07next", 0, len(data), version)
        if found is not None:
            traffic = Traffic()
            assert _slowly(_after_tags(version, traffic), data)
            assert found == traffic.portions
            assert data == before, "it has something to change"
            taken += 1
    assert taken > TRIALS / 4


@pytest.mark.parametrize("version", _versions(FETCH))
def test_an_answer_that_is_cut_is_read_as_one_that_is_whole_or_not_at_all(version: int) -> None:
    random = Random(version)
    taken = 0
    for _ in range(TRIALS):
        data = mutated(answer_of_one_partition(version, random), random)
        cut = random.randrange(len(data))
        found = quick.head(data, 0, cut, len(data), version)
        if found is None:
            continue
        slowly, quickly = Traffic(), Traffic()
        is_read = _slowly(_after_tags(version, slowly), data)
        rest = bytearray(data[found.size :])
        reader = one_partition(quickly, found.topic, found.batches, found.ends)
        assert _slowly(reader, rest) or not is_read
        if any(data[-quick.TAIL :]):
            # Older versions have nothing at their end that anybody looks for.
            assert version < WITH_LEADERS or not is_read, "tagged fields would not fit"
        elif is_read:
            assert found.size <= cut
            assert quickly.portions == slowly.portions
            taken += 1
    assert taken > TRIALS / 8


def answer_of_one_partition(version: int, random: Random) -> bytes:
    """A response to Fetch with one partition, from the tagged fields of its head on."""
    batches = b"".join(batch(random.randrange(9)) for _ in range(random.randrange(9)))
    batches += random.choice((b"", batch(5)[:-3]))
    data = b"\0" + bytes(10) + b"\x02" + named(version, b"a topic") + b"\x02"
    data += bytes(30) + unsigned(random.randrange(2)) + bytes(4)
    return data + unsigned(len(batches) + 1) + batches + bytes(quick.TAIL)


def answer_to_produce(version: int, random: Random) -> bytes:
    """A response to Produce of the usual form, from the tagged fields of its head on."""
    topics = random.randrange(1, 3)
    data = b"\0" + unsigned(topics + 1)
    for number in range(topics):
        partitions = random.randrange(3)
        data += named(version, b"topic %d" % number) + unsigned(partitions + 1)
        data += (bytes(30) + b"\x01\0\0") * partitions + b"\0"
    return data + bytes(4) + b"\0"


@pytest.mark.parametrize("version", _versions(PRODUCE))
def test_an_answer_to_produce_is_accepted_only_without_errors(version: int) -> None:
    random = Random(version)
    schema = _response_of_produce()
    wanted = frozenset({"ErrorCode", "RecordErrors[]", "Host"})
    taken = 0
    for _ in range(TRIALS):
        data = mutated(answer_to_produce(version, random), random)
        if quick.accepted(data + b"\0\0\x07next", 0, len(data), version):
            found = plan(schema, version, wanted, whole=True).walk(data, 1, len(data))
            assert data[0] == 0
            assert found.end == len(data)
            assert {it.name for it in found.places} <= {"ErrorCode"}
            assert not any(data[it.start] or data[it.end - 1] for it in found.places)
            taken += 1
    assert taken > TRIALS / 4


def _response_of_produce() -> Schema:
    found = api(PRODUCE)
    assert found is not None
    return found.response


def test_what_is_not_of_the_usual_form_is_read_in_pieces() -> None:
    usual = request(9, Random(1))
    assert quick.produced(bytearray(usual), 0, len(usual), 9) is not None
    tagged = CLIENT[:-1] + b"\x01\x63\x00" + usual[len(CLIENT) :]
    in_transaction = CLIENT + b"\x02t" + usual[len(CLIENT) + 1 :]
    for other in (tagged, in_transaction, usual[:-1], usual + b"\0"):
        assert quick.produced(bytearray(other), 0, len(other), 9) is None


# -- lengths of several bytes ----------------------------------------------------------------------


def many(topics: int, version: int = 12) -> dict[str, bytes]:
    """Frames of so many topics without partitions, by what reads them."""
    count = unsigned(topics + 1)
    asked = b"".join(named(version, b"t%d" % it) + b"\1\0" for it in range(topics))
    of_fetch = CLIENT + b"\xff" * 4 + bytes(21)  # no replica, up to the session's epoch
    return {
        "produced": CLIENT + b"\0" + struct.pack(">hi", 1, 1000) + count + asked + b"\0",
        "fetches": of_fetch + count + asked + b"\1\1\0",
        "fetched": b"\0" + bytes(10) + count + asked + b"\0",
        "accepted": b"\0" + count + asked + bytes(4) + b"\0",
    }


READERS = {
    "produced": quick.produced,
    "fetches": quick.fetches,
    "fetched": quick.fetched,
    "accepted": quick.accepted,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("topics", "is_read"), [(1, True), (126, True), (127, False), (128, False), (639, False)]
)
def test_a_number_of_topics_that_takes_two_bytes_is_read_otherwise(
    reader: str, topics: int, is_read: bool
) -> None:
    """One byte of it is another number: what is a topic to a broker would be a message here."""
    data = bytearray(many(topics)[reader])
    assert bool(READERS[reader](data, 0, len(data), 12)) is is_read


@pytest.mark.parametrize("reader", READERS)
def test_no_byte_that_begins_a_longer_number_is_a_number(reader: str) -> None:
    data = many(126)[reader]
    at = data.index(unsigned(127) + named(12, b"t0"))
    for first in range(128, 256):
        lying = bytearray(data)
        lying[at] = first
        assert not READERS[reader](lying, 0, len(lying), 12)
