"""The decoders of several broker versions, each in a Java process that stays open."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.oracle.piped import Closed, OracleGoneError, Piped
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
metadata). Of a name: `full`, `partition` and so on. Of a pattern: nothing. `ex`: the exception of a
refusal."""

_SOURCE = Path(__file__).with_name("Oracle.java")
_HEAD = struct.Struct(">ci").pack
_FRAME = b"F"
_NAME = b"N"
_PATTERN = b"P"
_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:-UsePerfData",  # its warnings would mix with the responses
)
JSON = Path(__file__).with_name("Json.java")
"""What both oracles write JSON by."""


class Oracle(Piped):
    """The decoder of one broker version."""

    def __init__(self, version: str, say: Say) -> None:
        """Raises MissingToolError without Java (a JDK) or, the first time, Maven; FetchError."""
        jars = pulsar_jars(say, version)
        classes = _compiled(version, jars)
        super().__init__(version, [java(), *_OPTIONS, "-cp", f"{jars}/*:{classes}", "Oracle"])
        (line,) = self.lines(1)
        known = read(line)
        self.version = version
        self.types = frozenset(known["types"])
        self.fields = {name: frozenset(numbers) for name, numbers in known["fields"].items()}

    def ask_frames(self, frames: Sequence[bytes]) -> None:
        """Send whole frames, including their total sizes. Call `lines` before the next batch."""
        self._ask(_FRAME, [frame[4:] for frame in frames])

    def ask_names(self, names: Sequence[bytes]) -> None:
        self._ask(_NAME, names)

    def ask_patterns(self, patterns: Sequence[bytes]) -> None:
        """Send patterns of topics, without their domains."""
        self._ask(_PATTERN, patterns)

    def _ask(self, mode: bytes, items: Sequence[bytes]) -> None:
        self.send((_HEAD(mode, len(item)) + item for item in items), len(items))


class Oracles(Closed):
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

    def responses(self, number: int) -> list[tuple[bytes, ...]]:
        """Return each version's answer to each item."""
        return list(zip(*(oracle.lines(number) for oracle in self.all), strict=True))

    def frames(self, frames: Sequence[bytes]) -> list[tuple[Reading, ...]]:
        """Return each version's reading of each frame."""
        self.ask_frames(frames)
        return [tuple(map(read, lines)) for lines in self.responses(len(frames))]

    def names(self, names: Sequence[bytes]) -> list[tuple[Reading, ...]]:
        """Return each version's reading of each topic name."""
        for oracle in self.all:
            oracle.ask_names(names)
        return [tuple(map(read, lines)) for lines in self.responses(len(names))]

    def patterns(self, patterns: Sequence[bytes]) -> list[tuple[Reading, ...]]:
        """Return whether RE2J of each version takes each pattern."""
        for oracle in self.all:
            oracle.ask_patterns(patterns)
        return [tuple(map(read, lines)) for lines in self.responses(len(patterns))]

    def close(self) -> None:
        """See `Closed`."""
        for oracle in self.all:
            oracle.close()


def read(line: bytes) -> Reading:
    """Return a decoded line. Raises OracleGoneError if the line is no response."""
    try:
        found: Reading = json.loads(line)
    except ValueError as error:
        raise OracleGoneError(f"no answer: {line!r}") from error
    return found


def _compiled(version: str, jars: Path) -> Path:
    """Return the directory with the classes of `Oracle.java`, compiled against the jars of a
    version."""

    def compile_into(into: Path) -> None:
        command = [tool("javac"), "-nowarn", "-d", str(into), "-cp", f"{jars}/*"]
        run_tool("javac", [*command, str(_SOURCE), str(JSON)])

    recipe = _SOURCE.read_bytes() + JSON.read_bytes()
    return filled_once(f"oracle-{version}-{digest(recipe)}", compile_into)


__all__ = ["VERSIONS", "MissingToolError", "Oracle", "OracleGoneError", "Oracles", "Reading"]
