"""All YAML of deploy/ is written in one way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.deploy.rendering import DEPLOY

PATIENCE = 60


def test_yamllint_finds_no_fault() -> None:
    pytest.importorskip("yamllint", reason="yamllint is not installed")
    linted = ("-c", str(DEPLOY / ".yamllint"), str(DEPLOY))
    command = [sys.executable, "-m", "yamllint", "--strict", *linted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
