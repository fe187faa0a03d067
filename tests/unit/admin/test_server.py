"""The HTTP/1.1 server: what it answers, and how it defends itself."""

from __future__ import annotations

import errno
import gzip
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network
from itertools import chain, pairwise, repeat

import h11
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from gateway.admin import server
from gateway.admin.http import MOST_FIELDS, PATIENCE
from gateway.admin.routes import METRICS_TYPE, alive, routes
from gateway.admin.server import Actions, Bounds, Routes, Site, serve
from gateway.errors import ConfigurationError
from gateway.listening.acceptor import Acceptor
from gateway.listening.arrivals import Arrivals
from gateway.listening.proxied import TrustedProxies
from gateway.wire.address import Address

pytestmark = pytest.mark.trio

# Status, headers, body.
Answer = tuple[int, dict[bytes, bytes], bytes]

ANYWHERE = Address("127.0.0.1", 0)
GET = b"GET %b HTTP/1.1\r\nHost: gw\r\n%b\r\n"


class Gateway:
    """The state behind the routes."""

    def __init__(self) -> None:
        self.started = True
        self.reasons: list[str] = []
        self.chunks: Iterable[bytes] = [b"one 1\n", b"", b"two 2\n"]

    def routes(self) -> Routes:
        metrics = {"/metrics": lambda: iter(self.chunks)}
        return routes(metrics, lambda: self.started, lambda: self.reasons)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def answers_in(data: bytes, *methods: str) -> list[Answer]:
    """Parse the answers to requests of these methods: status, headers, body."""
    client = h11.Connection(h11.CLIENT)
    found: list[Answer] = []
    client.receive_data(data)
    client.receive_data(b"")
    for method in methods:
        client.send(h11.Request(method=method, target="/", headers=[("Host", "gw")]))
        client.send(h11.EndOfMessage())
        head, body = client.next_event(), b""
        assert isinstance(head, h11.Response)
        while isinstance(part := client.next_event(), h11.Data):
            body += part.data
        assert isinstance(part, h11.EndOfMessage)
        found.append((head.status_code, dict(head.headers), body))
        if client.our_state is h11.DONE and client.their_state is h11.DONE:
            client.start_next_cycle()
    return found


async def attend(
    stream: trio.abc.HalfCloseableStream, known: Routes, actions: Actions = server.NONE
) -> None:
    """Serve a single connection."""
    site = Site(known, actions)
    site.openings.begin(stream, "192.0.2.1")
    await server.attend(stream, site, "192.0.2.1")


async def said(request: bytes, known: Routes, actions: Actions = server.NONE) -> bytes:
    """Send bytes and the end of the stream. Return everything received."""
    client, served = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attend, served, known, actions)
        await client.send_all(request)
        await client.send_eof()
        return b"".join([bytes(data) async for data in client])


async def asked(request: bytes, known: Routes, method: str = "GET") -> Answer:
    (answer,) = answers_in(await said(request, known), method)
    return answer


# -- routes ----------------------------------------------------------------------------------


async def test_livez_answers_while_the_process_lives(gateway: Gateway) -> None:
    gateway.reasons = ["draining"]
    status, _, body = await asked(GET % (b"/livez", b""), gateway.routes())
    assert (status, body) == (200, b"alive\n")


async def test_startupz_tells_whether_listeners_have_been_open(gateway: Gateway) -> None:
    gateway.reasons, gateway.started = ["draining"], False
    status, _, body = await asked(GET % (b"/startupz", b""), gateway.routes())
    assert (status, body) == (503, b"starting\n")
    gateway.started = True
    status, _, body = await asked(GET % (b"/startupz", b""), gateway.routes())
    assert (status, body) == (200, b"ready\n")


async def test_readyz_answers_ready(gateway: Gateway) -> None:
    status, _, body = await asked(GET % (b"/readyz", b""), gateway.routes())
    assert (status, body) == (200, b"ready\n")


