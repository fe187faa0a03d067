"""Reads the requests of one HTTP/1.1 connection, one at a time, and sends the responses.

h11 implements the protocol; this module adds deadlines and bounds. Anybody may connect, so requests
are read in turn: one of each address between two polls of all sockets, and few of all addresses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
import trio

from gateway.listening.queues import Queues
from gateway.wire.holder import holder

PATIENCE = 10.0
"""Seconds within which a client must send the head of a request, and within which it must read the
response. A connection without a request is closed after the same time."""

HEAD_SIZE = 16 * 1024
"""Bytes of a head. A browser's is smaller, even with cookies of other servers on the same host."""

MOST_FIELDS = 100
"""Lines of a head. Browsers and proxies send twenty; h11 takes 3 µs for each."""

_READ_SIZE = 4096
"""Bytes of one read. A usual request has a tenth of that."""

_LINGER = 1.0
_LINGER_READS = 64
"""Seconds, and reads, for data that a client still sends after its response: closing at once would
reset the connection, and the client might never read the response."""

READ_AT_ONCE = 4
"""Requests read between two polls. Each takes 0.1 ms, and 0.3 ms to respond to."""

_HEAD_ENDS = b"\n\r\n", b"\n\n"

VERSIONS = (b"1.0", b"1.1")

Headers = list[tuple[bytes, bytes]] | list[tuple[str, str]]


class RequestTurns:
    """Lets the connections of one server take turns at having a request read."""

    def __init__(self) -> None:
        self._queues = Queues()
        self._slots = trio.Semaphore(READ_AT_ONCE)

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for the turn of an address, which ends with the block."""
        async with self._queues.of(holder(host)), self._slots:
            yield


class Talk:
    """Reads requests from one connection, and encodes the responses. `turns`: those of its server.
    `host`: the client's address."""

    def __init__(
        self, stream: trio.abc.HalfCloseableStream, turns: RequestTurns, host: str
    ) -> None:
        self._stream = stream
        self._turns = turns
        self._host = host
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE)

    async def request(self) -> h11.Request | None:
        """Wait for the head of the next request. Return None if the client has closed. Raises
        `h11.RemoteProtocolError`, with a status, for what is no request of HTTP/1.1; and
        `trio.TooSlowError`."""
        with trio.fail_after(PATIENCE):
            while (event := await self._next()) is h11.NEED_DATA:
                await self._receive()
        if not isinstance(event, h11.Request):
            return None
        if event.http_version not in VERSIONS:
            raise h11.RemoteProtocolError("another version of HTTP", 505)
        return event

    async def _next(self) -> object:
        unread, _ = self._http.trailing_data
        ends = [at for at in map(unread.find, _HEAD_ENDS) if at >= 0]
        if unread.count(b"\n", 0, min(ends, default=len(unread))) > MOST_FIELDS:
            raise h11.RemoteProtocolError("too many fields", 431)
        if not ends:  # h11 only looks for the end of the head
            return self._http.next_event()
        async with self._turns.turn(self._host):
            return self._http.next_event()

    async def _receive(self) -> None:
        self._http.receive_data(bytes(await self._stream.receive_some(_READ_SIZE)))

    @property
    def has_no_body(self) -> bool:
        """Return whether the request ends with its head. A part of another body is lost."""
        return isinstance(self._http.next_event(), h11.EndOfMessage)

    async def body(self, most: int) -> bytes | None:
        """Return the body of the request; None if it has more than `most` bytes. Raises as
        `request` does."""
        body = b""
        if self._http.they_are_waiting_for_100_continue:
            going_on = h11.InformationalResponse(status_code=100, headers=[])
            await self.send(self._http.send(going_on) or b"")
        with trio.fail_after(PATIENCE):
            while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    body += event.data
                elif event is h11.NEED_DATA:
                    await self._receive()
                if len(body) > most or isinstance(event, h11.ConnectionClosed):
                    return None
        return body

    def head(self, status: int, headers: Headers) -> bytes:
        """Encode the status line and the headers of a response."""
        response = h11.Response(status_code=status, headers=headers)
        return self._http.send(response) or b""

    def data(self, chunk: bytes) -> bytes:
        """Encode a chunk of a response's body."""
        return self._http.send(h11.Data(data=chunk)) or b""

    def end(self) -> bytes:
        """Encode the end of a response's body."""
        return self._http.send(h11.EndOfMessage()) or b""

    async def send(self, data: bytes) -> None:
        """Send bytes. The caller bounds the time."""
        await self._stream.send_all(data)

    def is_renewed(self) -> bool:
        """Return whether another request may follow, and begin to wait for it."""
        if {self._http.our_state, self._http.their_state} != {h11.DONE}:
            return False
        self._http.start_next_cycle()
        return True

    async def linger(self) -> None:
        """Close the connection once the client has, or after some time."""
        with trio.move_on_after(_LINGER):
            await self._stream.send_eof()
            for _ in range(_LINGER_READS):
                if not await self._stream.receive_some(_READ_SIZE):
                    return
