"""Fetching the brokers' jars, with a stand-in for Maven."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from .brokers.jars import MARKER, FetchError, MissingToolError, pulsar_jars

Tool = Callable[[str, str], None]

# Records each call beside itself, and writes a jar where Maven would.
DELIVERS = """
echo called >> "$0.calls"
sleep 0.2
for a in "$@"; do
    case $a in -DoutputDirectory=*) touch "${a#*=}/a.jar";; esac
done
"""
FAILS = "seq 100; echo Unknown host; exit 1"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Return a function that creates commands; PATH has only these and the few that they use."""
    path = tmp_path / "bin"
    path.mkdir()
    for needed in ("sleep", "touch", "seq"):
        (path / needed).symlink_to(
            next(p for d in os.defpath.split(":") if (p := Path(d) / needed).exists())
        )
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("GATEWAY_TEST_CACHE", str(tmp_path / "cache"))

    def make(name: str, script: str) -> None:
        (path / name).write_text(f"#!/bin/sh\n{script}\n")
        (path / name).chmod(0o755)

    return make


def quiet(_text: str) -> None:
    pass


def test_without_java_there_are_no_brokers(tools: Tool) -> None:
    tools("mvn", DELIVERS)
    with pytest.raises(MissingToolError, match="java"):
        pulsar_jars(quiet)


def test_without_maven_nothing_can_be_fetched(tools: Tool) -> None:
    tools("java", "")
    with pytest.raises(MissingToolError, match="mvn"):
        pulsar_jars(quiet)


def test_jars_are_fetched_once_with_a_message(tools: Tool, tmp_path: Path) -> None:
    tools("java", "")
    tools("mvn", DELIVERS)
    said: list[str] = []
    places = [pulsar_jars(said.append) for _ in range(2)]
    assert places[0] == places[1]
    assert sorted(file.name for file in places[0].iterdir()) == [
        MARKER,
        "a.jar",
    ]
    assert (tmp_path / "bin" / "mvn.calls").read_text() == "called\n"
    assert len(said) == 1
    assert "once" in said[0]


def test_runs_that_start_together_fetch_once(tools: Tool, tmp_path: Path) -> None:
    tools("java", "")
    tools("mvn", DELIVERS)
    threads = [threading.Thread(target=pulsar_jars, args=[quiet]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (tmp_path / "bin" / "mvn.calls").read_text() == "called\n"


def test_a_failure_shows_the_end_of_maven_s_output_and_leaves_nothing(
    tools: Tool, tmp_path: Path
) -> None:
    tools("java", "")
    tools("mvn", FAILS)
    with pytest.raises(FetchError, match="Unknown host") as failure:
        pulsar_jars(quiet)
    assert "\n99\n" in str(failure.value)
    assert "\n9\n" not in str(failure.value)
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lock"]
    tools("mvn", DELIVERS)
    assert (pulsar_jars(quiet) / "a.jar").exists()
