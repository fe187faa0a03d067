"""Log lines as OpenTelemetry's log records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opentelemetry._logs import LogRecord, SeverityNumber

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from structlog.typing import EventDict, WrappedLogger

    from gateway.telemetry.figures import ExportFigures

FAILED = "otlp_failed"
"""The event of the log line which reports that records could not be sent. That line itself is not
sent, because its failure would make another one."""

_SEVERITIES = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
    "critical": SeverityNumber.FATAL,
}


class Lines:
    """A processor of structlog that sends each event to the collector in the form in which it is
    logged, with principals hidden and texts cut. It returns the event unchanged."""

    def __init__(self, logger: Logger, figures: ExportFigures) -> None:
        self._logger = logger
        self._figures = figures

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Queue the event to be sent, and return it unchanged."""
        name = event["event"]
        if name == FAILED:
            return event
        level = event.get("level", "info")
        self._figures.made += 1
        self._logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                severity_text=level,
                severity_number=_SEVERITIES.get(level, SeverityNumber.INFO),
                body=name,
                event_name=name,
                attributes={
                    key: value if isinstance(value, str | int | float | bool) else str(value)
                    for key, value in event.items()
                    if key not in _OWN and value is not None
                },
            )
        )
        return event


_OWN = frozenset({"event", "level", "time"})
