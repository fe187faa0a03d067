"""Output of the table: a terminal that redraws it, or plain text anywhere else."""

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

from gateway.lab.demo.table import WIDTH

PLAIN_EVERY = 5
"""Seconds between two tables on an output that cannot redraw."""

_TITLE = "make run"
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class Screen(Protocol):
    """Shows tables, within a `with` block. `span`: seconds over which the rates of one table should
    be measured."""

    span: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, table: RenderableType) -> None:
        """Show the next table."""


def console() -> Console:
    """Return a console on standard output. It writes escape codes only if that is a terminal."""
    terminal = sys.stdout.isatty()
    return Console(
        force_terminal=terminal, width=None if terminal else WIDTH, highlight=False, soft_wrap=False
    )


def screen(console: Console) -> Screen:
    """Return a screen that redraws the table in place; if the console cannot do so, a screen that
    prints plain text."""
    redraws = console.is_terminal and not console.is_dumb_terminal
    return LiveScreen(console) if redraws else PlainScreen(console)


class LiveScreen:
    """Redraws the table in place."""

    span = 1

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, table: RenderableType) -> None:
        self._live.update(table, refresh=True)


class PlainScreen:
    """Prints a table every `PLAIN_EVERY` seconds, and in any case the last table."""

    span = PLAIN_EVERY

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = 0
        self._unprinted: RenderableType | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._unprinted is not None:
            self._console.print(self._unprinted)

    def show(self, table: RenderableType) -> None:
        """Print one of every `PLAIN_EVERY` tables. Remember any other table, to print it at the end
        if it is the last."""
        self._shown += 1
        self._unprinted = table
        if self._shown % PLAIN_EVERY == 0:
            self._console.print(table)
            self._unprinted = None


def draw(table: RenderableType, file: Path) -> None:
    """Write a table to a file as an SVG picture, without embedded fonts."""
    paper = Console(record=True, width=WIDTH + 2, file=StringIO(), force_terminal=True)
    paper.print(table)
    paper.print()
    text = paper.export_svg(title=_TITLE, theme=MONOKAI, unique_id="gateway-demo")
    file.write_text(_FONT_FACE.sub("", text), encoding="utf-8")
