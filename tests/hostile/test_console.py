"""Strangers at the console's port, which have no token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.real.brokers.ports import free_ports

from .peers import HOST, PATIENCE, Broker
from .process import Gateway

TOKEN = "the-token-of-an-operator"
UNAUTHENTICATED = 20
PLACES = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SETTINGS = b"\0\0\6\4\0\0\0\0\0" + b"\0\x03\0\0\0\x64"


class Watched(Gateway):
    """A gateway with a console that needs a token."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        (self.console,) = free_ports(HOST, 1)
        self._token = folder / "token"
        self._token.write_text(TOKEN)
        super().__init__([broker], folder, {"idle": "1h"})

    def _settings(self, brokers: Any, *more: Any) -> dict[str, Any]:
        settings = super()._settings(brokers, *more)
        settings["limits"]["unauthenticated"] = UNAUTHENTICATED
        settings["console"] = {
            "bind": f"{HOST}:{self.console}",
            "token_file": str(self._token),
            "connections": PLACES,
        }
        return settings

    def stranger(self) -> socket.socket:
        """Return a new connection to the console."""
        return socket.create_connection((HOST, self.console), PATIENCE)

    def operates(self) -> bytes:
        """Return the first line of the response to an operator."""
        head = f"GET /api/v1/status HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n"
        with self.stranger() as operator:
            operator.sendall(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            return operator.makefile("rb").readline()


@pytest.fixture
def watched(broker: Broker, tmp_path: Path) -> Iterator[Watched]:
    gateway = Watched(broker, tmp_path)
    yield gateway
    gateway.stop()


def test_strangers_that_ask_for_the_page_do_not_keep_operators_out(watched: Watched) -> None:
    with ExitStack() as opened:
        strangers = [opened.enter_context(watched.stranger()) for _ in range(64)]
        for _ in range(3):
            for stranger in strangers:
                with suppress(OSError):  # it has given way to another
                    stranger.sendall(f"GET /page.js HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            assert watched.operates().startswith(b"HTTP/1.1 200")
            watched.serves()


def test_a_stranger_that_speaks_http_2_is_sent_away(watched: Watched) -> None:
    with watched.stranger() as stranger:
        stranger.sendall(PREFACE)
        assert stranger.makefile("rb").readline().startswith(b"HTTP/1.1 505")
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_for_ever(stranger, SETTINGS * 4000)
    watched.serves()


def send_for_ever(sock: socket.socket, data: bytes) -> NoReturn:
    while True:
        sock.sendall(data)


@pytest.mark.parametrize("port", ["console", "admin"])
def test_requests_sent_at_once_and_large_heads_delay_nobody_for_ever(
    watched: Watched, port: str
) -> None:
    many = f"GET /nothing HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() * 2000
    large = f"GET / HTTP/1.1\r\nHost: {HOST}\r\n".encode() + b"x: y\r\n" * 1400 + b"\r\n"
    with ExitStack() as opened:
        for said in (many, large) * 4:
            address = HOST, getattr(watched, port)
            stranger = opened.enter_context(socket.create_connection(address, PATIENCE))
            stranger.setblocking(False)
            with suppress(OSError):
                stranger.send(said)
        watched.serves()
        assert watched.operates().startswith(b"HTTP/1.1 200")
        assert watched.get("/livez") == "alive\n"
