"""Lines for people and machines, on standard error.

Rooms that may log call `structlog.get_logger()`; what is set here applies to all of them.
Identical warnings are folded: one line per interval, which says how many it stands for.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from structlog.typing import EventDict, Processor, WrappedLogger

# Often enough to see that it goes on, and 6 lines a minute at the most.
_FOLDED_FOR = 10.0

# Distinct warnings remembered; one costs some hundred bytes.
_REMEMBERED = 512

# Fields that name one occurrence of an event, not its kind.
_OCCURRENCE = frozenset({"client", "connection", "detail", "exc_info", "seconds"})


def configure(
    style: str,
    level: str,
    stream: TextIO | None = None,
    always: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Set up logging for the whole process.

    `style` is json, console, or auto (console where `stream` is a terminal); `level` is the
    lowest that is written. `stream` is standard error unless given. `always`: fields of all lines.
    """
    stream = sys.stderr if stream is None else stream
    for_people = style == "console" or (style == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            lambda _logger, _method, event: {**always, **event},
            structlog.processors.add_log_level,
            Repeats(),
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            *(_console(stream) if for_people else _json()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: Lines(stream),
        cache_logger_on_first_use=True,
    )


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def _json() -> tuple[Processor, ...]:
    # Tracebacks as text: the structured ones show local variables, and so credentials.
    return structlog.processors.format_exc_info, structlog.processors.JSONRenderer()


def _console(stream: TextIO) -> tuple[Processor, ...]:
    # The plain traceback for the same reason: the pretty ones show local variables.
    renderer = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(),
        exception_formatter=structlog.dev.plain_traceback,
        timestamp_key="time",
    )
    return printable, renderer


def printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Write control characters as escapes: clients choose names, and a terminal obeys."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = ascii(value)
    return event


class Repeats:
    """Lets one of several identical warnings pass per interval (in seconds).

    Warnings and errors are identical if all but the fields of one occurrence are. The next one
    that passes says in `repeated` how many were left out. `clock` is a monotonic one.
    """

    def __init__(
        self, interval: float = _FOLDED_FOR, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval
        self._clock = clock
        # Kind of warning -> when it was last written, and how often it came since.
        self._seen: OrderedDict[tuple[Any, ...], tuple[float, int]] = OrderedDict()

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Answer the event, or raise `structlog.DropEvent`."""
        if method not in {"warning", "error", "critical"}:
            return event
        kind, now = _kind(event), self._clock()
        written, repeated = self._seen.get(kind, (-self._interval, 0))
        if now - written < self._interval:
            self._seen[kind] = written, repeated + 1
            raise structlog.DropEvent
        self._remember(kind, now)
        return {**event, "repeated": repeated} if repeated else event

    def _remember(self, kind: tuple[Any, ...], now: float) -> None:
        self._seen[kind] = now, 0
        self._seen.move_to_end(kind)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


def _kind(event: EventDict) -> tuple[Any, ...]:
    return tuple((key, str(event[key])) for key in sorted(event.keys() - _OCCURRENCE))


class Lines:
    """Writes lines to a stream; one that cannot be written is no reason to end a connection."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        """Write one line."""
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # gone, full, or closed: there is nobody to tell
            pass

    debug = info = warning = error = critical = exception = log = msg
