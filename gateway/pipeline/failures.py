"""What a failure of Spark means, in one line for the person who runs a job.

Spark tells a failure by traces of Java, in which the reason is somewhere, most often at the end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OUT_OF_MEMORY = 52
"""Exit status of Spark's process where a task found no memory."""

AGAIN = "; then run the job again: the tables are as before"
"""Whatever happened: readers see a job whole or not at all."""


class Reason(NamedTuple):
    """A reason that Spark's text may have. `pattern`: of that text. `meaning`: what is said, with
    the groups of the pattern."""

    pattern: re.Pattern[str]
    meaning: str


def _reason(pattern: str, meaning: str) -> Reason:
    return Reason(re.compile(pattern, re.DOTALL), meaning)


_FULL = r"(?:No space left on device|Disk quota exceeded)"
_FILE = r"(?:file:(?://)?)?(?P<path>/[^\n]*?|\w+://[^\n]*?)"
_DAMAGED = "{path}: is damaged; restore it, or begin new tables from the records"
_NO_RIGHT = r"(?:\(Permission denied\)|: Permission denied)"

REASONS = (
    _reason(
        rf"Task failed while writing rows to {_FILE}\. .*{_FULL}",
        "{path}: the disk is full; make space" + AGAIN,
    ),
    _reason(
        _FULL,
        "the disk is full on which Spark keeps what does not fit into memory; "
        "make space in {scratch}, or name another folder: SPARK_LOCAL_DIRS" + AGAIN,
    ),
    _reason(
        r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|maxResultSize",
        "Spark has run out of memory; more: --memory 4g" + AGAIN,
    ),
    _reason(
        rf"(?:Mkdirs failed to create|Unable to create) {_FILE}(?=/_temporary|[ \n]|$)",
        "{path}: cannot be made; let this user write there, and see that the disk has space",
    ),
    _reason(
        rf"Parent path is not a directory: {_FILE}(?=\s|$)", "{path}: is a file; name a folder"
    ),
    _reason(
        rf"(?:FileNotFoundException|AccessDeniedException|AccessControlException): "
        rf"{_FILE}\s*{_NO_RIGHT}",
        "{path}: permission denied; let this user read and write there" + AGAIN,
    ),
    _reason(
        r"AccessControlException: (?:Permission denied: )?(?P<what>[^\n]*)",
        "permission denied: {what}" + AGAIN,
    ),
    _reason(
        rf"FILE_NOT_EXIST\][^\n]*? file {_FILE}\. File does not exist",
        "{path}: has vanished while it was read; run the job again",
    ),
    _reason(
        rf"(?:CANNOT_READ_FILE_FOOTER|CANNOT_READ_FOOTER|not a Parquet file)[^\n]*?{_FILE}"
        r"(?:\. |\n|$)",
        _DAMAGED,
    ),
    _reason(rf"Checksum error: {_FILE} at \d", _DAMAGED),
    _reason(
        rf"Path does not exist: {_FILE}\. SQLSTATE",
        "{path}: is gone; restore it, or begin new tables from the records",
    ),
    _reason(
        r"Class (?P<what>\S+FileSystem) not found",
        "Spark has no {what}, which this URL needs; name its package: "
        "--conf spark.jars.packages=...",
    ),
    _reason(
        "CONCURRENT_STREAM_LOG_UPDATE",
        "another run watches these tables; let it end, or have one look again and again: "
        "--every 1m",
    ),
    _reason(
        r'No FileSystem for scheme "?(?P<what>[\w+.-]+)',
        "{what}:// is no filesystem that Spark knows; a folder, or a URL such as s3a://...",
    ),
)
"""The first one that fits counts."""

_CAUSE = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b:?\s*", re.M)

LONGEST = 500
"""Characters of an unknown reason that are told."""


def explain(text: str, scratch: str) -> str:
    """Return what a failure means. `text`: all that Spark said. `scratch`: the folder in which it
    keeps what does not fit into memory."""
    for reason in REASONS:
        if found := reason.pattern.search(text):
            return reason.meaning.format(scratch=scratch, **found.groupdict())
    said = _last_cause(text)
    return f"the job failed in Spark: {said}; all of it: --trace; the tables are as before"


def ended(status: int | None) -> str:
    """Return what it means that Spark's process has gone. `status`: its exit status, if known;
    below 0 the signal that ended it."""
    if status == OUT_OF_MEMORY:
        return "Spark has run out of memory; more: --memory 4g" + AGAIN
    if status == -9:
        return (
            "Spark's process was killed, as by the system when memory is short; "
            "less: --memory 1g, or a larger machine" + AGAIN
        )
    known = "an unknown status" if status is None else f"status {status}"
    return f"Spark's process has ended with {known}; what it says: --trace" + AGAIN


def _last_cause(text: str) -> str:
    """Return the first line of the innermost cause."""
    lines = [it for it in text.splitlines() if it.strip() and not it.startswith(("\t", "  "))]
    causes = [it for it in lines if _CAUSE.match(it)]
    chosen = next(iter(causes[::-1] or lines), "no reason")
    return _CAUSE.sub("", chosen)[:LONGEST].strip() or chosen[:LONGEST]
