"""The shipper's process, as its gateway sees it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.system.interpreter import command
from gateway.usage.shipment import REPORTS, Away, Brief, Finish, Shown, Waiting, line_of
from gateway.usage.shipping import SHIPPER
from tests.support.boxes import close, usage

pytestmark = pytest.mark.tier("test")

PATIENCE = 60.0

Process = subprocess.Popen[bytes]


@pytest.fixture
def shipper() -> Iterator[Process]:
    process = subprocess.Popen(command(SHIPPER), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield process
        process.kill()


def brief(folder: Path, url: str = "pulsar://127.0.0.1:1") -> Brief:
    return Brief(str(folder), "edge", {"usage": "persistent://ops/usage/records"}, url)


def tell(process: Process, *messages: Brief | Shown | Finish) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(map(line_of, messages)))
    process.stdin.flush()


def told(process: Process) -> object:
    assert process.stdout is not None
    return REPORTS.decode(process.stdout.readline())


def end_input(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


def test_it_ends_when_its_gateway_says_so(shipper: Process, tmp_path: Path) -> None:
    tell(shipper, brief(tmp_path), Shown.of("none", b""))
    assert told(shipper) == Waiting({"usage": 0})
    tell(shipper, Finish())
    assert shipper.wait(PATIENCE) == 0


def test_it_ends_with_its_gateway_though_brokers_keep_it_waiting(
    shipper: Process, tmp_path: Path
) -> None:
    close(tmp_path, [usage(1)])
    tell(shipper, brief(tmp_path), Shown.of("none", b""))
    assert told(shipper) == Waiting({"usage": 1})
    end_input(shipper)
    assert shipper.wait(PATIENCE) == 0


def test_it_ends_with_a_gateway_that_said_nothing(shipper: Process) -> None:
    end_input(shipper)
    assert shipper.wait(PATIENCE) == 0


def test_only_its_gateway_ends_it(shipper: Process, tmp_path: Path) -> None:
    tell(shipper, brief(tmp_path), Shown.of("none", b""))
    assert told(shipper) == Waiting({"usage": 0})
    shipper.send_signal(signal.SIGTERM)
    close(tmp_path, [usage(1)])
    assert told(shipper) == Waiting({"usage": 1})


def test_a_topic_that_is_away_is_told_with_the_reason(shipper: Process, tmp_path: Path) -> None:
    close(tmp_path, [usage(1)])
    tell(shipper, brief(tmp_path), Shown.of("none", b""))
    assert told(shipper) == Waiting({"usage": 1})
    away = told(shipper)
    assert isinstance(away, Away)
    assert "Connection refused" in away.reason


def test_a_second_one_waits_for_the_first(shipper: Process, tmp_path: Path) -> None:
    lock = os.open(tmp_path / ".edge.shipper", os.O_WRONLY | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    tell(shipper, brief(tmp_path), Shown.of("none", b""))
    assert told(shipper) == Away("another process sends these files")
    os.close(lock)
    assert told(shipper) == Waiting({"usage": 0})
