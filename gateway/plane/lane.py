"""One peer's stream in the reactor: what could not be sent yet, and what we wait for.

`pending` is outbound and in wire bytes. While there is any, the pump that feeds this lane does
not read, so it never grows beyond one chunk and the frames of our own.
"""

from __future__ import annotations

import select
from collections import deque
from typing import TYPE_CHECKING, Protocol

from gateway.plane.stream import IN, OUT, RecordStream, Stream, shut
from gateway.wire.contract import Peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.memory import Memory


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
    """One peer's stream in the reactor. `reader.readable(now)` is called when bytes have come.

    `receive_into`, `transmit`: the stream's own methods, bound once, since each wake-up calls both.
    """

    __slots__ = (
        "_epoll",
        "_mask",
        "_memory",
        "fd",
        "peer",
        "pending",
        "reader",
        "receive_into",
        "stream",
        "transmit",
    )

    def __init__(self, stream: Stream, peer: Peer, epoll: select.epoll, memory: Memory) -> None:
        self.stream = stream
        self.fd = stream.fileno()
        self.peer = peer
        self.receive_into = stream.recv_into
        self.transmit = stream.send
        self.pending: deque[memoryview] | None = None
        self.reader: Reader
        self._epoll = epoll
        self._memory = memory
        self._mask = 0

    @property
    def address(self) -> str:
        """The peer's host; empty where it is gone, or has none. A system call."""
        try:
            name = self.stream.getpeername()
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

    def meaning(self, events: int) -> int:
        """Return what events of the kernel mean for this lane: `IN`, `OUT`, and whatever else."""
        return events

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
        """Say that no more will be sent. What the peer still sends can be read."""
        shut(self.stream)

    def close(self) -> None:
        """Unregister, then close: a closed descriptor's number is soon another's."""
        self._watch(0)
        self._memory.used -= self.kept
        self.pending = None
        self.reader = _NOBODY  # who read it holds this lane: no cycle is left to be collected
        self.stream.close()


CROSSED = select.EPOLLRDNORM
"""Asked for beside `IN` where that is awaited to send. The kernel reports both of them together, so
the events are not `IN` alone, which the reactor takes for something to read."""


class RecordLane(Lane):
    """A lane of records; see `plane.stream`. `again`: has the lane read again, without waiting."""

    __slots__ = ("_again", "_records", "_registered")

    def __init__(
        self,
        stream: RecordStream,
        peer: Peer,
        epoll: select.epoll,
        memory: Memory,
        again: Callable[[Lane], None],
    ) -> None:
        super().__init__(stream, peer, epoll, memory)
        self._records = stream
        self._again = again
        self._registered = 0  # with epoll; `_mask` is what the lane wants to do
        self.receive_into = self._receive_into
        self.transmit = self._transmit

    def _receive_into(self, buffer: bytearray | memoryview, size: int, /) -> int:
        try:
            count = self._records.recv_into(buffer, size)
        except BlockingIOError:
            self._register()
            raise
        if self._records.buffered:
            self._again(self)
        return count

    def _transmit(self, data: bytes | memoryview, /) -> int:
        try:
            return self._records.send(data)
        except BlockingIOError:
            self._register()
            raise

    def read(self, on: bool) -> None:  # noqa: FBT001
        """See `Lane`. What is buffered is no event: it is read without one."""
        super().read(on)
        if on and self._records.buffered:
            self._again(self)

    def meaning(self, events: int) -> int:
        """See `Lane`."""
        found = events & ~(IN | OUT | CROSSED)
        for wanted, awaited in ((IN, self._records.receives_on), (OUT, self._records.sends_on)):
            found |= wanted if self._mask & wanted and events & awaited else 0
        return found

    def _watch(self, mask: int) -> None:
        self._mask = mask
        self._register()

    def _register(self) -> None:
        """Have the kernel report what receiving and sending wait for now."""
        events = self._records.receives_on if self._mask & IN else 0
        if self._mask & OUT:
            events |= self._records.sends_on
            events |= CROSSED if events & IN and self._records.sends_on == IN else 0
        if events == self._registered:
            return
        if not self._registered:
            self._epoll.register(self.fd, events)
        elif not events:
            self._epoll.unregister(self.fd)
        else:
            self._epoll.modify(self.fd, events)
        self._registered = events
