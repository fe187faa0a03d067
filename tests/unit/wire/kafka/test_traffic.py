"""Produce and Fetch are read while they pass, in whatever pieces they come."""

from __future__ import annotations

import struct
from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.records import HEAD, SHORT
from gateway.wire.kafka.schema import Field, Schema, api
from gateway.wire.kafka.stream import LONGEST, Reader, Stream
from gateway.wire.kafka.traffic import MOST_TOPICS, Original, Portion, Traffic, fetched, produced
from gateway.wire.kafka.walk import unsigned
from tests.apache_kafka.encoding import Body
from tests.support.versions import case


def batch(count: int, size: int = 100) -> bytes:
    """A batch of format 2 that says that it has so many messages."""
    rest = HEAD - 12 + size
    return struct.pack(">qiib40xi", 0, rest, 0, 2, count) + bytes(size)


def old(size: int = 30) -> bytes:
    """A message of format 1."""
    return struct.pack(">qiib", 0, SHORT - 12 + size, 0, 1) + bytes(size)


class Made(Body):
    """A body whose records are batches; `portions` tells of each topic."""

    def __init__(self, version: int, schema: Schema, seed: int) -> None:
        random = Random(f"{seed}")
        flexible = version >= schema.flexible
        super().__init__(version, flexible=flexible, wanted=("Name", "Topic"), random=random)
        self.portions: list[Portion] = []
        self._size = self._messages = 0
        self.struct(schema.fields)

    def struct(self, fields: tuple[Field, ...]) -> None:
        if fields and fields[0].name in {"Name", "Topic"} and "Partition" in fields[-1].name:
            self._size = self._messages = 0
            before = len(self.data)
            super().struct(fields)
            topic = self._topic(before)
            self.portions.append(Portion(topic, self._size, self._messages))
        else:
            super().struct(fields)

    def _topic(self, at: int) -> bytes:
        if self._version >= 13:
            return bytes(self.data[at : at + 16])
        name = self.noted[-1][1]
        return name[len(name) - self._length_of(name) :]

    def _length_of(self, name: bytes) -> int:
        if not self._flexible:
            return int.from_bytes(name[:2])
        return len(name) - (1 if name[0] < 128 else 2)

    def _field(self, it: Field) -> None:
        if it.kind != "records":
            super()._field(it)
            return
        counts = [self._random.randrange(1, 500) for _ in range(self._random.randrange(3))]
        data = b"".join(map(batch, counts))
        self._length(len(data), 4)
        self.data += data
        self._size += len(data)
        self._messages += sum(counts)


def _schema(key: int) -> Schema:
    found = api(key)
    assert found is not None
    return found.request if key == PRODUCE else found.response


def _reader(key: int, version: int, traffic: Traffic) -> Reader:
    return produced(version, traffic) if key == PRODUCE else fetched(version, traffic)


VERSIONS = [
    case(_schema(key), version, key, version, id=f"{key}-{version}")
    for key in (PRODUCE, FETCH)
    for version in range(_schema(key).first, _schema(key).last + 1)
]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_topic_is_told_in_whatever_pieces_a_body_comes(key: int, version: int) -> None:
    for seed in range(10):
        made = Made(version, _schema(key), seed)
        pieces = Random(seed)
        for most in (1, 7, 1000, len(made.data)):
            traffic = Traffic()
            stream = Stream(_reader(key, version, traffic), len(made.data))
            at = end = 0
            while at < len(made.data):
                end = min(len(made.data), end + pieces.randint(1, most))
                at = stream.feed(made.data, at, end)
                assert end - at <= LONGEST
            assert stream.is_done
            assert traffic.portions == made.portions
            assert stream.left == 0


def _tagged(fields: tuple[Field, ...]) -> list[str]:
    here = [it.name for it in fields if it.tag >= 0]
    return here + [name for it in fields for name in _tagged(it.fields)]


def test_a_request_of_produce_has_no_tagged_field_that_brokers_know() -> None:
    """The reader steps over tagged fields by their sizes, as brokers do with unknown ones alone."""
    assert _tagged(_schema(PRODUCE).fields) == []


def _produce(*batches: bytes, acks: int = 1, topic: bytes = b"t") -> bytes:
    """A request of version 7 for one partition."""
    data = b"".join(batches)
    head = struct.pack(">hhii", -1, acks, 30_000, 1)
    partition = struct.pack(">iii", 1, 0, len(data))
    return head + struct.pack(">h", len(topic)) + topic + partition + data


def _read(body: bytes, version: int = 7) -> Traffic:
    traffic = Traffic()
    stream = Stream(produced(version, traffic), len(body))
    stream.feed(bytearray(body), 0, len(body))
    assert stream.is_done
    return traffic


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_request_says_whether_it_is_answered(acks: int) -> None:
    assert _read(_produce(batch(1), acks=acks)).acks == acks


