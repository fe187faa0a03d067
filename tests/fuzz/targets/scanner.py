"""Both scanners: the same result however a stream is cut, and the one that protobuf gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.conformance.battery import (
    BARE,
    SURROUNDINGS,
    Around,
    Counts,
    Driver,
    Outcome,
    Subject,
    cut,
)
from tests.conformance.pulsar import to_broker, to_client
from tests.conformance.pulsar.common import IDS
from tests.fuzz.grammar import any_frame, metadata
from tests.fuzz.reading import Said, walk
from tests.fuzz.source import Source
from tests.support.frames import message, send, tail

MOST = 24
"""Frames of one stream."""

_GROUPS = (3, 4)
"""Wire types that protobuf has given up, and the walk with it."""

CARRY_BOUND = 72 * 1024
"""A command of 64 KiB may be waited for, and 8 KiB of metadata."""

Make = Callable[[], Subject]


def scanner(data: bytes) -> int:
    """A stream of frames for one direction; answers how many it has."""
    source = Source(data)
    direction = Direction(source.below(2))
    of = to_broker.make if direction is Direction.TO_BROKER else to_client.make
    make = partial(of, unknown_pass=not source.odd(4))
    sizes = [1 + source.below(64) for _ in range(1 + source.below(4))]
    around = source.pick(SURROUNDINGS)
    frames = _frames(source, direction)
    stream = b"".join(frames)
    outcome = _drive(make(), cut(stream, sizes), around)
    _is_alike(_drive(make(), [stream]), outcome)
    _is_refused_in_time(stream, outcome)
    sound = _sound(make(), stream)
    _is_as_read(direction, sound, _drive(make(), [sound]))
    return len(frames)


def _drive(subject: Subject, pieces: Iterable[bytes], around: Around = BARE) -> Outcome:
    driver = Driver(subject, CARRY_BOUND, around, reads=True)
    for piece in pieces:
        driver.feed(piece)
    return driver.outcome()


def _sound(subject: Subject, stream: bytes) -> bytes:
    """What precedes the first frame that is refused or waited for."""
    driver = Driver(subject, CARRY_BOUND, reads=True)
    for said in walk(stream):
        driver.feed(said.data)
        if driver.violated or driver.outcome().waiting:
            return stream[: said.offset]
    return stream


def _frames(source: Source, direction: Direction) -> list[bytes]:
    frames: list[bytes] = []
    while source.left and len(frames) < MOST:
        if direction is Direction.TO_BROKER and source.odd(3):
            frames += _run(source)
        else:
            frames.append(any_frame(source, direction))
    return frames


def _run(source: Source) -> list[bytes]:
    """SENDs of one producer, for what the scanner remembers of the one before."""
    id, first = source.pick(IDS), source.number()
    run = [bytearray(send(id, first + n & 0xFFFFFFFFFFFFFFFF)) for n in range(3)]
    if source.odd(2):
        run[1][4 + source.below(20)] = source.byte()
    return [bytes(frame) for frame in run]


def _is_alike(whole: Outcome, pieces: Outcome) -> None:
    """What precedes a violation in a chunk does not pass any more."""
    if whole.violated:
        assert pieces.cleared.startswith(whole.cleared)
        whole, pieces = (replace(o, cleared=b"", owed=0, waiting=0) for o in (whole, pieces))
    assert pieces == whole


# -- a slow reader -----------------------------------------------------------------------------


def _is_as_read(direction: Direction, stream: bytes, outcome: Outcome) -> None:
    """What passed is what a slow reader would have let pass, and is counted as it reads it."""
    assert not outcome.violated
    stopped, frames = dict(outcome.stops), list(walk(stream))
    assert all(stopped.get(said.offset, said.total) == said.total for said in frames)
    passed = [said for said in frames if said.offset not in stopped]
    if direction is Direction.TO_BROKER:
        assert all(_is_what_it_seems(said) for said in passed if said.total == len(said.data))
        assert outcome.counts == _sent(passed)
    elif not outcome.owed:
        _are_delivered(passed, outcome)


def _is_refused_in_time(stream: bytes, outcome: Outcome) -> None:
    """No frame has passed in which its command has no room."""
    if any(said.is_impossible for said in walk(stream)):
        assert outcome.violated


def _is_what_it_seems(said: Said) -> bool:
    """A client hides no command behind the type of another."""
    command = said.command
    return command is None or not command.HasField("type") or command.type == said.data[9]


def _sent(passed: list[Said]) -> dict[str, Counts]:
    """SENDs by producer, as protobuf reads them."""
    counted = dict[str, Counts]()
    for said in passed:
        command = said.command
        if said.data[9] == Kind.SEND:
            assert command is not None, "a SEND has passed that protobuf cannot read"
            name = f"producer {command.send.producer_id}"
            _add(counted, name, command.send.num_messages, said.total)
    return counted


def _add(counted: dict[str, Counts], name: str, messages: int, size: int) -> None:
    before, messages = counted.get(name, Counts()), max(1, messages)
    counted[name] = before._replace(
        messages=before.messages + messages,
        surplus=before.surplus + messages - 1,
        bytes=before.bytes + size,
    )


def _are_delivered(passed: list[Said], outcome: Outcome) -> None:
    """Each MESSAGE is on one bill, its bytes with it, and so is each receipt that is known."""
    messages = [said for said in passed if said.data[8:10] == b"\x08\x09"]
    booked = outcome.counts.values()
    assert sum(each.messages - each.surplus for each in booked) == len(messages)
    assert sum(each.bytes for each in booked) == sum(said.total for said in messages)
    receipts = sum(said.data[8:10] == b"\x08\x07" for said in passed)
    assert sum(each.receipts for each in booked) <= receipts
    counts = [_number(said) for said in messages]
    if None not in counts:
        assert sum(each.messages for each in booked) == sum(filter(None, counts))


def _number(said: Said) -> int | None:
    """Messages of a MESSAGE with a checksum and metadata that protobuf reads; None of another."""
    rest, command = said.rest, said.command
    if command is None or command.type != BaseCommand.MESSAGE or rest[:2] != b"\x0e\x01":
        return None
    size = int.from_bytes(rest[6:10])
    return _batch(rest[10 : 10 + size]) if len(rest) >= 10 + size else None


def _batch(about: bytes) -> int | None:
    """What protobuf reads of metadata; None where it cannot, or where there are groups."""
    try:
        read = MessageMetadata.FromString(about)
    except DecodeError:
        return None
    unknown = UnknownFieldSet(read)
    if any(unknown[index].wire_type in _GROUPS for index in range(len(unknown))):
        return None
    return max(1, read.num_messages_in_batch)


# -- metadata alone ----------------------------------------------------------------------------


def walked(data: bytes) -> int:
    """The metadata of a MESSAGE, read at once, in pieces, and by protobuf: one count."""
    source = Source(data)
    sizes = [1 + source.below(40) for _ in range(1 + source.below(4))]
    about = metadata(source) + source.take(source.below(12))
    frame = message(1, tail(about, b""))
    at_once = _count([frame])
    assert 1 <= at_once < 1 << 31
    expected = _batch(about)
    assert expected is None or at_once == expected
    assert _count(cut(frame, sizes)) == at_once
    return 1


def _count(pieces: Iterable[bytes]) -> int:
    (counts,) = _drive(to_client.make(unknown_pass=True), pieces).counts.values()
    return counts.messages
