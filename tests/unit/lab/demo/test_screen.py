"""Output of the table."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gateway.lab.demo.screen import PLAIN_EVERY, LiveScreen, PlainScreen, draw, screen


def _console(*, terminal: bool) -> Console:
    return Console(file=StringIO(), width=40, force_terminal=terminal, _environ={"TERM": "xterm"})


def _printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_only_a_terminal_is_redrawn() -> None:
    assert isinstance(screen(_console(terminal=True)), LiveScreen)
    assert isinstance(screen(_console(terminal=False)), PlainScreen)


def test_plain_text_has_every_fifth_table_and_the_last_one() -> None:
    paper = _console(terminal=False)
    with screen(paper) as shown:
        for number in range(1, 2 * PLAIN_EVERY + 3):
            shown.show(Text(f"table {number}"))
    assert _printed(paper).splitlines() == ["table 5", "table 10", "table 12"]


def test_no_plain_table_is_printed_twice() -> None:
    paper = _console(terminal=False)
    with screen(paper) as shown:
        for number in range(1, PLAIN_EVERY + 1):
            shown.show(Text(f"table {number}"))
    assert _printed(paper) == "table 5\n"


def test_a_terminal_keeps_the_last_table() -> None:
    paper = _console(terminal=True)
    with screen(paper) as shown:
        shown.show(Text("table 1"))
        shown.show(Text("table 2"))
    *_, last = _printed(paper).split("\r\x1b[2K")
    assert last == "table 2\n\x1b[?25h", "the cursor is shown again"


def test_a_picture_needs_no_other_files(tmp_path: Path) -> None:
    file = tmp_path / "demo.svg"
    draw(Text("shop 150", style="cyan"), file)
    text = file.read_text()
    assert text.startswith("<svg")
    assert "shop&#160;150" in text
    for outside in ("@font-face", "url(http", "<image", "<script"):
        assert outside not in text
