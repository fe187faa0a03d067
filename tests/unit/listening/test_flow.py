"""Streams of the data plane as trio's: of a socket, and with TLS."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from gateway.listening.flow import Flow
from gateway.listening.readiness import Readiness
from tests.support.tls import tls_sockets

LARGE = bytes(range(256)) * 20_000
"""More bytes than any buffer of a socket takes."""


def unix_sockets() -> tuple[socket.socket, socket.socket]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


@pytest.fixture(params=[unix_sockets, tls_sockets], ids=["plain", "TLS"])
def sockets(request: pytest.FixtureRequest) -> Callable[[], tuple[Any, Any]]:
    found: Callable[[], tuple[Any, Any]] = request.param
    return found


@asynccontextmanager
async def joined(sockets: Callable[[], tuple[Any, Any]]) -> AsyncIterator[tuple[Flow, Flow]]:
    """Yield the two ends of a connection."""
    near, far = sockets()
    readiness = Readiness()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.run)
        async with Flow(near, readiness) as one, Flow(far, readiness) as other:
            yield one, other
        nursery.cancel_scope.cancel()


async def test_bytes_arrive_whatever_a_socket_takes_at_once(
    sockets: Callable[[], tuple[Any, Any]],
) -> None:
    async with joined(sockets) as (one, other), trio.open_nursery() as nursery:
        nursery.start_soon(one.send_all, LARGE)
        received = b""
        while len(received) < len(LARGE):
            received += await other.receive_some(100_000)
        assert received == LARGE


async def test_the_end_of_a_stream_is_no_bytes(sockets: Callable[[], tuple[Any, Any]]) -> None:
    async with joined(sockets) as (one, other):
        await one.send_all(b"last")
        await one.send_eof()
        assert await other.receive_some(100) == b"last"
        assert await other.receive_some(100) == b""


async def test_a_peer_that_has_gone_breaks_the_stream() -> None:
    async with joined(unix_sockets) as (one, other):
        await other.aclose()
        with pytest.raises(trio.BrokenResourceError):
            await one.send_all(LARGE)
