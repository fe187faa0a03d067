"""Each finding that needs attention has a row of docs/doctor.md, with its words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from tests.support.faults import assert_none

ROOT = Path(__file__).resolve().parents[3]
DOCTOR = ROOT / "gateway" / "doctor"
PAGE = " ".join((ROOT / "docs" / "doctor.md").read_text(encoding="utf-8").split())

SHORTEST = 10
"""Characters of words by which a finding is recognized."""


def words() -> Iterator[tuple[str, str]]:
    """Yield the longest constant part of each detail, with its module."""
    for path in sorted(DOCTOR.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for detail in _details(node):
                    longest = max(_constants(detail), key=len, default="")
                    if len(longest) >= SHORTEST:
                        yield path.relative_to(DOCTOR).as_posix(), longest.strip(" ,;:(")


def _details(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Yield the details of findings that are no `ok`, as they are written in a function."""
    given = [it.args[1] for it in ast.walk(function) if _is_finding(it)]
    yield from given
    names = {it.id for it in given if isinstance(it, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and {_name(it) for it in node.targets} & names:
            yield node.value


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _is_finding(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("fail", "warn", "skip") and len(node.args) > 1


def _constants(detail: ast.expr) -> list[str]:
    found = [it.value for it in ast.walk(detail) if isinstance(it, ast.Constant)]
    return [it for it in found if isinstance(it, str)]


def test_each_finding_is_on_the_page() -> None:
    assert_none(f"{module}: {text}" for module, text in sorted(set(words())) if text not in PAGE)


def test_findings_are_found() -> None:
    found = set(words())
    assert len(found) >= 60
    assert {module for module, _ in found} >= {"ports.py", "insecure.py", "pulsar/verdicts.py"}
