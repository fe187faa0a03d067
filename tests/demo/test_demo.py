"""`gateway demo` as users run it: a process with output, exit status and signals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.lab.demo.plan import MOVABLE, short_name
from gateway.lab.demo.ports import HOST, VARIABLE

from .running import ROOT, STOP_SECONDS, Demo, any_ports, assert_all_equal, running, until


def test_clients_and_gateway_count_the_same(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    with running(tmp_path, "--seconds", "3", "--picture", str(picture)) as demo:
        ended = demo.ended()
    assert (ended.status, ended.err) == (0, "")
    assert_all_equal(ended)
    assert "messages made the round trip" in ended.out
    assert ended.out.count("Try next") == 1, "the last table is shown, without waiting for a fifth"
    assert "\x1b" not in ended.out
    assert "orders/placed" in picture.read_text()


def test_a_signal_ends_in_order_and_a_moved_topic_loses_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as demo:
        until(demo.has_traffic, demo)
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


@pytest.mark.parametrize(
    ("word", "name"), [("run", "the gateway"), ("gateway.lab.demo.load", "the client process")]
)
def test_a_dead_child_is_reported_and_the_other_is_stopped(
    tmp_path: Path, word: str, name: str
) -> None:
    with running(tmp_path) as demo:
        until(demo.has_traffic, demo)
        children = [demo.child("run"), demo.child("gateway.lab.demo.load")]
        os.kill(demo.child(word), signal.SIGKILL)
        ended = demo.ended()
    assert ended.status == 1
    assert ended.err.startswith(f"{name} ended by itself with status -9; its last lines:\n")
    assert "Traceback" not in ended.err
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as demo:
        until(demo.has_traffic, demo)
        os.kill(demo.child("gateway.lab.demo.load"), signal.SIGSTOP)  # the load cannot finish
        demo.process.send_signal(signal.SIGINT)
        until(lambda: "the clients finish" in demo.out, demo)
        demo.process.send_signal(signal.SIGTERM)
        ended = demo.ended()
    assert (ended.status, ended.err) == (1, "")
    assert ended.out.endswith("ended at once, by a second signal; no counts were compared\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_ctrl_c_under_make_ends_make_with_0(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to make too, which would end with an error."""
    ports = ",".join(map(str, any_ports()))
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
        ports = any_ports()._replace(control=taken.getsockname()[1])
        ended = Demo(tmp_path, ports=ports).ended()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"cannot listen on {HOST}:{ports.control}: address already in use")
    assert ended.err.count("\n") == 1


def test_unreachable_brokers_are_reported_in_one_line(tmp_path: Path) -> None:
    ended = Demo(tmp_path, "--brokers", f"pulsar://{HOST}:{any_ports().clients}").ended()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("cannot connect to any broker")
    assert ended.err.count("\n") == 1
