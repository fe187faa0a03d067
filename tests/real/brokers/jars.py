"""Jars that tests need, fetched once by Maven into a cache outside the checkout.

A directory in the cache is complete or absent: it is filled under another name, under a lock, and
renamed once it is complete. Concurrent test runs therefore fetch once, and an interrupted fetch
leaves no partial directory.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PULSAR_VERSION = "4.2.4"
POMS = {"4.0.8": "pom-4.0.xml", PULSAR_VERSION: "pom.xml", "5.0.0-M1": "pom-5.0.xml"}
"""The broker versions that tests know, each with its pom."""
MARKER = ".complete"
FETCH_SECONDS = 900  # a slow mirror; it usually takes less than a minute
TAIL_LINES = 25

Say = Callable[[str], None]


class MissingToolError(Exception):
    """This machine lacks a tool that these tests need, or has too old a version."""

    def __init__(self, tool: str, why: str = "is not installed") -> None:
        super().__init__(f"{tool} {why}")
        self.tool = tool


class FetchError(Exception):
    """A tool ran without the expected result."""


def cache_root() -> Path:
    chosen = os.environ.get("GATEWAY_TEST_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "broker-gateway"


def java() -> str:
    return tool("java")


def pulsar_jars(say: Say, version: str = PULSAR_VERSION) -> Path:
    """Return the directory with all jars of a standalone of one of `POMS`, fetched at the first
    call on a machine.

    Raises MissingToolError without java or (when there is something to fetch) mvn, FetchError with
    the end of Maven's output.
    """
    java()
    pom = Path(__file__).with_name(POMS[version])
    return jars_of(pom, f"pulsar-{version}", version, "about 240 MB", say)


def jars_of(pom: Path, name: str, version: str, size: str, say: Say) -> Path:
    """Return the directory with the artifacts of a pom. `version`: its property `pulsar.version`,
    or `kafka.version`. Raises as `pulsar_jars`."""

    def fetch(into: Path) -> None:
        mvn = tool("mvn")
        say(f"fetching {name} by Maven ({size}, once) into {into.parent} ...")
        command = [mvn, "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
        command += [f"-D{it}.version={version}" for it in ("pulsar", "kafka")]
        run_tool("Maven", [*command, "--no-transfer-progress"])

    # The pom is part of the name, so a changed list of artifacts gets another directory.
    return filled_once(f"{name}-{digest(pom.read_bytes())}", fetch)


def digest(recipe: bytes) -> str:
    """Return what distinguishes a directory made by this recipe from others."""
    return hashlib.sha256(recipe).hexdigest()[:8]


def filled_once(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the cache directory of this name; if it is absent, `fill` gets an empty one to
    fill."""
    target = cache_root() / name
    if (target / MARKER).exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f"{name}.lock"):
        if not (target / MARKER).exists():
            _fill(target, fill)
    return target


def _fill(target: Path, fill: Callable[[Path], None]) -> None:
    work = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
    try:
        fill(work)
        (work / MARKER).touch()
        shutil.rmtree(target, ignore_errors=True)  # without its marker, the directory is a leftover
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run_tool(
    name: str,
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Raises FetchError with the end of the output if the tool fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS,
            cwd=cwd,
            env=env,
        )
    except subprocess.TimeoutExpired as late:
        raise FetchError(
            f"{name} did not finish within {FETCH_SECONDS} s:\n{_tail(_text(late.stdout))}"
        ) from late
    if done.returncode != 0:
        raise FetchError(
            f"{name} ended with {done.returncode}; the end of its output:\n{_tail(done.stdout)}"
        )


def tool(name: str) -> str:
    """Return the path of a command. Raises MissingToolError."""
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(name)
    return found


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(
            file, fcntl.LOCK_EX
        )  # released when the file closes, also when this process dies
        yield
