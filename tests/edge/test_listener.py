"""Other people's tools, and hostile bytes, against a listener with TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway, Plan
from tests.real.probes import figure
from tests.support.sandbox import Sandbox

from .conftest import Files

pytestmark = [
    pytest.mark.gateway_only,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]

ENDED = "gateway_connections_ended_total"
CLIENTS = {"listener": "clients"}


@pytest.fixture
def secured(sandbox: Sandbox, gateway: StartGateway, files: Files) -> Gateway:
    limits, deadlines = {"unauthenticated": 50}, {"handshake": "2s"}
    return gateway(sandbox, Plan(tls=files.listener, limits=limits, deadlines=deadlines))


def s_client(gateway: Gateway, files: Files, *options: str, said: bytes = b"") -> str:
    """Return what `openssl s_client` prints."""
    command = ["openssl", "s_client", "-connect", f"{HOST}:{gateway.port}"]
    command += ["-CAfile", str(files.authority), "-verify_return_error", *options]
    done = subprocess.run(command, input=said, capture_output=True, timeout=30, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.parametrize("version", ["tls1_2", "tls1_3"])
def test_new_versions_are_spoken(secured: Gateway, files: Files, version: str) -> None:
    printed = s_client(secured, files, f"-{version}")
    assert "Verify return code: 0 (ok)" in printed
    assert f"New, {version.replace('tls1_', 'TLSv1.')}, Cipher is" in printed


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_old_versions_are_refused(secured: Gateway, files: Files, version: str) -> None:
    printed = s_client(secured, files, f"-{version}", "-cipher", "ALL:@SECLEVEL=0")
    assert "alert protocol version" in printed


@pytest.mark.parametrize("group", ["ffdhe2048", "ffdhe8192", "P-521", "X448"])
def test_groups_that_cost_much_are_refused(secured: Gateway, files: Files, group: str) -> None:
    """A handshake with ffdhe8192 took 100 ms of the gateway's time."""
    assert "handshake failure" in s_client(secured, files, "-tls1_3", "-groups", group)
    assert "Verify return code: 0" in s_client(secured, files, "-groups", f"{group}:P-256")


def test_keys_are_not_exchanged_again(secured: Gateway, files: Files) -> None:
    printed = s_client(secured, files, "-tls1_2", said=b"R\n")
    assert "no renegotiation" in printed


def test_early_data_is_not_taken(secured: Gateway, files: Files) -> None:
    printed = s_client(secured, files, "-tls1_3")
    assert "Early data was not sent" in printed
    assert "Max Early Data: 0" in printed or "Max Early Data" not in printed


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def connected(gateway: Gateway, opened: ExitStack) -> socket.socket:
    sock = opened.enter_context(socket.create_connection((HOST, gateway.port), timeout=10))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def hello() -> bytes:
    """Return a ClientHello."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_half_handshakes_lock_nobody_out(
    secured: Gateway, files: Files, sockets: ExitStack
) -> None:
    """More of them than may be unauthenticated, some silent, some in the middle."""
    whole = hello()
    for number in range(120):
        sock = connected(secured, sockets)
        sock.sendall(whole[: number % len(whole)])
    assert "Verify return code: 0 (ok)" in s_client(secured, files, "-tls1_3")
    assert figure(secured, "gateway_openings_displaced_total") >= 70
    wait_until(lambda: figure(secured, "gateway_connections", **CLIENTS, state="opening") == 0)


def answer(sock: socket.socket) -> bytes:
    """Return all that comes until the end."""
    heard = b""
    while more := sock.recv(4096):
        heard += more
    return heard


def test_bytes_that_are_no_handshake_are_refused(
    secured: Gateway, files: Files, sockets: ExitStack
) -> None:
    huge = b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(1 << 14)
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 1000, huge, hello()[:-1] + b"\xff" * 400):
        sock = connected(secured, sockets)
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        heard = answer(sock)
        assert heard[:1] in (b"", b"\x15", b"\x16"), "no more than an alert or a handshake"
    wait_until(lambda: figure(secured, ENDED, **CLIENTS, reason="tls_failed") == 4)
    assert "Verify return code: 0 (ok)" in s_client(secured, files)
