"""Files that appear whole."""

from __future__ import annotations

from pathlib import Path

from gateway.system.whole_files import write_at_once


def test_a_file_is_made_or_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    for text in ("one", "another"):
        write_at_once(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]
