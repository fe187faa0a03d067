"""`python -m tests.docs.diagram`: draws the packages and their imports into docs/architecture.md.

The layers are those of the import contract in pyproject.toml, the arrows are direct imports, and
each line of the list is the first one of a package's docstring. An arrow that follows from others
is left out. A test holds the page to the code.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

from tests.docs import regions

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"

Edges = Mapping[str, set[str]]


def layers() -> list[list[str]]:
    """Return the packages of each layer, from the top."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = data["tool"]["importlinter"]["contracts"]
    found = next(it for it in contracts if it.get("containers") == ["gateway"])
    return [[name.strip() for name in layer.split("|")] for layer in found["layers"]]


def imports() -> Edges:
    """Return which packages each package imports, those that follow from others left out."""
    graph = grimp.build_graph("gateway")
    packages = {name for layer in layers() for name in layer}
    direct = {package: _imported(graph, package) & packages - {package} for package in packages}
    return {package: _reduced(package, direct) for package in packages}


def _imported(graph: grimp.ImportGraph, package: str) -> set[str]:
    module = f"gateway.{package}"
    inside = {module, *graph.find_descendants(module)}
    found = {it for each in inside for it in graph.find_modules_directly_imported_by(each)}
    return {name.split(".")[1] for name in found if "." in name}


def _reduced(package: str, direct: Edges) -> set[str]:
    beyond = {far for near in direct[package] for far in _reached(near, direct)}
    return direct[package] - beyond


def _reached(package: str, direct: Edges) -> Iterator[str]:
    for near in direct[package]:
        yield near
        yield from _reached(near, direct)


def purpose(package: str) -> str:
    """Return the first line of a package's, or a module's, docstring."""
    folder = ROOT / "gateway" / package
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def drawn() -> str:
    """Return the diagram and the list of packages, as they stand in the page."""
    rows, edges = layers(), imports()
    lines = ["```mermaid", "flowchart TB"]
    for number, row in enumerate(rows):
        lines.append(f'    subgraph L{number}["&nbsp;"]')
        lines += [f"        {name}[{name.strip('_')}]" for name in sorted(row)]
        lines.append("    end")
    lines += [
        f"    {one} --> {' & '.join(sorted(edges[one]))}" for one in sorted(edges) if edges[one]
    ]
    lines += ["```", ""]
    lines += [f"- `{name}`: {purpose(name)}" for row in rows for name in sorted(row)]
    return "\n".join(lines)


TEXTS = {"packages": drawn}


if __name__ == "__main__":
    regions.write(PAGE, TEXTS)
