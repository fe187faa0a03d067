"""Rules come as they were sent."""

from __future__ import annotations

from pickle import UnpicklingError

import pytest

from gateway.reload import passing
from tests.unit.reload.samples import rule, written

RULES = (
    rule("plain"),
    rule("matched", match={"tenant": "acme", "topic": ["a-*", "b"], "network": "10.0.0.0/8"}),
    rule("split", per=["topic", "principal"], partitions="each", mode="shadow", override=True),
    rule("counted", limit={"producers": 3, "dispatch": {"bytes": "1MB/s"}}),
)


def test_rules_come_as_they_were_sent() -> None:
    assert tuple(passing.parse(written(*RULES))) == RULES


def test_no_rules_are_none() -> None:
    assert list(passing.parse(written())) == []


def test_what_rules_have_in_common_passes_once() -> None:
    many = [rule(f"r-{number}", match={"tenant": "t" * 100}) for number in range(100)]
    assert len(written(*many)) < 100 * len(written(many[0])) / 3


@pytest.mark.parametrize("missing", [1, 100])
def test_rules_that_are_missing_are_noticed(missing: int) -> None:
    found = passing.parse(written(*RULES)[:-missing])
    with pytest.raises((EOFError, UnpicklingError)):
        list(found)
