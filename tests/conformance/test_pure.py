"""The battery once more on pure loops, which a process chooses when it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import PURE_BY
from gateway._pure import COMPILED

ROOT = Path(__file__).resolve().parents[2]


BATTERY = "tests/conformance/test_scanners.py"
SAMPLES = ("a_whole_stream", "byte_by_byte", "cut_in_two", "a_lie_is_refused_or_handed_on")
"""Its tests that `make test` runs on pure loops: what is made up costs as much once more."""


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not COMPILED, reason="the other tests of this folder run on pure loops")
@pytest.mark.parametrize(
    "tests",
    [
        pytest.param([f"{BATTERY}::test_{it}" for it in SAMPLES], id="samples"),
        pytest.param([BATTERY], id="all", marks=pytest.mark.tier("all")),
    ],
)
def test_the_battery_passes_on_pure_loops(tests: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tier=test"]
    ended = subprocess.run(
        [*command, *tests],
        cwd=ROOT,
        env=os.environ | {PURE_BY: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:]
