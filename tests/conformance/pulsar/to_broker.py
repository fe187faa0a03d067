"""What a client says: SENDs of all encodings, and attempts to have them counted on others."""

from __future__ import annotations

from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from tests.conformance.battery import Frame, Lie, Subject
from tests.support.commands import ACTIONS
from tests.support.frames import (
    LARGEST,
    command,
    data,
    fixed,
    frame,
    group,
    number,
    send,
    simple,
    varint,
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

CARRY_BOUND = 256
"""No more is kept for a hostile client that sends byte by byte: each byte costs a copy of it."""

SEND = Kind.SEND
ID, SEQUENCE = number(1, 1), number(2, 300)


def sent(id: int, frame: bytes, messages: int = 1) -> Frame:
    """A SEND that passes."""
    return Frame(frame, f"producer {id}", messages)


def plain(id: int, sequence_id: int, size: int = 7) -> Frame:
    """What makes up nearly all of a stream."""
    return sent(id, send(id, sequence_id, bytes(size)))


def batch(id: int, sequence_id: int, messages: int) -> Frame:
    return sent(id, send(id, sequence_id, num_messages=messages), messages)


def odd(*fields: bytes, width: int = 0) -> bytes:
    """A SEND of these fields."""
    return frame(command(SEND, b"".join(fields), width), PAYLOAD)


RUNS = [
    sample("nothing"),
    *(
        sample(f"sequence ids of {w} bytes", (plain(1, least(w) + n) for n in range(5)))
        for w in WIDTHS
    ),
    sample("each producer", (plain(id, 300 + n, 3 * n) for id in IDS for n in range(3))),
    sample(
        "sequence ids that grow by a byte",
        (plain(1, least(w) + n - 2) for w in WIDTHS[1:] for n in range(4)),
    ),
    sample("producers in turn", (plain(IDS[n % 3], 200 + n) for n in range(12))),
    sample("producers of all widths in turn", (plain(id, 70_000) for id in IDS + IDS[::-1])),
    sample(
        "producers and sequence ids of all widths",
        (plain(id, least(w)) for w in WIDTHS for id in IDS[:5] for _ in range(2)),
    ),
    sample("batches", (batch(1, 300 + n, n + 1) for n in range(5)), plain(1, 310)),
    sample("batches of all widths", (batch(1, 300, least(w) or 2) for w in range(1, 6))),
    sample(
        "a batch between singles",
        (plain(1, 300), batch(1, 301, 50), plain(1, 302), plain(1, 303)),
    ),
    sample("payloads of all sizes", (plain(1, 300, n) for n in (0, 1, 9, 5000, 70_000, 0))),
    sample("a SEND of 4 GB", plain(1, 300), begun(send(1, 301), "producer 1", 1)),
    sample(
        "4 GB behind a command that has no payload",
        plain(1, 300),
        begun(simple(Kind.ACK, consumer_id=1), stop=True),
    ),
    sample("a stop frame of 4 GB", begun(simple(Kind.PRODUCER, producer_id=1), stop=True)),
    sample(
        "other commands between",
        plain(1, 300),
        passes(simple(Kind.PING), simple(Kind.FLOW, consumer_id=1, messagePermits=1000)),
        [plain(1, 301), plain(1, 302)],
        stops(simple(Kind.CLOSE_PRODUCER, producer_id=1, request_id=9)),
        plain(1, 303),
    ),
    sample(
        "producers that are not open",
        stops(*(send(id, 300) for id in STRANGERS), send(2, 302, num_messages=10)),
        plain(1, 300),
        stops(send(2, 301), odd(SEQUENCE), odd(), odd(number(1, LARGEST + 2), SEQUENCE)),
        [plain(1, 301), plain(1, 302)],
    ),
]

ENCODINGS = [
    *(
        sample(
            f"numbers in {w} bytes",
            [sent(1, odd(number(1, 1, w), number(2, 300, w)))] * 2,
            sent(1, odd(number(1, 1), number(2, 9, w))),
            sent(1, odd(ID, SEQUENCE, number(3, 5, w)), 5),
            plain(1, 301),
        )
        for w in WIDTHS
    ),
    sample(
        "fields in another order",
        [sent(1, odd(SEQUENCE, ID))] * 3,
        [sent(1, odd(number(3, 7), SEQUENCE, ID), 7)] * 3,
        [sent(1, odd(ID, number(3, 7), SEQUENCE), 7)] * 3,
        [sent(1, odd(number(3, 7), ID, SEQUENCE), 7)] * 3,
        [sent(1, odd(number(4, 7), ID, SEQUENCE))] * 3,
    ),
    sample(
        "of many equal fields the last counts",
        sent(1, odd(number(1, 128), SEQUENCE, ID)),
        sent(1, odd(number(1, 99), ID, SEQUENCE)),
        sent(1, odd(ID, SEQUENCE, number(3, 9), number(3, 4)), 4),
        sent(1, odd(ID, SEQUENCE, SEQUENCE)),
        sent(1, odd(ID, SEQUENCE, ID)),
        plain(1, 300),
    ),
    sample(
        "a count that is none",
        stops(
            *(
                odd(ID, SEQUENCE, number(3, count))
                for count in (0, 1 << 31, LARGEST, LARGEST - 5000)
            )
        ),
    ),
    sample(
        "a count has 32 bits, whatever is above them",
        sent(1, odd(ID, SEQUENCE, number(3, (1 << 32) + 1000)), 1000),
        sent(1, odd(ID, SEQUENCE, number(3, (5 << 60) + 3)), 3),
        sent(1, odd(ID, SEQUENCE, number(3, (1 << 31) - 1)), (1 << 31) - 1),
    ),
    sample(
        "transactions, chunks and numbers of later versions",
        sent(1, send(1, 300, txnid_least_bits=LARGEST, txnid_most_bits=1)),
        sent(1, send(1, 300, is_chunk=True, highest_sequence_id=LARGEST)),
        sent(1, odd(ID, SEQUENCE, number(8, 1), number(10, LARGEST), number(15, 0))),
    ),
    sample(
        "what is not a number is for protobuf",
        stops(
            send(1, 300, message_id={"ledgerId": 1, "entryId": 2, "ack_set": [1, 2, -1]}),
            odd(ID, SEQUENCE, data(9, number(1, 1) + number(2, 1))),
            odd(ID, SEQUENCE, data(10, b"")),
            odd(ID, SEQUENCE, fixed(10, b"\xff" * 4)),
            odd(ID, SEQUENCE, fixed(10, b"\xff" * 8)),
            odd(ID, SEQUENCE, fixed(20, b"\xff" * 8)),
            odd(ID, SEQUENCE, group(11)),
        ),
    ),
    sample(
        "so are fields above 15",
        stops(
            odd(ID, SEQUENCE, number(16, 1)),
            odd(ID, SEQUENCE, number(16, LARGEST)),
            odd(ID, SEQUENCE, number(1 << 28, 1)),
            odd(ID, SEQUENCE, data(16, b"")),
            odd(number(1, 1, tag_width=2), SEQUENCE),
            odd(ID, SEQUENCE, number(3, 1000, tag_width=3)),
        ),
    ),
    sample(
        "so is a SEND of 128 bytes and more",
        stops(
            odd(ID, SEQUENCE, *(number(10, n) for n in range(70))),
            odd(ID, SEQUENCE, *(number(10, n) for n in range(40_000))),
            odd(ID, SEQUENCE, width=2),
        ),
    ),
]

ATTACKS = [
    sample(
        "a producer hidden in a field above 15",
        # Read without regard to the tag's second byte, the last field is that of producer 128.
        stops(odd(ID, SEQUENCE, data(17, number(1, 128)))),
        stops(odd(ID, SEQUENCE, data(17, number(3, 1)), number(3, 5))),
        plain(128, 300),
    ),
    sample(
        "a field that a lenient decoder lets run out of its message",
        # The broker takes the message id's first number from behind the message id.
        stops(odd(ID, SEQUENCE, varint(9 << 3 | 2) + b"\x01\x08" + number(1, 128))),
    ),
    sample(
        "what follows a run of singles is proved, not guessed",
        (plain(1, 300 + n) for n in range(3)),
        sent(1, odd(ID, number(2, 5))),
        plain(1, 300),
        sent(1, odd(ID, number(2, 5, 2))),
        plain(1, 70_000),
        sent(1, odd(ID, number(2, 1), number(3, 99)), 99),
        plain(1, 1 << 21),
        sent(1, odd(ID, number(2, 300), number(3, 99)), 99),
        sent(1, odd(ID, number(2, 1), number(1, 1))),
        plain(1, 1 << 28),
        sent(1, odd(ID, number(2, 70_000), number(3, 77)), 77),
        sent(128, odd(ID, number(2, 300), number(1, 128))),
    ),
    sample(
        "a count where a sequence id was",
        (
            run
            for w in WIDTHS
            for run in (
                [sent(1, odd(ID, number(2, 5, w)))] * 2
                + [sent(1, odd(ID, number(3, least(w) or 5)), least(w) if w > 1 else 5)] * (w < 6)
            )
        ),
    ),
    sample(
        "a sequence id in front, and then nothing else",
        sent(1, odd(number(2, 5), number(1, 1))),
        stops(odd(number(2, 1 << 14))),
    ),
    sample(
        "a count where a longer sequence id was",
        (
            run
            for w in range(3, 11)
            for run in (
                plain(1, least(w)),
                plain(1, least(w)),
                sent(1, odd(ID, number(2, least(w - 2)), number(3, 99)), 99),
            )
        ),
    ),
    sample(
        "commands that are not canonical",
        stops(
            frame(data(SEND, ID + SEQUENCE) + number(1, SEND), PAYLOAD),
            frame(command(SEND, ID + SEQUENCE) + number(1, Kind.PING), PAYLOAD),
            frame(number(1, Kind.PING) + command(SEND, ID + SEQUENCE), PAYLOAD),
            frame(number(1, Kind.PING) + data(SEND, ID + SEQUENCE), PAYLOAD),
            frame(number(1, SEND) + data(Kind.PING, b"")),
            frame(number(1, Kind.PING) + data(Kind.PRODUCER, number(1, 1))),
            frame(common.PING + data(Kind.PRODUCER, number(1, 1))),
            frame(common.PING + number(99, 1)),
            frame(number(1, Kind.PING) + number(Kind.PING, 0)),
            frame(number(1, Kind.PING) + number(Kind.PING, 5, 3)),
            frame(number(1, Kind.PING, 2) + data(Kind.PING, b"")),
            frame(number(1, Kind.PING, tag_width=2) + data(Kind.PING, b"")),
            frame(number(1, Kind.PING) + varint(Kind.PING << 3 | 2, 3) + b"\x00"),
            frame(command(Kind.PING, b"", 6)),
            frame(command(Kind.PING, b"", 10)),
            frame(data(Kind.PING, b"")),
            frame(b"\x00\x00"),
            frame(b"\x12\x06"),
        ),
        stops(frame(b"\x08\x06"), frame(b"\x08\x06", PAYLOAD), frame(b"\x08\x05")),
        stops(frame(bytes((8, Kind.PING))), frame(common.PING, PAYLOAD)),
        passes(*(frame(command(Kind.PING, b"", w)) for w in WIDTHS[:5])),
    ),
    sample(
        "a type of two bytes whose first is that of a SEND",
        stops(
            frame(b"\x08\x86\xb2\x08\x01\x00", PAYLOAD),
            frame(b"\x08\x86\x00" + data(SEND, ID + SEQUENCE), PAYLOAD),
        ),
    ),
    sample(
        "commands that end where they should begin",
        stops(
            frame(b"\x08\x12\x92"),
            frame(b"\x08\x12\x92\x01"),
            frame(b"\x08\x12\x92\x01\x80"),
            frame(b"\x08\x12\x92\x81"),
            frame(b"\x08\x06\x32", PAYLOAD),
            frame(b"\x08\x06\x32\x80", PAYLOAD),
            frame(b"\x08\x12\x92\x01" + b"\x80" * 20),
        ),
    ),
    sample(
        "a sub-message that is longer or shorter than its command",
        stops(
            frame(b"\x08\x06\x32\x09" + ID + SEQUENCE, PAYLOAD),
            frame(b"\x08\x06\x32\x03" + ID + SEQUENCE, PAYLOAD),
            frame(b"\x08\x12\x92\x01\x01"),
            frame(b"\x08\x12\x92\x01\xff\xff\xff\xff\x0f"),
        ),
    ),
]

SAMPLES = (
    *RUNS,
    *ENCODINGS,
    *ATTACKS,
    of_two_bytes(SEND, Kind.PRODUCER),
    decided(Direction.TO_BROKER),
    passing(Direction.TO_BROKER),
)

_WHOLE = command(SEND, ID + SEQUENCE)

LIES = (
    *common.LIES,
    Lie("a SEND that is larger than its frame", frame(_WHOLE, size=1000)),
    Lie("a SEND whose command is its frame of 4 GB", frame(_WHOLE, size=HUGE - 4, total=HUGE)),
    Lie("a SEND that is a byte too short", frame(_WHOLE[:-1], PAYLOAD)),
    Lie("a SEND in a frame that ends before it", frame(_WHOLE, PAYLOAD, total=8)),
    Lie("a number that the command cuts", odd(ID, b"\x10\xff")),
    Lie("a tag without a number", odd(ID, SEQUENCE, b"\x18")),
    Lie("a number of eleven bytes", odd(ID, number(2, 1, 11))),
    Lie("a number that never ends", odd(ID, b"\x10" + b"\xff" * 60)),
    Lie("a tag that never ends", odd(ID, SEQUENCE, b"\xff" * 40)),
    Lie("a field that reaches beyond the command", odd(ID, SEQUENCE, b"\x4a\x50")),
    Lie("a field of 4 GB", odd(ID, SEQUENCE, b"\x4a\xff\xff\xff\xff\x0f")),
    Lie("a field of number 0", odd(ID, SEQUENCE, b"\x00\x01")),
)


def make(*, unknown_pass: bool, checks: CountChecks | None = None) -> Subject:
    """A scanner on which producers of all `IDS` are open."""
    scanner = ToBrokerScanner(ACTIONS[Direction.TO_BROKER, unknown_pass], checks=checks)
    accounts = {f"producer {id}": Account(Action.PRODUCE, subject_of(f"topic {id}")) for id in IDS}
    for id in IDS:
        scanner.open_producer(id, accounts[f"producer {id}"])
    return Subject(scanner, accounts)
