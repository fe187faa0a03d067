"""All error texts of the code that are meant for people, as patterns.

They are read from the source: texts of mistakes that are raised or made, and in the package
`config` every text of the form "what is wrong; what would be right".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
GATEWAY = ROOT / "gateway"

PLACES = (
    *("config", "identity", "verifiers", "brokers", "policy"),
    *("tls/files.py", "listening/binding.py", "fleet/stores.py"),
    *("app.py", "handing.py"),
)
"""Modules that find mistakes of people. `__main__` leaves that to argparse."""

TELLING = frozenset({"ConfigurationError", "ValueError", "Mistake"})

_ANYTHING = ".*"


class Text(NamedTuple):
    """A pattern and its location: `gateway/config/units.py:12`."""

    where: str
    pattern: str

    def tells(self, message: str) -> bool:
        """Return true if this text is in a message."""
        return re.search(self.pattern, message, re.DOTALL) is not None


def texts() -> list[Text]:
    """Return the texts of all modules."""
    return [text for place in PLACES for path in _modules(GATEWAY / place) for text in _of(path)]


def _modules(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.glob("*.py"))


def _of(path: Path) -> Iterator[Text]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = set(_told(tree))
    if path.parent.name == "config":
        nodes |= set(_remedies(tree))
    for node in sorted(nodes, key=lambda it: it.lineno):
        pattern = _pattern(node)
        # Patterns without words repeat texts of other places, which are found there.
        if re.search(r"\w\w", pattern.replace(_ANYTHING, "")):
            yield Text(f"{path.relative_to(ROOT).as_posix()}:{node.lineno}", pattern)


def _told(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the arguments of mistakes, and of functions whose result is raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in TELLING:
            yield from node.args
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from (it for it in node.exc.args if isinstance(it, ast.JoinedStr | ast.Constant))


def _remedies(tree: ast.AST) -> Iterator[ast.expr]:
    inner = {
        id(part) for it in ast.walk(tree) if isinstance(it, ast.JoinedStr) for part in it.values
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr | ast.Constant) or id(node) in inner:
            continue
        if "; " in _pattern(node).replace("\\", "") and not _is_docstring(node, tree):
            yield node


def _is_docstring(node: ast.expr, tree: ast.AST) -> bool:
    return any(isinstance(it, ast.Expr) and it.value is node for it in ast.walk(tree))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _pattern(node: ast.expr) -> str:
    """Return the literal parts of an expression, with wildcards between them."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(_pattern(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
    return _ANYTHING
