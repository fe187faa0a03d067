"""Lines for people and machines, on standard error.

Rooms that may log call `structlog.get_logger()`; what is set here applies to all of them.
Floods are folded, long texts are cut, and a process that serves has a thread write.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from gateway.telemetry.folding import BURST, Folding
from gateway.telemetry.writing import Lines, Queue, written_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 1024
"""Characters of a text; the default of `log.longest_text`, which gives the reason."""

_TRACEBACK = 16
"""A traceback may be so many times as long: it has up to a hundred lines of our own code, and the
error at its end may repeat what a peer said."""


@dataclass(frozen=True, slots=True)
class Style:
    """How lines look, and which are written.

    `format` is json, console, or auto (console where the stream is a terminal); `level` is the
    lowest that is written. `burst`: see `Folding`. `longest`: characters of a text.
    `always`: fields of all lines.
    """

    format: str = "auto"
    level: str = "info"
    burst: int = BURST
    longest: int = LONGEST
    always: Mapping[str, object] = field(default_factory=dict)


def configure(style: Style, stream: TextIO | None = None) -> None:
    """Set up logging for the whole process; each line is written at once.

    `stream` is standard error unless given.
    """
    stream = sys.stderr if stream is None else stream
    _configure(style, _written(style, stream), Lines(stream))


def configure_queued(style: Style, *, lines: int, size: int, stream: TextIO | None = None) -> Queue:
    """The same, but lines wait in a queue (so many, and so many bytes) until a thread writes them.

    The queue is to be closed at the end of the process.
    """
    stream = sys.stderr if stream is None else stream
    processors = _written(style, stream)

    def notice(number: int) -> str:
        event: Any = {"event": "lines_dropped", "lines": number, "level": "warning"}
        for process in processors:
            event = process(None, "warning", event)
        return str(event)

    queue = Queue(written_to(stream), notice, lines=lines, size=size)
    _configure(style, processors, queue)
    return queue


def _configure(style: Style, written: Sequence[Processor], lines: Lines | Queue) -> None:
    structlog.configure(
        processors=[structlog.processors.add_log_level, Folding(style.burst), *written],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[style.level]),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def _written(style: Style, stream: TextIO) -> list[Processor]:
    """What makes a line of an event. Keeps nothing, so any thread may do it."""
    for_people = style.format == "console" or (style.format == "auto" and stream.isatty())
    always = style.always
    return [
        *([lambda _logger, _method, event: {**always, **event}] if always else []),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        # Tracebacks as text: the structured ones show local variables, and so credentials.
        structlog.processors.format_exc_info,
        Cut(style.longest),
        *(_console(stream) if for_people else [_json]),
    ]


def _json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # structlog's own renderer makes an encoder for each line, which takes as long again.
    return _ENCODED(event)


_ENCODED = JSONEncoder(check_circular=False).encode


def _console(stream: TextIO) -> tuple[Processor, ...]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(),
        exception_formatter=structlog.dev.plain_traceback,
        timestamp_key="time",
    )
    return printable, renderer


class Cut:
    """Cuts texts at so many characters, and says how long they were: clients choose some."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Answer the event."""
        for key, value in event.items():
            kind = value.__class__
            if kind is str:
                if len(value) > self._longest:
                    times = _TRACEBACK if key == "exception" else 1
                    event[key] = cut(value, self._longest * times)
            elif kind is not int and kind is not float:
                event[key] = self._cut(value)
        return event

    def _cut(self, value: object) -> object:
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, list | tuple):
            return [self._cut(it) for it in value]
        return cut(str(value), self._longest)


def cut(text: str, longest: int) -> str:
    """The beginning of a text that is too long, and its length."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


def printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Write control characters as escapes: clients choose names, and a terminal obeys."""
    for key, value in event.items():
        if key == "exception":
            event[key] = "\n".join(map(_printable, value.split("\n")))
        elif isinstance(value, str):
            event[key] = _printable(value)
    return event


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
