"""Runs targets under libFuzzer, each in a process of its own, and reads what it says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .corpora import found, pack, unpack
from .guided import TALLY
from .report import Row
from .targets import LONGEST_INPUT

CHECKOUT = Path(__file__).parents[2]
BUILD = CHECKOUT / "build" / "fuzz"
"""Of each target: the corpus as it grows, findings, the log."""

GRACE = 120.0
"""Seconds beyond those that were asked for, for the start and the corpus."""

BOUNDS = (
    f"-max_len={LONGEST_INPUT}",
    "-len_control=10",
    "-timeout=10",
    "-rss_limit_mb=1024",
    "-print_final_stats=1",
    "-verbosity=1",
)

MISSING = "" if importlib.util.find_spec("atheris") else "atheris is not installed"
"""Why targets cannot be guided here; empty if they can. Atheris has wheels for Linux on x86-64."""


def run(target: str, *options: str, seconds: float, build: Path = BUILD) -> Row:
    """One target, from the corpus that is kept and the one that grows, until the options say."""
    folder = build / target
    for part in ("corpus", "findings"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    known = set((folder / "findings").iterdir())
    own = f"-artifact_prefix={folder / 'findings'}/"
    corpora = [str(folder / "corpus"), str(unpack(target, folder / "kept"))]
    began = time.monotonic()
    log, code = _libfuzzer(target, folder, [*BOUNDS, own, *options, *corpora], seconds + GRACE)
    new = [str(file) for file in sorted((folder / "findings").iterdir()) if file not in known]
    if code and not new:
        new = [f"exit status {code}: {log[-2000:]}"]
    return _row(target, folder, log, time.monotonic() - began, tuple(new))


def _libfuzzer(
    target: str, folder: Path, arguments: Sequence[str], timeout: float
) -> tuple[str, int]:
    """What it said, and its exit status."""
    tally = folder / "tally"
    command = [sys.executable, "-m", "tests.fuzz.guided", target, str(tally), *arguments]
    log = folder / "log"
    with log.open("wb") as file:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            timeout=timeout,
        )
    return log.read_text(errors="replace"), done.returncode


def _row(target: str, folder: Path, log: str, seconds: float, found: tuple[str, ...]) -> Row:
    executions, frames = TALLY.unpack((folder / "tally").read_bytes().ljust(TALLY.size, b"\0"))
    edges = re.findall(r"cov: (\d+)", log)
    memory = [int(value) for value in re.findall(r"rss: (\d+)Mb", log)] or [0]
    peak = re.search(r"peak_rss_mb:\s+(\d+)", log)
    last = int(peak[1]) if peak else memory[-1]
    covered = int(edges[-1]) if edges else None
    return Row(target, executions, frames, seconds, covered, found, (memory[0], last))


def keep(target: str, build: Path = BUILD) -> int:
    """Keep, of both corpora, the smallest inputs that cover as much; return how many there are."""
    with tempfile.TemporaryDirectory(prefix="broker-gateway-fuzz-") as folder:
        fresh, kept = Path(folder) / "fresh", unpack(target, Path(folder) / "kept")
        fresh.mkdir()
        corpora = [str(fresh), str(kept), str(build / target / "corpus")]
        log, code = _libfuzzer(target, build / target, ["-merge=1", *BOUNDS, *corpora], 900)
        if code or not any(fresh.iterdir()):
            raise RuntimeError(f"the corpus of {target} was not merged:\n{log[-2000:]}")
        loose = set(found(target).values())
        inputs = {file.name: file.read_bytes() for file in fresh.iterdir()}
        pack(target, {name: data for name, data in inputs.items() if data not in loose})
    return len(inputs)
