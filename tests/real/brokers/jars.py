"""The jars of a Pulsar standalone, fetched once by Maven into a cache outside the checkout.

A directory in the cache is complete or absent: Maven copies into a directory of its own that is
renamed when it is whole, under a lock, so test runs that start together fetch once and an
interrupted fetch leaves no half.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PULSAR_VERSION = "4.2.4"
POM = Path(__file__).with_name("pom.xml")
MARKER = ".complete"
FETCH_SECONDS = 900  # a slow mirror; the usual time is under a minute
TAIL_LINES = 25


class MissingToolError(Exception):
    """This machine lacks a tool that real brokers need."""


class FetchError(Exception):
    """Maven ran and did not deliver."""


def cache_root() -> Path:
    chosen = os.environ.get("GATEWAY_TEST_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "broker-gateway"


def java() -> str:
    return _tool("java")


def pulsar_jars(say: Callable[[str], None], version: str = PULSAR_VERSION) -> Path:
    """The directory with all jars; fetches them on the first call of a machine.

    Raises MissingToolError without java or (when there is something to fetch) mvn, FetchError with
    the end of Maven's output.
    """
    java()
    # The pom is part of the name: a changed list of artifacts is another directory.
    recipe = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    target = cache_root() / f"pulsar-{version}-{recipe}"
    if (target / MARKER).exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_suffix(".lock")):
        if not (target / MARKER).exists():
            _fetch(_tool("mvn"), version, target, say)
    return target


def _fetch(mvn: str, version: str, target: Path, say: Callable[[str], None]) -> None:
    say(f"fetching Pulsar {version} jars by Maven (about 240 MB, once) into {target} ...")
    work = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
    try:
        _copy_dependencies(mvn, version, work)
        (work / MARKER).touch()
        shutil.rmtree(target, ignore_errors=True)  # without its marker it is a leftover
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copy_dependencies(mvn: str, version: str, into: Path) -> None:
    command = [mvn, "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [
        f"-DoutputDirectory={into}",
        f"-Dpulsar.version={version}",
        "--no-transfer-progress",
    ]
    try:
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        raise FetchError(
            f"Maven did not finish within {FETCH_SECONDS} s:\n{_tail(_text(late.stdout))}"
        ) from late
    if done.returncode != 0:
        raise FetchError(
            f"Maven ended with {done.returncode}; the end of its output:\n{_tail(done.stdout)}"
        )


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is not installed")
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(
            file, fcntl.LOCK_EX
        )  # released when the file closes, also when this process dies
        yield
