"""The part of a protocol in the conformance battery, and a driver that acts as a pump.

A `Spec` is one direction of one protocol: how to make a scanner with open accounts, samples whose
every frame says what must become of it, and lies: frames whose lengths contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import Scanner

# -- what a protocol hands in ------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A frame and its expected outcome.

    `account`: the account that counts it, if any. `absent`: missing bytes of a last frame.
    `early`: the frame is counted, though bytes of it are missing.
    `becomes`: what passes in its place, of the same length; empty: it passes as it is. `counted`:
    bytes that are counted of a frame that is read while it passes, which is counted at its end;
    None: all of it is, at its beginning.
    """

    data: bytes
    account: str = ""
    messages: int = 0
    receipts: int = 0
    stop: bool = False
    absent: int = 0
    becomes: bytes = b""
    counted: int | None = None
    early: bool = False

    @property
    def length(self) -> int:
        return len(self.data) + self.absent

    @property
    def cleared(self) -> bytes:
        return self.becomes or self.data

    @property
    def counts(self) -> bool:
        return bool(self.account) and (self.counted is None or not self.absent or self.early)

    def begun(self, size: int) -> Frame:
        """Return the beginning of this frame, whose rest is absent."""
        begun = replace(self, data=self.data[:size], becomes=self.becomes[:size])
        return replace(begun, absent=self.length - size)


@dataclass(frozen=True)
class Sample:
    """A stream. `tier`: of the tests that drive it."""

    name: str
    frames: tuple[Frame, ...]
    tier: str = "test"

    @property
    def stream(self) -> bytes:
        return b"".join(frame.data for frame in self.frames)


@dataclass(frozen=True)
class Lie:
    """A frame whose lengths contradict each other. None of it may be counted."""

    name: str
    data: bytes


class Subject(NamedTuple):
    """A new scanner and its open accounts, by the names in samples."""

    scanner: Scanner
    accounts: Mapping[str, Account]


Split = Callable[[bytes], list[int]]


def alone(stopped: bytes) -> list[int]:
    """Return the length of a stop frame that stops alone, as those of most protocols do."""
    return [len(stopped)]


