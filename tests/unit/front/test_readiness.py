"""Tasks that wait for sockets are woken in order, a few at a time."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from gateway.listening.readiness import MAX_IN_TRIO, WAKEUPS_AT_ONCE, Readiness
from tests.plane.harness import unix_sockets

from .fakes import hello, serving, until, welcome

MOST = MAX_IN_TRIO + 2 * WAKEUPS_AT_ONCE
"""Most tasks that may run between two runs of the watching task: it may run before the tasks of one
turn and after those of the next, and some tasks may wait in trio's own epoll."""


@asynccontextmanager
async def woken(
    readiness: Readiness, socks: list[socket.socket]
) -> AsyncIterator[list[int | None]]:
    """Yield the numbers of woken tasks in order; None: all other tasks had their turn."""
    order: list[int | None] = []

    async def wait(number: int) -> None:
        await readiness.readable(socks[number])
        order.append(number)

    async def watch() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            order.append(None)

    async with trio.open_nursery() as nursery:
        for number in range(len(socks)):
            nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(readiness.run)
        nursery.start_soon(watch)
        yield order
        nursery.cancel_scope.cancel()


def runs(order: list[int | None]) -> list[list[int]]:
    """Return the numbers of the tasks that were woken between two turns of other tasks."""
    found: list[list[int]] = [[]]
    for number in order:
        if number is None:
            found.append([])
        else:
            found[-1].append(number)
    return [run for run in found if run]


async def test_few_tasks_are_woken_between_two_turns_of_others() -> None:
    pairs = [unix_sockets() for _ in range(3 * MAX_IN_TRIO)]
    async with woken(Readiness(), [near for near, _ in pairs]) as order:
        for _, far in pairs:
            far.send(b"x")
        await until(lambda: len(order) - order.count(None) == len(pairs))
    assert max(map(len, runs(order))) <= MOST
    for near, far in pairs:
        near.close()
        far.close()


async def test_tasks_are_woken_in_the_order_in_which_sockets_become_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel reports sockets in the order in which they became ready; trio shuffles them."""
    monkeypatch.setattr(Readiness, "crowded", True)
    pairs = [unix_sockets() for _ in range(3 * MAX_IN_TRIO)]
    async with woken(Readiness(), [near for near, _ in pairs]) as order:
        for _, far in pairs:
            far.send(b"x")
        await until(lambda: len(order) - order.count(None) == len(pairs))
    numbers = [number for number in order if number is not None]
    for at, number in enumerate(numbers):
        assert abs(at - number) < MOST
    for near, far in pairs:
        near.close()
        far.close()


async def test_a_peer_that_closes_wakes_its_task() -> None:
    near, far = unix_sockets()
    async with woken(Readiness(), [near]) as order:
        far.close()
        await until(lambda: 0 in order)
    near.close()


@pytest.mark.parametrize("crowded", [False, True])
async def test_a_cancelled_task_waits_in_neither_epoll(
    crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readiness, "crowded", property(lambda _: crowded))
    readiness = Readiness()
    near, far = unix_sockets()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.run)
        with trio.CancelScope() as scope:
            scope.cancel()
            await readiness.readable(near)
        assert len(readiness) == 0
        far.send(b"x")
        await readiness.readable(near)  # the same socket can be waited for again
        nursery.cancel_scope.cancel()
    near.close()
    far.close()


async def test_clients_that_send_at_once_are_served_a_few_at_a_time() -> None:
    """Without this, all openings would be decided and dialled before other tasks had a turn."""
    async with serving() as running:
        dialled, most, clients = 0, 0, [running.connect() for _ in range(3 * MAX_IN_TRIO)]
        await until(lambda: running.counts == (len(clients), 0))
        await trio.testing.wait_all_tasks_blocked()
        for client in clients:
            client.say(hello())
        while dialled < len(clients):
            await trio.lowlevel.checkpoint()
            most = max(most, len(running.dialler.dialled) - dialled)
            dialled = len(running.dialler.dialled)
        assert most <= MOST
        await until(lambda: len(running.dialler.brokers) == len(clients))
        for number in range(len(clients)):
            running.dialler.broker(number).say(welcome())
        opened = most = 0
        while opened < len(clients):
            await trio.lowlevel.checkpoint()
            most = max(most, running.figures.open - opened)
            opened = running.figures.open
        assert most <= MOST


@pytest.mark.parametrize("size", [1, 5])
async def test_brokers_that_accept_at_once_get_first_frames_a_few_at_a_time(size: int) -> None:
    async with serving() as running:
        running.dialler.delay = 0.05
        clients = [running.connect() for _ in range(size * WAKEUPS_AT_ONCE)]
        for client in clients:
            client.say(hello())
        await until(lambda: len(running.dialler.dialled) == len(clients))
        heard = most = 0
        while heard < len(clients):
            await trio.lowlevel.checkpoint()
            now = sum(_has_heard(sock) for sock in running.dialler.brokers)
            most, heard = max(most, now - heard), now
        assert most <= MOST


def _has_heard(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
