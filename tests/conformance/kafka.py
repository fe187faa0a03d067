"""Samples of Kafka's frames: what passes is read, counted and changed in place."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from gateway.wire.account import Account, Action, Right
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import Principal
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.context import Client
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.to_broker import LONGEST_TEXT, MOST_TOPICS, ToBrokerScanner
from gateway.wire.kafka.to_client import ToClientScanner
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.kafka.walk import read_unsigned
from gateway.wire.plugin import FrameBounds
from gateway.wire.subject import Caller
from gateway.wire.subject import Subject as Who
from tests.conformance.battery import Frame, Lie, Sample, Spec, Subject
from tests.playbooks_kafka.frames import (
    API_VERSIONS,
    BY_ID,
    FETCH,
    METADATA,
    PRODUCE,
    ask,
    batch,
    fetch,
    fetched,
    id_of,
    known,
    named,
    old,
    produce,
    produced,
    tell,
)
from tests.playbooks_kafka.script import KafkaServices
from tests.support.versions import is_at_an_end

LONG = "long" * 60
OPEN = ("a", "b", LONG)
DENIED = "denied"
UNWATCHED = ("x", "y")
"""Open topics too, for frames of several topics: a sample can name only one account."""

HUGE = (1 << 31) - 1

Versions = tuple[int, ...]


def _versions(schema: Schema) -> tuple[Versions, Versions]:
    """Return the versions of the tier `test`, and the others."""
    every = range(schema.first, schema.last + 1)
    ends = tuple(it for it in every if is_at_an_end(schema, it))
    return ends, tuple(it for it in every if it not in ends)


PRODUCES, MORE_PRODUCES = _versions(known(PRODUCE).request)
FETCHES, MORE_FETCHES = _versions(known(FETCH).response)
WITH_LEADERS = 16

_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _substitutes() -> Substitutes:
    """Return substitutes whose ids are random, and the same each time."""
    return Substitutes(TopicIds(), Random(1).randbytes)


_DENIED_ID = Random(1).randbytes(16)
_NAME = DENIED.encode()
_DENIED_NAME = b"/" + _NAME[1:]
"""What stands for the denied topic towards brokers."""


# -- what is driven --------------------------------------------------------------------------------


class AnyAnswers(InFlight):
    """Requests of all kinds wait for their responses, whose correlation ids say which."""

    def oldest(self, correlation: int) -> int:
        """See `InFlight`."""
        key, version = divmod(correlation, 256)
        it = known(key) if key in (FETCH, METADATA, PRODUCE, API_VERSIONS) else known(METADATA)
        version = min(max(version, it.response.first), it.response.last)
        return it.key << 16 | version

    def answered(self) -> bytes:
        """See `InFlight`."""
        return b""


def to(key: int, version: int) -> int:
    """Return the correlation id of a response of this form."""
    return key * 256 + version


def _book(action: Action, substitutes: Substitutes) -> tuple[Book, dict[str, Account]]:
    """Return a book, and its accounts by their topics; in what names ids, with a plus."""
    services, ids = KafkaServices(), TopicIds()
    right = Right.PRODUCE if action is Action.PRODUCE else Right.CONSUME
    services.forbidden = {(right, DENIED)}
    for name in (*OPEN, *UNWATCHED, DENIED):
        ids.learn(id_of(name), name.encode())
    who = Who(Caller(protocol="kafka"))
    client = Client(who, Quota(Budget(), "client"), Principal("", verified=False))
    book = Book(services, client, ids)
    substitutes.name(DENIED.encode(), _ERROR)
    substitutes.id(id_of(DENIED), _ERROR)
    accounts: dict[str, Account] = {}
    for name in OPEN:
        for mark, topic, by_id in (("", name.encode(), False), ("+", id_of(name), True)):
            account = book.use(action, topic, by_id=by_id)
            assert isinstance(account, Account)
            accounts[name + mark] = account
    book.has_new = False
    return book, accounts


def _to_broker(*, raw: bool = False) -> Subject:
    book, accounts = _book(Action.PRODUCE, _substitutes())
    scanner = ToBrokerScanner(book, InFlight(), Throttle(KafkaServices()), FrameBounds().collected)
    scanner.raw = raw
    return Subject(scanner, accounts)


def _to_client(*, raw: bool = False) -> Subject:
    substitutes = _substitutes()
    book, accounts = _book(Action.CONSUME, substitutes)
    services = KafkaServices()
    scanner = ToClientScanner(services, book, AnyAnswers(), substitutes, Throttle(services))
    scanner.raw = raw
    return Subject(scanner, accounts)


# -- frames that pass ------------------------------------------------------------------------------

RECORDS = {
    "none": (b"", 0),
    "one": (batch(1), 1),
    "many": (batch(500, 3000) + batch(3) + batch(0), 503),
    "old": (old() + old(0) + batch(2) + old(), 5),
}
TORN = {
    "a cut batch": (batch(7) + batch(9)[:-1], 7),
    "a cut head": (batch(7) + batch(9)[:30], 7),
    "a few bytes": (batch(7) + bytes(16), 7),
}
"""What brokers may end a response with, which is not counted."""


def _counted(data: bytes, version: int, topic: str, records: bytes, messages: int) -> Frame:
    """Return a frame that is counted for a topic, unless it has no messages."""
    account = topic + "+" * (version >= BY_ID)
    return Frame(data, account if messages else "", messages, counted=len(records))


def _request(version: int, topic: str, records: bytes, messages: int, acks: int = -1) -> Frame:
    """Return a request, which counts as one message if it has none."""
    data = produce(version, 7, acks, **{topic: records})
    made = _counted(data, version, topic, records, max(1, messages))
    return replace(made, receipts=0 if acks else 1)


def _response(version: int, topic: str, records: bytes, messages: int) -> Frame:
    data = fetched(version, to(FETCH, version), **{topic: records})
    return _counted(data, version, topic, records, messages)


def _huge(one: Frame, records: bytes) -> Frame:
    """Return a frame of 2 GB, of which all but its last batch's body is here: the batch is counted
    by its head."""
    head, rest = one.data.rsplit(records, 1)
    missing = HUGE - len(one.data) - 100
    grown = len(records) + missing
    length = head[-4:]
    assert length == struct.pack(">i", len(records)), "a form without compact lengths"
    first = struct.pack(">qi", 0, grown - 12) + records[12:]
    begun = head[4:-4] + struct.pack(">i", grown) + first
    size = len(begun) + missing + len(rest)
    data = struct.pack(">i", size) + begun
    absent = 4 + size - len(data)
    return replace(one, data=data, absent=absent, counted=grown, early=True)


def _several(versions: Versions, /, **records: bytes) -> tuple[Frame, ...]:
    """Return requests with several topics."""
    return tuple(Frame(produce(version, 7, **records)) for version in versions)


def _with(versions: Versions, /, **fields: object) -> tuple[Frame, ...]:
    return tuple(Frame(ask(PRODUCE, version, 7, **fields)) for version in versions)


def _stop(*frames: bytes) -> tuple[Frame, ...]:
    return tuple(Frame(data, stop=True) for data in frames)


def _begun(data: bytes) -> Frame:
    """Return a stop frame of 2 GB, whose rest never comes."""
    return Frame(struct.pack(">i", HUGE) + data[4:], stop=True, absent=HUGE + 4 - len(data))


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


_LATER = tuple(
    _framed(struct.pack(">hhih", PRODUCE, version, 1, -1) + bytes(size))
    for version in (-1, PRODUCES[-1] + 1, 32767)
    for size in (2, 70_000)
)
_UNKNOWN = tuple(_framed(struct.pack(">hhih", key, 0, 1, -1)) for key in (-1, 62, 500, 32767))


def _requests(produces: Versions) -> tuple[Sample, ...]:
    """Return one sample of each kind, with frames of each of these versions."""
    return (
        Sample(
            "each version, topic and kind of records",
            tuple(
                _request(version, topic, *records, acks=acks)
                for version in produces
                for topic, acks in zip(OPEN, (1, -1, 0), strict=True)
                for records in RECORDS.values()
            ),
        ),
        Sample(
            "requests that begin alike",
            tuple(
                _request(version, "a", *records, acks=acks)
                for version in produces
                for acks in (1, 0)
                for records in (RECORDS["one"], RECORDS["one"], (batch(0), 0), (batch(9, 200), 9))
            ),
        ),
        Sample("large ones", tuple(_request(it, "a", batch(5, 70_000), 5) for it in produces)),
        Sample("several topics", _several(produces, x=batch(1), y=batch(2))),
        Sample("no topic", _with(produces, Acks=1)),
        Sample("a transaction", _with(produces, Acks=-1, TransactionalId="t" * 300)),
        Sample(
            "a denied topic, and a name that no topic has",
            tuple(
                Frame(produce(version, 7, **{topic: batch(9)}), stop=True)
                for version in produces
                for topic in (DENIED, "no/name")
            ),
        ),
        Sample(
            "clients without an id, and with a long one",
            tuple(
                Frame(ask(PRODUCE, version, 1, client, Acks=1))
                for version in produces
                for client in (None, b"", b"c" * 1024)
            ),
        ),
    )


def _of_other_versions(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Return these samples for the tier `all`."""
    return tuple(replace(it, name=f"{it.name}, other versions", tier="all") for it in samples)


