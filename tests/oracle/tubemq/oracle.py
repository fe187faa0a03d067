"""The decoder of a TubeMQ server, in a Java process that stays open.

A *reading* is how a server reads a stream, see `TubeOracle.java`: `frames`; `waits`, the bytes that
it keeps; `begun`, whether it waits for more blocks of a frame. Of a frame: `serial`, `size` and
`crc` of its joined blocks, `left` of them, the messages of its envelope, and the names in them.
`ex`: the exception of a refusal.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.apache_tubemq.jars import LOGGING, classpath
from tests.oracle.oracle import JSON, Reading, read
from tests.oracle.piped import Piped
from tests.real.brokers.jars import Say, digest, filled_once, java, run_tool, tool

_SOURCE = Path(__file__).with_name("TubeOracle.java")
_HEAD = struct.Struct(">ii").pack
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", LOGGING)


class Stream(NamedTuple):
    """Bytes of one connection. `piece`: how many of them come at once."""

    data: bytes
    piece: int


class TubeOracle(Piped):
    """The decoder of a server."""

    def __init__(self, say: Say) -> None:
        """Raises MissingToolError without Java (a JDK) or, the first time, Maven; FetchError."""
        known = classpath(say)

        def compile_into(into: Path) -> None:
            command = [tool("javac"), "-nowarn", "-proc:none", "-d", str(into), "-cp", known]
            run_tool("javac", [*command, str(_SOURCE), str(JSON)])

        recipe = known.encode() + _SOURCE.read_bytes() + JSON.read_bytes()
        classes = filled_once(f"tubemq-oracle-{digest(recipe)}", compile_into)
        command = [java(), *_OPTIONS, "-cp", f"{classes}:{known}", "TubeOracle"]
        super().__init__("TubeMQ", command)

    def ask(self, streams: Sequence[Stream]) -> None:
        """Send streams. Call `responses` before the next batch."""
        self.send((_HEAD(it.piece, len(it.data)) + it.data for it in streams), len(streams))

    def responses(self, number: int) -> list[Reading]:
        """Return the reading of each stream of the latest batch."""
        return list(map(read, self.lines(number)))

    def read(self, *streams: Stream) -> list[Reading]:
        """Return the reading of each stream."""
        self.ask(streams)
        return self.responses(len(streams))
