"""Lines for people and machines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import NoReturn

import pytest
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

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
    log.configure(style, level, stream)
    return structlog.get_logger(), stream


def test_json_is_one_object_per_line() -> None:
    out, stream = logger()
    out.info("listening", listener="clients", port=6650)
    out.warning("odd", text="two\nlines")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {"event": "listening", "level": "info", "listener": "clients", "port": 6650}
    assert second["text"] == "two\nlines"


def test_what_holds_for_a_process_stands_in_all_its_lines() -> None:
    stream = io.StringIO()
    log.configure("json", "info", stream, {"worker": 3})
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
def test_auto_is_for_people_on_a_terminal_alone(
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
def test_a_log_that_cannot_be_written_stops_nobody(make: type[io.StringIO]) -> None:
    stream = make()
    out, _ = logger(stream=stream)
    stream.close()
    out.info("hello")


# -- repeats ---------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def passed(repeats: log.Repeats, method: str = "warning", **event: object) -> EventDict | None:
    try:
        return repeats(None, method, {"level": method, **event})
    except structlog.DropEvent:
        return None


def test_identical_warnings_are_folded_and_counted(clock: Clock) -> None:
    repeats = log.Repeats(interval=10, clock=clock)
    assert passed(repeats, event="e") == {"level": "warning", "event": "e"}
    clock.now += 9.9
    assert [passed(repeats, event="e") for _ in range(3)] == [None] * 3
    clock.now += 0.1
    assert passed(repeats, event="e") == {"level": "warning", "event": "e", "repeated": 3}
    clock.now += 10
    assert passed(repeats, event="e") == {"level": "warning", "event": "e"}


def test_warnings_that_differ_pass(clock: Clock) -> None:
    repeats = log.Repeats(clock=clock)
    assert passed(repeats, event="e", reason="a")
    assert passed(repeats, event="e", reason="b")
    assert passed(repeats, event="f", reason="a")
    assert passed(repeats, "error", event="e", reason="a")


def test_whose_connection_it_was_makes_no_difference(clock: Clock) -> None:
    repeats = log.Repeats(clock=clock)
    assert passed(repeats, event="e", connection=1, client="a")
    assert not passed(repeats, event="e", connection=2, client="b")


def test_information_is_never_folded(clock: Clock) -> None:
    repeats = log.Repeats(clock=clock)
    assert all(passed(repeats, "info", event="e") for _ in range(3))


def test_warnings_without_end_are_forgotten_the_oldest_first(clock: Clock) -> None:
    repeats = log.Repeats(clock=clock)
    for number in range(5000):
        assert passed(repeats, event="e", number=number)
    assert len(repeats._seen) == 512
    assert not passed(repeats, event="e", number=4999)
    assert passed(repeats, event="e", number=0)


def test_folding_is_part_of_the_set_up() -> None:
    out, stream = logger()
    for _ in range(3):
        out.warning("again", listener="clients")
    assert stream.getvalue().count("again") == 1
