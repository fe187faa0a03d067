"""The console's connections: bounded, patient for a while, and closed at the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from gateway.console import serving
from gateway.console.serving import ConsoleSettings, serve_console
from gateway.errors import ConfigurationError
from gateway.wire.address import Address
from tests.unit.console.world import World

HOST = "127.0.0.1"


@asynccontextmanager
async def served(connections: int = 64, app: object = None) -> AsyncIterator[int]:
    """Serve a console; yield its port."""
    settings = ConsoleSettings(Address(HOST, 0), connections)
    world = World()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.feed.run)
        (address,) = await nursery.start(serve_console, settings, app or world.app)
        yield address.port
        nursery.cancel_scope.cancel()


async def said(port: int, request: bytes) -> bytes:
    """Send bytes, and return all that comes until the end."""
    async with await trio.open_tcp_stream(HOST, port) as stream:
        await stream.send_all(request)
        return b"".join([part async for part in stream])


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()


async def test_requests_are_answered() -> None:
    async with served() as port:
        head, _, body = (await said(port, get("/api/v1/status"))).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert json.loads(body)["ready"] == ["draining"]


async def test_a_head_is_bounded() -> None:
    async with served() as port:
        request = get("/").replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")
        try:
            answer = await said(port, request)
        except trio.BrokenResourceError:  # closed while we still send
            return
        assert b" 200" not in answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\x02\x00", b"nonsense\r\n\r\n", b"\0" * 100])
async def test_nonsense_ends_its_own_connection(request_: bytes) -> None:
    async with served() as port:
        with trio.fail_after(20):
            with suppress(trio.BrokenResourceError):
                assert b" 200" not in await said(port, request_ + b"\r\n\r\n")
        assert b" 200" in await said(port, get("/api/v1/status"))


async def test_who_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PATIENCE", 0.1)
    async with served() as port:
        with trio.fail_after(20):
            assert b" 200" not in await said(port, b"GET / HT")


async def test_connections_beyond_the_bound_wait() -> None:
    async with served(connections=1) as port, await trio.open_tcp_stream(HOST, port) as first:
        await first.send_all(get("/api/v1/status")[:-2])
        answers: list[bytes] = []

        async def second() -> None:
            answers.append(await said(port, get("/api/v1/status")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(second)
            await trio.sleep(0.1)
            assert answers == []
            await first.send_all(b"\r\n")
            assert b" 200" in b"".join([part async for part in first])
        assert b" 200" in answers[0]


async def test_the_feed_ends_with_the_process() -> None:
    async with served() as port:
        stream = await trio.open_tcp_stream(HOST, port)
        await stream.send_all(get("/api/v1/feed"))
        received = b""
        while b"event: second" not in received:
            received += await stream.receive_some()
    with trio.fail_after(5):
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    await stream.aclose()


async def test_a_reader_that_does_not_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PATIENCE", 0.2)
    ended = trio.Event()

    async def endless(scope: object, receive: object, send: object) -> None:
        try:
            start = {"type": "http.response.start", "status": 200, "headers": []}
            await send(start)  # type: ignore[operator]
            while not ended.is_set():
                body = {"type": "http.response.body", "body": b"x" * 65536, "more_body": True}
                await send(body)  # type: ignore[operator]
                message = None
                with trio.move_on_after(0.001):
                    message = await receive()  # type: ignore[operator]
                if message is not None and message["type"] == "http.disconnect":
                    ended.set()
        finally:
            ended.set()

    async with served(app=endless) as port:
        stream = await trio.open_tcp_stream(HOST, port)
        await stream.send_all(get("/"))
        with trio.fail_after(20):
            await ended.wait()
        await stream.aclose()


async def test_a_bug_answers_500_and_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()

    async def buggy(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("a bug")

    async with served(app=buggy) as port:
        answer = await said(port, get("/"))
        assert b" 200" not in answer.partition(b"\r\n")[0]
    assert "console_request_failed" in capsys.readouterr().out + capsys.readouterr().err
    assert world.done == []


async def test_a_port_in_use_is_explained() -> None:
    async with served() as port:
        mistake = ""
        try:
            await serve_console(ConsoleSettings(Address(HOST, port)), World().app)
        except ConfigurationError as error:
            mistake = str(error)
        assert mistake.startswith(f"cannot listen on {HOST}:{port}: address already in use")
