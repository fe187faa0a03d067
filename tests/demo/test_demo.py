"""`gateway demo` as users run it: a process with output, exit status and signals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.lab.demo.plan import FLOWS, MOVABLE, short_name
from gateway.lab.demo.ports import HOST, VARIABLE, Ports

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 40.0
"""Seconds after which an expected event has failed."""


class Ended(NamedTuple):
    status: int
    out: str
    err: str

    def counts(self) -> dict[str, list[str]]:
        """Return the numbers of the last table by topic, with the verdict last."""
        rows = [line.split() for line in self.out.splitlines()]
        topics = {short_name(flow.topic) for flow in FLOWS}
        return {row[0]: row[1:] for row in rows if row and row[0] in topics}


class Demo:
    """A running demonstration on its own ports. Its output goes to files, so that no reader is
    needed.
    """

    def __init__(self, folder: Path, *arguments: str, ports: Ports | None = None) -> None:
        self.ports = ports or Ports(*_free_ports())
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
        return Ended(status, self.out, self._files[1].read_text())

    def has_traffic(self) -> bool:
        """Return whether messages of all topics passed."""
        with suppress(OSError):
            port = self.ports.admin
            paths = "metrics", "metrics/topics"
            text = "".join(self.request("GET", port, path) for path in paths)
            out = re.findall(
                r'gateway_topic_messages_total\{.*topic="(\S+?)".*to_client".* [1-9]', text
            )
            return {short_name(flow.topic) for flow in FLOWS} <= {_whole(topic) for topic in out}
        return False

    def request(self, method: str, port: int, path: str) -> str:
        request = urllib.request.Request(f"http://{HOST}:{port}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
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


def _free_ports() -> list[int]:
    listeners = [socket.create_server((HOST, 0)) for _ in Ports._fields]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _until(reached: Callable[[], bool], demo: Demo) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while not reached():
        assert demo.process.poll() is None, demo.ended()
        assert time.monotonic() < deadline, demo.out
        time.sleep(0.05)


@contextmanager
def _demo(folder: Path, *arguments: str) -> Iterator[Demo]:
    demo = Demo(folder, *arguments)
    try:
        yield demo
    finally:
        # SIGTERM also stops its children; a kill would leave them.
        demo.process.terminate()
        demo.process.wait(STOP_SECONDS)


def _assert_all_equal(ended: Ended) -> None:
    """Each topic's clients and the gateway counted the same, in and out."""
    counts = ended.counts()
    assert counts.keys() == {short_name(flow.topic) for flow in FLOWS}
    for sent, receipts, received, doubled, lost, came, went, verdict in counts.values():
        assert sent == receipts == received == came == went
        assert (doubled, lost, verdict) == ("0", "0", "equal")
        assert sent != "0"


def test_clients_and_gateway_count_the_same(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    with _demo(tmp_path, "--seconds", "3", "--picture", str(picture)) as demo:
        ended = demo.ended()
    assert (ended.status, ended.err) == (0, "")
    _assert_all_equal(ended)
    assert "messages made the round trip" in ended.out
    assert ended.out.count("Try next") == 1, "the last table is shown, without waiting for a fifth"
    assert "\x1b" not in ended.out
    assert "orders/placed" in picture.read_text()


def test_a_signal_ends_in_order_and_a_moved_topic_loses_nothing(tmp_path: Path) -> None:
    with _demo(tmp_path) as demo:
        _until(demo.has_traffic, demo)
        before = _owner(demo)
        path = f"move?topic={short_name(MOVABLE)}&assigned=true"
        demo.request("POST", demo.ports.control, path)
        assert _owner(demo) != before
        demo.process.send_signal(signal.SIGINT)
        ended = demo.ended()
    assert (ended.status, ended.err) == (0, "")
    assert ended.counts()[short_name(MOVABLE)][4] == "0", "none lost"
    assert "None was lost." in ended.out


def _owner(demo: Demo) -> str:
    topics = json.loads(demo.request("GET", demo.ports.control, "topics"))
    owner: str = topics[MOVABLE]["owner"]
    return owner


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "name"), [("run", "the gateway"), ("gateway.lab.demo.load", "the client process")]
)
def test_a_dead_child_is_reported_and_the_other_is_stopped(
    tmp_path: Path, word: str, name: str
) -> None:
    with _demo(tmp_path) as demo:
        _until(demo.has_traffic, demo)
        children = [demo.child("run"), demo.child("gateway.lab.demo.load")]
        os.kill(demo.child(word), signal.SIGKILL)
        ended = demo.ended()
    assert ended.status == 1
    assert ended.err.startswith(f"{name} ended by itself with status -9; its last lines:\n")
    assert "Traceback" not in ended.err
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


@pytest.mark.long
def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with _demo(tmp_path) as demo:
        _until(demo.has_traffic, demo)
        os.kill(demo.child("gateway.lab.demo.load"), signal.SIGSTOP)  # the load cannot finish
        demo.process.send_signal(signal.SIGINT)
        _until(lambda: "the clients finish" in demo.out, demo)
        demo.process.send_signal(signal.SIGTERM)
        ended = demo.ended()
    assert (ended.status, ended.err) == (1, "")
    assert ended.out.endswith("ended at once, by a second signal; no counts were compared\n")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_ctrl_c_under_make_ends_make_with_0(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to make too, which would end with an error."""
    ports = ",".join(map(str, _free_ports()))
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"run:\n\t@{VARIABLE}={ports} {sys.executable} -m gateway demo\n")
    with _terminal() as (screen, terminal):
        make = subprocess.Popen(
            ["make", "-f", str(makefile)],
            cwd=ROOT,
            env=os.environ | {"TERM": "xterm"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            # The only way to give a child a terminal; this process has no other thread.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        shown = _read_until(screen, b"Try next")
        os.write(screen, b"\x03")
        shown += _read_until(screen, b"None was lost.")
        assert make.wait(STOP_SECONDS) == 0
    assert b"\x1b[" in shown, "a terminal has colours, and a table that lives"


@contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    """Yield the screen's side and the program's side of a terminal."""
    screen, terminal = pty.openpty()
    try:
        yield screen, terminal
    finally:
        os.close(screen)
        os.close(terminal)


def _read_until(screen: int, wanted: bytes) -> bytes:
    deadline = time.monotonic() + STOP_SECONDS
    shown = b""
    while wanted not in shown:
        assert time.monotonic() < deadline, shown.decode()
        if select.select([screen], [], [], 0.1)[0]:
            shown += os.read(screen, 65536)
    return shown


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        ports = Ports(*_free_ports())._replace(control=taken.getsockname()[1])
        ended = Demo(tmp_path, ports=ports).ended()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"cannot listen on {HOST}:{ports.control}: address already in use")
    assert ended.err.count("\n") == 1


def test_unreachable_brokers_are_reported_in_one_line(tmp_path: Path) -> None:
    ended = Demo(tmp_path, "--brokers", f"pulsar://{HOST}:{_free_ports()[0]}").ended()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("cannot connect to any broker")
    assert ended.err.count("\n") == 1
