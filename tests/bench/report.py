"""The table for a terminal or as Markdown."""

from collections.abc import Sequence

from tests.bench.figures import Line


def text(circumstances: Sequence[str], proxies: Sequence[str], lines: Sequence[Line]) -> str:
    """Return the table in aligned columns."""
    rows = [_head(proxies), *(_row(line, proxies) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*circumstances, "", *table])


def markdown(circumstances: Sequence[str], proxies: Sequence[str], lines: Sequence[Line]) -> str:
    """Return the table as Markdown, below a list of the circumstances."""
    head = _head(proxies)
    rows = [head, ["---"] * len(head), *(_row(line, proxies) for line in lines)]
    table = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*(f"- {line}" for line in circumstances), "", *table])


def _head(proxies: Sequence[str]) -> list[str]:
    return ["", *proxies, "measured", "goal", ""]


def _row(line: Line, proxies: Sequence[str]) -> list[str]:
    cells = [line.cells.get(proxy, "-") for proxy in proxies]
    return [line.title, *cells, line.measured, line.goal, line.verdict]
