"""All targets without a guide: the corpus that is kept, and what hypothesis thinks of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples

from .targets import CORPUS, LONGEST_INPUT, TARGETS

BOUND = 300_000
"""Bytes of all that is kept: `python -m tests.fuzz --keep` keeps what covers something new."""


def inputs(target: str) -> list[Path]:
    return sorted((CORPUS / target).iterdir())


every_target = pytest.mark.parametrize("target", TARGETS)


@every_target
def test_what_was_found_once_holds(target: str) -> None:
    frames = [TARGETS[target](file.read_bytes()) for file in inputs(target)]
    assert sum(frames) > 0


def test_what_is_kept_is_small_and_of_some_target() -> None:
    sizes = [file.stat().st_size for target in TARGETS for file in inputs(target)]
    assert max(sizes) <= LONGEST_INPUT
    assert sum(sizes) < BOUND
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)


@every_target
@examples(300)
@given(data=st.binary(max_size=400))
def test_whatever_bytes_there_are(target: str, data: bytes) -> None:
    assert TARGETS[target](data) >= 0


few = st.sampled_from(b"\x00\x01\x02\x03\x07\x08\x0f\x10\x1f\x3f\x7f\x80\xaf\xb0\xc0\xff")


@every_target
@examples(300)
@given(data=st.lists(few, max_size=400).map(bytes))
def test_few_choices_again_and_again(target: str, data: bytes) -> None:
    """So that ids and requests meet."""
    assert TARGETS[target](data) >= 0
