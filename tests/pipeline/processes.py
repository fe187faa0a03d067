"""Jobs in processes of their own, which may fail or be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 600.0
"""Seconds for a job to come to a point or an end: starting Spark takes ten on a busy machine."""

PROGRAM = (sys.executable, "-m", "gateway", "pipeline")


@dataclass(frozen=True, slots=True)
class Done:
    """How a job ended, and all that it said of itself."""

    status: int
    said: str

    @property
    def last(self) -> str:
        """Return the last line."""
        return self.said.strip().splitlines()[-1]

    @property
    def has_trace(self) -> bool:
        """Return whether there are traces of Python or Java."""
        return "Traceback" in self.said or "\tat " in self.said or "spark: ERROR" in self.said


def run(
    *words: str,
    program: Sequence[str] = PROGRAM,
    environment: Mapping[str, str] | None = None,
    kill: Callable[[int], None] | None = None,
    at: Callable[[], bool] = lambda: True,
) -> Done:
    """Run a job to its end. `kill`: called with its process when it has come to a point."""
    job = subprocess.Popen(
        [*program, *words],
        env={**os.environ, **(environment or {})},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        while kill is not None and not at():
            assert job.poll() is None, f"the job ended: {job.stderr and job.stderr.read()}"
            assert time.monotonic() < until, "the job has not come to the point"
            time.sleep(0.002)
        if kill is not None:
            kill(job.pid)
        _, said = job.communicate(timeout=PATIENCE)
    finally:
        if job.poll() is None:
            everything(job.pid)
            job.communicate()
    return Done(job.returncode, said)


def everything(process: int) -> None:
    """Kill a job, with the process of Spark, which is its child."""
    os.killpg(process, signal.SIGKILL)


def spark_alone(process: int) -> None:
    """Kill the process of Spark."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
