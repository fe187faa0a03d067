"""Log lines for people and machines."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

import pytest
import structlog
from structlog.typing import FilteringBoundLogger

from gateway.telemetry import log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def logger(
    style: str = "json", level: str = "info", stream: io.StringIO | None = None
) -> tuple[FilteringBoundLogger, io.StringIO]:
    stream = io.StringIO() if stream is None else stream
    log.configure(log.Style(style, level), stream)
    return structlog.get_logger(), stream


def test_json_is_one_object_per_line() -> None:
    out, stream = logger()
    out.info("listening", listener="clients", port=6650)
    out.warning("odd", text="two\nlines")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {"event": "listening", "level": "info", "listener": "clients", "port": 6650}
    assert second["text"] == "two\nlines"


def test_fields_of_the_process_are_in_all_lines() -> None:
    stream = io.StringIO()
    log.configure(log.Style("json", always={"worker": 3}), stream)
    structlog.get_logger().info("one")
    structlog.get_logger().warning("two", worker=4)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [it["worker"] for it in lines] == [3, 4]


def test_lines_below_the_level_are_not_written() -> None:
    out, stream = logger(level="warning")
    out.info("quiet")
    out.warning("loud")
    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()


@pytest.mark.parametrize(
    ("style", "stream", "is_json"),
    [
        ("auto", io.StringIO, True),
        ("auto", Terminal, False),
        ("json", Terminal, True),
        ("console", io.StringIO, False),
    ],
)
def test_auto_is_console_on_a_terminal_only(
    style: str, stream: type[io.StringIO], is_json: bool
) -> None:
    out, written = logger(style, stream=stream())
    out.info("hello")
    assert written.getvalue().startswith("{") is is_json


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_traceback_shows_no_local_variables(style: str) -> None:
    out, stream = logger(style)

    def fail() -> int:
        secret = "-".join(reversed(("cret", "s3")))
        return int(secret[:1])

    try:
        fail()
    except ValueError:
        out.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert "s3-cret" not in stream.getvalue()


def test_control_characters_do_not_reach_a_terminal() -> None:
    out, stream = logger("console")
    out.info("opened", topic="\x1b[2J", principal="a\nb", plain="é")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    assert "é" in stream.getvalue()


class Broken(io.StringIO):
    def write(self, _text: str) -> NoReturn:
        raise BrokenPipeError


@pytest.mark.parametrize("make", [Broken, io.StringIO])
def test_a_failing_stream_is_ignored(make: type[io.StringIO]) -> None:
    stream = make()
    out, _ = logger(stream=stream)
    stream.close()
    out.info("hello")


@pytest.mark.parametrize("style", ["json", "console"])
def test_control_characters_in_a_traceback_are_escaped(style: str) -> None:
    out, stream = logger(style)
    try:
        fail("\x1b[2J")
    except ValueError:
        out.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


# -- what is too long ------------------------------------------------------------------------

LONG = "x" * 5_000_000


@pytest.mark.parametrize("value", [LONG, [LONG], (1, LONG), {"a": LONG}], ids=type)
@pytest.mark.parametrize("style", ["json", "console"])
def test_a_long_text_is_cut_and_its_length_appended(style: str, value: object) -> None:
    out, stream = logger(style)
    out.info("opened", topic=value)
    assert len(stream.getvalue()) < log.LONGEST + 300
    assert "characters)" in stream.getvalue()


def test_a_text_of_the_longest_length_stays_whole() -> None:
    assert log.cut("x" * 64, 64) == "x" * 64
    assert log.cut("x" * 65, 64) == "x" * 64 + "... (65 characters)"


def fail(text: str) -> NoReturn:
    raise ValueError(text)


def test_an_error_that_quotes_a_client_is_cut() -> None:
    out, stream = logger()
    try:
        fail(LONG)
    except ValueError:
        out.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert len(stream.getvalue()) < 16 * log.LONGEST + 500


def test_folding_is_set_up() -> None:
    out, stream = logger()
    for _ in range(3):
        out.warning("again", listener="clients")
    assert stream.getvalue().count("again") == 1


# -- by a thread -----------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["json", "console"])
def test_dropped_lines_are_reported_in_the_same_style(style: str) -> None:
    """The pipe holds some hundred lines, and is read only afterwards."""
    reading, writing = os.pipe()
    with open(writing, "w") as stream, open(reading) as reader:  # noqa: PTH123
        chosen = log.Style(style, burst=100_000)
        queue = log.configure_queued(chosen, lines=100, size=1 << 20, stream=stream)
        out = structlog.get_logger()
        for number in range(10_000):
            out.info("flood", number=number)
        dropped = queue.figures.dropped
        assert dropped > 5000
        took = threading.Thread(target=lambda: written.append(reader.read()))
        written: list[str] = []
        took.start()
        queue.close(patience=60)
        stream.close()
        took.join()
    lines = written[0].splitlines()
    assert sum("flood" in it for it in lines) == 10_000 - dropped
    told = [it for it in lines if "lines_dropped" in it]
    assert all("warning" in it for it in told)
    assert sum(int(found) for it in told for found in re.findall(r"lines\W+(\d+)", it)) == dropped


@pytest.mark.parametrize("format", ["json", "console"])
def test_principals_are_masked_in_every_format(format: str) -> None:
    stream = io.StringIO()
    log.configure(log.Style(format, principals="masked"), stream)
    structlog.get_logger().info("access_denied", principal="alice", rule="r1")
    assert "alice" not in stream.getvalue()
    assert "(masked)" in stream.getvalue()
    assert "r1" in stream.getvalue()


def test_a_pseudonym_stays_the_same_and_shows_nothing_of_the_name() -> None:
    stream = io.StringIO()
    log.configure(log.Style("json", principals="pseudonymous"), stream)
    for name in ("alice", "bob", "alice", "alice" * 1000):
        structlog.get_logger().info("access_denied", principal=name)
    alice, bob, again, long = (
        json.loads(line)["principal"] for line in stream.getvalue().splitlines()
    )
    assert alice == again
    assert len({alice, bob, long}) == 3
    assert {len(it) for it in (alice, bob, long)} == {len("p-") + 16}
    assert "alice" not in stream.getvalue()


def test_lines_without_a_principal_are_the_same_however_these_are_written() -> None:
    stream = io.StringIO()
    log.configure(log.Style("json", principals="pseudonymous"), stream)
    structlog.get_logger().info("access_denied", principal=None)
    structlog.get_logger().info("broker_up", broker="b:6650")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["principal"] is None
    assert "principal" not in second


PSEUDONYM = """
import structlog
from gateway.telemetry import log
log.configure(log.Style("json", principals="pseudonymous"))
structlog.get_logger().info("access_denied", principal="alice")
"""


@pytest.mark.tier("test")
def test_another_process_has_other_pseudonyms() -> None:
    """Nobody who knows the names can look them up."""
    written = {
        json.loads(
            subprocess.run(
                [sys.executable, "-c", PSEUDONYM], stderr=subprocess.PIPE, check=True
            ).stderr
        )["principal"]
        for _ in range(2)
    }
    assert len(written) == 2
