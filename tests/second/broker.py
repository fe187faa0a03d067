"""Brokers of `memo` in memory, each with topics of its own, and a client; both by trio."""

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
"""Nobody else uses it: where a client reads it, it can only have come from here."""
NOT_MINE = Refusal.TARGET


class Frames:
    """One side of a connection, in frames. `received`: all bytes that ever came."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.received = bytearray()
        self._taken = 0

    async def next(self) -> bytes:
        """Return the next frame; nothing at the end."""
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

    `address`: where it listens. `cluster`: who owns each topic. `heard`: all that came, whole.
    `gate`: answers wait for it.
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
        """Wait until a request has come that holds this."""
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
                await stream.send_all(self._answer(request))

    def _answer(self, request: bytes) -> bytes:
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
    """Serve brokers, each of which owns one of these topics."""
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
    """Says requests, and reads their answers in order. `frames`: all that it received."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.frames = Frames(stream)
        self._id = 0

    async def ask(self, kind: int, body: bytes) -> bytes:
        """Return the answer to a request."""
        id = await self.say(kind, body)
        answer = await self.frames.next()
        assert answer, "the connection ended without an answer"
        assert head_of(answer)[0] == id, "an answer out of order"
        return answer

    async def say(self, kind: int, body: bytes) -> int:
        """Send a request; return its id."""
        self._id += 1
        await self.frames.stream.send_all(frame(self._id, kind, body))
        return self._id

    async def put(self, *parts: tuple[str, int, bytes]) -> Denial | None:
        """Store messages; return the refusal, if it is one."""
        answer = await self.ask(Kind.PUT, sections(parts))
        return error_of(answer) if head_of(answer)[1] == Kind.ERROR else None

    async def get(self, *topics: str) -> dict[str, bytes]:
        """Return what is stored of some topics."""
        answer = await self.ask(Kind.GET, texts(topics))
        return {topic: data for topic, _, data in sections_of(answer)}

    async def where(self, *topics: str) -> dict[str, Address]:
        """Return where some topics are said to be."""
        answer = await self.ask(Kind.WHERE, texts(topics))
        return {topic: Address(host, port) for topic, host, port in places_of(answer)}


@asynccontextmanager
async def client(address: Address, token: str = "") -> AsyncIterator[Client]:
    """Connect and say HELLO."""
    async with await trio.open_tcp_stream(address.host, address.port) as stream:
        it = Client(stream)
        hello = text("alice") + text("memo-test 1") + text(token)
        assert head_of(await it.ask(Kind.HELLO, hello))[1] == Kind.HELLO | ANSWER
        yield it
