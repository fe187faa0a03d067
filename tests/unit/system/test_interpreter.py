"""Command lines of child processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.system.interpreter import command


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