class Spec:
    """One direction of one protocol. `limits`: the scanner halts at frames without allowance.
    `reads`: it reads frames while they pass, so that what a chunk cuts may lie within one.
    `writes`: it may write into what passes. `alike`: it judges a frame alike however that is cut.
    `split`: returns the lengths of the stop frames that
    stop together, as samples have them.

    Not a dataclass: Hypothesis prints all fields of one, and these have megabytes.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Subject],
        samples: tuple[Sample, ...],
        lies: tuple[Lie, ...],
        *,
        limits: bool,
        carry_bound: int,
        reads: bool = False,
        writes: bool = False,
        alike: bool = True,
        split: Split = alone,
    ) -> None:
        self.name = name
        self.make = make
        self.samples = samples
        self.lies = lies
        self.limits = limits
        self.carry_bound = carry_bound
        self.reads = reads
        self.writes = writes
        self.alike = alike
        self.split = split

    def __repr__(self) -> str:
        return self.name

    def frames(self, longest: int) -> list[Frame]:
        """Return all frames of samples that are whole and not longer than `longest`."""
        every = (frame for sample in self.samples for frame in sample.frames)
        return [frame for frame in every if not frame.absent and frame.length <= longest]

    def counted(self, longest: int) -> list[Frame]:
        """Return the frames that need an allowance."""
        return [frame for frame in self.frames(longest) if frame.messages and not frame.stop]


# -- what came of a stream ---------------------------------------------------------------------


class Counts(NamedTuple):
    messages: int = 0
    surplus: int = 0
    bytes: int = 0
    receipts: int = 0

    @classmethod
    def of(cls, account: Account) -> Counts:
        return cls(account.messages, account.surplus, account.bytes, account.receipts)

    def plus(self, frame: Frame) -> Counts:
        """Return the counts after a passing frame."""
        size = frame.length if frame.counted is None else frame.counted
        return Counts(
            self.messages + frame.messages,
            self.surplus + max(0, frame.messages - 1),
            self.bytes + (size if frame.messages else 0),
            self.receipts + frame.receipts,
        )


class Stop(NamedTuple):
    offset: int
    length: int


@dataclass
class Outcome:
    """The outcome of a stream, which must not depend on how the stream is cut.

    `waiting`: bytes of a cut header at its end. `violated`: the scanner refused the stream.
    """

    cleared: bytes = b""
    stops: list[Stop] = field(default_factory=list)
    counts: dict[str, Counts] = field(default_factory=dict)
    owed: int = 0
    waiting: int = 0
    violated: bool = False


def expected(frames: Iterable[Frame]) -> Outcome:
    """Return the expected outcome of these frames."""
    outcome, offset = Outcome(), 0
    for frame in frames:
        if frame.stop:
            outcome.stops.append(Stop(offset, frame.length))
        else:
            outcome.cleared += frame.cleared
            outcome.owed = frame.absent
            if frame.counts:
                before = outcome.counts.get(frame.account, Counts())
                outcome.counts[frame.account] = before.plus(frame)
        offset += frame.length
    return outcome


# -- driving -----------------------------------------------------------------------------------


class Around(NamedTuple):
    """The bytes around a chunk: none, or the rests of earlier receives."""

    before: bytes
    behind: bytes


BARE = Around(b"", b"")
RESTS = b"\x00\x00\x00\x20\x00\x00\x00\x0c\x08\x06"
SURROUNDINGS = (
    BARE,
    *(Around(b"\x7f\x00\x08", fill * 64) for fill in (b"\x00", b"\x08", b"\x80", b"\xff", RESTS)),
)


class Driver:
    """Drives a scanner as a pump does, and checks it.

    The driver offers the bytes of a cut header again with those that follow, and skips stop frames.
    `reads`, `writes`, `split`: see `Spec`.
    """

    def __init__(
        self,
        subject: Subject,
        carry_bound: int,
        around: Around = BARE,
        *,
        reads: bool = False,
        writes: bool = False,
        split: Split = alone,
    ) -> None:
        self._scanner, self._accounts = subject
        self._carry_bound = carry_bound
        self._reads = reads
        self._writes = writes
        self._split = split
        self._around = around
        self._carry = b""
        self._skip = 0
        self._offset = 0
        self._cleared = bytearray()
        self._stops: list[Stop] = []
        self.violated = False

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes of the stream."""
        skipped = min(self._skip, len(piece))
        self._skip -= skipped
        self._offset += skipped
        if skipped == len(piece) or self.violated:
            return
        whole = self._carry + piece[skipped:]
        before, behind = self._around
        chunk = bytearray(before + whole + behind)
        self._carry = b""
        at, end = len(before), len(before) + len(whole)
        while at < end and not self.violated:
            at = self._scan(chunk, at, end)
        assert self._writes or chunk == before + whole + behind, "the chunk was written to"

    def _scan(self, chunk: bytearray, at: int, end: int) -> int:
        owed = self._scanner.owed
        offered = bytes(chunk) if self._writes else b""
        try:
            cleared = self._scanner.scan(chunk, at, end)
        except PeerError:
            assert self._scanner.owed == owed, "what is owed changed, though nothing passed"
            self.violated = True
            return end
        assert at <= cleared <= end
        if self._writes:
            kept = chunk[:at] == offered[:at] and chunk[cleared:] == offered[cleared:]
            assert kept, "what did not pass was written to"
        self._cleared += chunk[at:cleared]
        self._offset += cleared - at
        if cleared == end:
            assert self._scanner.stop == 0
            return end
        if self._scanner.is_slow:
            return cleared
        if not self._scanner.stop:
            return self._cut(chunk, cleared, end)
        assert self._scanner.owed == 0, "a border that is none"
        behind = self._stop(chunk, cleared, end)
        self._look_ahead(chunk, behind, end)
        return behind

    def _stop(self, chunk: bytearray, at: int, end: int) -> int:
        length = self._scanner.stop
        taken = min(length, end - at)
        whole = taken == length
        place = self._offset
        for it in self._split(bytes(chunk[at : at + length])) if whole else [length]:
            self._stops.append(Stop(place, it))
            place += it
        self._offset += taken
        self._skip = length - taken
        return at + taken

    def _look_ahead(self, chunk: bytearray, at: int, end: int) -> None:
        """Check that `following` finds whole stop frames, and changes nothing."""
        following = getattr(self._scanner, "following", None)
        if following is None:
            return  # of a protocol that holds nothing
        for account in self._accounts.values():
            behind = following(account, chunk, at, end) if account.held else at
            assert at <= behind <= end
            while at < behind:
                assert self._scanner.scan(chunk, at, behind) == at, "it would not wait"
                assert 0 < self._scanner.stop <= behind - at, "a frame that is not whole"
                at += self._scanner.stop

    def _cut(self, chunk: bytearray, at: int, end: int) -> int:
        self._carry = bytes(chunk[at:end])
        if not self._reads:
            assert self._scanner.owed == 0, "a border that is none"
        assert len(self._carry) <= self._carry_bound, "too much is kept of a cut header"
        return end

    def outcome(self) -> Outcome:
        """Return the outcome of the stream so far."""
        counts = {name: Counts.of(account) for name, account in self._accounts.items()}
        return Outcome(
            cleared=bytes(self._cleared),
            stops=self._stops,
            counts={name: count for name, count in counts.items() if count != Counts()},
            owed=self._scanner.owed,
            waiting=len(self._carry),
            violated=self.violated,
        )


def driver_of(spec: Spec, around: Around = BARE) -> Driver:
    """Return a driver of a new scanner."""
    more = {"reads": spec.reads, "writes": spec.writes}
    return Driver(spec.make(), spec.carry_bound, around, split=spec.split, **more)


def drive(spec: Spec, pieces: Iterable[bytes], around: Around = BARE) -> Outcome:
    """Return the outcome of a stream in these pieces."""
    driver = driver_of(spec, around)
    for piece in pieces:
        driver.feed(piece)
    return driver.outcome()


def cut(stream: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    """Cut the stream into pieces of these sizes, over and over."""
    at = 0
    for size in cycle(sizes):
        if at >= len(stream):
            return
        yield stream[at : at + size]
        at += size