REQUESTS = (
    Sample("nothing", ()),
    *_requests(PRODUCES),
    *_of_other_versions(_requests(MORE_PRODUCES)),
    Sample("2 GB", (_request(7, "a", old(), 1), _huge(_request(7, "b", batch(3), 3), batch(3)))),
    Sample(
        "what is decided",
        _stop(
            ask(API_VERSIONS, 3),
            fetch(4, 1, "a"),
            fetch(18, 1, "a"),
            ask(METADATA, 13),
            ask(METADATA, 1, Topics=[{"Name": LONG}] * 300),
            *_LATER,
            *_UNKNOWN,
        ),
    ),
    Sample("a stop frame of 2 GB", (_request(9, "a", old(), 1), _begun(ask(METADATA, 1)))),
)

_BEYOND = 1 << 20


def _body(*parts: bytes | tuple[str, int]) -> bytes:
    """Return a request of version 7, with numbers by their formats."""
    data = b"".join(
        it if isinstance(it, bytes) else struct.pack(f">{it[0]}", it[1]) for it in parts
    )
    return _framed(struct.pack(">hhih", PRODUCE, 7, 1, -1) + data)


_HEAD = struct.pack(">hhi", -1, 1, 1000)
_TOPIC = struct.pack(">ih", 1, 1) + b"a"
_PARTITION = struct.pack(">ii", 1, 0)
_ONE = _HEAD + _TOPIC + _PARTITION


