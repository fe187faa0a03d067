"""Rules are read from a pipe as they were written."""

from __future__ import annotations

from pickle import UnpicklingError

import pytest

from gateway.reload import reader
from tests.unit.reload.samples import rule, written

RULES = (
    rule("plain"),
    rule("matched", match={"tenant": "acme", "topic": ["a-*", "b"], "network": "10.0.0.0/8"}),
    rule("split", per=["topic", "principal"], partitions="each", mode="shadow", override=True),
    rule("ends", expires="2026-12-24"),
    rule("counted", limit={"producers": 3, "dispatch": {"bytes": "1MB/s"}}),
)


def test_rules_are_parsed_as_they_were_written() -> None:
    assert tuple(reader.parse(written(*RULES))) == RULES


def test_an_empty_set_is_parsed() -> None:
    assert list(reader.parse(written())) == []


def test_common_parts_of_rules_are_written_once() -> None:
    many = [rule(f"r-{number}", match={"tenant": "t" * 100}) for number in range(100)]
    assert len(written(*many)) < 100 * len(written(many[0])) / 3


@pytest.mark.parametrize("missing", [1, 100])
def test_missing_rules_are_an_error(missing: int) -> None:
    found = reader.parse(written(*RULES)[:-missing])
    with pytest.raises((EOFError, UnpicklingError)):
        list(found)
