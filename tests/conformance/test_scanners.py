"""Requirements on any scanner, however its stream is cut."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cache
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account
from gateway.wire.counters import ENDLESS
from tests.support.examples import examples

from .battery import (
    SURROUNDINGS,
    Around,
    Driver,
    Frame,
    Lie,
    Outcome,
    Sample,
    Spec,
    cut,
    drive,
    driver_of,
    expected,
)
from .specs import SPECS

BYTEWISE = 20_000
"""Samples up to this size are fed byte by byte, larger ones in small pieces, to save time."""

SMALL = 400
"""Samples up to this size are cut at each offset, larger ones near the borders of their frames."""

SCANNED = 2_000_000
"""Bytes that all cuts of one sample scan: large samples have fewer cuts, but 20."""

JUNK = bytes(100_000)
"""Bytes that follow a lie. A scanner that waits for more of the lie has believed it."""

sizes = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 3000)), min_size=1, max_size=30)

every_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
lying = pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if spec.lies], ids=lambda spec: spec.name
)
every_sample = pytest.mark.parametrize(
    ("spec", "sample"),
    [
        pytest.param(
            spec, sample, id=f"{spec.name}: {sample.name}", marks=pytest.mark.tier(sample.tier)
        )
        for spec in SPECS
        for sample in spec.samples
    ],
)
every_lie = pytest.mark.parametrize(
    ("spec", "lie"),
    [pytest.param(spec, lie, id=f"{spec.name}: {lie.name}") for spec in SPECS for lie in spec.lies],
)


@cache
def stock(spec: Spec, longest: int) -> list[Frame]:
    """Return frames to make streams of."""
    return spec.frames(longest)


def cuts(sample: Sample) -> list[int]:
    """Return the offsets at which to cut a sample in two."""
    length = len(sample.stream)
    if length <= SMALL:
        return list(range(1, length))
    begins = [0]
    for frame in sample.frames:
        begins.append(begins[-1] + len(frame.data))
    near = {at + by for at in begins for by in (*range(-2, 40), 60, 100) if 0 < at + by < length}
    most = max(20, min(150, SCANNED // length))
    return sorted(near)[:: 1 + len(near) // most]


# -- samples -----------------------------------------------------------------------------------


@every_sample
def test_a_whole_stream(spec: Spec, sample: Sample) -> None:
    assert drive(spec, [sample.stream]) == expected(sample.frames)


@every_sample
def test_byte_by_byte(spec: Spec, sample: Sample) -> None:
    size = 1 if len(sample.stream) <= BYTEWISE else 97
    assert drive(spec, cut(sample.stream, [size])) == expected(sample.frames)


@every_sample
def test_cut_in_two(spec: Spec, sample: Sample) -> None:
    """Where the first piece ends, its bytes that passed, are owed, wait and stopped add up."""
    stream, outcome = sample.stream, expected(sample.frames)
    borders = set(accumulate((frame.length for frame in sample.frames), initial=0))
    for at in cuts(sample):
        driver = driver_of(spec)
        driver.feed(stream[:at])
        _adds_up(driver.outcome(), at, borders, reads=spec.reads)
        driver.feed(stream[at:])
        assert driver.outcome() == outcome, f"cut at {at}"


def _adds_up(outcome: Outcome, at: int, borders: Set[int], *, reads: bool) -> None:
    """Check the outcome of the first bytes of a stream. `borders`: of its frames."""
    stopped = sum(min(stop.length, at - stop.offset) for stop in outcome.stops)
    assert len(outcome.cleared) + stopped + outcome.waiting == at
    assert at + outcome.owed in borders or outcome.waiting or outcome.stops
    within = reads and at - outcome.waiting + outcome.owed in borders
    assert at - outcome.waiting in borders or not outcome.waiting or within


@every_sample
def test_what_lies_behind_the_end_of_a_chunk_changes_nothing(spec: Spec, sample: Sample) -> None:
    outcome = expected(sample.frames)
    for around in SURROUNDINGS:
        assert drive(spec, [sample.stream], around) == outcome
        pieces = cut(sample.stream, [11, 1, 30, 2])
        assert len(sample.stream) > BYTEWISE or drive(spec, pieces, around) == outcome


# -- streams of all frames -----------------------------------------------------------------------


@every_spec
@examples(120)
@given(data=st.data(), sizes=sizes, around=st.sampled_from(SURROUNDINGS))
def test_any_frames_cut_anywhere(
    spec: Spec, data: st.DataObject, sizes: list[int], around: Around
) -> None:
    frames = data.draw(st.lists(st.sampled_from(stock(spec, 2000)), max_size=40))
    stream = b"".join(frame.data for frame in frames)
    assert drive(spec, cut(stream, sizes), around) == expected(frames)


@every_spec
@examples(80)
@given(data=st.data(), sizes=sizes)
def test_the_beginning_of_a_next_frame_changes_nothing(
    spec: Spec, data: st.DataObject, sizes: list[int]
) -> None:
    any_frame = st.sampled_from(stock(spec, 2000))
    frames, last = data.draw(st.lists(any_frame, max_size=5)), data.draw(any_frame)
    here = data.draw(st.integers(0, len(last.data) - 1))
    stream = b"".join(frame.data for frame in frames) + last.data[:here]
    outcome, without = drive(spec, cut(stream, sizes)), expected(frames)
    assert outcome.cleared.startswith(without.cleared)
    assert outcome.stops[: len(without.stops)] == without.stops
    waiting = outcome.waiting
    with_it = expected([*frames, last.begun(here - waiting)])
    if waiting and not outcome.owed:
        assert outcome == replace(without, waiting=here)
    elif here:
        assert replace(outcome, counts={}) == replace(with_it, counts={}, waiting=waiting)
        assert _lies_between(outcome, without, expected([*frames, last]) if spec.reads else with_it)


def _lies_between(outcome: Outcome, low: Outcome, high: Outcome) -> bool:
    """A partial frame may be counted in part: its bytes now, its messages later."""
    return all(
        got == expected_low or got[2:] == expected_high[2:]
        for name, got in outcome.counts.items()
        for expected_low, expected_high in [(low.counts.get(name), high.counts[name])]
    )


@every_spec
@examples(120)
@given(data=st.data(), sizes=sizes, around=st.sampled_from(SURROUNDINGS))
def test_damaged_streams_are_judged_alike_however_cut(
    spec: Spec, data: st.DataObject, sizes: list[int], around: Around
) -> None:
    frames = data.draw(st.lists(st.sampled_from(stock(spec, 300)), min_size=1, max_size=8))
    stream = bytearray(b"".join(frame.data for frame in frames))
    damages = st.tuples(st.integers(0, len(stream) - 1), st.integers(0, 255))
    for at, byte in data.draw(st.lists(damages, min_size=1, max_size=4)):
        stream[at] = byte
    _judged_alike(spec, bytes(stream), sizes, around)


@every_spec
@examples(100)
@given(stream=st.binary(max_size=300), sizes=sizes, around=st.sampled_from(SURROUNDINGS))
def test_noise_is_judged_alike_however_cut(
    spec: Spec, stream: bytes, sizes: list[int], around: Around
) -> None:
    _judged_alike(spec, stream, sizes, around)


def _judged_alike(spec: Spec, stream: bytes, sizes: list[int], around: Around) -> None:
    whole, pieces = drive(spec, [stream]), drive(spec, cut(stream, sizes), around)
    if not spec.alike:
        return  # both have ended without a bug
    if whole.violated:  # what precedes the violation in a chunk does not pass any more
        assert pieces.cleared.startswith(whole.cleared)
        whole, pieces = (replace(o, cleared=b"", owed=0, waiting=0) for o in (whole, pieces))
    assert pieces == whole


# -- lies --------------------------------------------------------------------------------------


@every_lie
@pytest.mark.parametrize("size", [1, 3, 10, 14, 1 << 20])
def test_a_lie_is_refused_or_handed_on(spec: Spec, lie: Lie, size: int) -> None:
    for around in SURROUNDINGS:
        driver = driver_of(spec, around)
        for piece in cut(lie.data, [size]):
            driver.feed(piece)
        for piece in cut(JUNK, [20_000]):
            driver.feed(piece)
        outcome = driver.outcome()
        assert outcome.violated or outcome.stops[:1] == [(0, lie_length(lie))]
        assert outcome.counts == {}
        most = lie_length(lie) - 1 if spec.reads else 0
        assert len(outcome.cleared) <= most


def lie_length(lie: Lie) -> int:
    """Return the length that a lie claims, by which alone a stop frame is known."""
    return int.from_bytes(lie.data[:4]) + 4


@lying
@examples(100)
@given(data=st.data(), sizes=sizes)
def test_frames_before_a_lie_are_counted(spec: Spec, data: st.DataObject, sizes: list[int]) -> None:
    frames = data.draw(st.lists(st.sampled_from(stock(spec, 300)), max_size=8))
    lie = data.draw(st.sampled_from(spec.lies))
    stream = b"".join(frame.data for frame in frames)
    outcome = drive(spec, cut(stream + lie.data + JUNK[:100], sizes))
    assert outcome.counts == expected(frames).counts
    passes = expected(frames).cleared + (lie.data[:-1] if spec.reads else b"")
    assert passes.startswith(outcome.cleared) or not outcome.violated


# -- allowances --------------------------------------------------------------------------------

limited = pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if spec.limits], ids=lambda spec: spec.name
)

ceilings = st.one_of(st.just(ENDLESS), st.integers(0, 30))
byte_ceilings = st.one_of(st.just(ENDLESS), st.integers(0, 3000))
grants = st.tuples(st.one_of(st.just(ENDLESS), st.integers(0, 5)), byte_ceilings)


class Model:
    """A simple model of allowances: a frame passes while something is left of both."""

    def __init__(self) -> None:
        self._left: dict[str, list[int]] = {}

    def limit(self, name: str, messages: int, size: int) -> None:
        """Set the allowances at the start."""
        self._left[name] = [messages, size]

    def hold(self, name: str) -> None:
        """Take all allowance away; debt stays."""
        self._left[name] = [min(0, left) for left in self._left[name]]

    def grant(self, name: str, messages: int, size: int) -> None:
        """Add to the allowances."""
        left = self._left[name]
        self._left[name] = [left[0] + messages, left[1] + size]

    def judge(self, frame: Frame) -> Frame:
        """Return the frame, as a stop frame if it may not pass."""
        left = self._left.get(frame.account)
        if left is None or frame.stop:
            return frame
        if left[0] <= 0 or left[1] <= 0:
            return replace(frame, stop=True)
        self._left[frame.account] = [left[0] - frame.messages, left[1] - frame.length]
        return frame


@limited
@examples(200)
@given(data=st.data(), sizes=sizes)
def test_exactly_what_is_allowed_passes(spec: Spec, data: st.DataObject, sizes: list[int]) -> None:
    """Several accounts with limits on messages and bytes are held and granted in between."""
    subject, model = spec.make(), Model()
    names = sorted({frame.account for frame in spec.counted(300)})
    names = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    stocked = [frame for frame in spec.counted(300) if frame.account in names]
    for name in names:
        account, messages, size = (
            subject.accounts[name],
            data.draw(ceilings),
            data.draw(byte_ceilings),
        )
        account.messages_ceiling, account.bytes_ceiling = messages, size
        model.limit(name, messages, size)
    driver, judged = Driver(subject, spec.carry_bound), list[Frame]()
    for _ in range(data.draw(st.integers(1, 4))):
        frames = data.draw(_runs(stocked))
        for piece in cut(b"".join(frame.data for frame in frames), sizes):
            driver.feed(piece)
        judged += map(model.judge, frames)
        _hold_or_grant(data, subject.accounts, model, names)
    assert driver.outcome() == expected(judged)


def _runs(frames: list[Frame]) -> st.SearchStrategy[list[Frame]]:
    """Return streams of few frames that come many times, one after another or in turn."""
    few = st.lists(st.sampled_from(frames), min_size=1, max_size=3)
    run = st.builds(lambda frames, times: frames * times, few, st.integers(1, 8))
    return st.lists(run, max_size=6).map(lambda runs: [frame for run in runs for frame in run])


def _hold_or_grant(
    data: st.DataObject, accounts: Mapping[str, Account], model: Model, names: list[str]
) -> None:
    for name in names:
        match data.draw(st.sampled_from(["", "hold", "grant"])):
            case "hold":
                accounts[name].hold()
                model.hold(name)
            case "grant":
                messages, size = data.draw(grants)
                accounts[name].grant(messages, size)
                model.grant(name, messages, size)
