"""Where the table is shown: a terminal that redraws it, or anything else as plain text."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.terminal_theme import MONOKAI

from gateway.demo.table import WIDTH

PLAIN_EVERY = 5
"""Where nothing can be redrawn, a table is printed every so many seconds."""

_TITLE = "make run"
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class Screen(Protocol):
    """Shows tables while it is entered. `span`: seconds that the rates of one should cover."""

    span: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, table: RenderableType) -> None:
        """Take the next table."""


def console() -> Console:
    """Standard output. No escape codes where it is no terminal, whatever the environment says."""
    terminal = sys.stdout.isatty()
    return Console(
        force_terminal=terminal, width=None if terminal else WIDTH, highlight=False, soft_wrap=False
    )


def screen(console: Console) -> Screen:
    """What fits the console."""
    redraws = console.is_terminal and not console.is_dumb_terminal
    return LiveScreen(console) if redraws else PlainScreen(console)


class LiveScreen:
    """The table stays where it is, and its numbers change."""

    span = 1

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, table: RenderableType) -> None:
        """Redraw."""
        self._live.update(table, refresh=True)


class PlainScreen:
    """A table now and then, and the last one in any case."""

    span = PLAIN_EVERY

    def __init__(self, console: Console) -> None:
        self._console = console
        self._taken = 0
        self._unprinted: RenderableType | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._unprinted is not None:
            self._console.print(self._unprinted)

    def show(self, table: RenderableType) -> None:
        """Print it if it is its turn, or keep it as the last."""
        self._taken += 1
        self._unprinted = table
        if self._taken % PLAIN_EVERY == 0:
            self._console.print(table)
            self._unprinted = None


def draw(table: RenderableType, file: Path) -> None:
    """Write a table as a picture that needs nothing else: fonts are the reader's own."""
    paper = Console(record=True, width=WIDTH + 2, file=StringIO(), force_terminal=True)
    paper.print(table)
    paper.print()
    text = paper.export_svg(title=_TITLE, theme=MONOKAI, unique_id="gateway-demo")
    file.write_text(_FONT_FACE.sub("", text), encoding="utf-8")
