"""Writes the audit log: a line for each connection that ended and each right that was denied.

Lines are JSON, contain no credential, and are written to a file or stream of their own. Repeated
lines are folded as in the log. A bounded queue holds the lines that wait for a slow reader.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from gateway.telemetry.figures import AuditFigures
from gateway.telemetry.folding import Folding
from gateway.telemetry.log import Style, notice_by, renderers
from gateway.telemetry.witness import described
from gateway.telemetry.writing import Queue, appending, writer_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.telemetry.witness import Ended
    from gateway.wire.subject import Caller, Subject


class Audit:
    """Writes the audit log of a process; it is a `Witness`. Call `close` at the end. `write`:
    writes whole lines; it is called in a thread. `lines`, `size`: the most lines and bytes that
    wait for `write`. `clock`: returns monotonic seconds."""

    def __init__(
        self,
        style: Style,
        write: Callable[[bytes], object],
        lines: int,
        size: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        processors = renderers(style, for_people=False)
        self.figures = AuditFigures()
        self._queue = Queue(
            write, notice_by(processors), lines=lines, size=size, figures=self.figures
        )
        self.close = self._queue.close
        self._log: Any = structlog.wrap_logger(
            self._queue,
            processors=[Folding(style.burst, clock), *processors],
            wrapper_class=structlog.BoundLogger,
            cache_logger_on_first_use=True,
        )

    def opened(self, connection: int, caller: Caller) -> None:
        """Write nothing: the line of a connection is written when the connection ends."""

    def ended(self, end: Ended) -> None:
        """Write a line for a connection that ended."""
        caller = end.caller
        self._log.info(
            "connection",
            listener=end.listener,
            connection=end.connection,
            client=end.client,
            principal=None if caller is None else caller.principal,
            method=None if caller is None else caller.method,
            reason=end.reason.value,
            seconds=round(end.seconds, 3),
            **({"detail": end.detail} if end.detail else {}),
        )

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Write a line for a right that was denied. `rule`: the id of the rule that denied it; None
        if no rule allowed it. `shadow`: the right would have been denied, but shadow mode let the
        client pass."""
        self._log.info(
            "denial",
            listener=subject.listener,
            connection=subject.connection,
            client=subject.host,
            principal=subject.principal,
            method=subject.caller.method,
            right=right,
            **described(subject),
            rule=rule,
            **({"shadow": True} if shadow else {}),
        )


def writer(file: Path | None, stream: str) -> Callable[[bytes], object]:
    """Return a function that writes whole lines to a file. If `file` is None, it writes to `stdout`
    or `stderr`, as `stream` says. Raises `OSError` if the file cannot be written.

    The file is created when the first line is written: a mere check of the configuration, perhaps
    by another user than the gateway's, must not create it.
    """
    if file is None:
        return writer_to(sys.stdout if stream == "stdout" else sys.stderr)
    _try(file)
    opened: Callable[[bytes], object] | None = None

    def write(lines: bytes) -> None:
        nonlocal opened
        if opened is None:
            opened = appending(os.open(file, _APPEND | os.O_CREAT, 0o600))
        opened(lines)

    return write


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


def _try(file: Path) -> None:
    """Raise `OSError` if lines cannot be appended to a file, or it cannot be created."""
    try:
        os.close(os.open(file, _APPEND | os.O_NONBLOCK))  # of a pipe that nobody reads: fail
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise
        if not os.access(file.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
