"""No command is larger, or has more fields, than the bounds say, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.message import Message

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction, EndReason, ViolationError
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.addresses import MOST_ADDRESSES, MOST_BROKERS
from gateway.wire.pulsar.commands import decode
from gateway.wire.pulsar.counts import MOST_METADATA, CountChecks, Suspects
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.frames import LISTS, WITH_PAYLOAD, Kind, kind_name
from gateway.wire.pulsar.session import MOST_LISTED
from gateway.wire.pulsar.to_client import HEADS, ToClientScanner
from gateway.wire.pulsar.urls import LONGEST_URL, parse
from tests.soak.largest import (
    BOUNDS,
    KINDS,
    UNKNOWN,
    costly_frames,
    directions,
    filled,
    is_read,
    required,
)
from tests.support.commands import ACTIONS, COUNTED, LIMITS, STOPS
from tests.support.frames import data, message, tail
from tests.support.subjects import subject_of

from .frames import number_field, raw
from .script import Play
from .services import BROKER_1

TO_BROKER, TO_CLIENT = Direction

ALL = [(kind, direction) for kind in KINDS for direction in directions(kind)]
READ = [
    (kind, direction)
    for kind, direction in ALL
    if is_read(kind, direction) and kind not in COUNTED[direction] and kind != Kind.CONNECTED
]
"""Those that some listener decodes. What is counted is walked, and has bounds of its own."""

FEW = [(kind, direction) for kind, direction in READ if kind not in LISTS]
"""Those with few fields. A list of topics has as many fields as there are topics."""


def names(cases: list[tuple[int, Direction]]) -> list[str]:
    return [f"{kind_name(kind)} {direction.name}" for kind, direction in cases]


def least(kind: int) -> bytes:
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
    return required(None if field is None else field.message_type)


def reading() -> Play:
    """A pair of a listener that reads all that any listener reads."""
    return Play(limited=True, unknown_pass=False)


def say(play: Play, direction: Direction, frame: bytes) -> None:
    (play.client if direction is TO_BROKER else play.broker)(frame)


def number_of_fields(message: Message) -> int:
    inner = [
        it
        for _, value in message.ListFields()
        for it in (value if hasattr(value, "__iter__") else [value])
        if isinstance(it, Message)
    ]
    return len(message.ListFields()) + sum(map(number_of_fields, inner))


# -- fields ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "direction"), FEW, ids=names(FEW))
def test_a_command_that_is_read_has_so_many_fields_at_most(kind: int, direction: Direction) -> None:
    frame = raw(kind, least(kind) + number_field(15, 1) * (CHECKED_FROM // 2 + 1))
    with pytest.raises(PeerError, match="a command of more than 5000 fields"):
        say(reading(), direction, frame)


@pytest.mark.parametrize("kind", sorted(LISTS), ids=map(kind_name, sorted(LISTS)))
def test_a_list_of_topics_has_as_many_fields_as_there_are_topics(kind: Kind) -> None:
    few = raw(kind, least(kind) + number_field(15, 1) * (CHECKED_FROM // 2 + 1))
    assert reading().broker(few).effects is not None
    many = raw(kind, least(kind) + number_field(15, 1) * MOST_LISTED)
    with pytest.raises(PeerError, match=f"a command of more than {MOST_LISTED} fields"):
        say(reading(), TO_CLIENT, many)


@pytest.mark.parametrize("kind", KINDS, ids=map(kind_name, KINDS))
def test_as_many_fields_as_are_allowed_are_read(kind: int) -> None:
    begin = least(kind)
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
    command = BaseCommand.FromString(raw(kind, begin)[8:])
    mine = number_of_fields(getattr(command, field.name)) if field is not None else 0
    rest = BOUNDS.fields - mine
    allowed = begin + filled(15, 2 * CHECKED_FROM // rest) * rest
    assert len(allowed) > CHECKED_FROM
    decode(raw(kind, allowed), BOUNDS.fields)
    with pytest.raises(PeerError, match="more than 5000 fields"):
        decode(raw(kind, allowed + number_field(15, 1)), BOUNDS.fields)


def test_numbers_in_one_field_count_each_for_itself() -> None:
    """Protobuf reads a repeated number from one field, too."""
    acknowledged = data(5, b"\x01" * (CHECKED_FROM + 1))
    entry = number_field(1, 1) + number_field(2, 1)
    frame = raw(Kind.SUBSCRIBE, least(Kind.SUBSCRIBE) + data(9, entry + acknowledged))
    with pytest.raises(PeerError, match="more than 5000 fields"):
        Play().client(frame)


def test_a_message_that_holds_itself_is_read_to_its_end() -> None:
    """A message id holds the id of its first chunk."""
    entry = number_field(1, 1) + number_field(2, 1)
    body = least(Kind.SUBSCRIBE) + data(9, entry + data(7, entry)) + filled(15, CHECKED_FROM)
    Play().client(raw(Kind.SUBSCRIBE, body)).forwards()


@pytest.mark.parametrize(
    "cut",
    [b"\x7a", b"\x7a\x7f", b"\x78", b"\x78\xff", b"\x79\x01", b"\x7b", b"\xff", b"\xfa\xff" * 9],
)
def test_large_commands_with_fields_that_are_cut_are_refused(cut: bytes) -> None:
    with pytest.raises(PeerError):
        Play().client(
            raw(Kind.PRODUCER, least(Kind.PRODUCER) + filled(15, CHECKED_FROM + 64) + cut)
        )


# -- bytes -------------------------------------------------------------------------------------


def of_size(kind: int, size: int) -> bytes:
    """A frame whose command has so many bytes."""
    begin = least(kind)
    for trial in range(size - len(begin) - 32, size):
        frame = raw(kind, begin + filled(15, trial))
        if len(frame) == size + 8:
            return frame
    raise AssertionError


BOUNDED = [
    (kind, direction)
    for kind, direction in ALL
    if direction is TO_BROKER or is_read(kind, direction)
]
BOUNDED = [it for it in BOUNDED if it[0] not in COUNTED[TO_CLIENT] and it[0] != Kind.CONNECTED]


SMALL = [it for it in BOUNDED if it[0] not in LISTS]


@pytest.mark.parametrize(("kind", "direction"), SMALL, ids=names(SMALL))
def test_a_command_beyond_its_bound_ends_the_pair(kind: int, direction: Direction) -> None:
    scanner = reading().session.scanners[direction]
    frame = bytearray(of_size(kind, BOUNDS.command + 1))
    with pytest.raises(ViolationError) as violation:
        scanner.scan(frame, 0, len(frame))
    assert violation.value.reason is EndReason.FRAME_TOO_LARGE


@pytest.mark.parametrize("kind", sorted(LISTS), ids=map(kind_name, sorted(LISTS)))
def test_a_list_of_topics_may_fill_its_frame(kind: int) -> None:
    scanner = reading().session.scanners[TO_CLIENT]
    frame = bytearray(of_size(kind, BOUNDS.collected - 64))
    assert (scanner.scan(frame, 0, len(frame)), scanner.stop) == (0, len(frame))


@pytest.mark.parametrize(("kind", "direction"), BOUNDED, ids=names(BOUNDED))
def test_a_command_as_large_as_its_bound_is_taken(kind: int, direction: Direction) -> None:
    scanner = reading().session.scanners[direction]
    frame = bytearray(of_size(kind, BOUNDS.command))
    cleared = scanner.scan(frame, 0, len(frame))
    assert len(frame) in (cleared, scanner.stop)


# -- metadata ----------------------------------------------------------------------------------


def fields_before_the_count(number: int) -> bytes:
    return number_field(1, 1) * number + number_field(11, 7)


def test_metadata_of_a_send_has_so_many_fields_at_most() -> None:
    checks, account = CountChecks(Suspects(), "alice"), Account(Action.PRODUCE, subject_of("t"))
    many = data(4, required(MessageMetadata.DESCRIPTOR)) * CHECKED_FROM
    for metadata in (many, bytes(MOST_METADATA + 1)):
        with pytest.raises(PeerError, match="metadata"):
            checks.compare(account, 1, metadata)


def counted(metadata: bytes) -> int:
    """Return how many messages a MESSAGE with this metadata counts as."""
    scanner = ToClientScanner(
        ACTIONS[Direction.TO_CLIENT, True], account := Account(Action.CONSUME)
    )
    frame = bytearray(message(1, tail(metadata, b"")))
    assert scanner.scan(frame, 0, len(frame)) == len(frame)
    return account.messages


def test_of_large_metadata_the_begin_is_walked() -> None:
    """A message whose producer hides its count behind so many fields counts as one."""
    few, many = fields_before_the_count(HEADS // 4), fields_before_the_count(HEADS)
    assert [counted(it) for it in (few, many)] == [7, 1]


def test_large_properties_are_skipped_and_not_walked() -> None:
    assert counted(filled(4, 1 << 20) + number_field(11, 7)) == 7


# -- addresses ---------------------------------------------------------------------------------


def update(brokers: Iterator[str], each: int = 1) -> bytes:
    entries = [
        data(3, number_field(1, 1) + data(2, url.encode())) for url in brokers for _ in range(each)
    ]
    return raw(Kind.SCALABLE_TOPIC_UPDATE, number_field(1, 1) + data(2, b"".join(entries)))


def urls(number: int) -> Iterator[str]:
    return (f"pulsar://broker-{it}.internal:6650" for it in range(number))


def test_a_command_names_so_many_brokers_at_most() -> None:
    Play().broker(update(urls(MOST_BROKERS)))
    with pytest.raises(PeerError, match=f"more than {MOST_BROKERS} brokers"):
        Play().broker(update(urls(MOST_BROKERS + 1)))


def test_a_command_has_so_many_addresses_at_most() -> None:
    Play().broker(update(iter([f"pulsar://{BROKER_1}"]), MOST_ADDRESSES))
    with pytest.raises(PeerError, match=f"{MOST_ADDRESSES + 1} addresses"):
        Play().broker(update(iter([f"pulsar://{BROKER_1}"]), MOST_ADDRESSES + 1))


def test_a_url_longer_than_any_is_none() -> None:
    longest = ".".join(["a" * 63] * 3 + ["a" * 61])
    assert parse(f"pulsar://{longest}:6650") is not None
    assert parse(f"pulsar://{longest}:6650".ljust(LONGEST_URL + 1, "/")) is None


# -- what the soak measures --------------------------------------------------------------------


def test_the_soak_knows_where_each_command_goes() -> None:
    for direction in Direction:
        read = STOPS[direction] - WITH_PAYLOAD | COUNTED[direction] | LIMITS[direction]
        assert {kind for kind in read if direction not in directions(kind)} == set()
    assert set(KINDS) == {*Kind, UNKNOWN}


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.ERROR, Kind.SEND])
def test_the_costliest_frames_are_as_large_as_is_allowed(kind: Kind) -> None:
    (direction,) = directions(kind)
    sizes = [len(costly.frame) for costly in costly_frames(kind, direction)]
    bound = BOUNDS.collected if kind in WITH_PAYLOAD else BOUNDS.command
    assert bound - 2 * CHECKED_FROM < max(sizes) <= bound + 64
