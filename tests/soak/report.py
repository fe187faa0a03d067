"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

KIB = 1 << 10
MIB = 1 << 20


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def mib(size: float) -> str:
    """Return a size in MiB."""
    return f"{size / MIB:.1f} MiB"