def _records(data: bytes) -> bytes:
    return _body(_ONE, ("i", len(data)), data)


def _flexible(body: bytes) -> bytes:
    """Return a request of version 9, whose head has no tags."""
    return _framed(struct.pack(">hhih", PRODUCE, 9, 1, -1) + b"\0" + body)


_TORN_RECORDS = {
    "a batch that is torn": batch(1)[:-1],
    "a head that is torn": batch(1) + batch(1)[:40],
    "bytes behind its batches": batch(1) + b"?",
    "a batch of less than nothing": struct.pack(">qiib", 0, -1, 0, 2),
    "a batch of 4 bytes": struct.pack(">qiib", 0, 4, 0, 1),
    "a batch without its head": struct.pack(">qiib", 0, 10, 0, 2) + bytes(5),
    "less than no message": batch(-1),
}

REQUEST_LIES = (
    Lie("less than nothing", struct.pack(">i", -1) + bytes(20)),
    Lie("nothing", bytes(4)),
    Lie("a request without a correlation id", _framed(struct.pack(">hhi", 3, 1, 1)[:6])),
    Lie("a request of Produce without a client id", _framed(struct.pack(">hhi", 0, 7, 1))),
    *(
        Lie(f"a client id of {size} bytes", _framed(struct.pack(">hhih", 0, 7, 1, size) + _ONE))
        for size in (-2, 1025, 32767)
    ),
    Lie("no body", _body()),
    Lie("a long transactional id", _body(("h", 4097), bytes(5000))),
    Lie("a transactional id of -2 bytes", _body(("h", -2), _HEAD)),
    Lie("less than no topics", _body(_HEAD, ("i", -2))),
    Lie("many topics", _body(_HEAD, ("i", MOST_TOPICS + 1), bytes(100_000))),
    Lie("a topic without a name", _body(_HEAD, ("i", 1), ("h", -1), _PARTITION, ("i", 0))),
    Lie("a long name", _body(_HEAD, ("i", 1), ("h", LONGEST_TEXT + 1), bytes(LONGEST_TEXT + 100))),
    Lie("a name beyond the frame", _body(_HEAD, ("i", 1), ("h", 200), b"a")),
    Lie("more partitions than there are", _body(_HEAD, _TOPIC, ("i", 2), ("i", 0), ("i", 0))),
    Lie("records beyond the frame", _body(_ONE, ("i", _BEYOND), batch(1))),
    Lie("records of -2 bytes", _body(_ONE, ("i", -2), batch(1))),
    *(Lie(f"a request with {how}", _records(data)) for how, data in _TORN_RECORDS.items()),
    Lie("a length that does not end", _flexible(b"\xff" * 6)),
    Lie("a length of more than 32 bits", _flexible(b"\xff\xff\xff\xff\x7f" + bytes(10))),
    Lie("tags that are missing", _flexible(b"\0" + _HEAD[2:] + b"\2\2a\2" + bytes(5))),
)

