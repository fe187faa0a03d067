"""What the doctor found: plain values, which `report` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a try went; the value is the word in the table."""

    OK = "ok"
    SKIP = "skip"  # could not be tried, and that is nobody's fault
    WARN = "warn"  # works, or may work, but somebody should look
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table.

    `what` was tried. `remedy`: what to do about it; `example` is what to write or to type for that,
    printed as it is. No secret is in any of them.
    """

    what: str
    state: State
    detail: str
    remedy: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that belong together."""

    title: str
    findings: tuple[Finding, ...]


def ok(what: str, detail: str) -> Finding:
    """It works."""
    return Finding(what, State.OK, detail)


def skip(what: str, detail: str, remedy: str = "", example: str = "") -> Finding:
    """It could not be tried."""
    return Finding(what, State.SKIP, detail, remedy, example)


def warn(what: str, detail: str, remedy: str, example: str = "") -> Finding:
    """It works, or may; somebody should look."""
    return Finding(what, State.WARN, detail, remedy, example)


def fail(what: str, detail: str, remedy: str, example: str = "") -> Finding:
    """It does not work."""
    return Finding(what, State.FAIL, detail, remedy, example)


def works(sections: Iterable[Section]) -> bool:
    """Whether nothing failed; warnings are allowed."""
    states = (finding.state for section in sections for finding in section.findings)
    return State.FAIL not in states