async def test_readyz_lists_the_reasons_against_it(gateway: Gateway) -> None:
    gateway.reasons = ["no healthy broker in cluster main", "draining"]
    status, _, body = await asked(GET % (b"/readyz", b""), gateway.routes())
    assert (status, body) == (503, b"no healthy broker in cluster main\ndraining\n")


async def test_a_route_may_have_to_wait_for_its_answer() -> None:
    async def late() -> server.Answer:
        await trio.lowlevel.checkpoint()
        return server.Answer(200, [b"late\n"])

    assert (await asked(GET % (b"/late", b""), {"/late": late}))[2] == b"late\n"


async def test_metrics_are_sent_in_chunks(gateway: Gateway) -> None:
    status, headers, body = await asked(GET % (b"/metrics?x=y", b""), gateway.routes())
    assert (status, body) == (200, b"one 1\ntwo 2\n")
    assert headers[b"content-type"] == METRICS_TYPE.encode()
    assert headers[b"transfer-encoding"] == b"chunked"


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        (b"gzip", True),
        (b"deflate, GZIP", True),
        (b"identity", False),
        (b"gzip;q=0", False),
        (b"gzipped", False),
    ],
)
async def test_metrics_are_compressed_if_the_client_accepts_that(
    gateway: Gateway, accepted: bytes, zipped: bool
) -> None:
    request = GET % (b"/metrics", b"Accept-Encoding: %b\r\n" % accepted)
    _, headers, body = await asked(request, gateway.routes())
    assert (headers.get(b"content-encoding") == b"gzip") is zipped
    assert (gzip.decompress(body) if zipped else body) == b"one 1\ntwo 2\n"


async def test_head_has_no_body(gateway: Gateway) -> None:
    gateway.chunks = untouched = iter([b"one 1\n"])
    request = (GET % (b"/metrics", b"")).replace(b"GET", b"HEAD")
    status, headers, body = await asked(request, gateway.routes(), "HEAD")
    assert (status, body) == (200, b"")
    assert headers[b"content-type"] == METRICS_TYPE.encode()
    assert list(untouched) == [b"one 1\n"]


async def test_an_unknown_path_is_not_found(gateway: Gateway) -> None:
    status, _, body = await asked(GET % (b"/", b""), gateway.routes())
    assert (status, body) == (404, b"not here; /livez /metrics /readyz /startupz\n")


async def test_another_method_is_not_allowed(gateway: Gateway) -> None:
    request = (GET % (b"/metrics", b"")).replace(b"GET", b"DELETE")
    status, headers, body = await asked(request, gateway.routes())
    assert (status, body) == (405, b"only GET and HEAD\n")
    assert headers[b"allow"] == b"GET, HEAD"


# -- actions ---------------------------------------------------------------------------------

POST = b"POST %b HTTP/1.1\r\nHost: gw\r\n\r\n"


def acting() -> tuple[Routes, Actions]:
    """Serve a path for GET and POST, and one for POST only; both echo the request."""

    def echo(query: Mapping[str, str]) -> server.Answer:
        return server.Answer(200, [repr(dict(query)).encode()])

    return {"/both": lambda: server.Answer(200, [b"got"])}, {"/both": echo, "/act": echo}


async def acted(request: bytes, method: str = "POST") -> Answer:
    known, actions = acting()
    (answer,) = answers_in(await said(request, known, actions), method)
    return answer


async def test_an_action_gets_the_query() -> None:
    status, _, body = await acted(POST % b"/act?topic=a%2Fb&assigned=true&x=&x=y&empty=")
    wanted = {"topic": "a/b", "assigned": "true", "x": "y", "empty": ""}
    assert (status, body) == (200, repr(wanted).encode())


async def test_a_path_may_have_a_route_and_an_action() -> None:
    assert (await acted(GET % (b"/both?x=y", b""), "GET"))[2] == b"got"
    assert (await acted(POST % b"/both?x=y"))[2] == b"{'x': 'y'}"


