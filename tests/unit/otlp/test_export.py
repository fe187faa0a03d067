"""Spans and lines as an OpenTelemetry collector gets them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.otlp.export import LINES, SPANS, Export, Settings
from gateway.otlp.lines import FAILED
from gateway.telemetry.spans import Span
from tests.support.collector import Collector, collector, values


@pytest.fixture
def reached() -> Iterator[Collector]:
    with collector() as found:
        yield found


def settings(url: str, **more: Any) -> Settings:
    return Settings(url, "host-w1", "1.2", deadline=2.0, **more)


def export_of(url: str, *spans: Span, **more: Any) -> Export:
    export = Export(settings(url, **more))
    for span in spans:
        export.span(span)
    export.close()
    return export


OPENING = Span(
    "connect",
    10.0,
    12.5,
    attributes={"gateway.connection": 7, "user.id": "alice"},
    parts=(Span("authenticate", 10.5, 11.0), Span("dial", 11.0, 12.0, "refused")),
)


def test_a_span_has_its_times_its_parts_and_its_failure(reached: Collector) -> None:
    export_of(reached.url, OPENING)
    (connect,), (dial,) = reached.named("connect"), reached.named("dial")
    assert connect.end_time_unix_nano - connect.start_time_unix_nano == pytest.approx(
        2.5e9, abs=2e3
    )
    assert sorted(reached.parts(connect)) == ["authenticate", "dial"]
    assert values(connect.attributes) == {"gateway.connection": 7, "user.id": "alice"}
    assert (dial.status.code, dial.status.message) == (dial.status.STATUS_CODE_ERROR, "refused")
    assert connect.status.code == connect.status.STATUS_CODE_UNSET
    assert {it.trace_id for it in reached.spans} == {connect.trace_id}


def test_the_process_is_named(reached: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    export_of(reached.url, OPENING)
    assert reached.resource["service.name"] == "broker-gateway"
    assert reached.resource["service.instance.id"] == "host-w1"
    assert reached.resource["service.version"] == "1.2"
    assert reached.resource["deployment.environment.name"] == "test"


def test_the_environment_may_name_the_service(
    reached: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "edge")
    export_of(reached.url, OPENING)
    assert reached.resource["service.name"] == "edge"


def test_principals_are_veiled_and_texts_cut(reached: Collector) -> None:
    span = Span("lookup", 0.0, 1.0, attributes={"user.id": "alice", "topic": "x" * 50})
    export_of(reached.url, span, principal=lambda _: "(masked)", longest=8)
    assert values(reached.spans[0].attributes) == {"user.id": "(masked)", "topic": "x" * 8}


def test_no_operation_has_spans_with_a_share_of_zero(reached: Collector) -> None:
    export = export_of(reached.url, OPENING, share=0.0)
    assert (reached.spans, export.figures[SPANS].made) == ([], 0)


def test_a_token_is_read_for_each_request(reached: Collector, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    export_of(reached.url, OPENING, token_file=token)
    token.write_text("second\n")
    export_of(reached.url, OPENING, token_file=token)
    assert reached.tokens == {"Bearer first", "Bearer second"}


def test_what_waits_is_bounded_and_what_gives_way_is_counted(reached: Collector) -> None:
    reached.status = 400
    export = export_of(reached.url, *[OPENING] * 1000, queue=100)
    figures = export.figures[SPANS]
    assert (figures.made, figures.sent) == (3000, 0)
    assert figures.failed <= figures.made


def test_a_collector_that_is_not_there_fails_no_span_and_is_told_of(tmp_path: Path) -> None:
    with capture_logs() as lines:
        export = export_of("http://127.0.0.1:1", OPENING)
    assert export.figures[SPANS].failed == 3
    assert {it["event"] for it in lines} == {FAILED}


def test_a_line_is_sent_with_its_fields(reached: Collector) -> None:
    export = Export(settings(reached.url, lines=True))
    assert export.lines is not None
    event = {
        "event": "connection_ended",
        "level": "warning",
        "time": "now",
        "seconds": 1.5,
        "x": [],
    }
    assert export.lines(None, "warning", dict(event)) == event
    export.close()
    (line,) = reached.lines
    assert line.body.string_value == line.event_name == "connection_ended"
    assert (line.severity_text, line.severity_number) == ("warning", line.severity_number)
    assert line.severity_number == 13
    assert values(line.attributes) == {"seconds": 1.5, "x": "[]"}
    assert export.figures[LINES].sent == 1


def test_the_line_that_says_that_lines_fail_is_not_sent(reached: Collector) -> None:
    export = Export(settings(reached.url, lines=True))
    assert export.lines is not None
    export.lines(None, "warning", {"event": FAILED})
    export.close()
    assert (reached.lines, export.figures[LINES].made) == ([], 0)


def test_the_kit_writes_no_lines_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    export_of("http://127.0.0.1:1")
    with capture_logs() as lines:
        logging.getLogger("opentelemetry.sdk").warning("full")
    assert lines == [{"event": FAILED, "reason": "full", "log_level": "warning"}]
    assert capsys.readouterr().err == ""
