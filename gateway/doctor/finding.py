"""The findings of the doctor. They are plain values, which `report` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The result of a check. The value is the word that the table shows."""

    OK = "ok"
    SKIP = "skip"  # the check was impossible, which is no fault
    WARN = "warn"  # works, or may work, but needs attention
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report's table.

    `check`: what was checked. `detail`: the result. `remedy`: advice. `example`: a command or
    setting that belongs to the advice, and is printed unchanged. No field contains a secret.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the report: a title, and the findings below it."""

    title: str
    findings: tuple[Finding, ...]


def ok(check: str, detail: str) -> Finding:
    """Return a finding with status `ok`: what was checked works."""
    return Finding(check, Status.OK, detail)


def skip(check: str, detail: str, remedy: str = "", example: str = "") -> Finding:
    """Return a finding with status `skip`: the check could not be made."""
    return Finding(check, Status.SKIP, detail, remedy, example)


def warn(check: str, detail: str, remedy: str, example: str = "") -> Finding:
    """Return a finding with status `warn`: what was checked works, or may work, but needs
    attention."""
    return Finding(check, Status.WARN, detail, remedy, example)


def fail(check: str, detail: str, remedy: str, example: str = "") -> Finding:
    """Return a finding with status `FAIL`: what was checked does not work."""
    return Finding(check, Status.FAIL, detail, remedy, example)


def nothing_failed(sections: Iterable[Section]) -> bool:
    """Return whether no finding has status `FAIL`; warnings are allowed."""
    states = (finding.status for section in sections for finding in section.findings)
    return Status.FAIL not in states