async def test_an_action_cannot_be_read() -> None:
    status, headers, body = await acted(GET % (b"/act", b""), "GET")
    assert (status, headers[b"allow"], body) == (405, b"POST", b"only POST\n")


async def test_an_unknown_action_is_not_found() -> None:
    assert (await acted(POST % b"/"))[::2] == (404, b"not here; /act /both\n")


async def test_the_gateway_has_no_actions(gateway: Gateway) -> None:
    status, headers, _ = await asked(POST % b"/metrics", gateway.routes(), "POST")
    assert (status, headers[b"allow"]) == (405, b"GET, HEAD")


# -- connections -----------------------------------------------------------------------------


async def test_a_connection_is_kept_for_more_requests(gateway: Gateway) -> None:
    data = await said(2 * (GET % (b"/livez", b"")) + GET % (b"/readyz", b""), gateway.routes())
    assert [body for _, _, body in answers_in(data, "GET", "GET", "GET")] == [
        b"alive\n",
        b"alive\n",
        b"ready\n",
    ]


@pytest.mark.parametrize(
    "request_",
    [b"GET /livez HTTP/1.0\r\n\r\n", GET % (b"/livez", b"Connection: close\r\n")],
)
async def test_a_connection_closes_if_the_client_asks(gateway: Gateway, request_: bytes) -> None:
    data = await said(request_ * 2, gateway.routes())
    assert data.count(b"alive") == 1


async def test_a_body_is_not_read(gateway: Gateway) -> None:
    request = GET % (b"/livez", b"Content-Length: 1000000000\r\n") + b"x" * 5000
    status, headers, _ = await asked(request, gateway.routes())
    assert (status, headers[b"connection"]) == (200, b"close")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x00\x00\x00\x10\x00\x00\x00\x0cPulsar", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET /livez HTTP/2.0\r\nHost: gw\r\n\r\n", 505),
        (GET % (b"/livez", b"X: y\r\n" * MOST_FIELDS), 431),
        (GET % (b"/livez", b"Content-Length: x\r\n"), 400),
        (GET % (b"/livez", b"Transfer-Encoding: thing\r\n"), 501),
        (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /livez", 400),
        (b"\x16\x03\x01" + b"\x00" * 300, 400),  # TLS
    ],
)
async def test_an_invalid_request_is_refused_and_the_connection_closes(
    gateway: Gateway, request_: bytes, status: int
) -> None:
    data = await said(request_ + GET % (b"/livez", b""), gateway.routes())
    assert int(data.split()[1]) == status
    assert b"alive" not in data


async def test_few_requests_are_read_between_two_polls_of_other_sockets() -> None:
    """However many connections have sent however many at once."""
    read: list[int] = []

    def counted() -> server.Answer:
        read.append(1)
        return alive()

    site = Site({"/livez": counted})
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            client, served = trio.testing.memory_stream_pair()
            await client.send_all(10 * (GET % (b"/livez", b"")))
            await client.send_eof()
            site.openings.begin(served, "192.0.2.1")
            nursery.start_soon(server.attend, served, site, "192.0.2.1")
        seen = [len(read)]
        while len(read) < 200:
            await trio.lowlevel.checkpoint()
            seen.append(len(read))
    assert max(after - before for before, after in pairwise(seen)) <= 2


