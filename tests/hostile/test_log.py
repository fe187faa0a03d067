"""The log when its reader has stopped, or when clients cause more lines than anybody reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .peers import Broker, Client
from .process import Gateway, until

FLOOD = 1000
"""Connections. With a line for each, the log is more than three times as large as a pipe."""

UNFOLDED = {"burst": 1_000_000}


class Pipe:
    """The pipe for a gateway's log, which is read only on request."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def rest(self) -> list[dict[str, Any]]:
        """Return all remaining lines, once the gateway has ended."""
        os.close(self.writing)
        with os.fdopen(os.dup(self.reading)) as stream:
            *lines, _cut = stream.read().split("\n")
        return [json.loads(line) for line in lines]

    def take(self) -> bytes:
        """Read some of the log."""
        return os.read(self.reading, 1 << 20)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.reading)


def flooded(gateway: Gateway, number: int = FLOOD) -> None:
    """Make this many short connections, and return when all have ended."""
    for _ in range(number):
        Client(gateway.ports["passing"]).close()
    assert until(lambda: gateway.metrics().ended("passing").total() >= number)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("log", [{}, UNFOLDED | {"queue": "64KiB"}], ids=["folded", "dropped"])
def test_a_log_that_nobody_reads_delays_no_client(
    broker: Broker, tmp_path: Path, pipe: Pipe, workers: int, log: dict[str, Any]
) -> None:
    more = {"workers": workers, "log": log}
    gateway = Gateway([broker], tmp_path, {}, more=more, stderr=pipe.writing)
    try:
        flooded(gateway)
        gateway.serves()
        assert gateway.get("/readyz") == "ready\n"
    finally:
        gateway.stop()
    lines = pipe.rest()
    assert "listening" in {line["event"] for line in lines}


def test_lines_that_nobody_read_in_time_are_counted(
    broker: Broker, tmp_path: Path, pipe: Pipe
) -> None:
    log = UNFOLDED | {"queue": "64KiB"}
    gateway = Gateway([broker], tmp_path, {}, more={"log": log}, stderr=pipe.writing)
    try:
        flooded(gateway)
        (dropped,) = gateway.metrics().matching("gateway_log_lines_dropped_total")
        assert dropped > FLOOD / 10
        taken = b""
        while b"lines_dropped" not in taken:
            taken += pipe.take()
    finally:
        gateway.stop()
    lines = [json.loads(line) for line in taken.splitlines() if line.endswith(b"}")]
    told = [line["lines"] for line in lines if line["event"] == "lines_dropped"]
    assert sum(told) == dropped
    ends = [line for line in (*lines, *pipe.rest()) if line.get("reason") == "client_closed"]
    assert len(ends) + dropped == pytest.approx(FLOOD, abs=20)


def test_log_lines_of_a_flood_of_connections_are_folded(broker: Broker, tmp_path: Path) -> None:
    gateway = Gateway([broker], tmp_path, {}, more={"log": {"burst": 100}})
    try:
        flooded(gateway)
        lines = gateway.logged("connection_ended")
        assert len(lines) < FLOOD / 2
    finally:
        gateway.stop()
