"""The console's connections: bounded, patient for a while, and closed at the end."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.resources import files
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.admin import http
from gateway.admin.http import MOST_FIELDS
from gateway.console import exchange
from gateway.console.guard import LARGEST_BODY
from gateway.console.serving import ConsoleSettings, serve_console
from gateway.errors import ConfigurationError
from gateway.listening.arrivals import Arrivals
from gateway.listening.openings import Openings
from gateway.listening.proxied import TrustedProxies
from gateway.tls.sides import ClientCertificates, ServerSide
from gateway.wire.address import Address
from tests.support.tls import NAME
from tests.unit.console.world import World
from tests.unit.tls.samples import House, trusting

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"

Stream = trio.SSLStream[trio.SocketStream]


@asynccontextmanager
async def served(
    connections: int = 64,
    app: ASGIApp | None = None,
    token: bytes | None = None,
    openings: Openings | None = None,
    tls: ServerSide | None = None,
    arrivals: Arrivals | None = None,
) -> AsyncIterator[int]:
    """Serve a console; yield its port."""
    settings = ConsoleSettings(Address(HOST, 0), connections, tls=tls, arrivals=arrivals)
    world = World(token)
    bounded = Openings(1000) if openings is None else openings
    given = app or world.app, world.app.is_operator, bounded
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.feed.run)
        (address,) = await nursery.start(serve_console, settings, *given)
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
    monkeypatch.setattr(http, "PATIENCE", 0.1)
    async with served() as port:
        with trio.fail_after(20):
            assert b" 200" not in await said(port, b"GET / HT")


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with served() as port:
        first = get("/page.css").replace(b"Connection: close\r\n", b"")
        answers = await said(port, first * 3 + get("/api/v1/status"))
        assert answers.count(b"HTTP/1.1 200") == 4


async def test_a_head_has_a_bounded_number_of_lines() -> None:
    async with served() as port:
        request = get("/").replace(b"\r\n\r\n", b"\r\n" + b"x: y\r\n" * MOST_FIELDS + b"\r\n")
        assert b" 431" in (await said(port, request)).partition(b"\r\n")[0]


async def test_http_2_by_prior_knowledge_is_refused() -> None:
    async with served() as port:
        settings = b"\0\0\0\4\0\0\0\0\0"
        answer = await said(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        assert answer.startswith(b"HTTP/1.1 505")


async def test_a_request_has_a_body_of_bounded_size() -> None:
    async with served() as port:
        head = f"POST /api/v1/log HTTP/1.1\r\nHost: {HOST}\r\nx-gateway-action: 1\r\n".encode()
        body = b'{"level": "info", "seconds": 1}'
        chunk = b"%x\r\n%b\r\n" % (LARGEST_BODY + 1, b"x" * (LARGEST_BODY + 1))
        for more, status in (
            (b"Content-Length: %d\r\n\r\n%b" % (len(body), body), b" 200"),
            (b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n", b" 413"),
        ):
            end = more.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
            assert status in (await said(port, head + end)).partition(b"\r\n")[0]


async def test_a_head_request_gets_no_body() -> None:
    async with served() as port:
        head, _, body = (await said(port, b"HEAD" + get("/page.js")[3:])).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert body == b""


TOKEN = b"a token of an operator"


def operated(path: str) -> bytes:
    """Return an operator's request."""
    return get(path).replace(b"\r\n", b"\r\nAuthorization: Bearer %b\r\n" % TOKEN, 1)


async def test_strangers_take_no_place_of_an_operator() -> None:
    """They ask for a public file now and then, from one address."""
    openings = Openings(8)
    public = get("/page.js").replace(b"Connection: close\r\n", b"")
    async with served(1, token=TOKEN, openings=openings) as port, AsyncExitStack() as opened:
        for _ in range(64):
            stranger = await opened.enter_async_context(await trio.open_tcp_stream(HOST, port))
            await stranger.send_all(public)
            assert b" 200" in await stranger.receive_some()
        assert b" 200" in await said(port, operated("/api/v1/status"))
        assert len(openings) <= 8


async def test_an_operator_counts_no_more_as_a_stranger() -> None:
    openings = Openings(2)
    async with (
        served(token=TOKEN, openings=openings) as port,
        await trio.open_tcp_stream(HOST, port) as operator,
    ):
        await operator.send_all(operated("/api/v1/feed"))
        assert b" 200" in await operator.receive_some()
        assert len(openings) == 0
        for _ in range(5):
            assert b" 401" in await said(port, get("/api/v1/status"))
        received = b""
        while b"event: second" not in received:
            received += await operator.receive_some()


