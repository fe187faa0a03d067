"""Other processes of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.system.interpreter import command


def test_a_module_is_run_by_our_own_interpreter_with_its_arguments() -> None:
    found = command("a.module", "--first", "second")
    assert (found[0], found[-4:]) == (sys.executable, ["-m", "a.module", "--first", "second"])


def test_modules_are_not_sought_in_a_folder_that_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("a.module")[1] == "-P"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "-P" not in command("a.module")
