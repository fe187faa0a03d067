"""Failures of Spark in one line, by what it says of them."""

from __future__ import annotations

import pytest

from gateway.pipeline.failures import ended, explain
from tests.unit.errors.spark import CASES, ENDED, SCRATCH, Case


@pytest.mark.parametrize("case", CASES)
def test_a_failure_is_one_line_with_its_place_and_what_to_do(case: Case) -> None:
    assert explain(case.text, SCRATCH) == case.message


@pytest.mark.parametrize(("status", "message"), ENDED)
def test_a_process_that_has_gone_tells_by_its_status(status: int | None, message: str) -> None:
    assert ended(status) == message
