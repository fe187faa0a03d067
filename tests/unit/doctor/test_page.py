"""docs/doctor.md names all sections and checks of the doctor and no other, and quotes its words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.faults import assert_none

ROOT = Path(__file__).resolve().parents[3]
DOCTOR = ROOT / "gateway" / "doctor"
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")

NODES = [
    node
    for path in sorted(DOCTOR.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
]

FINDINGS = ("ok", "skip", "warn", "fail")


# -- what the code says ----------------------------------------------------------------------


def _text(node: ast.expr) -> str:
    """Return a text with `…` for its values; empty if it is none, or begins with a value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(it) if isinstance(it, ast.Constant) else "…" for it in parts)
    return ""


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _begins(node: ast.expr) -> str:
    """Return a title without the values that follow."""
    return _text(node).partition("…")[0].strip(" ,")


def sections() -> set[str]:
    calls = [it for it in NODES if isinstance(it, ast.Call) and _called(it) == "Section"]
    return {_begins(it.args[0]) for it in calls}


def _titles() -> Iterator[ast.expr]:
    """Yield the titles of findings: given first to a finding or to what makes one, or assigned."""
    for node in NODES:
        match node:
            case ast.Call(args=[first, *_]) if _called(node) in FINDINGS:
                yield first
            case ast.Call(args=[first, *_]) if _called(node).lstrip("_").startswith("judge_"):
                yield first
            case ast.Assign(targets=[ast.Name(id="check")], value=value):
                yield value
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id="check"), *_])],
                value=ast.Tuple(elts=[value, *_]),
            ):
                yield value
            case ast.FunctionDef(name="_title", body=[*_, ast.Return(value=ast.expr() as value)]):
                yield value


def checks() -> set[str]:
    """Return how titles begin, but those of addresses and files, which are their names."""
    return {_begins(it) for it in _titles()} - {""}


# -- what the page says ----------------------------------------------------------------------


def _rows(title: str) -> list[tuple[str, str]]:
    """Return the rows of the tables below the headings whose first column has this title."""
    found, inside = list[tuple[str, str]](), False
    for line in PAGE.splitlines():
        cells = [it.strip() for it in line.strip("|").split("|")]
        inside = line.startswith("|") and (inside or cells[0] == title)
        if inside and cells[0] not in (title, "---"):
            found.append((cells[0], cells[1]))
    return found


def _codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_page_has_all_sections_and_no_other() -> None:
    named = [code for cell, _ in _rows("Section") for code in _codes(cell)]
    assert set(named) == sections()
    assert len(named) == len(set(named))


def test_the_page_has_all_checks_and_no_other() -> None:
    of_clusters = {code for cell, _ in _rows("Line") for code in _codes(cell)}
    others = {code for _, cell in _rows("Section") for code in _codes(cell)}
    assert checks() <= of_clusters | others | sections()
    assert of_clusters <= checks()


def test_findings_that_the_page_quotes_are_those_of_the_doctor() -> None:
    texts = [_text(it) for it in NODES if isinstance(it, ast.expr)]
    quoted = [code for cell, _ in _rows("Finding") for code in _codes(cell)]
    assert len(quoted) >= 5
    assert_none(it for it in quoted if not any(it in text for text in texts))


def test_checks_are_found() -> None:
    assert {"advertised", "clients at", "TLS of", "master", "memory"} <= checks()
