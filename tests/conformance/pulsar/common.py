"""What the samples of both directions are made of."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from tests.conformance.battery import Frame, Lie, Sample
from tests.support.commands import COUNTED, STOPS
from tests.support.frames import LARGEST, command, data, frame, metadata_of, number, tail

IDS = (0, 1, 127, 128, 300, 1 << 14, 1 << 21, 1 << 28, 1 << 35, 1 << 42, 1 << 49, 1 << 56, LARGEST)
"""Ids that are open. One for each number of bytes, one to ten, and some more."""

STRANGERS = (2, 129, 1 << 63)
"""Ids that are not."""

WIDTHS = range(1, 11)
"""Of varints, in bytes."""

HUGE = (1 << 32) - 1
"""The largest size that can be said."""

PAYLOAD = tail(metadata_of(5), b"payload")

UNUSED = (0, 1, 41, 69, 100, 127)
"""Numbers of one byte that no command has."""


def least(width: int) -> int:
    """The least number whose varint has so many bytes."""
    return 1 << 7 * (width - 1) if width > 1 else 0


def sample(name: str, *frames: Frame | Iterable[Frame]) -> Sample:
    """A sample of single frames and of sequences of them."""
    flat = [[each] if isinstance(each, Frame) else each for each in frames]
    return Sample(name, tuple(each for some in flat for each in some))


def stops(*frames: bytes) -> list[Frame]:
    return [Frame(data, stop=True) for data in frames]


def passes(*frames: bytes) -> list[Frame]:
    return [Frame(data) for data in frames]


def begun(data: bytes, account: str = "", messages: int = 0, *, stop: bool = False) -> Frame:
    """A frame of 4 GB, whose rest never comes."""
    huge = HUGE.to_bytes(4) + data[4:]
    return Frame(huge, account, messages, stop=stop, absent=HUGE + 4 - len(data))


def decided(direction: Direction) -> Sample:
    """All commands that are handed to the session, however long."""
    bodies = (b"", b"x" * 200, bytes(70_000))
    kinds = sorted(STOPS[direction])
    return sample(
        "all commands that are decided",
        stops(*(frame(command(kind, body)) for kind in kinds for body in bodies[:2])),
        stops(frame(command(kinds[0], bodies[2]))),
    )


def passing(direction: Direction) -> Sample:
    """All commands that nobody looks at."""
    kinds = sorted(frozenset(Kind) - STOPS[direction] - COUNTED[direction])
    return sample(
        "all commands that pass",
        passes(*(frame(command(kind, body)) for kind in kinds for body in (b"", number(1, 300)))),
        passes(frame(command(kinds[0], bytes(70_000)))),
    )


def of_later_versions(*, pass_: bool) -> Sample:
    """Commands of a number that is not described."""
    frames = [frame(command(n, body)) for n in UNUSED for body in (b"", b"x" * 200)]
    return sample("commands of later versions", passes(*frames) if pass_ else stops(*frames))


def of_two_bytes(*like: int) -> Sample:
    """Commands of a number that takes two bytes, the first like that of these."""
    kinds = [128, *(kind | 128 for kind in like), 1 << 31]
    return sample(
        "types of several bytes",
        stops(*(frame(number(1, kind) + data(kind, b"")) for kind in kinds)),
        stops(*(frame(bytes((0x08, kind | 128))) for kind in (127, *like))),
    )


PING = command(Kind.PING, b"")

LIES = (
    Lie("nothing at all", frame(b"", total=0, size=0)),
    Lie("a frame without a command", frame(b"", total=4, size=0)),
    Lie("a total without room for a command", frame(PING, total=1)),
    Lie("a command of one byte", frame(b"\x08")),
    Lie("a command that is larger than its frame", frame(PING, size=6)),
    Lie("a command of 4 GB", frame(PING, size=HUGE)),
    Lie("a command of 4 GB in a frame of 4 GB", frame(PING, size=HUGE, total=HUGE)),
    Lie("a command of 4 GB in a frame of 5 bytes", frame(PING, size=HUGE, total=5)),
)
