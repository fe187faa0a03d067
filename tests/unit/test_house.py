"""The walls of docs/architecture.md and the sizes of CONTRIBUTING.md, held by tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[2]
GATEWAY = ROOT / "gateway"

LONGEST_FUNCTION = 60
"""Lines. The usual function has about ten."""

LONGER_FUNCTIONS = {
    "gateway/wire/pulsar/scan.py": {"scan": "a scan loop: flat, because a call costs a frame"},
}

ASYNCHRONOUS = {
    "gateway/plane/reactor.py": "the one task that waits for all lanes, and its clock",
}
"""Modules of the plane that may await: everything else in it happens within a turn."""


def _modules(folder: Path = GATEWAY) -> list[Path]:
    """What people wrote."""
    return sorted(path for path in folder.rglob("*.py") if not path.stem.endswith("_pb2"))


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_import_contracts_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Who may import whom stands in pyproject.toml."""
    status = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    said = capsys.readouterr().out
    assert status == 0, said
    assert " 0 broken" in said


def test_what_rules_and_workers_need_is_imported_where_there_are_some() -> None:
    """Memory and time of a gateway without any."""
    command = [sys.executable, "-c", "import sys, gateway.app; print(*sys.modules)"]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = ended.stdout.split()
    assert "gateway.app" in loaded
    rooms = (
        "gateway.control.shaper",
        "gateway.reload",
        "gateway.policy.rules",
        "gateway.workers",
        "gateway.fleet",
        "coredis",
    )
    assert not [name for name in loaded if name.startswith(rooms)]


@pytest.mark.parametrize("path", _modules(GATEWAY / "plane"), ids=_named)
def test_the_plane_waits_in_the_reactor_alone(path: Path) -> None:
    awaiting = (ast.AsyncFunctionDef, ast.AsyncWith, ast.AsyncFor, ast.Await)
    found = [node.lineno for node in ast.walk(_tree(path)) if isinstance(node, awaiting)]
    assert bool(found) == (_named(path) in ASYNCHRONOUS)


@pytest.mark.parametrize("path", _modules(), ids=_named)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = _tree(path)
    assert ast.get_docstring(tree) or not tree.body, "a module with code and no docstring"


@pytest.mark.parametrize("path", _modules(), ids=_named)
def test_functions_are_not_too_long(path: Path) -> None:
    long = {it.name for it in _functions(path) if _lines(it) > LONGEST_FUNCTION}
    assert long == set(LONGER_FUNCTIONS.get(_named(path), {})), "split it; or unlist it"


def test_what_is_listed_is_there() -> None:
    listed = {*LONGER_FUNCTIONS, *ASYNCHRONOUS}
    assert not [name for name in listed if not (ROOT / name).exists()]


def test_the_page_draws_the_house_as_it_is_built() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    house = re.search(r"^gateway/\n(.*?)^proto/", page, re.MULTILINE | re.DOTALL)
    assert house
    drawn = re.findall(r"^  (\w+(?:/|\.py))", house[1], re.MULTILINE)
    built = [f"{path.parent.name}/" for path in GATEWAY.glob("*/__init__.py")]
    built += [path.name for path in GATEWAY.glob("*.py") if path.name != "__init__.py"]
    assert sorted(drawn) == sorted(built)
