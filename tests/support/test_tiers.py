"""Each folder has a tier, and the tier `check` starts no process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.tiers import FOLDERS, TESTS, folder_of
from tests.support.without_processes import GUARD


def test_each_folder_of_tests_has_a_tier_and_no_other() -> None:
    assert {it.relative_to(TESTS).parts[0] for it in TESTS.rglob("*/test_*.py")} == {*FOLDERS}


def test_a_folder_without_a_budget_has_no_test_of_make_test() -> None:
    """It is not even collected."""
    for name, folder in FOLDERS.items():
        for file in (TESTS / name).rglob("*.py") if not folder.budget else ():
            assert 'mark.tier("test")' not in file.read_text(), file


def test_a_folder_without_a_tier_is_a_mistake() -> None:
    with pytest.raises(pytest.UsageError, match="tests/new has no tier"):
        folder_of(TESTS / "new" / "test_it.py")


def test_a_guarded_test_starts_no_process(tmp_path: Path) -> None:
    GUARD.install()
    GUARD.is_on = True
    with pytest.raises(RuntimeError, match="starts no process"):
        subprocess.Popen(["touch", tmp_path / "started"])
    GUARD.is_on, GUARD.refused = False, ""
    assert not (tmp_path / "started").exists()
