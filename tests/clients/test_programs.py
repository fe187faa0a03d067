"""Running a client program, with stand-ins for one."""

import sys
from pathlib import Path

import pytest

from tests.real.brokers.jars import MissingToolError

from .builders import BUILDERS
from .programs import Program, Received, Sent

SAYS = """
import sys
print('{"ready": true}', flush=True)
print({!r})
print("about the verb", sys.argv[2], file=sys.stderr)
sys.exit({})
"""
SENT = '{"acknowledged": [[0, 2], [5, 5]], "errors": ["late"], "longest_send_ms": 1.5}'
RECEIVED = (
    '{"received": [[3, 4]], "redelivered": 1, "stored_twice": 0, "out_of_order": 2, "errors": []}'
)


def saying(report: str, status: int = 0) -> Program:
    script = SAYS.replace("{!r}", repr(report)).replace("{}", str(status))
    return Program("stand-in", (sys.executable, "-c", script))


def test_sent_messages_are_reported_by_number(tmp_path: Path) -> None:
    with saying(SENT).producing("pulsar://nobody", "t", 6, tmp_path / "log") as running:
        assert running.sent() == Sent(frozenset({0, 1, 2, 5}), ("late",), 1.5)


def test_received_messages_are_reported_by_number(tmp_path: Path) -> None:
    with saying(RECEIVED).consuming("pulsar://nobody", "t", "s", 2, tmp_path / "log") as running:
        assert running.received() == Received(frozenset({3, 4}), 1, 0, 2, ())


def test_the_log_of_a_failed_client_is_shown(tmp_path: Path) -> None:
    with (
        saying(SENT, 3).producing("pulsar://nobody", "t", 6, tmp_path / "log") as running,
        pytest.raises(AssertionError, match="ended with 3:\nabout the verb produce"),
    ):
        running.sent()


def test_the_log_of_a_silent_client_is_shown(tmp_path: Path) -> None:
    program = Program("mute", (sys.executable, "-c", "raise SystemExit('no such broker')"))
    with (
        program.producing("pulsar://nobody", "t", 6, tmp_path / "log") as running,
        pytest.raises(AssertionError, match="printed nothing:\nno such broker"),
    ):
        running.await_ready()


@pytest.mark.parametrize(("name", "tool"), [("go", "go"), ("java", "java")])
def test_without_its_tools_a_client_is_not_built(
    name: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=f"{tool} is not installed"):
        BUILDERS[name](print)
