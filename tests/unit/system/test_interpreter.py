"""Garbage collection, and command lines of child processes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.system.interpreter import begin_collections, command, postpone_collections


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave the collector of the tests' process as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


@pytest.mark.usefixtures("collector")
def test_collections_wait_until_they_begin_and_spare_what_exists_then() -> None:
    postpone_collections()
    assert not gc.isenabled()
    begin_collections()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_a_module_runs_in_the_same_interpreter_with_its_arguments() -> None:
    found = command("a.module", "--first", "second")
    assert (found[0], found[-4:]) == (sys.executable, ["-m", "a.module", "--first", "second"])


def test_modules_are_not_imported_from_a_foreign_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("a.module")[1] == "-P"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "-P" not in command("a.module")
