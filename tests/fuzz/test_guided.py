"""Each target under atheris for a moment. It guides by what is new, so the corpus is its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from .fuzzer import MISSING, run
from .targets import TARGETS

RUNS = {
    "scanner": 1500,
    "metadata": 3000,
    "opening": 3000,
    "session": 2500,
    "parsers": 20_000,
    "kafka_session": 300,
    "kafka_opening": 300,
}
"""Some seconds of each."""


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found_in_a_moment(target: str, tmp_path: Path) -> None:
    row = run(target, f"-runs={RUNS[target]}", "-seed=1", seconds=120.0, build=tmp_path)
    print(row)
    assert row.findings == ()
    assert row.executions >= RUNS[target]
    assert row.frames > 0
    assert row.edges
