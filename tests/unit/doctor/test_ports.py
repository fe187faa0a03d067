"""Addresses of listeners: free, unavailable, or in use by a process that is probed."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from gateway.admin.routes import routes
from gateway.admin.server import serve
from gateway.config.load import build
from gateway.doctor import ports
from gateway.doctor.finding import Finding, Status
from gateway.doctor.ports import examine, try_bind
from gateway.doctor.reach import Network
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from tests.unit.doctor.fakes import PATIENCE, FakeBroker, error, free_port, peer, saying, silent

HOST = "127.0.0.1"
SOMEWHERE = Address("192.0.2.1", 6650)


async def examined(
    listener: Address, admin: Address | None = None, broker: Address = SOMEWHERE
) -> list[Finding]:
    data = {
        "version": 1,
        "listeners": [{"name": "edge", "bind": str(listener), "cluster": "main"}],
        "clusters": {"main": {"brokers": f"pulsar://{broker}"}},
    } | ({"admin": {"bind": str(admin)}} if admin else {})
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return await examine(configuration, Network(PATIENCE))


@contextmanager
def taken() -> Iterator[Address]:
    """Return an address that listens and accepts no connection."""
    with socket.create_server((HOST, 0)) as server:
        yield Address(HOST, server.getsockname()[1])


# -- free ------------------------------------------------------------------------------------


async def test_a_free_address_is_ok_and_free_afterwards() -> None:
    address = Address(HOST, free_port())
    for _ in range(2):
        (found,) = await examined(address)
        assert (found.status, found.check, found.detail) == (Status.OK, f"edge {address}", "free")


async def test_any_port_is_free() -> None:
    (found,) = await examined(Address(HOST, 0))
    assert found.detail == "any free port"


async def test_the_wildcard_address_is_shown_as_in_the_file() -> None:
    port = free_port()
    (found,) = await examined(Address("", port))
    assert (found.check, found.status) == (f"edge :{port}", Status.OK)


def test_the_wildcard_address_is_taken_if_one_address_is() -> None:
    with taken() as address:
        assert try_bind(Address("", address.port)) == errno.EADDRINUSE


def test_without_ipv6_the_wildcard_address_is_ipv4_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ports._bind

    def without(address: Address) -> int:
        return errno.EAFNOSUPPORT if ":" in address.host else real(address)

    monkeypatch.setattr(ports, "_bind", without)
    assert try_bind(Address("", 0)) == 0
    assert try_bind(Address("::1", 0)) == errno.EAFNOSUPPORT


# -- not to be had ---------------------------------------------------------------------------


async def test_an_address_of_another_machine_fails() -> None:
    (found,) = await examined(Address("192.0.2.7", 6650))
    assert found.status is Status.FAIL
    assert found.detail == "this machine has no such address"
    assert '":6650"' in found.remedy


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (errno.EACCES, "this user may not listen there"),
        (errno.EPERM, "cannot be had: operation not permitted"),
    ],
)
async def test_a_privileged_port_fails(
    monkeypatch: pytest.MonkeyPatch, code: int, detail: str
) -> None:
    def refuse(_sock: socket.socket, _address: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    (found,) = await examined(Address(HOST, 81))
    assert found.status is Status.FAIL
    assert found.detail.startswith(detail)


@pytest.mark.parametrize(
    ("broker", "bind", "same"),
    [
        (Address("localhost", 6650), Address("127.0.0.1", 6650), True),
        (Address("127.0.0.1", 6650), Address("", 6650), True),
        (Address("10.0.0.1", 6650), Address("10.0.0.1", 6650), True),
        (Address("127.0.0.1", 6651), Address("127.0.0.1", 6650), False),
        (Address("pulsar.internal", 6650), Address("", 6650), False),
        (Address("127.0.0.1", 6650), Address("10.0.0.1", 6650), False),
    ],
)
def test_a_broker_with_the_listeners_address_is_recognized(
    broker: Address, bind: Address, same: bool
) -> None:
    assert ports.points_here(broker, bind) == same


async def test_a_gateway_that_would_be_its_own_broker_fails() -> None:
    async with peer(FakeBroker()) as address:
        (found,) = await examined(address, broker=address)
    assert found.status is Status.FAIL
    assert "its own broker" in found.detail


# -- taken -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broker",
    [
        FakeBroker(),
        FakeBroker(lambda _connect: error(ServerError.AuthenticationError, "a token is needed")),
    ],
)
async def test_a_listener_that_speaks_pulsar_may_be_the_gateway(broker: FakeBroker) -> None:
    async with peer(broker) as address:
        (found,) = await examined(address)
    assert found.status is Status.WARN
    assert "a gateway seems to run here already" in found.detail
    assert found.example == f"ss -ltnp 'sport = :{address.port}'"


async def test_a_port_of_another_process_fails_with_a_command_to_find_it() -> None:
    async with peer(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        (found,) = await examined(address)
    assert found.status is Status.FAIL
    assert found.detail == "taken by something that speaks HTTP; it is no gateway"
    assert found.example == f"ss -ltnp 'sport = :{address.port}'"


async def test_an_admin_listener_that_is_alive_is_a_gateway() -> None:
    async with trio.open_nursery() as nursery:
        table = routes({"/metrics": lambda: [b""]}, lambda: True, list)
        (address,) = await nursery.start(partial(serve, Address(HOST, 0), table))
        _, found = await examined(Address(HOST, 0), admin=address)
        nursery.cancel_scope.cancel()
    assert (found.check, found.status) == (f"admin {address}", Status.WARN)
    assert found.detail.endswith("and says that it is alive")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 9000 + b"\nalive\n",
        b"",
    ],
)
async def test_an_admin_port_of_another_process_fails(answer: bytes) -> None:
    async with peer(saying(answer)) as address:
        _, found = await examined(Address(HOST, 0), admin=address)
    assert found.status is Status.FAIL
    assert found.detail == "taken; it is no gateway"


async def test_a_silent_process_on_a_port_times_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with peer(silent) as one, peer(silent) as two:
        listener, admin = await examined(one, admin=two)
    assert listener.status is admin.status is Status.FAIL


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Jump only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.01)
