"""Wakes the tasks of conversations whose sockets are ready, a few between two turns of the reactor.

Trio wakes every task whose socket is ready before it polls again. If thousands of clients connected
at once, their first frames would all be decided and verified, and their brokers dialled, before the
reactor got its next turn, and no other client's ping would be answered for seconds.

So conversations do not wait in trio's epoll but in another one, which a single task polls. That
task wakes at most `WAKEUPS_AT_ONCE` tasks, and trio polls all other sockets before the next ones.
The kernel reports sockets in the order in which they became ready, so none is passed over for ever.

While few tasks wait, they wait in trio's epoll: the second epoll costs a tenth of an opening.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from gateway.plane.stream import Stream

MAX_IN_TRIO = 32
"""Tasks that may wait in trio's epoll. Waking all of them at once takes 3 to 10 ms."""

WAKEUPS_AT_ONCE = 8
"""Tasks woken between two polls of all other sockets. A step of an opening takes 0.1 to 0.3 ms, so
that many take about as long as one turn of the reactor."""


class Readiness:
    """Wakes the conversations of a process that wait for their sockets. Only one task at a time may
    wait for a socket.

    `dialling`: number of conversations that wait for a broker connection.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waiting: dict[int, trio.lowlevel.Task] = {}  # by descriptor
        self._in_trio = 0
        self.dialling = 0

    def __len__(self) -> int:
        """Return the number of waiting tasks."""
        return len(self._waiting) + self._in_trio

    @property
    def crowded(self) -> bool:
        """Return whether so many tasks wait that they must be woken a few at a time."""
        return len(self) >= MAX_IN_TRIO

    async def readable(self, stream: Stream) -> None:
        """Wait until bytes, or the end of the stream, can be received."""
        if self.crowded:
            await self._ready(stream.fileno(), select.EPOLLIN)
            return
        self._in_trio += 1
        try:
            await trio.lowlevel.wait_readable(stream.fileno())
        finally:
            self._in_trio -= 1

    async def connected(self, stream: Stream) -> None:
        """Wait for this task's turn to use its new connection to a broker, on which nothing was
        sent yet."""
        if self.dialling >= MAX_IN_TRIO:
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
        """Wake tasks whose sockets are ready, until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, _ in self._epoll.poll(0, WAKEUPS_AT_ONCE):
                trio.lowlevel.reschedule(self._forget(fd))
