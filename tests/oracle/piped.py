"""A Java process that stays open, reads batches of items and prints a line of JSON for each."""

from __future__ import annotations

import struct
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

_COUNT = struct.Struct(">i").pack
_END_S = 10.0
"""Seconds in which a process ends that gets no more input."""


class OracleGoneError(Exception):
    """The Java process ended, or gave an invalid answer."""


class Closed(ABC):
    """What is closed at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Free what it has."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Piped(Closed):
    """One process. Close it, or use it as a context manager. `name`: for errors."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def send(self, items: Iterable[bytes], number: int) -> None:
        """Send a batch of `number` items. Call `lines` before the next batch."""
        entry = self._process.stdin
        assert entry is not None
        try:
            entry.write(b"".join((_COUNT(number), *items)))
            entry.flush()
        except OSError as error:
            raise OracleGoneError(f"the oracle of {self._name} has ended") from error

    def lines(self, number: int) -> list[bytes]:
        """Return the lines about the items of the latest batch."""
        output = self._process.stdout
        assert output is not None
        lines = [output.readline() for _ in range(number)]
        if lines and not lines[-1].endswith(b"\n"):
            raise OracleGoneError(f"the oracle of {self._name} has ended")
        return lines

    def close(self) -> None:
        """See `Closed`."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(_END_S)
