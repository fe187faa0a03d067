"""docs/security.md and the project: each threat names a test and settings that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "".join(
    (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("configuration.md", "rules.md")
)
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")

THREATS = re.findall(
    r"^### (.+)\n\n(?:.+\n)+\n- Setting: (.+)\n- Test: `(.+)::(\w+)`$", PAGE, re.MULTILINE
)


def test_every_threat_has_a_setting_and_a_test() -> None:
    assert [title for title, *_ in THREATS] == re.findall(r"^### (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("title", "path", "name"), [(it[0], it[2], it[3]) for it in THREATS])
def test_the_test_of_a_threat_is_there(title: str, path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {it.name for it in tree.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in found, title


@pytest.mark.parametrize("settings", [it[1] for it in THREATS], ids=[it[0] for it in THREATS])
def test_the_settings_of_a_threat_are_documented(settings: str) -> None:
    for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", settings):
        assert any(f"`{part}`" in SETTINGS for part in (name, name.rpartition(".")[2])), name
