"""The demonstration as a process with ports of its own, and what it printed at its end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gateway.lab.demo.plan import FLOWS, Flow, short_name
from gateway.lab.demo.ports import HOST, KAFKA_BROKERS, VARIABLE, Ports
from tests.real.brokers.ports import free_ports, free_range

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 40.0
"""Seconds after which an expected event has failed."""


class Ended(NamedTuple):
    status: int
    out: str
    err: str
    flows: Sequence[Flow]

    def counts(self) -> dict[str, list[str]]:
        """Return the numbers of the last table by topic, with the verdict last."""
        rows = [line.split() for line in self.out.splitlines()]
        topics = {short_name(flow.topic) for flow in self.flows}
        return {row[0]: row[1:] for row in rows if row and row[0] in topics}


class Demo:
    """A running demonstration on its own ports. Its output goes to files, so that no reader is
    needed.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        ports: Ports | None = None,
        flows: Sequence[Flow] = FLOWS,
    ) -> None:
        self.ports = ports or any_ports()
        self.flows = flows
        self._files = folder / "out", folder / "err"
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "demo", *arguments],
                cwd=ROOT,
                env=os.environ | {VARIABLE: ",".join(map(str, self.ports))},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def out(self) -> str:
        return self._files[0].read_text()

    def ended(self) -> Ended:
        status = self.process.wait(STOP_SECONDS)
        return Ended(status, self.out, self._files[1].read_text(), self.flows)

    def has_traffic(self) -> bool:
        """Return whether messages of all topics passed."""
        with suppress(OSError):
            port = self.ports.admin
            paths = "metrics", "metrics/topics"
            text = "".join(self.request("GET", port, path) for path in paths)
            out = re.findall(
                r'gateway_topic_messages_total\{.*topic="(\S+?)".*to_client".* [1-9]', text
            )
            return {short_name(flow.topic) for flow in self.flows} <= {
                _whole(topic) for topic in out
            }
        return False

    def request(self, method: str, port: int, path: str) -> str:
        request = urllib.request.Request(f"http://{HOST}:{port}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def child(self, word: str) -> int:
        """Return its child process with this word in the command line."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        for pid in " ".join(thread.read_text() for thread in threads).split():
            if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                return int(pid)
        raise AssertionError(f"no child {word}")


def _whole(topic: str) -> str:
    return re.sub(r"-partition-\d+$", "", short_name(topic))


def any_ports() -> Ports:
    """Return free ports, with free ones behind that of clients, which are for Kafka's brokers."""
    return Ports(free_range(1 + KAFKA_BROKERS), *free_ports(HOST, 3))


def until(reached: Callable[[], bool], demo: Demo) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while not reached():
        assert demo.process.poll() is None, demo.ended()
        assert time.monotonic() < deadline, demo.out
        time.sleep(0.05)


@contextmanager
def running(folder: Path, *arguments: str, flows: Sequence[Flow] = FLOWS) -> Iterator[Demo]:
    demo = Demo(folder, *arguments, flows=flows)
    try:
        yield demo
    finally:
        # SIGTERM also stops its children; a kill would leave them.
        demo.process.terminate()
        demo.process.wait(STOP_SECONDS)


def assert_all_equal(ended: Ended) -> None:
    """Each topic's clients and the gateway counted the same, in and out."""
    counts = ended.counts()
    assert counts.keys() == {short_name(flow.topic) for flow in ended.flows}
    for sent, receipts, received, doubled, lost, came, went, verdict in counts.values():
        assert sent == receipts == received == came == went
        assert (doubled, lost, verdict) == ("0", "0", "equal")
        assert sent != "0"
