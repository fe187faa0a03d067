"""One peer's stream in the reactor: its pending outbound bytes, and its registration with epoll.

`pending` is outbound and in wire bytes. While it is not empty, the pump that feeds this lane does
not read, so `pending` never exceeds one chunk and the gateway's own frames.
"""

from __future__ import annotations

import select
from collections import deque
from typing import TYPE_CHECKING, Protocol

from gateway.plane.moving import Descriptor
from gateway.plane.stream import IN, OUT, RecordStream, Stream, has_records, shut
from gateway.wire.contract import Peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.memory import Memory


class Reader(Protocol):
    """What the reactor calls when something happens on a lane."""

    def readable(self, now: float) -> None:
        """Handle received bytes, or the end of the stream."""

    def timed(self, now: float, stands_for: int) -> None:
        """Handle received bytes as `readable` does, and measure how long that takes. `stands_for`:
        how many chunks this chunk represents in the counts (see `Sampler.sample`)."""

    def flushed(self) -> None:
        """Handle the event that the lane has sent all its pending bytes."""

    def lost(self, error: OSError) -> None:
        """Handle an error of the lane's stream, which means that the peer is gone."""


class _ClosedReader:
    """Reads closed lanes: the current list of events may still hold one of theirs."""

    def readable(self, now: float) -> None:
        pass

    def timed(self, now: float, stands_for: int) -> None:
        pass

    def flushed(self) -> None:
        pass

    def lost(self, error: OSError) -> None:
        pass


_CLOSED_READER = _ClosedReader()


class Lane(Descriptor):
    """One peer's stream in the reactor. When bytes have come, the reactor calls
    `reader.readable(now)`."""

    __slots__ = (
        "_epoll",
        "_mask",
        "_memory",
        "peer",
        "stream",
    )

    def __init__(self, stream: Stream, peer: Peer, epoll: select.epoll, memory: Memory) -> None:
        self.stream = stream
        self.fd = stream.fileno()
        self.plain = not has_records(stream)
        self.peer = peer
        self.pending: deque[memoryview] | None = None
        self.reader: Reader
        self._epoll = epoll
        self._memory = memory
        self._mask = 0

    @property
    def address(self) -> str:
        """Return the peer's host; empty if the peer is gone or has no host. This takes a system
        call."""
        try:
            name = self.stream.getpeername()
        except OSError:
            return ""
        return str(name[0]) if isinstance(name, tuple) else ""

    def receive_into(self, buffer: bytearray | memoryview, size: int, /) -> int:
        """See `Stream.recv_into`."""
        return self.stream.recv_into(buffer, size)

    def transmit(self, data: bytes | memoryview, /) -> int:
        """See `Stream.send`."""
        return self.stream.send(data)

    # -- events ------------------------------------------------------------------------------

    @property
    def reading(self) -> bool:
        return bool(self._mask & IN)

    def read(self, on: bool) -> None:  # noqa: FBT001
        """Switch reading on or off. While it is off, the reactor reports no received bytes to
        `reader`."""
        self._watch(self._mask | IN if on else self._mask & ~IN)

    def meaning(self, events: int) -> int:
        """Translate the kernel's events on the descriptor to what they mean for this lane: `IN`,
        `OUT` and others."""
        return events

    def _watch(self, mask: int) -> None:
        if mask == self._mask:
            return
        if not self._mask:
            self._epoll.register(self.fd, mask)
        elif not mask:
            # An empty mask would not do: epoll reports hang-ups under it without end, and the
            # peer's earlier bytes are still to be read.
            self._epoll.unregister(self.fd)
        else:
            self._epoll.modify(self.fd, mask)
        self._mask = mask

    # -- outbound ----------------------------------------------------------------------------

    def send(self, data: bytes | memoryview) -> None:
        """Send as many bytes as the socket takes, and keep the other bytes pending. Raises
        `OSError` if the peer is gone."""
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
        """Keep a copy of these bytes to send later. They are copied, because the shared receive
        buffer is soon overwritten."""
        if self.pending is None:
            self.pending = deque()
        self.pending.append(memoryview(bytes(data)))
        self._memory.used += len(data)
        self._watch(self._mask | OUT)

    def flush(self) -> bool:
        """Send pending bytes. Return whether all were sent. Raises `OSError` if the peer is
        gone."""
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
        """Return the number of pending bytes."""
        return sum(map(len, self.pending or ()))

    # -- the end -----------------------------------------------------------------------------

    def shut(self) -> None:
        """Tell the peer that nothing more is sent. Bytes that the peer still sends can be read."""
        shut(self.stream)

    def close(self) -> None:
        """Unregister from epoll, then close the stream, in this order: the number of a closed
        descriptor is soon another socket's."""
        self._watch(0)
        self._memory.used -= self.kept
        self.pending = None
        self.reader = _CLOSED_READER  # the reader refers to this lane: leave no cycle
        self.stream.close()


CROSSED = select.EPOLLRDNORM
"""Registered beside `IN` if sending waits for `IN`. The kernel reports both together, so the event
is not `IN` alone, which the reactor takes for bytes to read."""


class RecordLane(Lane):
    """A lane on a stream of records such as TLS (`plane.stream.RecordStream`). `again(lane)`: has
    the lane read once more without an event."""

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
        self._registered = 0  # with epoll; `_mask` has the events that the lane wants

    def receive_into(self, buffer: bytearray | memoryview, size: int, /) -> int:
        """See `Lane`."""
        try:
            count = self._records.recv_into(buffer, size)
        except BlockingIOError:
            self._register()
            raise
        if self._records.buffered:
            self._again(self)
        return count

    def transmit(self, data: bytes | memoryview, /) -> int:
        """See `Lane`."""
        try:
            return self._records.send(data)
        except BlockingIOError:
            self._register()
            raise

    def read(self, on: bool) -> None:  # noqa: FBT001
        """See `Lane`. Bytes that the stream holds cause no event, so they are read without one."""
        super().read(on)
        if on and self._records.buffered:
            self._again(self)

    def meaning(self, events: int) -> int:
        """See `Lane`."""
        meaning = events & ~(IN | OUT | CROSSED)
        for wanted, awaited in ((IN, self._records.receives_on), (OUT, self._records.sends_on)):
            meaning |= wanted if self._mask & wanted and events & awaited else 0
        return meaning

    def _watch(self, mask: int) -> None:
        self._mask = mask
        self._register()

    def _register(self) -> None:
        """Register for the events that receiving and sending wait for now."""
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