async def test_a_path_that_is_not_text_is_not_found(gateway: Gateway) -> None:
    status, _, _ = await asked(GET % (b"/%ff\xe9", b""), gateway.routes())
    assert status in {400, 404}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=50),
            st.sampled_from(
                [GET % (b"/livez", b""), b"\r\n", b"GET ", b" HTTP/1.1\r\n", b"Host: a"]
            ),
        ),
        max_size=8,
    )
)
async def test_no_bytes_make_the_server_fail(pieces: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_log", lambda: pytest.fail("a request failed"))
        await said(b"".join(pieces), Gateway().routes())


async def test_a_failing_route_closes_its_connection_only(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []

    class Log:
        def exception(self, event: str) -> None:
            failures.append(event)

    monkeypatch.setattr(server, "_log", Log)

    def broken() -> Iterator[bytes]:
        yield b"part\n"
        raise RuntimeError

    gateway.chunks = broken()
    data = await said(GET % (b"/metrics", b""), gateway.routes())
    assert not data
    assert failures == ["admin_request_failed"]


# -- patience --------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", b"GET /livez HT"])
async def test_a_silent_client_is_disconnected(
    gateway: Gateway, autojump_clock: trio.testing.MockClock, start: bytes
) -> None:
    client, served = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attend, served, gateway.routes())
        await client.send_all(start) if start else None
        assert await client.receive_some() == b""
        assert trio.current_time() == pytest.approx(PATIENCE, abs=0.1)


async def test_slow_bytes_do_not_extend_the_timeout(
    gateway: Gateway, autojump_clock: trio.testing.MockClock
) -> None:
    client, served = trio.testing.memory_stream_pair()

    async def drip() -> None:
        with suppress(trio.BrokenResourceError):
            for byte in GET % (b"/livez", b""):
                await client.send_all(bytes([byte]))
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip)
        await attend(served, gateway.routes())
        assert trio.current_time() <= PATIENCE + 2
        nursery.cancel_scope.cancel()


async def test_a_client_that_never_reads_is_disconnected(
    gateway: Gateway, autojump_clock: trio.testing.MockClock
) -> None:
    client, served = trio.testing.lockstep_stream_pair()

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    gateway.chunks = endless()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.send_all, GET % (b"/metrics", b""))
        await attend(served, gateway.routes())
    assert trio.current_time() <= PATIENCE + 2


async def test_each_request_has_its_own_timeout(
    gateway: Gateway, autojump_clock: trio.testing.MockClock
) -> None:
    client, served = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attend, served, gateway.routes())
        for _ in range(3):
            await trio.sleep(PATIENCE - 1)
            await client.send_all(GET % (b"/livez", b""))
            assert b"alive" in await client.receive_some()
        await client.aclose()


# -- listening -------------------------------------------------------------------------------


async def fetched(
    address: Address, request: bytes = GET % (b"/livez", b"Connection: close\r\n")
) -> bytes:
    async with await trio.open_tcp_stream(*address.pair) as client:
        await client.send_all(request)
        return b"".join([bytes(data) async for data in client])


async def test_the_server_reports_the_addresses_that_it_listens_on(
    gateway: Gateway, nursery: trio.Nursery
) -> None:
    (address,) = await nursery.start(serve, ANYWHERE, gateway.routes())
    assert address.port
    assert b"alive" in await fetched(address)


async def test_an_address_in_use_is_explained(gateway: Gateway, nursery: trio.Nursery) -> None:
    (address,) = await nursery.start(serve, ANYWHERE, gateway.routes())
    with pytest.raises(ConfigurationError) as caught:
        await serve(address, gateway.routes())
    assert str(caught.value).startswith(f"cannot listen on {address}: address already in use; ")


async def test_a_foreign_address_is_explained(gateway: Gateway) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1:1: cannot assign"):
        await serve(Address("192.0.2.1", 1), gateway.routes())


async def test_the_empty_host_means_all_addresses(gateway: Gateway, nursery: trio.Nursery) -> None:
    addresses = await nursery.start(serve, Address("", 0), gateway.routes())
    assert b"alive" in await fetched(Address("127.0.0.1", addresses[0].port))


def stated(client: str, request: bytes = GET % (b"/livez", b"Connection: close\r\n")) -> bytes:
    return f"PROXY TCP4 {client} 192.0.2.1 5000 8080\r\n".encode() + request


