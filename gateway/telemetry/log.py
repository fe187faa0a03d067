"""Log lines for people and machines, on standard error.

Packages log by `structlog.get_logger()`, and the settings here apply to all of them. Floods of
similar lines are folded, and long texts are cut. In a process that serves clients, a thread writes
the lines.
"""

from __future__ import annotations

import logging
import secrets
import sys
import time
from dataclasses import dataclass, field
from hashlib import blake2b
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from gateway.telemetry.folding import BURST, Folding
from gateway.telemetry.writing import Lines, Queue, writer_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 1024
"""Most characters of a text. It is the default of `log.longest_text`, which gives the reason."""

_TRACEBACK = 16
"""How many times as long a traceback may be: it has up to a hundred lines of the gateway's code,
and the error at its end may quote a peer."""


@dataclass(frozen=True, slots=True)
class Style:
    """The format of log lines, and which lines are written.

    `format`: json, console, or auto (console if the stream is a terminal, otherwise json). `level`:
    the lowest level that is written. `burst`: see `Folding`. `longest`: the most characters of a
    text. `principals`: plain, masked or pseudonymous. `always`: fields that all lines have.
    """

    format: str = "auto"
    level: str = "info"
    burst: int = BURST
    longest: int = LONGEST
    principals: str = "plain"
    always: Mapping[str, object] = field(default_factory=dict)


def configure(style: Style, stream: TextIO | None = None) -> None:
    """Set up logging for the whole process. Each line is written at once.

    `stream`: where lines are written; None: to standard error.
    """
    stream = sys.stderr if stream is None else stream
    for_people = _is_for_people(style, stream)
    processors = renderers(style, for_people=for_people, colors=stream.isatty())
    _configure(style, processors, Lines(stream))


def configure_queued(
    style: Style,
    *,
    lines: int,
    size: int,
    stream: TextIO | None = None,
    also: Processor | None = None,
) -> Queue:
    """Set up logging as `configure` does, but with a thread that writes lines from a queue. Return
    the queue, to be closed at the end of the process.

    `also`: a processor that is called with each event as it will be written, before the event
    becomes a line. `lines`, `size`: the most lines and bytes in the queue.
    """
    stream = sys.stderr if stream is None else stream
    for_people, colors = _is_for_people(style, stream), stream.isatty()
    processors = renderers(style, for_people=for_people, colors=colors, also=also)
    queue = Queue(writer_to(stream), notice_by(processors), lines=lines, size=size)
    _configure(style, processors, queue)
    return queue


def notice_by(processors: Sequence[Processor]) -> Callable[[int], str]:
    """Return a function that gets the number of dropped lines, and returns a log line with it.
    `processors`: the processors of all lines."""

    def notice(number: int) -> str:
        event: Any = {"event": "lines_dropped", "lines": number, "level": "warning"}
        for process in processors:
            event = process(None, "warning", event)
        return str(event)

    return notice


def log_ignored(ignored: sys.UnraisableHookArgs) -> None:
    """Log an error that no caller can catch. This function is a `sys.unraisablehook`.

    Clients can cause such errors: OpenSSL calls Python with the server name that a client sends,
    and Python fails if that name is not ASCII. By default, Python would write each error to
    standard error, without a bound.
    """
    structlog.get_logger().warning("error_ignored", error=repr(ignored.exc_value))


