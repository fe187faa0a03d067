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


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not COMPILED, reason="the other tests of this folder run on pure loops")
def test_the_battery_passes_on_pure_loops() -> None:
    battery = "tests/conformance/test_scanners.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tier=test"]
    ended = subprocess.run(
        [*command, battery],
        cwd=ROOT,
        env=os.environ | {PURE_BY: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:]
