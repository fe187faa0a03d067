"""Samples of `memo` frames for the conformance battery of scanners: see `tests.conformance`."""

from __future__ import annotations

from collections.abc import Callable

from gateway.wire.account import Account, Action
from tests.conformance.battery import Frame, Lie, Sample, Spec, Subject
from tests.second.ledger import Ledger
from tests.second.memo import (
    ANSWER,
    ENTRY,
    HEAD,
    LONGEST_HEAD,
    PREFIX,
    SIZE,
    Kind,
    frame,
    places,
    sections,
    text,
    texts,
)
from tests.second.scanning import ToBrokerScanner, ToClientScanner
from tests.support.subjects import subject_of

CARRY_BOUND = HEAD.size + SIZE.size + LONGEST_HEAD
HUGE = (1 << 32) - 1
OPEN = ("a", "b", "t/n/" + "long" * 50)
UNWATCHED = ("x", "y")
"""Open topics too, for frames of several topics: a sample can name only one account."""

ANY_ANSWERS = 1 << 40


def _opened(scanner: ToBrokerScanner | ToClientScanner) -> Subject:
    accounts = {name: Account(Action.PRODUCE, subject_of(name)) for name in (*OPEN, *UNWATCHED)}
    scanner.accounts.update((name.encode(), account) for name, account in accounts.items())
    return Subject(scanner, {name: accounts[name] for name in OPEN})


def _to_broker() -> Subject:
    return _opened(ToBrokerScanner(Ledger()))


def _to_client() -> Subject:
    return _opened(ToClientScanner(Ledger(ANY_ANSWERS)))


def _counted(kind: int, topic: str, messages: int, size: int) -> Frame:
    return Frame(frame(7, kind, sections([(topic, messages, bytes(size))])), topic, messages)


def _several(kind: int, *topics: str, size: int = 50) -> bytes:
    return frame(8, kind, sections((topic, 2, bytes(size)) for topic in topics))


def _huge(data: bytes, size: int) -> bytes:
    """Return the same frame of one section, but with a payload of `size` bytes."""
    grown = data[: HEAD.size + SIZE.size]
    head = data[len(grown) :]
    entry = head[: 1 + head[0]] + ENTRY.pack(1, size)
    total = len(grown) + len(entry) + size - PREFIX
    return total.to_bytes(4) + grown[PREFIX:] + entry


def _lie(kind: int, body: bytes, *, by: int = 0) -> bytes:
    data = frame(9, kind, body)
    return (len(data) - PREFIX + by).to_bytes(4) + data[PREFIX:]


def _samples(kind: int) -> tuple[Sample, ...]:
    """Return samples of frames with sections, which both directions count."""
    one = _counted(kind, "a", 3, 40)
    absent = HUGE - 100
    return (
        Sample("nothing", ()),
        Sample("of each topic", tuple(_counted(kind, it, n, 9) for it in OPEN for n in (1, 9))),
        Sample("of no bytes", (_counted(kind, "b", 1, 0), one)),
        Sample("of many bytes", (one, _counted(kind, "a", 65_535, 90_000), one)),
        Sample("of several topics", (one, Frame(_several(kind, *UNWATCHED)), one)),
        Sample("of 4 GB", (one, Frame(_huge(one.data, absent), "a", 1, absent=absent))),
    )


def _lies(kind: int) -> tuple[Lie, ...]:
    entry = text("a") + ENTRY.pack(1, 4)
    good = SIZE.pack(len(entry)) + entry + b"1234"
    return (
        Lie("a frame without a kind", bytes(9)),
        Lie("sections without a head", frame(1, kind, b"\0")),
        Lie("a payload that is too long", _lie(kind, good, by=1)),
        Lie("a payload that is too short", _lie(kind, good, by=-1)),
        Lie("a head beyond its frame", frame(1, kind, SIZE.pack(90) + entry)),
        Lie("a head beyond all bounds", frame(1, kind, SIZE.pack(1025) + bytes(2000))),
        Lie("a cut head", frame(1, kind, SIZE.pack(3) + entry[:3])),
        Lie("a cut name", frame(1, kind, SIZE.pack(3) + b"\x09aa")),
        Lie("a section of nothing", frame(1, kind, sections([("a", 0, b"")]))),
    )


def _stop(*frames: bytes) -> tuple[Frame, ...]:
    return tuple(Frame(data, stop=True) for data in frames)


_ASKED = (Kind.HELLO, Kind.WHERE, Kind.GET, Kind.PUT | ANSWER, 77)
_TOLD = (Kind.HELLO | ANSWER, Kind.WHERE | ANSWER, Kind.ERROR, Kind.PUT, 77)


def _decided(*kinds: int) -> Sample:
    bodies = (b"", texts(["a", "b"]), places([("a", "host", 1)]), bytes(50_000))
    frames = (frame(1, kind, body) for kind in kinds for body in bodies)
    return Sample("what is decided", _stop(*frames))


_STRANGERS = Sample(
    "topics that are not open",
    (
        *_stop(
            _several(Kind.PUT), _several(Kind.PUT, "stranger"), _several(Kind.PUT, "x", "stranger")
        ),
        _counted(Kind.PUT, "a", 1, 5),
    ),
)
_STRAYS = Sample(
    "topics that are not open, and answers without topics",
    (
        Frame(_several(Kind.GET | ANSWER)),
        Frame(_several(Kind.GET | ANSWER, "stranger")),
        Frame(frame(2, Kind.PUT | ANSWER)),
        _counted(Kind.GET | ANSWER, "a", 1, 5),
    ),
)


def _spec(name: str, make: Callable[[], Subject], kind: int, *samples: Sample) -> Spec:
    return Spec(
        name,
        make,
        (*_samples(kind), *samples),
        _lies(kind),
        limits=kind == Kind.PUT,
        carry_bound=CARRY_BOUND,
    )


SPECS = (
    _spec("memo to broker", _to_broker, Kind.PUT, _decided(*_ASKED), _STRANGERS),
    _spec("memo to client", _to_client, Kind.GET | ANSWER, _decided(*_TOLD), _STRAYS),
)
