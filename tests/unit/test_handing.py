"""A gateway takes its settings over from a child that has checked them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest

from gateway import handing
from gateway.config import face
from gateway.errors import ConfigurationError

pytestmark = pytest.mark.tier("test")

GOOD = """\
version: 1
listeners: [{name: a, bind: "127.0.0.1:1", cluster: main}]
clusters: {main: {brokers: "pulsar://127.0.0.1:2"}}
"""

HANDED = """\
import sys
from pathlib import Path
from gateway.handing import handed
from gateway.errors import ConfigurationError
try:
    print(handed(Path(sys.argv[1])).clusters["main"].brokers[0].port, "pydantic" in sys.modules)
except ConfigurationError as error:
    print(error)
"""


def handed(path: Path) -> str:
    """Return what another process says of a file that is handed to it."""
    command = [sys.executable, "-c", HANDED, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.yaml"


def test_settings_are_plain_in_the_process_that_serves(file: Path) -> None:
    file.write_text(GOOD)
    assert handed(file) == "2 False\n"


OF_MODELS = (
    "workers: 1\n",
    "rules: []\n",
    "metrics: {topics: 100} # and rules\n",
    '"work\\x65rs": 1\n',
    "# a comment that ends here\u2028workers: 1\n",
)


@pytest.mark.parametrize("more", OF_MODELS)
def test_settings_are_models_where_there_may_be_rules_or_workers(file: Path, more: str) -> None:
    file.write_text(GOOD + more)
    assert handed(file) == "2 True\n"


def test_a_comment_may_speak_of_rules(file: Path) -> None:
    file.write_text(GOOD + "  # rules: rules\n# workers: 4\n")
    assert handed(file) == "2 False\n"


def test_a_pipe_is_read_once(file: Path) -> None:
    os.mkfifo(file)
    with subprocess.Popen(
        [sys.executable, "-c", HANDED, str(file)], stdout=subprocess.PIPE, text=True
    ) as reading:
        file.write_text(GOOD)
        assert reading.communicate(timeout=60)[0] == "2 False\n"


def test_mistakes_are_said_as_by_the_process_itself(file: Path) -> None:
    file.write_text(GOOD.replace("version: 1", "version: 2\nportt: 1"))
    with pytest.raises(ConfigurationError) as mistakes:
        handing.load_here(file)
    assert handed(file) == f"{mistakes.value}\n"
    assert f"{file}:1: version: " in str(mistakes.value)


def test_a_file_that_is_missing_is_said(file: Path) -> None:
    assert handed(file).startswith(f"{file}: cannot be read: no such file")


def fails(*_: object) -> NoReturn:
    raise ZeroDivisionError


def is_killed(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("end", [fails, is_killed])
def test_a_child_that_fails_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[..., None]
) -> None:
    file.write_text(GOOD)
    monkeypatch.setattr(handing, "load_here", end)
    monkeypatch.setattr(face, "checks", True)
    with pytest.raises(ConfigurationError, match="cannot be checked"):
        handing.handed(file)


def test_a_child_that_fails_says_why(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    test_a_child_that_fails_is_said(file, monkeypatch, fails)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_process_without_children_reads_the_file_itself(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(GOOD)
    made, make = list[int](), os.pipe

    def recorded() -> tuple[int, int]:
        made.extend(ends := make())
        return ends

    monkeypatch.setattr(os, "pipe", recorded)
    monkeypatch.setattr(os, "fork", Mock(side_effect=BlockingIOError))
    close = Mock(side_effect=os.close)
    monkeypatch.setattr(os, "close", close)
    assert handing.handed(file).listeners[0].name == "a"
    assert len(made) == 2
    assert set(made) <= {call.args[0] for call in close.call_args_list}