async def test_a_proxy_states_who_connects_and_how_often(
    gateway: Gateway, nursery: trio.Nursery
) -> None:
    arrivals = Arrivals(TrustedProxies([IPv4Network("127.0.0.0/8")]), 1)
    start = partial(serve, ANYWHERE, gateway.routes(), client_of=arrivals.client)
    (address,) = await nursery.start(start)
    for _ in range(2):
        assert b"alive" in await fetched(address, stated("192.0.2.7"))
    for refused in (stated("192.0.2.7"), b"PROXY nobody\r\n"):
        with suppress(trio.BrokenResourceError):
            assert await fetched(address, refused) == b""
    assert b"alive" in await fetched(address, stated("192.0.2.8"))


@pytest.fixture
async def small(gateway: Gateway, nursery: trio.Nursery) -> Address:
    """Serve three connections, and one long answer at a time."""
    bounds = Bounds(connections=3, long=1)
    start = partial(serve, ANYWHERE, gateway.routes(), bounds=bounds)
    (address,) = await nursery.start(start)
    assert isinstance(address, Address)
    return address


async def ended(client: trio.SocketStream) -> bool:
    """Return true if the connection is closed by the time all others are idle."""
    with trio.move_on_after(0.05):
        try:
            return await client.receive_some() == b""
        except trio.BrokenResourceError:
            return True
    return False


async def test_a_new_connection_replaces_the_oldest_one(small: Address) -> None:
    idle = [await trio.open_tcp_stream(*small.pair) for _ in range(3)]
    for client in idle:
        await client.send_all(GET % (b"/livez", b""))
        assert b"alive" in await client.receive_some()
    assert b"alive" in await fetched(small)
    assert [await ended(it) for it in idle] == [True, False, False]
    for client in idle:
        await client.aclose()


@pytest.mark.parametrize("said", [b"", b"GET /livez HT", GET % (b"/metrics", b"")])
async def test_probes_are_answered_whatever_other_clients_do(
    gateway: Gateway, small: Address, said: bytes
) -> None:
    gateway.chunks = repeat(b"x" * 65536)
    others = []
    for _ in range(20):
        others.append(await trio.open_tcp_stream(*small.pair))
        if said:
            await others[-1].send_all(said)
    for _ in range(5):
        assert b"alive" in await fetched(small)
    for client in others:
        await client.aclose()


async def test_a_client_that_reads_a_long_answer_stays(gateway: Gateway, small: Address) -> None:
    gateway.chunks = chain(repeat(b"x" * 65536, 300), [b"end"])
    scraper = await trio.open_tcp_stream(*small.pair)
    await scraper.send_all(GET % (b"/metrics", b"Connection: close\r\n"))
    await scraper.receive_some()
    for _ in range(10):
        assert b"alive" in await fetched(small)
    assert b"".join([bytes(data) async for data in scraper]).endswith(b"end\r\n0\r\n\r\n")


