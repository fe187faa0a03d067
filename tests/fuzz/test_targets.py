"""All targets without a guide: the corpus that is kept, and what hypothesis thinks of."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from tests.playbooks.script import Play
from tests.support.examples import examples

from .corpora import CORPUS, inputs, pack
from .grammar import frame_of
from .pair import Pair
from .source import Source
from .targets import KAFKA, LONGEST_INPUT, TARGETS

BOUND = 300_000
"""Bytes of all that is kept: `python -m tests.fuzz --keep` keeps what covers something new."""


every_target = pytest.mark.parametrize("target", TARGETS)
quick_target = pytest.mark.parametrize("target", [it for it in TARGETS if it not in KAFKA])
"""Those of Kafka have whole bodies in each frame, and fewer inputs (`test_kafka`)."""


@every_target
def test_what_was_found_once_holds(target: str) -> None:
    frames = [TARGETS[target](data) for data in inputs(target).values()]
    assert sum(frames) > 0


def test_what_is_kept_is_small_and_of_some_target() -> None:
    sizes = [len(data) for target in TARGETS for data in inputs(target).values()]
    assert max(sizes) <= LONGEST_INPUT
    assert sum(sizes) < BOUND
    assert {file.stem for file in CORPUS.iterdir()} == set(TARGETS)


def test_an_archive_is_the_same_for_the_same_inputs(tmp_path: Path) -> None:
    packed = {"b": b"2", "a": b"1"}
    pack("scanner", packed, tmp_path)
    once = (tmp_path / "scanner.zip").read_bytes()
    pack("scanner", dict(sorted(packed.items())), tmp_path)
    assert (tmp_path / "scanner.zip").read_bytes() == once
    assert inputs("scanner", tmp_path) == packed


@quick_target
@examples(300)
@given(data=st.binary(max_size=400))
def test_whatever_bytes_there_are(target: str, data: bytes) -> None:
    assert TARGETS[target](data) >= 0


@quick_target
def test_noise(target: str) -> None:
    noise = random.Random(1)
    assert sum(TARGETS[target](noise.randbytes(noise.randrange(400))) for _ in range(1500)) > 0


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("kind", Kind)
def test_each_command_with_all_kinds_of_values(kind: Kind, direction: Direction) -> None:
    """Coverage does not tell the fields of a command from those of another."""
    noise = random.Random(kind)
    for _ in range(25):
        play = Play()
        pair = Pair(play.session, play.services)
        pair.say(direction, frame_of(Source(noise.randbytes(200)), kind))
        pair.close()
        assert not pair.asked or direction is Direction.TO_BROKER


few = st.sampled_from(b"\x00\x01\x02\x03\x07\x08\x0f\x10\x1f\x3f\x7f\x80\xaf\xb0\xc0\xff")


@quick_target
@examples(300)
@given(data=st.lists(few, max_size=400).map(bytes))
def test_few_choices_again_and_again(target: str, data: bytes) -> None:
    """So that ids and requests meet."""
    assert TARGETS[target](data) >= 0