def test_messages_are_counted_by_the_heads_of_batches() -> None:
    (portion,) = _read(_produce(batch(3), batch(500), old(), old())).portions
    assert portion == Portion(b"t", 2 * (HEAD + 100) + 2 * (SHORT + 30), 505)


def test_what_follows_the_body_is_not_touched() -> None:
    body = _produce(batch(1))
    stream = Stream(produced(7, Traffic()), len(body))
    assert stream.feed(bytearray(body + b"next"), 0, len(body) + 4) == len(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_produce(batch(1)[:-1]), id="a batch that is torn"),
        pytest.param(_produce(batch(-1)), id="a count below zero"),
        pytest.param(_produce(struct.pack(">qiib", 0, 4, 0, 2)), id="a batch without its head"),
        pytest.param(_produce(struct.pack(">qiib", 0, -20, 0, 2)), id="a length below zero"),
        pytest.param(_produce(struct.pack(">qiib", 0, 10, 0, 2) + bytes(5)), id="a short head"),
        pytest.param(_produce(batch(1), topic=b"t" * (LONGEST + 1)), id="a long name"),
        pytest.param(struct.pack(">hhii", -1, 1, 0, MOST_TOPICS + 1), id="many topics"),
        pytest.param(struct.pack(">hhiih", -1, 1, 0, 1, -1), id="a topic without a name"),
        pytest.param(struct.pack(">hhiih", -1, 1, 0, 1, 100), id="a name beyond the frame"),
        pytest.param(struct.pack(">hhii", -3, 1, 0, 1), id="a length that is none"),
    ],
)
def test_a_body_that_cannot_be_is_a_violation(body: bytes) -> None:
    for piece in (1, len(body)):
        with pytest.raises(PeerError):
            _feed(body, piece)


def _feed(body: bytes, piece: int) -> None:
    stream = Stream(produced(7, Traffic()), len(body))
    at = 0
    for end in range(piece, len(body) + piece, piece):
        at = stream.feed(bytearray(body), at, min(len(body), end))


def test_an_answer_may_end_within_a_batch_which_is_not_counted() -> None:
    data = batch(5) + batch(7)[:-10]
    partition = struct.pack(">iihqqii", 1, 0, 0, 0, 0, 0, len(data))
    body = struct.pack(">iih", 0, 1, 1) + b"t" + partition + data
    traffic = Traffic()
    stream = Stream(fetched(4, traffic), len(body))
    stream.feed(bytearray(body), 0, len(body))
    assert traffic.portions == [Portion(b"t", len(data), 5, {0: 0})]


def test_a_varint_that_does_not_end_is_a_violation() -> None:
    body = unsigned(0) + bytes(6) + b"\xff" * 6
    with pytest.raises(PeerError, match="does not end"):
        Stream(produced(9, Traffic()), len(body)).feed(bytearray(body), 0, len(body))


# -- what is written in place --------------------------------------------------------------------


def test_a_topic_gets_another_name_and_no_batch_whatever_cuts_it() -> None:
    body = _produce(batch(1), topic=b"orders")
    for piece in (1, 3, len(body)):
        chunk, at = bytearray(body), 0
        traffic = Traffic()
        stream = Stream(produced(7, traffic, lambda topic: b"/" + topic[1:]), len(body))
        for end in range(piece, len(body) + piece, piece):
            at = stream.feed(chunk, at, min(len(body), end))
        assert chunk == body.replace(b"orders", b"/rders").replace(batch(1), bytes(len(batch(1))))
        assert traffic.portions == []


def _fetched(error: int, topic: bytes, leaders: bytes) -> bytes:
    """A response of version 16 about one partition, without batches. `leaders`: a tagged field."""
    head = struct.pack(">ihi", 0, 0, 0) + unsigned(2) + topic
    partition = struct.pack(">ihqqq", 0, error, 0, 0, 0) + unsigned(1) + bytes(4) + unsigned(1)
    return head + unsigned(2) + partition + b"\0" + b"\0" + leaders


def test_addresses_of_leaders_at_the_end_of_an_answer_are_blanked() -> None:
    leaders = b"\x01\x00\x05abcde"
    body = bytearray(_fetched(6, bytes(16), leaders))
    stream = Stream(fetched(16, Traffic()), len(body))
    assert stream.feed(body, 0, len(body)) == len(body)
    assert body == _fetched(6, bytes(16), b"\x01\x7f\x05" + bytes(5))


def test_an_answer_gets_a_topic_back_and_its_error() -> None:
    other, id = b"o" * 16, b"i" * 16
    body = bytearray(_fetched(100, other, b"\0"))
    traffic = Traffic()
    restore = {other: Original(id, 29)}.get
    Stream(fetched(16, traffic, restore), len(body)).feed(body, 0, len(body))
    assert body == _fetched(29, id, b"\0")