# -- answers ---------------------------------------------------------------------------------------


def _restored(versions: Versions) -> tuple[Frame, ...]:
    """Return answers of which a topic gets its name back, and the error."""
    found = []
    for version in versions:
        data = [
            tell(
                FETCH,
                version,
                to(FETCH, version),
                Responses=[
                    {**named(version, "x", "Topic"), "Partitions": [{"Records": old()}]},
                    {"Topic": name, "TopicId": id, "Partitions": [{"ErrorCode": error}] * 2},
                ],
            )
            for name, id, error in (
                (_DENIED_NAME.decode(), _DENIED_ID, 17),
                (DENIED, id_of(DENIED), _ERROR),
            )
        ]
        found.append(Frame(data[0], becomes=data[1]))
    return tuple(found)


def _without_right(version: int) -> Frame:
    """Return a response of which the client has no right to one topic, as a broker gives one whose
    session has that topic."""
    said = {"x": batch(1), "y": batch(2), DENIED: batch(3)}
    responses = [
        {
            **named(version, name, "Topic"),
            "Partitions": [
                {"ErrorCode": _ERROR, "Records": bytes(len(records))}
                if name == DENIED
                else {"Records": records}
            ],
        }
        for name, records in said.items()
    ]
    correlation = to(FETCH, version)
    becomes = tell(FETCH, version, correlation, Responses=responses)
    return Frame(fetched(version, correlation, **said), becomes=becomes)


def _with_leaders(versions: Versions, hosts: int) -> tuple[Frame, ...]:
    """Return answers that name leaders, which clients do not see."""
    found = []
    nodes = [{"NodeId": id, "Host": "h" * 200, "Port": 9092} for id in range(hosts)]
    for version in (it for it in versions if it >= WITH_LEADERS):
        form = FETCH, version, to(FETCH, version)
        data, tags = tell(*form, NodeEndpoints=nodes), len(tell(*form)) - 1
        size, at = read_unsigned(data, tags + 2, len(data))
        assert at + size == len(data)
        hidden = data[: tags + 1] + b"\x7f" + data[tags + 2 : at] + bytes(size)
        found.append(Frame(data, becomes=hidden))
    return tuple(found)


_RICH = {
    "PartitionIndex": 3,
    "HighWatermark": 1 << 40,
    "DivergingEpoch": {"Epoch": 3, "EndOffset": 9},
    "CurrentLeader": {"LeaderId": 1, "LeaderEpoch": 2},
    "SnapshotId": {"EndOffset": 1, "Epoch": 2},
    "AbortedTransactions": [{"ProducerId": 7, "FirstOffset": 1}] * 3,
    "PreferredReadReplica": 1,
    "Records": batch(2),
}


def _rich(version: int) -> Frame:
    """Return a response with all fields."""
    responses = [{**named(version, "a", "Topic"), "Partitions": [_RICH, _RICH]}]
    data = tell(FETCH, version, to(FETCH, version), ThrottleTimeMs=9, Responses=responses)
    return _counted(data, version, "a", 2 * batch(2), 4)


def _empty(version: int) -> Frame:
    return Frame(tell(FETCH, version, to(FETCH, version), ErrorCode=70, SessionId=1))


_OTHERS = tuple(
    tell(METADATA, version, to(METADATA, version), Topics=topics)
    for version in (known(METADATA).response.first, known(METADATA).response.last)
    for topics in ([], [{"Name": LONG}] * 300)
)


