"""One peer's stream: a non-blocking socket, what could not be sent yet, and what we wait for.

`pending` is outbound and in wire bytes. While there is any, the pump that feeds this lane does
not read, so it never grows beyond one chunk and the frames of our own.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections import deque
from typing import TYPE_CHECKING, Protocol

from gateway.wire.contract import Peer

if TYPE_CHECKING:
    from gateway.plane.memory import Memory

IN = select.EPOLLIN
OUT = select.EPOLLOUT


class Reader(Protocol):
    """Whose lane it is: called by the reactor for what happens to it."""

    def readable(self, now: float) -> None:
        """Bytes have come, or the end of them."""

    def flushed(self) -> None:
        """The lane has nothing pending any more."""

    def lost(self, error: OSError) -> None:
        """The lane's peer is gone."""


class _Nobody:
    """Reads closed lanes: an event from before may still be on its way."""

    def readable(self, now: float) -> None:
        pass

    def flushed(self) -> None:
        pass

    def lost(self, error: OSError) -> None:
        pass


_NOBODY = _Nobody()


class Lane:
    """One peer's socket in the reactor. `reader.readable(now)` is called when bytes have come."""

    __slots__ = (
        "_epoll",
        "_mask",
        "_memory",
        "fd",
        "peer",
        "pending",
        "reader",
        "receive_into",
        "sock",
        "transmit",
    )

    def __init__(
        self, sock: socket.socket, peer: Peer, epoll: select.epoll, memory: Memory
    ) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.receive_into = sock.recv_into
        self.transmit = sock.send
        self.pending: deque[memoryview] | None = None
        self.reader: Reader
        self._epoll = epoll
        self._memory = memory
        self._mask = 0

    @property
    def address(self) -> str:
        """The peer's host; empty where it is gone, or has none. A system call."""
        try:
            name = self.sock.getpeername()
        except OSError:
            return ""
        return str(name[0]) if isinstance(name, tuple) else ""

    # -- what we wait for --------------------------------------------------------------------

    @property
    def reading(self) -> bool:
        return bool(self._mask & IN)

    def read(self, on: bool) -> None:  # noqa: FBT001
        """Whether `reader` is called for what comes."""
        self._watch(self._mask | IN if on else self._mask & ~IN)

    def _watch(self, mask: int) -> None:
        if mask == self._mask:
            return
        if not self._mask:
            self._epoll.register(self.fd, mask)
        elif not mask:
            # Not modified to 0: hang-ups are reported under an empty mask too, without end, and
            # what the peer sent before is still to be read.
            self._epoll.unregister(self.fd)
        else:
            self._epoll.modify(self.fd, mask)
        self._mask = mask

    # -- outbound ----------------------------------------------------------------------------

    def send(self, data: bytes | memoryview) -> None:
        """Send what the socket takes, keep the rest. Raises `OSError` where the peer is lost."""
        if self.pending:
            self.keep(data)
            return
        try:
            sent = self.transmit(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.keep(memoryview(data)[sent:])

    def keep(self, data: bytes | memoryview) -> None:
        """Send later. A copy of exactly these bytes: the shared buffer is never lent."""
        if self.pending is None:
            self.pending = deque()
        self.pending.append(memoryview(bytes(data)))
        self._memory.used += len(data)
        self._watch(self._mask | OUT)

    def flush(self) -> bool:
        """Send what is pending; answers whether nothing is left. Raises `OSError`."""
        while self.pending:
            data = self.pending[0]
            try:
                sent = self.transmit(data)
            except BlockingIOError:
                return False
            self._memory.used -= sent
            if sent < len(data):
                self.pending[0] = data[sent:]
                return False
            self.pending.popleft()
        self.pending = None
        self._watch(self._mask & ~OUT)
        return True

    @property
    def kept(self) -> int:
        """Bytes that are pending."""
        return sum(map(len, self.pending or ()))

    # -- the end -----------------------------------------------------------------------------

    def shut(self) -> None:
        """No more will be sent. What the peer still sends can be read."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Unregister, then close: a closed descriptor's number is soon another's."""
        self._watch(0)
        self._memory.used -= self.kept
        self.pending = None
        self.reader = _NOBODY  # who read it holds this lane: no cycle is left to be collected
        self.sock.close()
