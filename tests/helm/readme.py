"""`python -m tests.helm.readme`: writes the table of values into the chart's README.md.

A value's text is the comment above it in values.yaml. A test holds the page to that file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

CHART = Path(__file__).resolve().parents[2] / "helm" / "broker-gateway"
PAGE = CHART / "README.md"
VALUES = CHART / "values.yaml"

HEADING = "## Values\n"
"""The table is what stands below it."""

HEAD = """
From `values.yaml`; `python -m tests.helm.readme` writes this table.

| Value | Default | Meaning |
|---|---|---|
"""


class Value(NamedTuple):
    """A value: its path (`tls.secretName`), its default, and its comment on one line."""

    path: str
    default: object
    comment: str


def written(page: str) -> str:
    """Return the page of now, which has the other parts of `page`."""
    above, heading, _ = page.partition(HEADING)
    return above + heading + HEAD + "".join(_row(it) for it in listed())


def listed() -> Iterator[Value]:
    """Yield all values, in the order of their file."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text)
    assert root is not None
    yield from _below(root, text.splitlines(), "")


def _below(node: yaml.Node, lines: list[str], prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _below(value, lines, f"{path}.")
        else:
            default = yaml.safe_load(yaml.serialize(value))
            yield Value(path, default, _comment(lines, key.start_mark.line))


def _comment(lines: list[str], line: int) -> str:
    """Return the comment above a line (from 0); empty if there is none."""
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(found)


def _row(value: Value) -> str:
    default = json.dumps(value.default, ensure_ascii=False)
    return f"| `{value.path}` | `{default}` | {value.comment.replace('|', '&#124;')} |\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print("written: helm/broker-gateway/README.md")
