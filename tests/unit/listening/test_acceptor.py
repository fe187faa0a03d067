"""The accept loop: how many it accepts at a time, and for whom there is no room."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from itertools import pairwise

import pytest
import trio
import trio.testing

from gateway.listening.acceptor import ACCEPTS_AT_ONCE, Acceptor
from gateway.listening.openings import Openings
from gateway.wire.address import Address

LOOPBACK = Address("127.0.0.1", 0)


class Arrivals:
    """Who arrived at an acceptor, and gave way to others."""

    def __init__(self, most: int = 1000, *, relieves: bool = False) -> None:
        self.openings = Openings(most)
        self.acceptor = Acceptor("test", self.openings, self._arrived, relieves=relieves)
        self.socks: list[socket.socket] = []
        self.gave_way: list[int] = []

    def _arrived(self, sock: socket.socket, client: Address, reached: Address) -> None:
        number = len(self.socks)
        self.socks.append(sock)
        self.openings.keep(number, client.host, lambda: False, lambda: self.gave_way.append(number))

    @asynccontextmanager
    async def accepting(self) -> AsyncIterator[Address]:
        """Accept; yield the address."""
        (address,) = self.acceptor.listen([LOOPBACK])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.acceptor.serve)
            yield address
            nursery.cancel_scope.cancel()
        for sock in self.socks:
            sock.close()


async def test_few_connections_are_accepted_between_two_polls_of_other_sockets() -> None:
    arrivals, seen = Arrivals(), [0]
    with ExitStack() as opened:
        async with arrivals.accepting() as address:
            for _ in range(100):
                opened.enter_context(socket.create_connection(address.pair))
            while len(arrivals.socks) < 100:
                await trio.lowlevel.checkpoint()
                seen.append(len(arrivals.socks))
    # This task may run first in one round of tasks, and last in the next.
    assert max(after - before for before, after in pairwise(seen)) <= 2 * ACCEPTS_AT_ONCE


async def test_beyond_the_bound_the_oldest_gives_way() -> None:
    arrivals = Arrivals(most=2)
    with ExitStack() as opened:
        async with arrivals.accepting() as address:
            for number in range(4):
                opened.enter_context(socket.create_connection(address.pair))
                while len(arrivals.socks) <= number:
                    await trio.lowlevel.checkpoint()
    assert arrivals.gave_way == [0, 1]


@pytest.mark.parametrize("relieves", [True, False])
async def test_without_descriptors_one_that_waits_may_give_way(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, *, relieves: bool
) -> None:
    arrivals = Arrivals(relieves=relieves)
    accept, failures = Acceptor._accept_some, [OSError(errno.EMFILE, "no more")]

    def accepting(self: Acceptor, listener: socket.socket, reached: Address) -> None:
        if arrivals.socks and failures:
            raise failures.pop()
        accept(self, listener, reached)

    monkeypatch.setattr(Acceptor, "_accept_some", accepting)
    async with arrivals.accepting() as address:
        with ExitStack() as opened:
            opened.enter_context(socket.create_connection(address.pair))
            await trio.sleep(1)
            opened.enter_context(socket.create_connection(address.pair))
            await trio.sleep(1)
    assert len(arrivals.socks) == 2
    assert arrivals.gave_way == ([0] if relieves else [])
    assert failures == []