def _responses(fetches: Versions) -> tuple[Sample, ...]:
    """Return one sample of each kind, with frames of each of these versions."""
    return (
        Sample(
            "each version, topic and kind of records",
            tuple(
                _response(version, topic, *records)
                for version in fetches
                for topic in OPEN
                for records in (RECORDS | TORN).values()
            ),
        ),
        Sample(
            "answers that begin alike",
            tuple(
                _response(version, "a", *records)
                for version in fetches
                for records in (
                    RECORDS["one"],
                    (batch(9, 200), 9),
                    (batch(3, 20_000), 3),
                    (batch(3) + batch(4, 9000), 7),
                    RECORDS["many"],
                    TORN["a cut batch"],
                    RECORDS["one"],
                )
            ),
        ),
        Sample("large ones", tuple(_response(it, "a", batch(5, 70_000), 5) for it in fetches)),
        Sample("several topics", tuple(map(_without_right, fetches))),
        Sample("no topic", tuple(map(_empty, fetches))),
        Sample("all fields", tuple(map(_rich, fetches))),
        Sample("a denied topic", _restored(fetches)),
        Sample("leaders", (*_with_leaders(fetches, 1), *_with_leaders(fetches, 50))),
    )


ANSWERS = (
    Sample("nothing", ()),
    *_responses(FETCHES),
    *_of_other_versions(_responses(MORE_FETCHES)),
    Sample("2 GB", (_response(7, "a", old(), 1), _huge(_response(7, "b", batch(3), 3), batch(3)))),
    Sample("what is decided", _stop(*_OTHERS, produced(9, to(PRODUCE, 9), a=0))),
    Sample("a stop frame of 2 GB", (_response(12, "a", old(), 1), _begun(_OTHERS[0]))),
)


def _fetched(version: int, body: bytes) -> bytes:
    return _framed(struct.pack(">i", to(FETCH, version)) + body)


def _told(records: bytes, size: int | None = None) -> bytes:
    """Return a response of version 4 with these records."""
    partition = struct.pack(">iihqqi", 1, 0, 0, 0, 0, 0)
    length = len(records) if size is None else size
    return _fetched(4, bytes(4) + _TOPIC + partition + struct.pack(">i", length) + records)


_NEVER = ("a batch of less than nothing", "a batch of 4 bytes", "less than no message")

ANSWER_LIES = (
    Lie("less than nothing", struct.pack(">i", -1) + bytes(20)),
    Lie("an answer without a correlation id", _framed(b"123")),
    Lie("no body", _fetched(4, b"")),
    Lie("less than no topics", _fetched(4, struct.pack(">ii", 0, -2))),
    Lie("many topics", _fetched(4, struct.pack(">ii", 0, MOST_TOPICS + 1) + bytes(100_000))),
    Lie("a topic without a name", _fetched(4, struct.pack(">iihi", 0, 1, -1, 0))),
    Lie("a long name", _fetched(4, struct.pack(">iih", 0, 1, LONGEST_TEXT + 1) + bytes(9999))),
    Lie("records beyond the frame", _told(batch(1), _BEYOND)),
    Lie("records of -2 bytes", _told(batch(1), -2)),
    Lie(
        "aborted transactions beyond the frame",
        _fetched(
            4, bytes(4) + _TOPIC + struct.pack(">iihqqi", 1, 0, 0, 0, 0, 1 << 24) + bytes(500)
        ),
    ),
    *(Lie(f"an answer with {how}", _told(_TORN_RECORDS[how])) for how in _NEVER),
    Lie("a head with tags that do not end", _fetched(12, b"\xff" * 6)),
)


# -- tokens without requests -----------------------------------------------------------------------

TOKENS = (
    Sample("tokens of all sizes", _stop(*(_framed(bytes(n)) for n in (0, 1, 5, 10, 300, 70_000)))),
    Sample("tokens that look like requests", _stop(produce(9, a=batch(1)), fetched(4, a=b""))),
)


def _spec(
    name: str,
    make: Callable[[], Subject],
    samples: tuple[Sample, ...],
    lies: tuple[Lie, ...] = (),
    *,
    alike: bool = True,
) -> Spec:
    return Spec(
        name,
        make,
        samples,
        lies,
        limits=False,
        carry_bound=2 * LONGEST_TEXT,
        reads=True,
        writes=True,
        alike=alike,
    )


SPECS = (
    # A topic without an account stops a whole request, and stops alone within a cut one.
    _spec("kafka to broker", _to_broker, REQUESTS, REQUEST_LIES, alike=False),
    _spec("kafka to client", _to_client, ANSWERS, ANSWER_LIES),
    _spec("kafka to broker, bare tokens", partial(_to_broker, raw=True), TOKENS),
    _spec("kafka to client, bare tokens", partial(_to_client, raw=True), TOKENS),
)