def _configure(style: Style, processors: Sequence[Processor], lines: Lines | Queue) -> None:
    LEVELS.usual = style.level
    # Lines at info pass here, so that an operator can have them for a while.
    lowest = min(_number(style.level), logging.INFO)
    before: list[Processor] = [LEVELS, structlog.processors.add_log_level, Folding(style.burst)]
    structlog.configure(
        processors=[*before, *processors],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


class Levels:
    """A processor of structlog that drops lines below a level. This is the `usual` level, or
    another one that `set` has put in force for some time. `clock`: returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._usual = logging.INFO
        # By event, None for all: the level, and until when it holds.
        self._set: dict[str | None, tuple[int, float]] = {}

    @property
    def usual(self) -> str:
        """Return the log level of all lines for which `set` has not put another level in force."""
        return logging.getLevelName(self._usual).lower()

    @usual.setter
    def usual(self, level: str) -> None:
        self._usual = _number(level)
        self._set.clear()

    def set(self, level: str, event: str | None, seconds: float) -> None:
        """Put a level in force for some seconds. `event`: for lines of this event alone; None: for
        all lines."""
        now = self._clock()
        self._set = {name: entry for name, entry in self._set.items() if entry[1] > now}
        if len(self._set) < MOST_LEVELS or event in self._set:
            self._set[event] = _number(level), now + seconds

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Return the event, or raise `structlog.DropEvent` if its level is too low."""
        lowest = self._usual if not self._set else self._lowest(event["event"])
        if _NUMBERS.get(method, logging.ERROR) < lowest:
            raise structlog.DropEvent
        return event

    def _lowest(self, name: str) -> int:
        now = self._clock()
        for key in (name, None):
            level, until = self._set.get(key, (0, 0.0))
            if now < until:
                return level
        return self._usual


MOST_LEVELS = 100
"""Events whose level is set at a time: the gateway has some sixty."""

_NUMBERS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}

LEVELS = Levels()
"""The levels of this process."""


def _is_for_people(style: Style, stream: TextIO) -> bool:
    return style.format == "console" or (style.format == "auto" and stream.isatty())


def renderers(
    style: Style, *, for_people: bool, colors: bool = False, also: Processor | None = None
) -> list[Processor]:
    """Return the processors that turn an event into a line. They have no state, so any thread may
    use them. `for_people`: a line of text, otherwise JSON. `also`: see `configure_queued`."""
    always = style.always
    return [
        *([lambda _logger, _method, event: {**always, **event}] if always else []),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        # Tracebacks as text: structured ones show local variables, and so credentials.
        structlog.processors.format_exc_info,
        *([Veiled(style.principals)] if style.principals != "plain" else []),
        Cut(style.longest),
        *([] if also is None else [also]),
        *(_console(colors=colors) if for_people else [_json]),
    ]


def _json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # structlog's own renderer makes an encoder for each line, which doubles the time.
    return _encode(event)


_encode = JSONEncoder(check_circular=False).encode


def _console(*, colors: bool) -> tuple[Processor, ...]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors,
        exception_formatter=structlog.dev.plain_traceback,
        timestamp_key="time",
    )
    return printable, renderer


_KEY = secrets.token_bytes(32)
"""The key of this process's pseudonyms: a principal has the same one in its log and its audit."""


class Veiled:
    """A processor of structlog that hides principals. `way`: `masked` replaces all of them by one
    text; `pseudonymous` replaces each by a keyed hash, which is the same for one principal as long
    as the process runs."""

    def __init__(self, way: str) -> None:
        self._key = _KEY if way == "pseudonymous" else None

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Return the event with its principal hidden."""
        name = event.get("principal")
        if isinstance(name, str):
            event["principal"] = self.name(name)
        return event

    def name(self, name: str) -> str:
        """Return the text that replaces a principal in logs."""
        if self._key is None:
            return "(masked)"
        return (
            "p-" + blake2b(name.encode(errors="replace"), key=self._key, digest_size=8).hexdigest()
        )


class Cut:
    """A processor of structlog that cuts long texts, some of which clients choose."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Return the event with its long texts cut; see `cut`."""
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
            return [self._cut(item) for item in value]
        return cut(str(value), self._longest)


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters unchanged; of a longer text, return the
    first `longest` characters, followed by the text's length."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


def printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Return the event with its control characters escaped, because clients choose names, and a
    terminal would act on control characters in them. This function is a processor of structlog."""
    for key, value in event.items():
        if key == "exception":
            event[key] = "\n".join(map(_printable, value.split("\n")))
        elif isinstance(value, str):
            event[key] = _printable(value)
    return event


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
