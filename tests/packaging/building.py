"""Builds packages as docs/install.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300


class Packages(NamedTuple):
    sdist: Path
    wheel: Path


def build(
    out: Path, source: Path = ROOT, environment: Mapping[str, str] | None = None, umask: int = -1
) -> Packages:
    """Build the packages of a source tree into a folder. Skips the test without the tools."""
    for tool in ("build", "setuptools"):
        try:
            distribution(tool)
        except PackageNotFoundError:
            pytest.skip(f"{tool} is not installed: deploy/package-requirements.txt")
    done = subprocess.run(
        [sys.executable, source / "deploy" / "package.py", out],
        env=os.environ | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        umask=umask,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sdist, wheel = map(Path, done.stdout.splitlines())
    assert sorted(out.iterdir()) == sorted((sdist, wheel))
    return Packages(sdist, wheel)
