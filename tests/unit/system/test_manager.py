"""What a service manager passes to the gateway, and what it is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
import trio.testing

from gateway.errors import ConfigurationError
from gateway.system.manager import Manager

ME = "77"


class Told:
    """The socket of a manager."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(self.address)

    def take(self) -> list[str]:
        """Return the messages since the last look."""
        found = []
        while True:
            try:
                found.append(self.socket.recv(1000).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path / "notify")
    with made.socket:
        yield made


@pytest.fixture
def sockets() -> Iterator[list[int]]:
    """Yield the descriptors of two TCP sockets that listen, which follow each other."""
    with ExitStack() as stack:
        first = 200  # far from those that others open
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        for number, sock in enumerate(made, first):
            os.dup2(sock.fileno(), number)
        yield [first, first + 1]
        for number in (first, first + 1):
            try:
                os.close(number)
            except OSError:
                continue  # the test has closed it


def manager(**environment: str) -> Manager:
    return Manager.of(environment, int(ME))


# -- messages ----------------------------------------------------------------------------------


def test_it_is_told_of_the_start_and_of_the_stop(told: Told) -> None:
    it = manager(NOTIFY_SOCKET=told.address)
    it.ready()
    it.stopping(25.0)
    assert told.take() == ["READY=1", "STOPPING=1\nEXTEND_TIMEOUT_USEC=25000000"]
    assert not it.is_watching


async def test_it_hears_twice_in_each_period_that_the_loop_turns(
    told: Told, autojump_clock: trio.testing.MockClock
) -> None:
    it = manager(NOTIFY_SOCKET=told.address, WATCHDOG_USEC="20000000", WATCHDOG_PID=ME)
    assert it.is_watching
    with trio.move_on_after(59):
        await it.keep_alive()
    assert told.take() == ["WATCHDOG=1"] * 6


def test_without_a_manager_nothing_is_told() -> None:
    it = manager()
    it.ready()
    it.stopping(1.0)
    assert not it.is_watching


def test_a_manager_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    manager(NOTIFY_SOCKET=str(tmp_path / "gone")).ready()


def test_an_abstract_socket_has_a_zero_before_its_name() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        name = f"gateway-test-{os.getpid()}"
        sock.bind(f"\0{name}")
        sock.settimeout(5)
        manager(NOTIFY_SOCKET=f"@{name}").ready()
        assert sock.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    "environment",
    [
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-1"},
    ],
)
def test_the_watchdog_of_another_process_or_of_nobody_is_none(environment: dict[str, str]) -> None:
    assert not manager(NOTIFY_SOCKET="/nowhere", **environment).is_watching


# -- sockets -----------------------------------------------------------------------------------


def test_listeners_get_the_sockets_of_their_names(sockets: list[int]) -> None:
    it = manager(LISTEN_PID=ME, LISTEN_FDS="2", LISTEN_FDNAMES="clients:clients")
    (found,) = it.sockets(["edge", "clients"], first=sockets[0]).items()
    name, made = found
    with made[0], made[1]:
        assert name == "clients"
        assert [sock.fileno() for sock in made] == sockets
        assert not any(os.get_inheritable(number) for number in sockets)
        with socket.create_connection(made[0].getsockname(), timeout=5), made[0].accept()[0]:
            pass


def test_sockets_for_another_process_are_not_taken() -> None:
    assert manager(LISTEN_PID="1", LISTEN_FDS="2").sockets(["clients"]) == {}


@pytest.mark.parametrize("names", ["gateway.socket", "unknown", ""])
def test_a_socket_without_a_listener_is_a_mistake(names: str) -> None:
    it = manager(LISTEN_PID=ME, LISTEN_FDS="1", LISTEN_FDNAMES=names)
    with pytest.raises(ConfigurationError, match="FileDescriptorName= of its unit is one of: edge"):
        it.sockets(["edge"])


def test_a_socket_that_does_not_listen_is_a_mistake(tmp_path: Path) -> None:
    it = manager(LISTEN_PID=ME, LISTEN_FDS="1", LISTEN_FDNAMES="edge")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / "unix"))
    unix.listen()
    with (
        unix,
        socket.socket() as idle,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        (tmp_path / "file").open("w") as file,
    ):
        for number in (it.fileno() for it in (unix, idle, udp, file)):
            with pytest.raises(ConfigurationError, match="does not listen on TCP"):
                it.sockets(["edge"], first=number)
