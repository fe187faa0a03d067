"""The scanners against a slow reader that decodes every frame with protobuf.

What passes must have been counted as protobuf reads it. What a scanner does not want to judge it
hands on, but never a frame as ordinary clients write them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.conformance.battery import SURROUNDINGS, Around, Counts, Driver, Outcome, Subject, cut
from tests.support.commands import ACTIONS, STOPS
from tests.support.examples import examples
from tests.support.frames import (
    LARGEST,
    TIME,
    command,
    data,
    entry_of,
    fixed,
    frame,
    message,
    metadata_of,
    number,
    receipt,
    send,
    simple,
    tail,
)
from tests.support.subjects import subject_of

OPEN = (0, 1, 5, 127, 128, 300, 1 << 21, LARGEST)
"""Ids of producers and consumers that are open."""

CARRY_BOUND = 72 * 1024
WHOLE = [1 << 20]


@dataclass(frozen=True)
class Said:
    """A frame. `ordinary`: as clients write them, so that it has to be counted at once."""

    data: bytes
    ordinary: bool = False

    @property
    def command(self) -> BaseCommand | None:
        """What protobuf reads, if it can."""
        try:
            return BaseCommand.FromString(self.data[8 : self.end])
        except (DecodeError, UnicodeDecodeError):
            return None

    @property
    def end(self) -> int:
        """Of the command."""
        return 8 + int.from_bytes(self.data[4:8])


def ordinary(data: bytes) -> Said:
    return Said(data, ordinary=True)


widths = st.integers(1, 10)
paddings = st.one_of(st.just(0), widths)
numbers = widths.flatmap(lambda width: st.integers(0, min(LARGEST, (1 << 7 * width) - 1)))
ids = st.one_of(st.sampled_from(OPEN), st.sampled_from(OPEN), numbers)
counts = st.one_of(st.integers(1, 300), numbers)
sizes = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 500)), min_size=1, max_size=20)
surroundings = st.sampled_from(SURROUNDINGS)


def driven(subject: Subject, said: Iterable[Said], sizes: list[int], around: Around) -> Outcome:
    """What becomes of it in pieces of these sizes."""
    driver = Driver(subject, CARRY_BOUND, around, reads=True)
    for piece in cut(b"".join(each.data for each in said), sizes):
        driver.feed(piece)
    return driver.outcome()


def plus(counted: dict[str, Counts], name: str, messages: int, size: int) -> None:
    """Add a frame of so many messages; a count that is none is one."""
    before, messages = counted.get(name, Counts()), max(1, messages)
    counted[name] = before._replace(
        messages=before.messages + messages,
        surplus=before.surplus + messages - 1,
        bytes=before.bytes + size,
    )


# -- to the broker -----------------------------------------------------------------------------

singles = st.builds(send, ids, numbers, st.binary(max_size=9)).map(ordinary)
batches = st.builds(
    send, ids, numbers, num_messages=st.integers(1, (1 << 31) - 1), highest_sequence_id=numbers
).map(ordinary)
transactional = st.builds(
    send, ids, numbers, txnid_least_bits=numbers, txnid_most_bits=numbers, is_chunk=st.booleans()
).map(ordinary)
replicated = st.builds(
    send, ids, numbers, message_id=st.builds(dict, ledgerId=numbers, entryId=numbers)
).map(Said)

send_fields = st.one_of(
    st.builds(number, st.just(1), ids, paddings),
    st.builds(number, st.just(2), numbers, paddings),
    st.builds(number, st.just(3), counts, paddings),
    st.builds(number, st.sampled_from([4, 8, 15]), numbers, paddings),
    st.builds(number, st.sampled_from([1, 3, 17, 1 << 20]), numbers, paddings, st.integers(0, 5)),
    st.builds(data, st.sampled_from([1, 9, 10, 17, 40]), st.binary(max_size=6), st.integers(0, 4)),
    st.builds(data, st.sampled_from([10, 17]), st.builds(number, st.sampled_from([1, 3]), ids)),
    st.builds(fixed, st.sampled_from([1, 3, 10, 20]), st.just(b"\x08\x01\x18\x09")),
)
odd_sends = st.builds(
    lambda fields, width: Said(frame(command(Kind.SEND, b"".join(fields), width), bytes(20))),
    st.lists(send_fields, max_size=6),
    st.integers(0, 3),
)
commands = st.sampled_from(
    [
        Said(simple(Kind.PING)),
        Said(simple(Kind.FLOW, consumer_id=1, messagePermits=1000)),
        Said(
            simple(Kind.ACK, consumer_id=1, ack_type=0, message_id=[{"ledgerId": 1, "entryId": 2}])
        ),
        Said(simple(Kind.CLOSE_PRODUCER, producer_id=1, request_id=2)),
    ]
)


@st.composite
def runs(draw: st.DrawFn) -> list[Said]:
    """SENDs as they come: a producer counts its sequence ids up."""
    id, first, many = draw(ids), draw(numbers), draw(st.integers(1, 6))
    step = draw(st.sampled_from([1, 1, 127, 1 << 14]))
    return [ordinary(send(id, first + n * step & LARGEST)) for n in range(many)]


def with_runs(*kinds: st.SearchStrategy[Said]) -> st.SearchStrategy[list[Said]]:
    """Streams of these kinds of frames, and of runs."""
    parts = st.one_of(runs(), *(kind.map(lambda said: [said]) for kind in kinds))
    return st.lists(parts, max_size=8).map(lambda some: [said for part in some for said in part])


def to_broker(said: Iterable[Said], sizes: list[int], around: Around) -> Outcome:
    scanner = ToBrokerScanner(ACTIONS[Direction.TO_BROKER, True])
    accounts = {f"producer {id}": Account(Action.PRODUCE, subject_of(f"topic {id}")) for id in OPEN}
    for id in OPEN:
        scanner.open_producer(id, accounts[f"producer {id}"])
    return driven(Subject(scanner, accounts), said, sizes, around)


def sends_that_passed(said: Iterable[Said], outcome: Outcome) -> dict[str, Counts]:
    """What protobuf counts of them. Fails where the scanner handed on or refused without need."""
    stopped, offset, counted = dict(outcome.stops), 0, dict[str, Counts]()
    for each in said:
        command = each.command
        if offset in stopped:
            assert stopped[offset] == len(each.data)
            assert not each.ordinary or _is_strange(command)
        elif command is None:
            assert outcome.violated, "what protobuf cannot read has passed"
            return counted
        elif command.type == BaseCommand.SEND:
            name = f"producer {command.send.producer_id}"
            plus(counted, name, command.send.num_messages, len(each.data))
        offset += len(each.data)
    assert not outcome.violated, "what protobuf can read was refused"
    return counted


def _is_strange(command: BaseCommand | None) -> bool:
    """A SEND of a producer that is not open."""
    return command is not None and command.send.producer_id not in OPEN


@examples(250)
@given(
    said=with_runs(singles, batches, transactional, replicated, odd_sends, commands),
    sizes=sizes,
    around=surroundings,
)
def test_sends_are_counted_as_protobuf_reads_them(
    said: list[Said], sizes: list[int], around: Around
) -> None:
    outcome = to_broker(said, sizes, around)
    assert outcome.counts == sends_that_passed(said, outcome)


tricks = st.sampled_from(b"\x00\x01\x02\x06\x08\x10\x18\x32\x4a\x7f\x80\x81\x8a\xff")
"""Bytes that mean something in a SEND, or end or continue a number."""


@examples(300)
@given(said=with_runs(singles, batches), drawn=st.data())
def test_no_damage_hides_a_send_or_its_count(said: list[Said], drawn: st.DataObject) -> None:
    """Whatever an attacker writes in the midst of a run."""
    damaged = []
    for each in said:
        content = bytearray(each.data)
        places = st.lists(st.integers(8, each.end - 1), max_size=3)
        for at in drawn.draw(places) if drawn.draw(st.booleans()) else ():
            content[at] = drawn.draw(tricks)
        damaged.append(Said(bytes(content), ordinary=content == each.data))
    outcome = to_broker(damaged, WHOLE, SURROUNDINGS[0])
    assert outcome.counts == sends_that_passed(damaged, outcome)


# -- to the client -----------------------------------------------------------------------------

metadata = st.one_of(
    st.builds(
        metadata_of,
        numbers,
        producer_name=st.text("n\x10\x18X", max_size=20),
        publish_time=st.one_of(st.just(TIME), numbers),
    ),
    st.builds(
        metadata_of,
        numbers,
        num_messages_in_batch=st.integers(-5, 300),
        properties=st.lists(st.builds(dict, key=st.text(max_size=9), value=st.text(max_size=9))),
        event_time=numbers,
        compacted_batch_indexes=st.lists(st.integers(-1, 300)),
    ),
    st.lists(
        st.one_of(
            st.builds(data, st.just(1), st.binary(max_size=14)),
            st.builds(number, st.sampled_from([2, 3, 9, 100, 1 << 27]), numbers, paddings),
            st.builds(number, st.just(11), counts, paddings, st.integers(0, 5)),
            st.builds(data, st.sampled_from([11, 16, 18]), st.binary(max_size=9)),
            st.builds(data, st.just(18), st.sampled_from([bytes(5000), bytes(9000)])),
            st.builds(
                fixed, st.sampled_from([11, 40]), st.sampled_from([bytes(4), b"\x58\x05" * 4])
            ),
        ),
        max_size=6,
    ).map(b"".join),
)


@dataclass(frozen=True)
class Delivered(Said):
    """A MESSAGE and its metadata."""

    metadata: bytes = b""


@st.composite
def messages(draw: st.DrawFn) -> Said:
    about = draw(metadata)
    entry = draw(st.one_of(st.none(), st.builds(entry_of, index=numbers)))
    rest = tail(about, draw(st.binary(max_size=9)), checksum=draw(st.booleans()), entry=entry)
    acknowledged = draw(st.sampled_from([0, 0, 0, 10, 93, 100]))
    return Delivered(message(draw(ids), rest, ack_set=[-1] * acknowledged), True, about)


receipts = st.builds(receipt, ids, numbers, highest_sequence_id=numbers).map(Said)
responses = st.sampled_from(
    [
        Said(simple(Kind.PONG)),
        Said(simple(Kind.SUCCESS, request_id=2)),
        Said(simple(Kind.REACHED_END_OF_TOPIC, consumer_id=1)),
    ]
)


def to_client(said: Iterable[Said], sizes: list[int], around: Around) -> Outcome:
    unknown = Account(Action.CONSUME)
    scanner = ToClientScanner(ACTIONS[Direction.TO_CLIENT, True], unknown)
    accounts = {"unknown": unknown}
    for id in OPEN:
        accounts[f"consumer {id}"] = consumer = Account(Action.CONSUME)
        scanner.open_consumer(id, consumer)
        accounts[f"producer {id}"] = producer = Account(Action.PRODUCE)
        scanner.open_producer(id, producer)
    return driven(Subject(scanner, accounts), said, sizes, around)


def deliveries(said: Iterable[Said]) -> dict[str, Counts]:
    """What protobuf counts."""
    counted = dict[str, Counts]()
    for each in said:
        command = each.command
        assert command is not None
        if isinstance(each, Delivered):
            id = command.message.consumer_id
            name = f"consumer {id}" if id in OPEN else "unknown"
            of = MessageMetadata.FromString(each.metadata)
            plus(counted, name, of.num_messages_in_batch, len(each.data))
        elif command.type == BaseCommand.SEND_RECEIPT and command.send_receipt.producer_id in OPEN:
            name = f"producer {command.send_receipt.producer_id}"
            before = counted.get(name, Counts())
            counted[name] = before._replace(receipts=before.receipts + 1)
    return counted


@examples(200)
@given(
    said=st.lists(st.one_of(messages(), messages(), receipts, responses), max_size=12),
    sizes=sizes,
    around=surroundings,
)
def test_messages_and_receipts_are_counted_as_protobuf_reads_them(
    said: list[Said], sizes: list[int], around: Around
) -> None:
    outcome = to_client(said, sizes, around)
    assert outcome.counts == deliveries(said)
    assert not outcome.violated
    assert [stop.length for stop in outcome.stops] == [
        len(each.data) for each in said if each.data[9] in STOPS[Direction.TO_CLIENT]
    ]
