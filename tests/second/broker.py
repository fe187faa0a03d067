"""In-memory `memo` brokers, each with its own topics, and a client; both use trio."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal
from tests.second.memo import (
    ANSWER,
    Kind,
    error_of,
    frame,
    frame_length,
    head_of,
    places,
    places_of,
    refusal,
    sections,
    sections_of,
    text,
    texts,
    topics_of,
)

HOST = "127.0.0.90"
"""No other test uses this address, so a client that reads it got it from a broker here."""

NOT_MINE = Refusal.TARGET


class Frames:
    """Reads frames from a connection. `received`: all bytes that ever came."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.received = bytearray()
        self._taken = 0

    async def next(self) -> bytes:
        """Return the next frame; empty at the end of the stream."""
        while True:
            rest = self.received[self._taken :]
            length = frame_length(rest)
            if length and len(rest) >= length:
                self._taken += length
                return bytes(rest[:length])
            more = await self.stream.receive_some()
            if not more:
                return b""
            self.received += more


class Broker:
    """Owns some topics, and answers each request once, in order.

    `address`: address of its listener. `cluster`: owners of topics. `heard`: all received requests.
    `gate`: answers wait until this event is set.
    """

    def __init__(self, cluster: dict[str, Broker]) -> None:
        self.address = Address(HOST, 0)
        self.cluster = cluster
        self.heard: list[bytes] = []
        self.stored: dict[str, list[bytes]] = defaultdict(list)
        self.gate = trio.Event()
        self.gate.set()
        self._news = trio.Event()

    async def hears(self, text: bytes) -> None:
        """Wait until a request with this text has come."""
        while not any(text in request for request in self.heard):
            await self._news.wait()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        frames = Frames(stream)
        requests, queue = trio.open_memory_channel[bytes](1000)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._answer_all, stream, queue)
                async with requests:
                    while request := await frames.next():
                        self.heard.append(request)
                        self._news.set()
                        self._news = trio.Event()
                        await requests.send(request)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.aclose()

    async def _answer_all(
        self, stream: trio.SocketStream, queue: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        async with stream:
            async for request in queue:
                await self.gate.wait()
                await stream.send_all(self._response(request))

    def _response(self, request: bytes) -> bytes:
        id, kind = head_of(request)
        match kind:
            case Kind.HELLO:
                body = text("welcome")
            case Kind.WHERE:
                owners = [(it, self.cluster[it].address) for it in topics_of(request)]
                body = places((topic, owner.host, owner.port) for topic, owner in owners)
            case Kind.PUT:
                return self._put(id, request)
            case Kind.GET:
                found = {topic: self.stored[topic] for topic in topics_of(request)}
                full = [(it, len(data), b"".join(data)) for it, data in found.items() if data]
                body = sections(full)
            case _:
                return refusal(id, Denial(Refusal.UNSUPPORTED, "what?"))
        return frame(id, kind | ANSWER, body)

    def _put(self, id: int, request: bytes) -> bytes:
        found = sections_of(request)
        for topic, _, _ in found:
            if (owner := self.cluster.get(topic, self)) is not self:
                return refusal(id, Denial(NOT_MINE, f"ask memo://{owner.address} for {topic}"))
        for topic, _, payload in found:
            self.stored[topic].append(payload)
        return frame(id, Kind.PUT | ANSWER)


@asynccontextmanager
async def brokers(*owned: str) -> AsyncIterator[list[Broker]]:
    """Run brokers, each of which owns one of these topics."""
    cluster: dict[str, Broker] = {}
    async with trio.open_nursery() as nursery:
        for topic in owned:
            broker = cluster[topic] = Broker(cluster)
            (listener,) = await trio.open_tcp_listeners(0, host=HOST)
            broker.address = Address(HOST, listener.socket.getsockname()[1])
            nursery.start_soon(trio.serve_listeners, broker.serve, [listener])
        yield list(cluster.values())
        nursery.cancel_scope.cancel()


class Client:
    """Sends requests, and reads their responses in order."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.frames = Frames(stream)
        self._id = 0

    async def ask(self, kind: int, body: bytes) -> bytes:
        """Send a request; return its response."""
        id = await self.say(kind, body)
        response = await self.frames.next()
        assert response, "the connection ended without an answer"
        assert head_of(response)[0] == id, "an answer out of order"
        return response

    async def say(self, kind: int, body: bytes) -> int:
        """Send a request; return its id."""
        self._id += 1
        await self.frames.stream.send_all(frame(self._id, kind, body))
        return self._id

    async def put(self, *parts: tuple[str, int, bytes]) -> Denial | None:
        """Store messages; return the denial if they are refused."""
        response = await self.ask(Kind.PUT, sections(parts))
        return error_of(response) if head_of(response)[1] == Kind.ERROR else None

    async def get(self, *topics: str) -> dict[str, bytes]:
        """Return the stored payload of topics."""
        response = await self.ask(Kind.GET, texts(topics))
        return {topic: data for topic, _, data in sections_of(response)}

    async def where(self, *topics: str) -> dict[str, Address]:
        """Return the broker addresses of topics."""
        response = await self.ask(Kind.WHERE, texts(topics))
        return {topic: Address(host, port) for topic, host, port in places_of(response)}


@asynccontextmanager
async def connect(address: Address, token: str = "") -> AsyncIterator[Client]:
    """Connect and send HELLO."""
    async with await trio.open_tcp_stream(address.host, address.port) as stream:
        client = Client(stream)
        hello = text("alice") + text("memo-test 1") + text(token)
        assert head_of(await client.ask(Kind.HELLO, hello))[1] == Kind.HELLO | ANSWER
        yield client
