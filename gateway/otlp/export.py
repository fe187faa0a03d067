"""Sends spans and log lines to an OpenTelemetry collector.

OpenTelemetry's own library encodes and sends records, in one thread for spans and one thread for
log lines. The gateway's event loop only makes a record and puts it into the library's queue. If the
collector is slow and the queue is full, the oldest records are dropped and counted. Only the end of
the process waits for the collector, for at most `settings.deadline` seconds.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import requests
import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from gateway.otlp.lines import FAILED, Lines
from gateway.telemetry.figures import ExportFigures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.trace import ReadableSpan

    from gateway.telemetry.spans import Span, Value

T = TypeVar("T")

SPANS, LINES = "spans", "lines"
"""Kinds of records, as metrics name them."""

_KINDS = {"connect": SpanKind.SERVER, "lookup": SpanKind.SERVER, "dial": SpanKind.CLIENT}

BATCH = 512
"""Records of one request, at most: some 200 KB of spans."""

PAUSE = 2.0
"""Seconds between requests if there is less than a batch."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the export. `url`: the URL of the collector, without `/v1/traces`. `share`: the
    part of all operations that have spans, 0 to 1. `lines`: log lines are sent too. `queue`: the
    most records of each kind that wait. `deadline`: the most seconds that one request may take.
    `instance`: the name of this process. `version`: the version of the gateway. `principal`:
    returns the name under which a principal is shown. `longest`: the most characters of an
    attribute."""

    url: str
    instance: str
    version: str
    share: float = 1.0
    lines: bool = False
    queue: int = 2048
    deadline: float = 10.0
    ca_file: Path | None = None
    token_file: Path | None = None
    principal: Callable[[str], str] = str
    longest: int = 1024


class Export:
    """Sends spans and log lines to the collector. `span` is called with each span. `lines` is a
    processor of structlog that is called with each log line; it is None if log lines are not sent.
    Call `close` at the end."""

    def __init__(self, settings: Settings) -> None:
        self.figures = {SPANS: ExportFigures()}
        self.lines: Lines | None = None
        self._settings = settings
        self._offset = time.time() - time.monotonic()
        resource = _resource(settings)
        self._provider = TracerProvider(
            sampler=TraceIdRatioBased(settings.share), resource=resource, shutdown_on_exit=False
        )
        self._spans = BatchSpanProcessor(
            _CountedSpans(self._exporter(OTLPSpanExporter, "traces"), self.figures[SPANS]),
            max_queue_size=settings.queue,
            max_export_batch_size=min(BATCH, settings.queue),
            schedule_delay_millis=PAUSE * 1000,
        )
        self._provider.add_span_processor(self._spans)
        self._tracer = self._provider.get_tracer("gateway", settings.version)
        self._batches: list[BatchSpanProcessor | BatchLogRecordProcessor] = [self._spans]
        if settings.lines:
            self._add_lines(resource)
        _report_failures()

    def _add_lines(self, resource: Resource) -> None:
        figures = self.figures[LINES] = ExportFigures()
        provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        batches = BatchLogRecordProcessor(
            _CountedLines(self._exporter(OTLPLogExporter, "logs"), figures),
            max_queue_size=self._settings.queue,
            max_export_batch_size=min(BATCH, self._settings.queue),
            schedule_delay_millis=PAUSE * 1000,
        )
        provider.add_log_record_processor(batches)
        self._batches.append(batches)
        self.lines = Lines(provider.get_logger("gateway", self._settings.version), figures)

    def _exporter(self, kind: Callable[..., T], path: str) -> T:
        settings = self._settings
        session = requests.Session()
        session.trust_env = False  # the configuration says where records go, and who may have them
        if settings.token_file is not None:
            session.auth = _Bearer(settings.token_file)
        return kind(
            endpoint=f"{settings.url.rstrip('/')}/v1/{path}",
            certificate_file=None if settings.ca_file is None else str(settings.ca_file),
            timeout=settings.deadline,
            session=session,
        )

    def span(self, span: Span) -> None:
        """Queue a span and its parts for sending, without waiting. This method can be passed as a
        `telemetry.spans.Spans`."""
        self._send(span, None)

    def _send(self, span: Span, parent: trace.Span | None) -> None:
        context = None if parent is None else trace.set_span_in_context(parent)
        sent = self._tracer.start_span(
            span.name,
            context,
            _KINDS.get(span.name, SpanKind.INTERNAL),
            self._shown(span.attributes),
            start_time=self._nanoseconds(span.began),
        )
        if not sent.is_recording():
            return  # its parts are not either
        self.figures[SPANS].made += 1
        if span.error:
            sent.set_status(StatusCode.ERROR, span.error)
            sent.set_attribute("error.type", span.error)
        for part in span.parts:
            self._send(part, sent)
        sent.end(self._nanoseconds(span.ended))

    def _shown(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        """Return attributes as operators may see them: texts cut, principals veiled."""
        shown: dict[str, Value] = {}
        for name, value in attributes.items():
            text = self._settings.principal(str(value)) if name == "user.id" else value
            shown[name] = text[: self._settings.longest] if isinstance(text, str) else text
        return shown

    def _nanoseconds(self, monotonic: float) -> int:
        return int((monotonic + self._offset) * 1e9)

    def close(self) -> None:
        """Send the records that wait, for at most `settings.deadline` seconds. Records that are not
        sent by then are lost."""
        seconds = self._settings.deadline
        closing = [
            threading.Thread(target=processor.shutdown, daemon=True) for processor in self._batches
        ]
        for thread in closing:
            thread.start()
        until = time.monotonic() + seconds
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))


def _resource(settings: Settings) -> Resource:
    """Return what all records say of their process. `OTEL_SERVICE_NAME` and
    `OTEL_RESOURCE_ATTRIBUTES` of the environment win over the gateway's own."""
    own: dict[str, Value] = {
        "service.name": "broker-gateway",
        "service.version": settings.version,
        "service.instance.id": settings.instance,
        "process.pid": os.getpid(),
    }
    return Resource(own).merge(OTELResourceDetector().detect())


class _Bearer(requests.auth.AuthBase):
    """Reads the token for each request, so that it may be renewed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._file.read_text().strip()}"
        return request


class _CountedSpans(SpanExporter):
    """Counts what an exporter sends."""

    def __init__(self, inner: SpanExporter, figures: ExportFigures) -> None:
        self._inner = inner
        self._figures = figures

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:
            self._figures.note(len(spans), sent=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _CountedLines(LogRecordExporter):
    """Counts what an exporter sends."""

    def __init__(self, inner: LogRecordExporter, figures: ExportFigures) -> None:
        self._inner = inner
        self._figures = figures

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = LogRecordExportResult.FAILURE
        try:
            result = self._inner.export(batch)
        finally:
            self._figures.note(len(batch), sent=result is LogRecordExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True  # an exporter keeps nothing


class _Failures(logging.Handler):
    """Logs what OpenTelemetry's kit complains of."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().warning(FAILED, reason=record.getMessage())


def _report_failures() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.handlers = [_Failures(logging.WARNING)]
    logger.propagate = False
