"""The load generator: built from loadgen.c, called for one sample at a time."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.machine import Foreign
from tests.real.brokers.jars import MissingToolError

SOURCE = Path(__file__).with_name("loadgen.c")

GRACE = 60.0
"""Seconds that one call may take beyond the measured ones."""


class BenchError(Exception):
    """A measurement failed."""


def build(into: Path, *, tls: bool = False) -> Path:
    """Return the compiled load generator. Raises MissingToolError without a C compiler, and with
    `tls` without OpenSSL's headers."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MissingToolError("gcc")
    into.mkdir(parents=True, exist_ok=True)
    binary = into / ("loadgen-tls" if tls else "loadgen")
    if not binary.exists() or binary.stat().st_mtime < SOURCE.stat().st_mtime:
        command = [compiler, "-O2", "-Wall", "-pthread", str(SOURCE), "-o", str(binary)]
        command += ["-DTLS", "-lssl", "-lcrypto"] if tls else []
        built = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if tls and "openssl/" in built.stderr:
            raise MissingToolError("OpenSSL", "has no headers here (Debian's package: libssl-dev)")
        if built.returncode:
            raise BenchError(f"loadgen.c does not compile:\n{built.stderr}")
    return binary


@dataclass(frozen=True, slots=True)
class Sample:
    """The output of one call. `foreign`: cores that other processes used meanwhile."""

    numbers: dict[str, Any]
    foreign: float

    def __getitem__(self, name: str) -> float:
        return float(self.numbers[name])


@dataclass(frozen=True, slots=True)
class Generator:
    """`listen`: where it plays the broker."""

    binary: Path
    listen: str

    def run(
        self,
        arguments: Sequence[str],
        *,
        target: str,
        pid: int | None,
        cores: tuple[int, int],
        seconds: float,
    ) -> Sample:
        """Take one sample against `target`. `cores`: of its client and server ends."""
        command = [str(self.binary), *arguments, "--listen", self.listen, "--target", target]
        command += ["--ccpu", str(cores[0]), "--scpu", str(cores[1])]
        command += ["--secs", str(seconds), *(["--pids", str(pid)] if pid else [])]
        foreign = Foreign(pid)
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=seconds + GRACE
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"no end after {seconds + GRACE:.0f} s: {' '.join(command)}") from None
        if done.returncode:
            raise BenchError(f"{done.stderr.strip()}: {' '.join(command)}")
        return Sample(json.loads(done.stdout), foreign.share())
