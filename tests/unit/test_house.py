"""Tests of the rules in docs/architecture.md and the sizes in CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from tests.docs import diagram
from tests.support.faults import assert_none

ROOT = Path(__file__).resolve().parents[2]
GATEWAY = ROOT / "gateway"

LONGEST_FUNCTION = 60
"""Lines. A typical function has about ten."""

LONGER_FUNCTIONS = {
    "gateway/wire/kafka/to_broker.py": {"scan": "a scan loop: flat, because a call costs a frame"},
    "gateway/wire/kafka/to_client.py": {"scan": "a scan loop: flat, because a call costs a frame"},
    "gateway/wire/pulsar/to_broker.py": {"scan": "a scan loop: flat, because a call costs a frame"},
    "gateway/wire/pulsar/to_client.py": {"scan": "a scan loop: flat, because a call costs a frame"},
}

ASYNCHRONOUS = {
    "gateway/plane/reactor.py": "the one task that waits for all lanes, and its clock",
}
"""Modules of the plane that may await: all others run within a turn of the reactor."""


def _modules(folder: Path = GATEWAY) -> list[Path]:
    """Return all modules that are not generated."""
    return sorted(path for path in folder.rglob("*.py") if not path.stem.endswith("_pb2"))


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    """CPython 3.11.0 to 3.11.4 match such patterns wrongly (its issue 106052); an atomic group is
    the same, and right."""
    assert POSSESSIVE_GROUP.search(r"(?:ab)*+")
    assert_none(
        f"{_named(path)}:{node.lineno}: {node.value}"
        for path in _modules()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and POSSESSIVE_GROUP.search(node.value)
    )


def test_import_contracts_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """The import contracts are in pyproject.toml."""
    status = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    said = capsys.readouterr().out
    assert status == 0, said
    assert " 0 broken" in said


OF_A_PROTOCOL = ("wire/pulsar/", "protocols.py", "lab/", "doctor/pulsar/")
"""Where the words of a protocol belong: its folder, the registry, the lab, and its checks."""

PROTOCOL_WORDS = re.compile(
    r"pulsar(\+ssl)?://|-partition-|\b[Pp]ermits?\b"
    r"|\b(CONNECTED|SEND|PRODUCER|SUBSCRIBE|FLOW|MESSAGE|PING|PONG|CLOSE_(PRODUCER|CONSUMER))\b"
)


def test_words_of_a_protocol_stay_in_its_folder() -> None:
    assert_none(
        f"{_named(path)}:{number}: {line.strip()}"
        for path in _modules()
        if not path.relative_to(GATEWAY).as_posix().startswith(OF_A_PROTOCOL)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PROTOCOL_WORDS.search(line)
    )


@pytest.mark.tier("test")
def test_packages_for_rules_and_workers_are_imported_only_when_used() -> None:
    """This saves memory and time in a gateway without rules and workers."""
    command = [sys.executable, "-c", "import sys, gateway.app; print(*sys.modules)"]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = ended.stdout.split()
    assert "gateway.app" in loaded
    packages = (
        "gateway.control.shaper",
        "gateway.reload",
        "gateway.policy.rules",
        "gateway.workers",
        "gateway.fleet",
        "coredis",
    )
    assert not [name for name in loaded if name.startswith(packages)]


USING = """\
version: 1
listeners: [{name: clients, bind: "127.0.0.1:0", cluster: main}]
clusters: {main: {brokers: "pulsar://127.0.0.1:16650"}}
"""


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    "usage",
    [
        "",
        "usage: {folder: usage}",
        "usage: {folder: usage, topic: {cluster: main, records: 'persistent://a/b/c'}}",
    ],
    ids=["no records", "records", "a topic"],
)
def test_what_serves_clients_never_loads_the_client_library(usage: str, tmp_path: Path) -> None:
    """It brings threads of its own: the shipper has it, in another process."""
    (tmp_path / "gateway.yaml").write_text(USING + usage)
    text = """\
import sys
from pathlib import Path
import gateway.workers.parent
from gateway.app import check
check(Path("gateway.yaml"))
print(*sys.modules)
"""
    command = [sys.executable, "-c", text]
    ended = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    loaded = ended.stdout.split()
    assert ("gateway.usage.recorder" in loaded) == bool(usage)
    assert ("gateway.usage.shipping" in loaded) == ("topic" in usage)
    assert not {"pulsar", "_pulsar"} & set(loaded)


def test_only_the_reactor_awaits_in_the_plane() -> None:
    awaiting = (ast.AsyncFunctionDef, ast.AsyncWith, ast.AsyncFor, ast.Await)
    found = [
        f"{_named(path)}:{node.lineno}"
        for path in _modules(GATEWAY / "plane")
        for node in ast.walk(_tree(path))
        if isinstance(node, awaiting)
    ]
    allowed = {it for it in found if it.rpartition(":")[0] in ASYNCHRONOUS}
    assert_none(it for it in found if it not in allowed)
    assert {it.rpartition(":")[0] for it in allowed} == set(ASYNCHRONOUS)


def test_functions_are_not_too_long() -> None:
    long = {
        (_named(path), it.name): f"{_named(path)}:{it.lineno}: {it.name}: {_lines(it)} lines"
        for path in _modules()
        for it in _functions(path)
        if _lines(it) > LONGEST_FUNCTION
    }
    listed = {(path, name) for path, names in LONGER_FUNCTIONS.items() for name in names}
    assert_none(f"{long[it]}: split it" for it in sorted(long.keys() - listed))
    assert_none(f"{it}: remove it from the list" for it in sorted(listed - long.keys()))


@pytest.mark.tier("test")
def test_no_file_contains_a_local_path() -> None:
    """Paths in the docs' examples are below /etc, and tests make their own folders."""
    own = re.compile(rb"(?<![\w.:/~$}])/(?:home|Users|root|work|workspace|tmp)/[\w.]")
    found = []
    for name in _tracked():
        path = ROOT / name
        if path.is_file():
            hits = own.finditer(path.read_bytes())
            found += [f"{name}: {hit[0].decode()}" for hit in hits]
    assert_none(found)


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name]


def test_each_package_has_a_purpose() -> None:
    packages = [package for layer in diagram.layers() for package in layer]
    assert all(map(diagram.purpose, packages))
