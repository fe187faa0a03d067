"""The command: its options, its first line, and its errors."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.errors import ConfigurationError
from gateway.lab.kafka.command import MOST_USERS_BYTES, read_users

KAFKA = ("sandbox", "--protocol", "kafka")
ANYWHERE = "127.0.0.1:0"


def failure(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return the text of a failing start."""
    assert main(options) == 2
    return capsys.readouterr().err


@pytest.mark.tier("test")
def test_the_first_line_names_all_brokers_and_a_signal_ends_it() -> None:
    command = [sys.executable, "-m", "gateway", *KAFKA, "--brokers", f"{ANYWHERE},{ANYWHERE}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    said, url = line.rstrip("\n").rsplit(" ", 1)
    assert said == "sandbox ready"
    first, second = url.removeprefix("kafka://").split(",")
    assert first != second
    assert {it.rpartition(":")[0] for it in (first, second)} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*KAFKA, "--control", ANYWHERE], "--control goes with --protocol pulsar"),
        ([*KAFKA, "--token-secret", "file"], "--token-secret goes with --protocol pulsar"),
        ([*KAFKA, "--proxy-role", "role"], "--proxy-role goes with --protocol pulsar"),
        (["sandbox", "--users", "file"], "--users goes with --protocol kafka"),
        (["sandbox", "--unsecured-tokens"], "--unsecured-tokens goes with --protocol kafka"),
        ([*KAFKA, "--brokers", ""], "--brokers: has no host"),
        ([*KAFKA, "--brokers", "127.0.0.1:99999"], "Write for example 127.0.0.1:19092"),
        ([*KAFKA, "--users", "none.txt"], "cannot read none.txt"),
    ],
)
def test_mistakes_are_told(
    capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert said in failure(capsys, *options)


def test_users_are_read_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# people\namy:secret\n\nbob:with:colon\n")
    assert read_users(path) == {"amy": "secret", "bob": "with:colon"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amy:s3\nbob\n", "line 2, is not name:password"),
        (":s3\n", "line 1, is not name:password"),
        ("s3:\n", "line 1, is not name:password"),
        ("amy:s3\namy:s3\n", "line 2, has a name that is there before"),
        ("# nobody\n", "names nobody"),
        ("s3" * MOST_USERS_BYTES, "more than"),
    ],
)
def test_users_that_cannot_be_are_told_without_their_passwords(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "users"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as mistake:
        read_users(path)
    assert said in str(mistake.value)
    assert "s3" not in str(mistake.value).replace(str(path), "")
