"""What a broker says: MESSAGEs with all that a producer can put into them, and receipts."""

from __future__ import annotations

from crc32c import crc32c

from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.conformance.battery import Frame, Lie, Subject
from tests.support.commands import ACTIONS
from tests.support.frames import (
    LARGEST,
    TIME,
    command,
    data,
    entry_of,
    fixed,
    frame,
    group,
    message,
    metadata_of,
    number,
    receipt,
    simple,
    tail,
)
from tests.support.subjects import subject_of

from . import common
from .common import (
    HUGE,
    IDS,
    PAYLOAD,
    STRANGERS,
    WIDTHS,
    begun,
    decided,
    least,
    of_two_bytes,
    passes,
    passing,
    sample,
    stops,
)

CARRY_BOUND = 72 * 1024
"""The largest command of a MESSAGE, and metadata that is waited for."""

MESSAGE, RECEIPT = Kind.MESSAGE, Kind.SEND_RECEIPT

NAME, SEQUENCE, PUBLISHED = data(1, b"standalone-0-7"), number(2, 300), number(3, TIME)
HEAD = NAME + SEQUENCE + PUBLISHED
"""The metadata of a single message."""

LONG = data(4, bytes(9000))
"""A property that is not waited for: metadata which has it is walked as it passes."""

BATCH = metadata_of(5, num_messages_in_batch=9)


def got(id: int, frame: bytes, messages: int = 1) -> Frame:
    """A MESSAGE of an open consumer."""
    return Frame(frame, f"consumer {id}", messages)


def stray(frame: bytes, messages: int = 1) -> Frame:
    """A MESSAGE of any other."""
    return Frame(frame, "unknown", messages)


def of(
    metadata: bytes,
    messages: int = 1,
    *,
    checksum: bool = True,
    entry: bytes | None = None,
    length: int | None = None,
) -> Frame:
    """A MESSAGE with this metadata."""
    rest = tail(metadata, b"payload", checksum=checksum, entry=entry, length=length)
    return got(1, message(1, rest), messages)


def single(id: int, sequence_id: int = 300) -> Frame:
    return got(id, message(id, tail(metadata_of(sequence_id), b"payload")))


def acknowledged(id: int, frame: bytes) -> Frame:
    """A SEND_RECEIPT of an open producer."""
    return Frame(frame, f"producer {id}", receipts=1)


