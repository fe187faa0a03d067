"""The messages about every mistake and every failed start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from gateway import handing
from gateway.app import check
from gateway.errors import ConfigurationError
from gateway.rules import files
from tests.unit.errors import (
    credentials,
    documents,
    identities,
    keyfiles,
    limits,
    parts,
    protocols,
    starts,
    stores,
    tlsfiles,
)
from tests.unit.errors.case import Case, config
from tests.unit.errors.starts import Start

CASES = [
    *(*documents.CASES, *parts.CASES, *keyfiles.CASES),
    *(*identities.CASES, *stores.CASES, *tlsfiles.CASES, *credentials.CASES),
    *protocols.CASES,
]
STARTS = [*starts.STARTS, *stores.STARTS, *identities.STARTS]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter an empty folder; undo changes to logging."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    structlog.reset_defaults()


def written(case: Case, folder: Path) -> Path:
    """Write the file of a case, and the files that it names."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    text = case.text
    path = Path("gateway.yaml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_reported(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(case, folder)
    for name, value in case.environment.items():
        monkeypatch.setitem(os.environ, name, value)
    with pytest.raises(ConfigurationError) as caught:
        check(path)
    assert str(caught.value).replace(f"{folder}/", "") == case.message


def test_the_file_that_the_cases_change_is_valid() -> None:
    Path("gateway.yaml").write_text(config())
    assert check(Path("gateway.yaml")) == "gateway.yaml: ok (1 listener, 1 cluster)"


@pytest.mark.parametrize("case", limits.CASES, ids=lambda case: case.name)
def test_a_mistake_in_rules_is_reported(case: Case) -> None:
    path = Path("rules.yaml")
    path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    with pytest.raises(ConfigurationError) as caught:
        list(files.check([path], 0.0))
    assert str(caught.value) == case.message


def test_the_rules_that_the_cases_change_are_valid() -> None:
    Path("rules.yaml").write_text(limits.rules())
    assert list(files.check([Path("rules.yaml")], 0.0)) == ["rules.yaml: ok (1 rule)"]


def _case(start: Start) -> Any:
    marks = [pytest.mark.tier("test")] if start.forks else []
    return pytest.param(start, marks=marks, id=start.name)


@pytest.mark.parametrize("start", [_case(it) for it in STARTS])
def test_a_failed_start_is_reported_in_one_line(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not start.forks:
        monkeypatch.setattr(handing, "_forked", lambda *_: None)
    assert start.fail(monkeypatch) == start.message


def test_names_of_cases_are_unique() -> None:
    names = [*(case.name for case in [*CASES, *limits.CASES]), *(start.name for start in STARTS)]
    assert len(set(names)) == len(names)