async def test_long_answers_are_made_one_at_a_time(gateway: Gateway, nursery: trio.Nursery) -> None:
    """The last client to arrive comes next."""
    order: list[bytes] = []
    made = trio.Event()

    async def slow() -> server.Answer:
        order.append(b"begun")
        await made.wait()
        order.append(b"made")
        return server.Answer(200, [b"slow\n"])

    known = {"/slow": server.Long(slow)}
    start = partial(serve, ANYWHERE, known, bounds=Bounds(connections=9, long=1))
    (address,) = await nursery.start(start)
    async with trio.open_nursery() as asking:
        for _ in range(3):
            asking.start_soon(fetched, address, GET % (b"/slow", b"Connection: close\r\n"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert order == [b"begun"]
        made.set()
    assert order == [b"begun", b"made"] * 3


async def test_a_long_answer_that_is_not_read_is_given_up(
    gateway: Gateway, autojump_clock: trio.testing.MockClock
) -> None:
    known = {**gateway.routes(), "/endless": server.Long(endless)}
    site = Site(known, bounds=Bounds(connections=9, long=1))
    async with trio.open_nursery() as nursery:
        stuck, served = trio.testing.lockstep_stream_pair()
        site.openings.begin(served, "192.0.2.1")
        nursery.start_soon(server.attend, served, site, "192.0.2.1")
        await stuck.send_all(GET % (b"/endless", b""))
        await trio.testing.wait_all_tasks_blocked()
        client, other = trio.testing.memory_stream_pair()
        site.openings.begin(other, "192.0.2.1")
        nursery.start_soon(server.attend, other, site, "192.0.2.1")
        await client.send_all(GET % (b"/metrics", b""))
        assert b"two 2" in await client.receive_some()
        assert trio.current_time() == pytest.approx(server.LONG_PATIENCE, abs=0.1)
        await client.aclose()


def endless() -> server.Answer:
    return server.Answer(200, repeat(b"x" * 65536))


async def test_idle_connections_are_evicted_when_descriptors_run_out(
    small: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = [await trio.open_tcp_stream(*small.pair) for _ in range(2)]
    scarce(monkeypatch, failures=1)
    for _ in range(2):
        assert b"alive" in await fetched(small)
    assert [await ended(it) for it in idle] == [True, False]
    for client in idle:
        await client.aclose()


def scarce(monkeypatch: pytest.MonkeyPatch, failures: int) -> list[float]:
    """Fail to accept a number of times. Return the list of the times of all tries."""
    accept = Acceptor._accept_some
    tries: list[float] = []

    def accepting(self: Acceptor, listener: socket.socket, reached: Address) -> None:
        tries.append(trio.current_time())
        if len(tries) <= failures:
            raise OSError(errno.EMFILE, "Too many open files")
        accept(self, listener, reached)

    monkeypatch.setattr(Acceptor, "_accept_some", accepting)
    return tries


async def test_the_server_survives_running_out_of_descriptors(
    gateway: Gateway,
    nursery: trio.Nursery,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
) -> None:
    tries = scarce(monkeypatch, failures=3)
    with capture_logs() as lines:
        (address,) = await nursery.start(serve, ANYWHERE, gateway.routes())
        assert b"alive" in await fetched(address)
    failed = [(line["event"], line["listener"]) for line in lines]
    assert failed == [("accept_failed", "admin")] * 3
    assert tries[3] - tries[0] == pytest.approx(0.3)


async def test_a_client_that_disconnects_harms_nobody(
    gateway: Gateway, nursery: trio.Nursery
) -> None:
    gateway.chunks = [b"x" * 100_000] * 100
    (address,) = await nursery.start(serve, ANYWHERE, gateway.routes())
    for _ in range(3):
        client = await trio.open_tcp_stream(*address.pair)
        await client.send_all(GET % (b"/metrics", b""))
        await client.receive_some(10)
        await client.aclose()
    assert b"alive" in await fetched(address)


async def test_other_tasks_run_while_a_long_answer_is_made(
    gateway: Gateway, nursery: trio.Nursery
) -> None:
    (address,) = await nursery.start(serve, ANYWHERE, gateway.routes())
    made: list[int] = []
    seen: list[int] = []

    def long() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            time.sleep(0.001)  # as a slow chunk does
            yield b""

    async def watch() -> None:
        while len(made) < 100:
            seen.append(len(made))
            await trio.lowlevel.checkpoint()

    gateway.chunks = long()
    nursery.start_soon(watch)
    await fetched(address, GET % (b"/metrics", b"Connection: close\r\n"))
    assert len(set(seen)) > 30


# -- OpenMetrics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "ends", "version"),
    [
        (b"application/openmetrics-text; version=1.0.0, text/plain;q=0.5", True, b"1.0.0"),
        (b"text/plain; version=0.0.4", False, b"0.0.4"),
        (b"*/*", False, b"0.0.4"),
        (b"application/openmetrics-text-like", False, b"0.0.4"),
    ],
)
async def test_a_scraper_gets_the_format_that_it_asks_for(
    gateway: Gateway, accepted: bytes, ends: bool, version: bytes
) -> None:
    request = GET % (b"/metrics", b"Accept: %b\r\n" % accepted)
    _, headers, body = await asked(request, gateway.routes())
    assert body.endswith(b"# EOF\n") == ends
    assert b"version=" + version in headers[b"content-type"]
