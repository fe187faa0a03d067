"""An OpenTelemetry collector that remembers what it is sent, by OTLP over HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """`status`: of all answers. `tokens`: that requests had. `resource`: of the last spans."""

    url: str = ""
    status: int = 200
    spans: list[Span] = field(default_factory=list)
    lines: list[LogRecord] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    resource: dict[str, object] = field(default_factory=dict)

    def take(self, path: str, body: bytes) -> None:
        """Remember the records of one request."""
        if path == "/v1/logs":
            lines = ExportLogsServiceRequest.FromString(body)
            for kind in lines.resource_logs:
                for logs in kind.scope_logs:
                    self.lines.extend(logs.log_records)
            return
        assert path == "/v1/traces"
        spans = ExportTraceServiceRequest.FromString(body)
        for of in spans.resource_spans:
            self.resource = values(of.resource.attributes)
            for some in of.scope_spans:
                self.spans.extend(some.spans)

    def named(self, name: str) -> list[Span]:
        """Return the spans of a name, in the order of their ends."""
        return sorted(
            (it for it in self.spans if it.name == name), key=lambda it: it.end_time_unix_nano
        )

    def parts(self, span: Span) -> list[str]:
        """Return the names of the parts of a span."""
        return [it.name for it in self.spans if it.parent_span_id == span.span_id]


def values(attributes: object) -> dict[str, object]:
    """Return attributes by name."""
    found: dict[str, object] = {}
    for it in attributes:  # type: ignore[attr-defined]
        assert isinstance(it, KeyValue)
        kind = it.value.WhichOneof("value")
        found[it.key] = None if kind is None else getattr(it.value, kind)
    return found


@contextmanager
def collector() -> Iterator[Collector]:
    """Serve one on a free port of this machine."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            found.tokens.add(self.headers.get("Authorization"))
            if found.status == 200:
                found.take(self.path, body)
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
