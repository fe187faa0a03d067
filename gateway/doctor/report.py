"""Findings as a table: plain text, aligned, with colours on request."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.doctor.finding import Finding, Section, Status

NARROWEST, WIDEST = 60, 110
"""Columns. Narrower tables leave no room for details; wider lines are hard to read."""

_WIDEST_NAME = 34
"""Most columns for names; a longer name shifts only its own detail."""

_STATUS_WIDTH = max(map(len, Status))
_MARGIN = "  "
_REMEDY = "-> "

_COLOURS = {Status.OK: "32", Status.SKIP: "36", Status.WARN: "33", Status.FAIL: "1;31"}
"""SGR parameters: green, cyan, yellow, bold red."""


def table(sections: Sequence[Section], width: int, *, colour: bool) -> str:
    """Return the table of all sections that have findings, and a last line that counts the
    findings."""
    width = min(max(width, NARROWEST), WIDEST)
    sections = [section for section in sections if section.findings]
    names = [len(finding.check) for section in sections for finding in section.findings]
    layout = _Layout(width, min(max(names, default=0), _WIDEST_NAME), colour=colour)
    blocks = ["\n".join([section.title, *layout.lines(section)]) for section in sections]
    return "\n\n".join([*blocks, _summary(sections)]) + "\n"


class _Layout:
    """`name`: columns for names."""

    def __init__(self, width: int, name: int, *, colour: bool) -> None:
        self._width = width
        self._name = name
        self._colour = colour
        self._indent = " " * (len(_MARGIN) + _STATUS_WIDTH + 2)

    def lines(self, section: Section) -> Iterator[str]:
        for finding in section.findings:
            yield from self._detail_lines(finding)
            yield from self._remedy_lines(finding)

    def _detail_lines(self, finding: Finding) -> Iterator[str]:
        name = f"{_printable(finding.check):<{self._name}}  "
        first, *others = self._wrap(_printable(finding.detail), len(self._indent) + len(name))
        yield f"{_MARGIN}{self._format_status(finding.status)}  {name}{first}".rstrip()
        column = self._indent + " " * (self._name + 2)
        yield from (column + line for line in others)

    def _remedy_lines(self, finding: Finding) -> Iterator[str]:
        head = self._indent + _REMEDY
        lines = self._wrap(_printable(finding.remedy), len(head)) if finding.remedy else []
        for number, line in enumerate(lines):
            yield (" " * len(head) if number else head) + line
        yield from (
            " " * (len(head) + 2) + _printable(line) for line in finding.example.splitlines()
        )

    def _wrap(self, text: str, column: int) -> list[str]:
        room = max(self._width - column, NARROWEST // 2)
        # Names, paths and settings must stay whole, to be copied.
        return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]

    def _format_status(self, status: Status) -> str:
        word = f"{status.value:<{_STATUS_WIDTH}}"
        return f"\x1b[{_COLOURS[status]}m{word}\x1b[0m" if self._colour else word


def _printable(text: str) -> str:
    """Replace characters that control a terminal: some texts contain names and texts of brokers."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _summary(sections: Sequence[Section]) -> str:
    states = Counter(finding.status for section in sections for finding in section.findings)
    failing = states[Status.FAIL]
    counts = [
        f"{states[Status.OK]} ok",
        f"{states[Status.SKIP]} not tried" if states[Status.SKIP] else "",
        f"{states[Status.WARN]} to look at" if states[Status.WARN] else "",
        f"{failing} {'does' if failing == 1 else 'do'} not work" if failing else "nothing fails",
    ]
    return ", ".join(filter(None, counts))
