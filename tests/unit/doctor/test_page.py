"""docs/doctor.md explains every finding that needs attention."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.doctor import verdicts
from gateway.doctor.hello import NotPulsar

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


_OF_TABLES = [it.value for it in NotPulsar] + [
    detail.partition(":")[0] for detail, _remedy in verdicts._UNREACHED.values()
]
"""Details from tables."""


def _details() -> Iterator[str]:
    """Yield the longest literal part of each finding's detail."""
    for path in sorted((ROOT / "gateway" / "doctor").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node) in {"fail", "warn", "skip"}:
                yield from _literal(node.args[1])


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _literal(node: ast.expr) -> Iterator[str]:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [it.value for it in parts if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    if texts:
        yield max(texts, key=len).strip(' :;,("')


def test_there_are_findings() -> None:
    assert len(list(_details())) > 30


@pytest.mark.parametrize("detail", sorted({*_details(), *_OF_TABLES}))
def test_the_page_explains_the_finding(detail: str) -> None:
    assert detail in PAGE
