"""A suite: where its tests come from, which broker they need, and how they are run."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.real.brokers.jars import Say
from tests.support.differences import Verdict

from .systems import System


@dataclass(frozen=True)
class Addresses:
    """What tests connect to, each as `host:port`. `broker`: the broker or a gateway; `web`: the
    REST interface of Pulsar, always the broker's own."""

    broker: str
    web: str = ""


@dataclass(frozen=True)
class Run:
    """How to run the tests: in `folder`, which keeps build results for the next run; only tests
    with `only` in their name."""

    at: Addresses
    folder: Path
    only: str = ""


class Suite(Protocol):
    """`client`: the library and its version; `system`: the broker that it needs."""

    @property
    def client(self) -> str: ...

    @property
    def system(self) -> System: ...

    def sources(self, say: Say) -> Path:
        """Return the library with its tests, fetched once. Raises MissingToolError, FetchError."""

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        """Return the verdict of each test. Raises FetchError if they cannot be built."""


def rewritten(sources: Path, into: Path, ending: str, words: Mapping[str, str]) -> Path:
    """Copy a library to `into`, with words replaced in its files of this ending, and return the
    copy. An unchanged file keeps its time, so that it is not built again."""
    for source in _files(sources):
        target = into / source.relative_to(sources)
        content = source.read_bytes()
        if source.name.endswith(ending):
            for word, other in words.items():
                content = content.replace(word.encode(), other.encode())
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode | 0o200)
    return into


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def copied(found: Path, into: Path) -> None:
    """Copy a library out of a registry's folder, whose files may be read-only."""
    shutil.copytree(found, into, dirs_exist_ok=True)
    for path in [into, *into.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


def output_of(
    command: Sequence[str], cwd: Path, log: Path, seconds: float, env: Mapping[str, str]
) -> str:
    """Return the standard output of a command that runs tests, up to its end or its time limit.
    `log` keeps it, and a file beside it the standard error."""
    with log.open("w") as out, log.with_suffix(".err").open("w") as err:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=out, stderr=err, env=env, start_new_session=True
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"{log.name}: ended after {seconds} s")
        finally:
            _end_group(process)
    return log.read_text(errors="replace")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
