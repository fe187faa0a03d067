"""Findings of the doctor: plain values, which `report` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Result of a check; the value is the word in the table."""

    OK = "ok"
    SKIP = "skip"  # the check was impossible, which is no fault
    WARN = "warn"  # works, or may work, but needs attention
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table.

    `check`: the checked thing. `remedy`: advice; `example`: a command or setting for it, printed
    unchanged. None contains a secret.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that belong together."""

    title: str
    findings: tuple[Finding, ...]


def ok(check: str, detail: str) -> Finding:
    """Return a finding: it works."""
    return Finding(check, Status.OK, detail)


def skip(check: str, detail: str, remedy: str = "", example: str = "") -> Finding:
    """Return a finding: the check was impossible."""
    return Finding(check, Status.SKIP, detail, remedy, example)


def warn(check: str, detail: str, remedy: str, example: str = "") -> Finding:
    """Return a finding: it works, or may work, but needs attention."""
    return Finding(check, Status.WARN, detail, remedy, example)


def fail(check: str, detail: str, remedy: str, example: str = "") -> Finding:
    """Return a finding: it does not work."""
    return Finding(check, Status.FAIL, detail, remedy, example)


def nothing_failed(sections: Iterable[Section]) -> bool:
    """Return whether nothing failed; warnings are allowed."""
    states = (finding.status for section in sections for finding in section.findings)
    return Status.FAIL not in states
