"""Builds packages as docs/operating.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.packages.environments import INSTALL_S, run

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300


class Packages(NamedTuple):
    sdist: Path
    wheel: Path


class Builder:
    """Builds packages with the tools that the project pins, in an environment of their own."""

    def __init__(self, environment: Path) -> None:
        self._python = environment / "bin" / "python"
        run([sys.executable, "-m", "venv", environment], environment.parent)
        pip = [self._python, "-m", "pip", "install", "--quiet"]
        tools = ROOT / "deploy" / "package-requirements.txt"
        run([*pip, "--requirement", tools], environment.parent, INSTALL_S)

    def build(
        self,
        out: Path,
        source: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> Packages:
        """Build the packages of a source tree into a folder."""
        done = subprocess.run(
            [self._python, source / "deploy" / "package.py", out],
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
