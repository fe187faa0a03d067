"""Findings as a table for a person: plain text, aligned, colours only where they are wanted."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.doctor.finding import Finding, Section, State

NARROWEST, WIDEST = 60, 110
"""Columns. Narrower, the details have no room; wider, lines are hard to read."""

_WIDEST_NAME = 34
"""Columns of the names; a longer one pushes its own detail aside, not those of all."""

_STATE = max(map(len, State))
_MARGIN = "  "
_REMEDY = "-> "

_COLOURS = {State.OK: "32", State.SKIP: "36", State.WARN: "33", State.FAIL: "1;31"}
"""SGR parameters: green, cyan, yellow, bold red."""


def table(sections: Sequence[Section], width: int, *, colour: bool) -> str:
    """Write all sections that hold something, and a last line that counts."""
    width = min(max(width, NARROWEST), WIDEST)
    shown = [section for section in sections if section.findings]
    names = [len(it.what) for section in shown for it in section.findings]
    layout = _Layout(width, min(max(names, default=0), _WIDEST_NAME), colour=colour)
    blocks = ["\n".join([section.title, *layout.lines(section)]) for section in shown]
    return "\n\n".join([*blocks, _count(shown)]) + "\n"


class _Layout:
    """`name`: columns of the names."""

    def __init__(self, width: int, name: int, *, colour: bool) -> None:
        self._width = width
        self._name = name
        self._colour = colour
        self._indent = " " * (len(_MARGIN) + _STATE + 2)

    def lines(self, section: Section) -> Iterator[str]:
        for finding in section.findings:
            yield from self._described(finding)
            yield from self._advised(finding)

    def _described(self, finding: Finding) -> Iterator[str]:
        name = f"{_shown(finding.what):<{self._name}}  "
        first, *others = self._wrapped(_shown(finding.detail), len(self._indent) + len(name))
        yield f"{_MARGIN}{self._state(finding.state)}  {name}{first}".rstrip()
        column = self._indent + " " * (self._name + 2)
        yield from (column + line for line in others)

    def _advised(self, finding: Finding) -> Iterator[str]:
        head = self._indent + _REMEDY
        lines = self._wrapped(_shown(finding.remedy), len(head)) if finding.remedy else []
        for number, line in enumerate(lines):
            yield (" " * len(head) if number else head) + line
        yield from (" " * (len(head) + 2) + _shown(line) for line in finding.example.splitlines())

    def _wrapped(self, text: str, column: int) -> list[str]:
        room = max(self._width - column, NARROWEST // 2)
        # A name, a path or a setting that is cut cannot be copied.
        return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]

    def _state(self, state: State) -> str:
        word = f"{state.value:<{_STATE}}"
        return f"\x1b[{_COLOURS[state]}m{word}\x1b[0m" if self._colour else word


def _shown(text: str) -> str:
    """Without anything that steers a terminal: brokers' names and words are in some texts."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _count(sections: Sequence[Section]) -> str:
    states = Counter(finding.state for section in sections for finding in section.findings)
    failing = states[State.FAIL]
    told = [
        f"{states[State.OK]} ok",
        f"{states[State.SKIP]} not tried" if states[State.SKIP] else "",
        f"{states[State.WARN]} to look at" if states[State.WARN] else "",
        f"{failing} {'does' if failing == 1 else 'do'} not work" if failing else "nothing fails",
    ]
    return ", ".join(filter(None, told))