async def test_more_operators_than_the_bound_are_refused() -> None:
    async with served(1, token=TOKEN) as port, await trio.open_tcp_stream(HOST, port) as first:
        await first.send_all(operated("/api/v1/feed"))
        assert b" 200" in await first.receive_some()
        assert b" 503" in await said(port, operated("/api/v1/status"))
        assert b" 200" in await said(port, get("/page.js"))


# -- addresses -------------------------------------------------------------------------------------

PROXIES = TrustedProxies([IPv4Network("127.0.0.0/8")])


def stated(client: str) -> bytes:
    return f"PROXY TCP4 {client} 192.0.2.1 5000 8090\r\n".encode()


async def test_a_proxy_states_the_address_of_an_operator() -> None:
    openings = Openings(2)
    async with (
        served(openings=openings, arrivals=Arrivals(PROXIES, None)) as port,
        await trio.open_tcp_stream(HOST, port) as client,
    ):
        await client.send_all(stated("192.0.2.7") + get("/page.js")[:-2])
        while list(openings._under_way.values()) != ["192.0.2.7"]:  # noqa: ASYNC110 - the server's
            await trio.sleep(0.01)
        await client.send_all(b"\r\n")
        assert b" 200" in await client.receive_some()


@pytest.mark.parametrize("first", [get("/page.js"), b"PROXY nobody\r\n"], ids=["none", "wrong"])
async def test_without_its_header_a_proxys_connection_ends(first: bytes) -> None:
    async with served(arrivals=Arrivals(PROXIES, None)) as port:
        with suppress(trio.BrokenResourceError):
            assert await said(port, first) == b""


async def test_an_address_that_connects_too_often_waits_until_it_may() -> None:
    async with served(arrivals=Arrivals(PROXIES, 1)) as port:
        for _ in range(2):
            assert b" 200" in await said(port, stated("192.0.2.7") + get("/page.js"))
        with suppress(trio.BrokenResourceError):
            assert await said(port, stated("192.0.2.7") + get("/page.js")) == b""
        assert b" 200" in await said(port, stated("192.0.2.8") + get("/page.js"))


# -- TLS -------------------------------------------------------------------------------------------


@asynccontextmanager
async def secured(port: int, context: ssl.SSLContext) -> AsyncIterator[Stream]:
    plain = await trio.open_tcp_stream(HOST, port)
    async with trio.SSLStream(plain, context, server_hostname=NAME) as stream:
        yield stream


async def test_with_tls_browsers_are_offered_http_1(tmp_path: Path) -> None:
    house = House(tmp_path)
    context = trusting(house)
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with served(tls=house.server(application="http/1.1")) as port:
        async with secured(port, context) as stream:
            await stream.send_all(get("/page.js"))
            received = b"".join([part async for part in stream])
            assert stream.selected_alpn_protocol() == "http/1.1"
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert body == files("gateway.console").joinpath("page", "page.js").read_bytes()


async def test_a_client_with_a_certificate_is_no_stranger(tmp_path: Path) -> None:
    house, openings = House(tmp_path), Openings(1000)
    asks: dict[str, Any] = {
        "client_certificates": ClientCertificates.REQUIRED,
        "authorities": house.authorities,
    }
    context = trusting(house)
    context.load_cert_chain(*house.pair("an operator", file="operator"))
    async with (
        served(tls=house.server(**asks), openings=openings) as port,
        secured(port, context) as stream,
    ):
        await stream.send_all(get("/page.css").replace(b"Connection: close\r\n", b""))
        assert b" 200" in await stream.receive_some()
        assert len(openings) == 0


async def test_a_peer_that_speaks_no_tls_is_closed(tmp_path: Path) -> None:
    openings = Openings(1000)
    async with served(tls=House(tmp_path).server(), openings=openings) as port:
        assert b" 200" not in await said(port, get("/"))
    assert len(openings) == 0


# -- ends ------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(exchange, "PATIENCE", 0.2)
    ended = trio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            start = {"type": "http.response.start", "status": 200, "headers": []}
            await send(start)
            while not ended.is_set():
                body = {"type": "http.response.body", "body": b"x" * 65536, "more_body": True}
                await send(body)
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

    async def buggy(scope: Scope, receive: Receive, send: Send) -> None:
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
            settings, world = ConsoleSettings(Address(HOST, port)), World()
            await serve_console(settings, world.app, world.app.is_operator, Openings(1))
        except ConfigurationError as error:
            mistake = str(error)
        assert mistake.startswith(f"cannot listen on {HOST}:{port}: address already in use")
