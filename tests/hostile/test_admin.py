"""The admin listener while other clients are idle or slow."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import RemoteDisconnected
from itertools import chain, repeat
from pathlib import Path
from urllib.error import HTTPError

import pytest

from .peers import HOST, Broker
from .process import Gateway, until

IDLE = SLOW = 1000

ROOM = 4 * (IDLE + SLOW)
"""Descriptors that the tests and the gateway need together."""

PROBES = 20

HEAD = b"GET /metrics HTTP/1.1\r\nHost: gw\r\nX-Long: "


ELSEWHERE = "127.0.0.2", 0
"""Requests are read by turn of addresses, so those that hold others up come from this one."""


def connected(number: int, port: int, said: bytes, clients: ExitStack) -> list[socket.socket]:
    """Return this many connections, each of which has sent something."""
    found = []
    for _ in range(number):
        made = socket.create_connection((HOST, port), source_address=ELSEWHERE)
        sock = clients.enter_context(made)
        with suppress(OSError):  # the gateway may have closed it already
            sock.sendall(said)
        found.append(sock)
    return found


def is_answered(gateway: Gateway, path: str, answer: str) -> bool:
    """Return whether a probe has its answer. What workers are asked for, or what takes long, may be
    given up on a busy machine."""
    try:
        return answer in gateway.get(path)
    except (HTTPError, RemoteDisconnected):
        return False


@contextmanager
def dripping(clients: list[socket.socket]) -> Iterator[None]:
    """Send a byte on each connection now and then."""
    stopped = threading.Event()

    def drip() -> None:
        for sock, byte in zip(chain.from_iterable(repeat(clients)), repeat(b"x"), strict=False):
            if stopped.wait(0.001):
                return
            try:
                sock.send(byte)
            except OSError:  # the gateway has closed it
                continue

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("connections", [100, 10_000], ids=["all-stay", "some-must-go"])
def test_probes_are_answered_among_idle_and_slow_clients(
    broker: Broker, tmp_path: Path, workers: int, connections: int
) -> None:
    """If messaging clients may need all descriptors, the gateway closes most of the other admin
    clients."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < ROOM:
        pytest.skip(f"a process may have {most} descriptors here, and {ROOM} are needed")
    few = ("sh", "-c", f'ulimit -n {ROOM}; exec "$@"', "sh")
    more = {"workers": workers, "limits": {"connections": connections}}
    with ExitStack() as cleaned:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], ROOM), before[1]))
        cleaned.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        gateway = Gateway([broker], tmp_path, {}, wrapper=few, more=more)
        cleaned.callback(gateway.stop)
        clients = cleaned.enter_context(ExitStack())
        connected(IDLE, gateway.admin, b"", clients)
        slow = connected(SLOW // 2, gateway.admin, HEAD, clients)
        connected(SLOW // 2, gateway.admin, HEAD + b"\r\n\r\n", clients)
        with dripping(slow):
            for _ in range(PROBES):
                assert gateway.get("/livez") == "alive\n"
                assert until(lambda: is_answered(gateway, "/readyz", "ready\n"))
            assert until(lambda: is_answered(gateway, "/metrics", "gateway_connections"))
        gateway.serves()
