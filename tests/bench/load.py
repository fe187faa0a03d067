"""The load generator: built from loadgen.c, called for one sample at a time. What else is in C is
compiled alike."""

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
    if not tls:
        return compiled(SOURCE, into / "loadgen", "-pthread")
    try:
        return compiled(SOURCE, into / "loadgen-tls", "-pthread", "-DTLS", "-lssl", "-lcrypto")
    except BenchError as error:
        if "openssl/" in str(error):
            why = "has no headers here (Debian's package: libssl-dev)"
            raise MissingToolError("OpenSSL", why) from None
        raise


def compiled(source: Path, binary: Path, *flags: str) -> Path:
    """Return the program, which is compiled if it is older than its source. Raises MissingToolError
    without a C compiler, BenchError."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MissingToolError("gcc")
    binary.parent.mkdir(parents=True, exist_ok=True)
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        # Libraries come behind the source that asks for them.
        command = [compiler, "-O2", "-Wall", str(source), "-o", str(binary), *flags]
        built = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if built.returncode:
            raise BenchError(f"{source.name} does not compile:\n{built.stderr}")
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
        pids: Sequence[int] = (),
        cores: tuple[int, int],
        seconds: float,
    ) -> Sample:
        """Take one sample against `target`. `pids`: processes of the proxy, whose CPU time is
        added up. `cores`: of its client and server ends; -1: any."""
        command = [str(self.binary), *arguments, "--listen", self.listen, "--target", target]
        command += ["--ccpu", str(cores[0]), "--scpu", str(cores[1])]
        command += ["--secs", str(seconds), *(["--pids", ",".join(map(str, pids))] if pids else [])]
        foreign = Foreign(pids)
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=seconds + GRACE
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"no end after {seconds + GRACE:.0f} s: {' '.join(command)}") from None
        if done.returncode:
            raise BenchError(f"{done.stderr.strip()}: {' '.join(command)}")
        return Sample(json.loads(done.stdout), foreign.share())