def properties(size: int, count: int) -> bytes:
    """Metadata of about this size, the count behind it."""
    many = [{"key": f"key {n}", "value": "v" * 90} for n in range(size // 100 - 1)]
    return metadata_of(300, properties=many, num_messages_in_batch=count)


MESSAGES = [
    sample("nothing"),
    *(
        sample(f"sequence ids of {w} bytes", (single(1, least(w) + n) for n in range(4)))
        for w in WIDTHS
    ),
    sample(
        "each consumer and producer",
        (each for id in IDS for each in (single(id), single(id), acknowledged(id, receipt(id)))),
    ),
    sample("consumers in turn", (single(id) for id in IDS + IDS)),
    sample(
        "producers' names of all lengths",
        (of(metadata_of(300, producer_name="n" * n)) for n in (0, 1, 5, 126, 127, 128, 129, 300)),
    ),
    sample(
        "publish times of all widths",
        (of(NAME + SEQUENCE + number(3, least(w))) for w in WIDTHS),
        (of(NAME + SEQUENCE + number(3, TIME, w)) for w in WIDTHS[5:]),
    ),
    sample(
        "batches",
        (of(metadata_of(5, num_messages_in_batch=n), n) for n in (1, 2, 127, 128, (1 << 31) - 1)),
        of(metadata_of(5, num_messages_in_batch=9, compacted_batch_indexes=[1, 2, 300]), 9),
    ),
    sample("no checksum", of(HEAD, checksum=False), of(BATCH, 9, checksum=False)),
    sample(
        "broker entry metadata",
        of(metadata_of(5), entry=entry_of(broker_timestamp=TIME, index=7)),
        (of(BATCH, 9, entry=entry_of(index=LARGEST), checksum=c) for c in (True, False)),
        (of(BATCH, 9, entry=bytes(size)) for size in (0, 4096)),
    ),
    *(
        sample(
            f"broker entry metadata of {size} bytes, which only a producer writes",
            (of(BATCH, 9, entry=bytes(size), checksum=checksum) for checksum in (True, False)),
            of(HEAD, entry=bytes(size)),
            of(properties(300, 5), 5, entry=bytes(size)),
            of(HEAD + LONG + number(11, 3), 3, entry=bytes(size)),
            stray(message(2, tail(BATCH, entry=bytes(size))), 9),
            got(300, message(300, tail(BATCH, entry=bytes(size))), 9),
            single(1),
        )
        for size in (4097, 20_000, 70_000)
    ),
    sample(
        "all fields of a message",
        of(
            metadata_of(
                5,
                num_messages_in_batch=9,
                event_time=TIME,
                deliver_at_time=-1,
                compression=2,
                encryption_keys=[{"key": "k", "value": b"\xff" * 40}],
                schema_version=b"\xff" * 8,
                marker_type=-1,
                txnid_least_bits=LARGEST,
                uuid="u" * 36,
                entry_hash_max=HUGE,
            ),
            9,
        ),
    ),
    *(
        sample(f"properties of {size} bytes", of(properties(size, 5), 5), single(1))
        for size in (300, 8 * 1024, 8 * 1024 + 100, 10_000, 90_000)
    ),
    sample(
        "metadata around the size that is waited for",
        (of(HEAD + data(4, bytes(n)) + number(11, 3), 3) for n in range(8080, 8150, 10)),
    ),
    sample("one property of 70,000 bytes", of(HEAD + data(4, bytes(70_000)) + number(11, 3), 3)),
    sample("a count before properties", of(number(11, 4) + HEAD + LONG, 4), single(1)),
    sample("a MESSAGE of 4 GB", single(1), begun(message(1), "consumer 1", 1)),
    sample("a stop frame of 4 GB", begun(simple(Kind.SUCCESS, request_id=1), stop=True)),
    sample(
        "other commands between",
        single(1),
        passes(simple(Kind.PONG), simple(Kind.REACHED_END_OF_TOPIC, consumer_id=1)),
        single(1),
        stops(simple(Kind.SUCCESS, request_id=1)),
        single(1),
    ),
    sample(
        "consumers that are not open",
        (stray(message(id)) for id in STRANGERS),
        stray(message(2, tail(BATCH)), 9),
        stray(message(2, tail(properties(9000, 9))), 9),
    ),
    sample(
        "acknowledgement sets of all sizes",
        (got(1, message(1, ack_set=[-1] * n)) for n in (1, 5, 9, 11, 90, 95, 100, 1000)),
    ),
    sample(
        "all that may be waited for",
        got(1, message(1, tail(BATCH, entry=bytes(4096)), ack_set=[-1] * 5950), 9),
    ),
    sample(
        "redeliveries and epochs",
        got(1, message(1, redelivery_count=9, consumer_epoch=LARGEST)),
        got(300, message(300, redelivery_count=300)),
    ),
    sample(
        "receipts",
        (
            acknowledged(id, receipt(id, least(w), highest_sequence_id=LARGEST))
            for id in IDS
            for w in (1, 2, 10)
        ),
        passes(*(receipt(id) for id in STRANGERS)),
    ),
]

ENCODINGS = [
    sample(
        "of many counts the last counts",
        of(number(11, 9) + HEAD + number(11, 4), 4),
        of(HEAD + number(11, 4) * 500, 4),
        of(number(11, 9) + LONG + number(11, 0)),
    ),
    sample(
        "counts in more bytes than they need",
        (of(HEAD + number(11, 5, w), 5) for w in WIDTHS),
        (of(HEAD + number(11, 5, tag_width=w), 5) for w in range(1, 6)),
        of(HEAD + LONG + number(11, 5, 10, tag_width=5), 5),
    ),
    sample(
        "a count that is none is one",
        (of(HEAD + number(11, n)) for n in (0, 1 << 31, LARGEST, LARGEST - 5000)),
    ),
    sample(
        "a count has 32 bits, whatever is above them",
        (of(HEAD + rest + number(11, (1 << 32) + 1000), 1000) for rest in (b"", LONG)),
    ),
    sample(
        "fields of other kinds and later versions",
        of(HEAD + fixed(40, bytes(4)) + fixed(11, b"\x58\x05\x58\x05") + number(11, 3), 3),
        of(HEAD + fixed(40, bytes(8)) + fixed(15, bytes(8)) + number(11, 3), 3),
        of(HEAD + data(11, number(11, 7)) + number(11, 3) + data(1 << 20, number(11, 7)), 3),
        of(HEAD + number(1 << 28, LARGEST) + number(11, 3), 3),
    ),
    sample(
        "what looks like a single message and holds a count",
        of(NAME + number(11, 9) + b"\x10\x01" + PUBLISHED, 9),
        of(NAME + SEQUENCE + number(11, 9) + PUBLISHED, 9),
        of(NAME + number(2, 1, 3) + number(11, 9) + PUBLISHED, 9),
        of(number(11, 9) + NAME + SEQUENCE + PUBLISHED, 9),
        of(HEAD + number(11, 9), 9),
        of(data(1, number(11, 9) + number(2, 1)) + SEQUENCE + PUBLISHED),
        # A count, where the length of the name would be.
        of(number(11, 14) + data(6, bytes(12)) + SEQUENCE + PUBLISHED, 14),
        # Publish times of fewer bytes, and a count in what is left of six.
        of(NAME + SEQUENCE + number(3, 1) + number(11, 7) + number(11, 9, 2), 9),
        of(NAME + SEQUENCE + number(3, 300) + number(11, 7) + number(11, 9), 9),
        of(NAME + SEQUENCE + number(3, 1, 3) + number(11, 9, 2), 9),
        of(NAME + SEQUENCE + number(3, 1, 4) + number(11, 9), 9),
        # A sequence id whose last bytes are a count.
        of(NAME + number(2, 1) + number(11, 1 << 14) + PUBLISHED, 1 << 14),
        # A tag of four bytes and its count, where a sequence id and the next tag would be.
        of(data(1, b"abcd\x10", 2) + number(11, 24, tag_width=4) + number(3, TIME)[1:], 24),
        # Without a checksum the same bytes are elsewhere.
        of(number(11, 9) + data(1, b"ab\x0a\x08cd") + SEQUENCE + PUBLISHED, 9, checksum=False),
        of(number(11, 9) + HEAD, 9, entry=b"1234\x0a\x10"),
    ),
    sample(
        "ids that are not in front",
        got(1, frame(command(MESSAGE, data(2, number(1, 300)) + number(1, 1)), PAYLOAD)),
        got(128, frame(command(MESSAGE, number(1, 128) + data(2, number(1, 5)), 3), PAYLOAD)),
        acknowledged(1, frame(command(RECEIPT, SEQUENCE + number(1, 1)))),
        acknowledged(1, frame(command(RECEIPT, number(1, 1, 4) + SEQUENCE, 3))),
    ),
    sample(
        "receipts and messages without an id",
        passes(frame(command(RECEIPT, b"")), frame(command(RECEIPT, b"\x08"))),
        stray(frame(command(MESSAGE, number(2, 1)), PAYLOAD)),
        stray(frame(command(MESSAGE, b"\x08\xff"), PAYLOAD)),
        stray(frame(command(MESSAGE, b"", 5), PAYLOAD)),
        single(1),
    ),
    sample(
        "commands that do not begin with their type",
        stops(
            frame(data(MESSAGE, b"")),
            frame(b"\x00\x09", PAYLOAD),
            frame(number(1, MESSAGE, tag_width=2) + data(MESSAGE, b"")),
        ),
    ),
]

# A broker hands on what it cannot read, and consumers throw it away by themselves. So it passes.

SHORT = (
    b"",
    b"\x0e",
    b"\x0e\x01",
    b"\x0e\x01abcd",
    b"\x0e\x01abcd\0",
    b"\x0e\x01abcd\0\0\0\0",
    b"\x0e\x01abcd\0\0\0\x01\x0a",
    b"\x0e\x01abcd\0\0\0\x02\x0a\x01",
    b"\0\0\0\0",
    b"\x0e\x02\0\0\0",
)

UNREADABLE = [
    sample(
        "metadata that nobody can read",
        (
            of(rest + end)
            for rest in (HEAD, HEAD + LONG)
            for end in (
                b"\x58",
                b"\x58\xff",
                b"\x22\x7f",
                b"\x22\xff\xff\xff\xff\x0f",
                b"\x2d\x00",
                b"\xff" * 40,
                number(2, 1, 11),
                group(10),
            )
        ),
        of(b""),
        of(b"\x0a"),
        single(1),
    ),
    sample(
        "a count in front of what nobody can read",
        of(HEAD + number(11, 5) + b"\x22\x7f", 5),
        of(HEAD + number(11, 5) + LONG + b"\x22\x7f", 5),
    ),
    *(
        sample(
            f"metadata of {length} bytes in a smaller frame",
            (of(HEAD, length=length, checksum=checksum) for checksum in (True, False)),
            single(1),
        )
        for length in (len(HEAD) + 8, 100, 5000, 100_000, 1 << 31, HUGE)
    ),
    *(
        sample(
            f"broker entry metadata of {size} bytes in a smaller frame",
            got(1, message(1, b"\x0e\x02" + size.to_bytes(4) + bytes(60))),
            single(1),
        )
        for size in (55, 57, 60, 61, 1000, 100_000, HUGE)
    ),
    *(
        sample(
            f"broker entry metadata of {size} bytes with {len(rest)} bytes behind it",
            got(1, message(1, b"\x0e\x02" + size.to_bytes(4) + bytes(size) + rest)),
            follow,
        )
        for size in (4097, 70_000)
        for rest in (b"", b"\x0e", b"\x0e\x01abcd", b"\x0e\x01abcd\0\0\0", bytes(4), bytes(10))
        for follow in ([single(1)], [])
    ),
    sample(
        "broker entry metadata behind broker entry metadata",
        (
            got(1, message(1, b"\x0e\x02" + n.to_bytes(4) + bytes(n) + tail(BATCH, entry=bytes(m))))
            for n in (0, 20, 5000)
            for m in (0, 20, 5000)
        ),
        single(1),
    ),
    *(
        sample(f"{len(rest)} bytes where metadata should be", got(1, message(1, rest)), follow)
        for rest in SHORT
        for follow in ([single(1)], [])
    ),
    *(
        sample(f"a MESSAGE of {len(of)} bytes and nothing else", stray(frame(of)))
        for of in (command(MESSAGE, number(2, 1)), command(MESSAGE, number(2, 1, 9)))
    ),
    sample("the smallest MESSAGE", got(1, frame(command(MESSAGE, number(1, 1))))),
]

SAMPLES = (
    *MESSAGES,
    *ENCODINGS,
    *UNREADABLE,
    of_two_bytes(MESSAGE, RECEIPT),
    decided(Direction.TO_CLIENT),
    passing(Direction.TO_CLIENT),
)

_WHOLE = command(MESSAGE, number(1, 1))
_LARGE = number(1, 1) + data(2, bytes(70_000))

HIDDEN = command(Kind.LOOKUP_RESPONSE, data(1, b"pulsar://a-broker:6650") + number(3, 1))
"""What a client would find behind another command: of two types protobuf takes the last one."""


def not_canonical(kind: Kind) -> dict[str, bytes]:
    """Commands that begin with this type, and are not the field of this type alone."""
    whole = command(kind, number(1, 1))
    tag = whole[2:3]
    return {
        "another command behind it": whole + HIDDEN,
        "a long command and another one behind it": command(kind, number(1, 1) * 70) + HIDDEN,
        "another command in place of its field": whole[:2] + HIDDEN,
        "a field of 130 bytes, and a length that says 2": command(kind, number(1, 1) * 65)[:3]
        + b"\x02"
        + number(1, 1) * 65,
        "a second type behind it": whole + number(1, Kind.PING),
        "the field of another type": number(1, kind) + data(Kind.PING, number(1, 1)),
        "a length that ends before the command": whole + b"\x08\x01",
        "a length that ends behind the command": whole[:3] + b"\x04" + whole[4:],
        "a length of two bytes that reads like one": whole[:2] + tag + b"\x80\x08" + bytes(130),
        "a length beyond the command by 128": whole[:3] + b"\x82" + whole[4:],
        "a number in place of its field": number(1, kind) + number(kind, 1) + bytes(2),
        "its field twice": whole + whole[2:],
        "a tag of two bytes": whole[:2] + bytes((tag[0] | 128, 0)) + whole[3:],
    }


LIES = (
    *common.LIES,
    *(
        Lie(f"a MESSAGE with a command of {len(of)} bytes", frame(of, PAYLOAD))
        for of in (b"\x08\x09", b"\x08\x09\x4a", command(MESSAGE, b""), command(MESSAGE, b"\x08"))
    ),
    Lie("a MESSAGE that is larger than its frame", frame(_WHOLE, size=1000)),
    Lie("a MESSAGE whose command is its frame of 4 GB", frame(_WHOLE, size=HUGE - 4, total=HUGE)),
    Lie("a MESSAGE with a command of 70,000 bytes", frame(command(MESSAGE, _LARGE), PAYLOAD)),
    Lie("a SEND_RECEIPT with a command of 70,000 bytes", frame(command(RECEIPT, _LARGE))),
    *(
        Lie(f"a MESSAGE with {how}", frame(of, rest))
        for how, of in not_canonical(MESSAGE).items()
        for rest in (PAYLOAD, tail(BATCH, checksum=False), tail(BATCH, entry=bytes(5000)), b"")
    ),
    *(Lie(f"a SEND_RECEIPT with {how}", frame(of)) for how, of in not_canonical(RECEIPT).items()),
    Lie("a SEND_RECEIPT of its type alone", frame(b"\x08\x07")),
    Lie("a SEND_RECEIPT with bytes behind it", frame(command(RECEIPT, number(1, 1)), b"12345")),
)


def make(*, unknown_pass: bool, verify: bool = False) -> Subject:
    """A scanner on which consumers and producers of all `IDS` are open."""
    unknown = Account(Action.CONSUME)
    actions = ACTIONS[Direction.TO_CLIENT, unknown_pass]
    scanner = ToClientScanner(actions, unknown, crc32c=crc32c if verify else None)
    accounts = {"unknown": unknown}
    for id in IDS:
        consumer = accounts[f"consumer {id}"] = Account(Action.CONSUME, subject_of(f"topic {id}"))
        producer = accounts[f"producer {id}"] = Account(Action.PRODUCE, subject_of(f"topic {id}"))
        scanner.open_consumer(id, consumer)
        scanner.open_producer(id, producer)
    return Subject(scanner, accounts)
