"""Wakes the tasks of conversations whose sockets are ready, a few between two turns of the reactor.

Theory of operation
===================
Trio wakes every task whose socket is ready before it looks at any socket again. Thousands of
clients that connect at once would so have all their frames decided, verified and dialled for
before the reactor gets its next turn, and no ping of anybody else would be answered for seconds.

So conversations do not wait in trio's epoll, but in one of our own, and one task awaits that. It
wakes at most `AT_ONCE` tasks, and trio looks at all other sockets before it goes on. The kernel
reports who is ready in the order in which they became so: nobody is overtaken for ever.

Where few wait they wait in trio's epoll: the way by ours costs a tenth of an opening.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from gateway.plane.stream import Stream

FEW = 32
"""Tasks that may wait in trio's epoll. To wake all of them at once takes 3 to 10 ms."""

AT_ONCE = 8
"""Tasks woken between two looks at all other sockets. A step of an opening takes 0.1 to 0.3 ms:
together they take about as long as one turn of the reactor."""


class Readiness:
    """One for a process; `run` is its task. A socket is waited for by one task at a time.

    `dialling`: conversations that await a connection to a broker.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waiting: dict[int, trio.lowlevel.Task] = {}  # by descriptor
        self._in_trio = 0  # others that wait
        self.dialling = 0

    def __len__(self) -> int:
        """Return how many tasks wait."""
        return len(self._waiting) + self._in_trio

    @property
    def crowded(self) -> bool:
        """Whether so many wait that each must have its turn."""
        return len(self) >= FEW

    async def readable(self, stream: Stream) -> None:
        """Wait until there is something to read, or nothing to come any more."""
        if self.crowded:
            await self._ready(stream.fileno(), select.EPOLLIN)
            return
        self._in_trio += 1
        try:
            await trio.lowlevel.wait_readable(stream.fileno())
        finally:
            self._in_trio -= 1

    async def connected(self, stream: Stream) -> None:
        """Wait for the turn of a connection that was just made, and on which nothing was sent."""
        if self.dialling >= FEW:
            await self._ready(stream.fileno(), select.EPOLLOUT)

    async def _ready(self, fd: int, events: int) -> None:
        self._epoll.register(fd, events)
        self._waiting[fd] = trio.lowlevel.current_task()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._forget(fd)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _forget(self, fd: int) -> trio.lowlevel.Task:
        self._epoll.unregister(fd)
        return self._waiting.pop(fd)

    async def run(self) -> None:
        """Wake tasks until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0, AT_ONCE):
                trio.lowlevel.reschedule(self._forget(fd))
