"""The audit: a line for each connection that ended and each right that was denied.

Lines are JSON, hold no credential, and go to a file or stream of their own. Repeated ones are
folded as in the log, and a queue bounds what waits for a slow reader.
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
from gateway.telemetry.writing import Queue, appending, writer_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.telemetry.witness import Ended
    from gateway.wire.subject import Caller, Subject


class Audit:
    """Writes the audit of a process, as a `Witness`. `close` it at the end. `clock`: monotonic
    seconds."""

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
        """Write nothing: an open connection has its line at its end."""

    def ended(self, it: Ended) -> None:
        """Write that a connection ended."""
        caller = it.caller
        self._log.info(
            "connection",
            listener=it.listener,
            connection=it.connection,
            client=it.client,
            principal=None if caller is None else caller.principal,
            method=None if caller is None else caller.method,
            reason=it.reason.value,
            seconds=round(it.seconds, 3),
            **({"detail": it.detail} if it.detail else {}),
        )

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Write that a client was denied a right; `shadow`: would have been."""
        self._log.info(
            "denial",
            listener=subject.listener,
            connection=subject.connection,
            client=subject.host,
            principal=subject.principal,
            method=subject.caller.method,
            right=right,
            topic=None if subject.topic is None else subject.topic.name,
            rule=rule,
            **({"shadow": True} if shadow else {}),
        )


def writer(file: Path | None, stream: str) -> Callable[[bytes], object]:
    """Return what writes whole lines to a file, or to `stdout` or `stderr`. Raises `OSError` if
    that cannot be.

    The file is made at the first line: whoever checks a configuration may be another user.
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
    """Raise `OSError` if lines cannot be appended to a file, or it cannot be made."""
    try:
        os.close(os.open(file, _APPEND | os.O_NONBLOCK))  # of a pipe that nobody reads: fail
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise
        if not os.access(file.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
