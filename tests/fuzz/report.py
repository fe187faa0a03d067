"""What was run and what came of it, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEADINGS = ("target", "executions", "frames", "frames/s", "edges", "findings", "RSS MiB")


@dataclass(frozen=True, slots=True)
class Row:
    """`edges`: branches that were covered; None where nobody counts them.

    `memory`: resident MiB of the process at its begin and end. `findings`: what is wrong, in words
    or as the file that shows it.
    """

    target: str
    executions: int
    frames: int
    seconds: float
    edges: int | None
    findings: tuple[str, ...]
    memory: tuple[int, int]

    def cells(self) -> tuple[str, ...]:
        return (
            self.target,
            f"{self.executions:,}",
            f"{self.frames:,}",
            f"{self.frames / self.seconds:,.0f}" if self.seconds else "-",
            "-" if self.edges is None else f"{self.edges:,}",
            str(len(self.findings)),
            f"{self.memory[0]} -> {self.memory[1]}",
        )


def table(rows: Iterable[Row]) -> str:
    """The rows, and below them what was found."""
    listed = list(rows)
    lines = [HEADINGS, *(row.cells() for row in listed)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    found = [f"{row.target}: {finding}" for row in listed for finding in row.findings]
    return "\n".join((*text, *found))
