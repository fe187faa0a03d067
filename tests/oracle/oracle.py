"""The decoders of several broker versions, each in a Java process that stays open."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.real.brokers.jars import (
    POMS,
    MissingToolError,
    Say,
    digest,
    filled_once,
    java,
    pulsar_jars,
    run_tool,
    tool,
)

VERSIONS = tuple(POMS)

Reading = dict[str, Any]
"""A broker's reading, see `Oracle.java`. Of a frame: `t` (type), `f` (fields by number), `at`
(offset after the command), `tn` or `tx` (its topic, or the error of its name), `n` (messages by the
metadata). Of a name: `full`, `partition` and so on. `ex`: the exception of a refusal."""

_SOURCE = Path(__file__).with_name("Oracle.java")
_COUNT = struct.Struct(">i").pack
_HEAD = struct.Struct(">ci").pack
_FRAME = b"F"
_NAME = b"N"
_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:-UsePerfData",  # its warnings would mix with the answers
)


class OracleGoneError(Exception):
    """The Java process ended, or gave an invalid answer."""


class Oracle:
    """The decoder of one broker version. Close it, or use it as a context manager."""

    def __init__(self, version: str, say: Say) -> None:
        """Raises MissingToolError without Java (a JDK) or, the first time, Maven; FetchError."""
        jars = pulsar_jars(say, version)
        classes = _compiled(version, jars)
        command = [java(), *_OPTIONS, "-cp", f"{jars}/*:{classes}", "Oracle"]
        self.version = version
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        known = self._line()
        self.types = frozenset(known["types"])
        self.fields = {name: frozenset(numbers) for name, numbers in known["fields"].items()}

    def ask_frames(self, frames: Sequence[bytes]) -> None:
        """Send whole frames, including their total sizes. Call `answers` before the next batch."""
        self._ask(_FRAME, [frame[4:] for frame in frames])

    def ask_names(self, names: Sequence[bytes]) -> None:
        self._ask(_NAME, names)

    def answers(self, number: int) -> list[bytes]:
        """Return the reading of each item of the latest batch: a line of JSON."""
        output = self._process.stdout
        assert output is not None
        lines = [output.readline() for _ in range(number)]
        if lines and not lines[-1].endswith(b"\n"):
            raise OracleGoneError(f"the oracle of {self.version} has ended")
        return lines

    def _ask(self, mode: bytes, items: Sequence[bytes]) -> None:
        parts = [_COUNT(len(items))]
        for item in items:
            parts += (_HEAD(mode, len(item)), item)
        entry = self._process.stdin
        assert entry is not None
        try:
            entry.write(b"".join(parts))
            entry.flush()
        except OSError as error:
            raise OracleGoneError(f"the oracle of {self.version} has ended") from error

    def _line(self) -> Reading:
        (line,) = self.answers(1)
        return read(line)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(10)


class Oracles:
    """One oracle for each version. All of them work in parallel."""

    def __init__(self, say: Say, versions: Iterable[str] = VERSIONS) -> None:
        self.all: list[Oracle] = []
        try:
            self.all += (Oracle(version, say) for version in versions)
        except BaseException:
            self.close()
            raise

    def ask_frames(self, frames: Sequence[bytes]) -> None:
        for oracle in self.all:
            oracle.ask_frames(frames)

    def answers(self, number: int) -> list[tuple[bytes, ...]]:
        """Return each version's answer to each item."""
        return list(zip(*(oracle.answers(number) for oracle in self.all), strict=True))

    def frames(self, frames: Sequence[bytes]) -> list[tuple[Reading, ...]]:
        """Return each version's reading of each frame."""
        self.ask_frames(frames)
        return [tuple(map(read, lines)) for lines in self.answers(len(frames))]

    def names(self, names: Sequence[bytes]) -> list[tuple[Reading, ...]]:
        """Return each version's reading of each topic name."""
        for oracle in self.all:
            oracle.ask_names(names)
        return [tuple(map(read, lines)) for lines in self.answers(len(names))]

    def close(self) -> None:
        for oracle in self.all:
            oracle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read(line: bytes) -> Reading:
    """Return a decoded line. Raises OracleGoneError if the line is no answer."""
    try:
        found: Reading = json.loads(line)
    except ValueError as error:
        raise OracleGoneError(f"no answer: {line!r}") from error
    return found


def _compiled(version: str, jars: Path) -> Path:
    """Return the directory with the classes of `Oracle.java`, compiled against the jars of a
    version."""

    def compile_into(into: Path) -> None:
        command = [tool("javac"), "-nowarn", "-d", str(into), "-cp", f"{jars}/*", str(_SOURCE)]
        run_tool("javac", command)

    return filled_once(f"oracle-{version}-{digest(_SOURCE.read_bytes())}", compile_into)


__all__ = ["VERSIONS", "MissingToolError", "Oracle", "OracleGoneError", "Oracles", "Reading"]
