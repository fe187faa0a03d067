"""The PROXY protocol at a listener: listed proxies say who their clients are, and nobody else."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from ipaddress import ip_network
from pathlib import Path

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.listening.proxied import Introduction, TrustedProxies, header_of
from gateway.plane.stream import Stream
from gateway.tls.files import common_name_of
from gateway.tls.handshake import shake
from gateway.tls.sides import ClientCertificates
from gateway.wire.address import Address
from gateway.wire.contract import Dial, Dialled, EndReason, Opened, Opening, Origin, Peer, Receive
from gateway.wire.proxy_header import (
    AUTHORITY,
    LOCAL_HEADER,
    LONGEST_REST,
    PRINCIPAL,
    SIGNATURE,
    SSL,
    Header,
    HeaderError,
    Tls,
    Value,
    made,
    read,
)
from tests.plane.protocol import FakeSession, passing
from tests.support.tls import NAME
from tests.unit.tls.samples import House

from .fakes import LOOPBACK, Serving, Talker, greeting, hello, serving, until, welcome
from .test_tls import Client

Clock = trio.testing.MockClock

LINE = b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 6650\r\n"
CLIENT, REACHED = Address("10.0.0.1", 40000), Address("10.0.0.2", 6650)
BINARY = made(Header(CLIENT, REACHED, (Value(AUTHORITY, b"a.example"),)))
BOTH = pytest.mark.parametrize("header", [LINE, BINARY], ids=["v1", "v2"])

TRUSTED = TrustedProxies([ip_network("127.0.0.0/8")])
OTHERS = TrustedProxies([ip_network("127.0.0.2/32"), ip_network("::1/128")])


# -- taking a header -------------------------------------------------------------------------


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection; its first end does not block."""
    near, far = socket.socketpair()
    near.setblocking(False)
    with closing(near), closing(far):
        yield near, far


async def readable(stream: Stream) -> None:
    await trio.lowlevel.wait_readable(stream.fileno())


@BOTH
async def test_no_byte_behind_the_header_is_taken(
    header: bytes, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    far.send(header + b"the client's")
    taken = await header_of(near, readable)
    assert taken is not None
    assert taken.source == CLIENT
    assert near.recv(100) == b"the client's"


@BOTH
async def test_a_part_of_a_header_wakes_its_reader_once(
    header: bytes, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    waits = 0

    async def next_byte(stream: Stream) -> None:
        nonlocal waits
        assert stream is near
        far.send(header[waits : waits + 1])
        waits += 1
        await readable(stream)

    taken = await header_of(near, next_byte)
    assert taken is not None
    assert taken.source == CLIENT
    assert waits == len(header)


@BOTH
async def test_a_header_in_any_two_parts_is_taken(header: bytes) -> None:
    for cut in range(1, len(header)):
        near, far = socket.socketpair()
        with closing(near), closing(far):
            near.setblocking(False)
            far.send(header[:cut])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(later, far, header[cut:] + b"rest")
                taken = await header_of(near, readable)
            assert taken is not None
            assert taken.source == CLIENT
            assert near.recv(100) == b"rest"


async def later(sock: socket.socket, data: bytes) -> None:
    """Send when everybody else waits."""
    await trio.testing.wait_all_tasks_blocked()
    sock.send(data)


@BOTH
async def test_a_connection_that_ends_within_its_header_is_refused(header: bytes) -> None:
    for cut in range(1, len(header)):
        near, far = socket.socketpair()
        with closing(near):
            near.setblocking(False)
            far.send(header[:cut])
            far.close()
            with pytest.raises(HeaderError):
                await header_of(near, readable)


async def test_a_connection_without_a_byte_has_no_header(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    near, far = ends
    far.shutdown(socket.SHUT_WR)
    assert await header_of(near, readable) is None


def test_proxies_are_listed_by_network() -> None:
    assert TRUSTED.include("127.0.0.5")
    assert OTHERS.include("::1")
    assert TrustedProxies([ip_network("fe80::/10")]).include("fe80::1%eth0")
    assert not TRUSTED.include("10.0.0.1")
    assert not TrustedProxies().include("127.0.0.1")


# -- a listener ------------------------------------------------------------------------------


def noting(origins: list[Origin]) -> Callable[[Origin], Opening]:
    """Return an opening that notes where clients come from."""

    def opener(origin: Origin) -> Opening:
        origins.append(origin)
        return (yield from greeting()(origin))

    return opener


async def served(running: Serving, client: Talker) -> None:
    """Answer the greeting that a client has sent."""
    known = len(running.dialler.brokers)
    await until(lambda: len(running.dialler.brokers) > known)
    broker = running.dialler.broker()
    assert await broker.hear(len(hello())) == hello()
    broker.say(welcome())
    assert await client.hear(len(welcome())) == welcome()


@BOTH
async def test_the_address_in_the_header_is_the_clients(header: bytes) -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), proxies=TRUSTED) as running:
        client = running.connect()
        client.say(header + hello() + passing(b"early"))
        await served(running, client)
        assert [origin.host for origin in origins] == ["10.0.0.1"]
        assert origins[0].reached == running.address
        assert await running.dialler.broker().hear(len(passing(b"early")))
        with capture_logs() as lines:
            client.close()
            await until(lambda: running.ended)
        assert lines[0]["client"] == "10.0.0.1:40000"


@BOTH
async def test_a_header_that_comes_byte_by_byte_is_read(header: bytes) -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), proxies=TRUSTED) as running:
        client = running.connect()
        for at in range(len(header)):
            client.say(header[at : at + 1])
            await trio.testing.wait_all_tasks_blocked()
        client.say(hello())
        await served(running, client)
        assert origins[0].host == "10.0.0.1"


@pytest.mark.parametrize("header", [LOCAL_HEADER, b"PROXY UNKNOWN\r\n"])
async def test_without_an_address_in_the_header_the_connections_own_stays(header: bytes) -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), proxies=TRUSTED) as running:
        client = running.connect()
        client.say(header + hello())
        await served(running, client)
        assert origins[0].host == "127.0.0.1"


async def test_a_client_that_is_no_proxy_is_a_client() -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), proxies=OTHERS) as running:
        client = running.connect()
        client.say(hello())
        await served(running, client)
        assert origins[0].host == "127.0.0.1"


@BOTH
@pytest.mark.parametrize("proxies", [None, OTHERS])
async def test_the_bytes_of_a_client_are_never_taken_for_a_header(
    header: bytes, proxies: TrustedProxies | None
) -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), proxies=proxies, handshake_frame=100) as running:
        client = running.connect()
        client.say(header + hello())
        with suppress(ConnectionResetError):  # it had sent more than was read
            await client.hear_all()
        await until(lambda: running.ended)
        assert running.ended == {EndReason.FRAME_TOO_LARGE: 1}  # the header, taken for a frame
        assert origins[0].host == "127.0.0.1"


# -- headers that are wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (hello(), "the connection does not begin with a PROXY header"),
        (b"\x16\x03\x01\x02\x00", "the connection does not begin with a PROXY header"),
        (b"PROXY TCP4 a b 1 2\r\n", "the line of a PROXY header has a wrong address"),
        (b"PROXY " + b"x" * 101, "the line of a PROXY header has no end within 107 bytes"),
        (
            SIGNATURE + b"\x21\x11" + (LONGEST_REST + 1).to_bytes(2),
            "a PROXY header of 2065 bytes; at most 2064",
        ),
        (SIGNATURE + b"\x31\x11\0\0", "a PROXY header of unknown version or command 0x31"),
    ],
)
async def test_a_wrong_header_ends_the_connection_without_a_farewell(
    said: bytes, detail: str
) -> None:
    async with serving(proxies=TRUSTED) as running:
        client = running.connect()
        with capture_logs() as lines:
            client.say(said)
            heard = b""
            with suppress(ConnectionResetError):  # it had sent more than was read
                heard = await client.hear_all()
            await until(lambda: running.ended)
        assert heard == b""
        assert running.ended == {EndReason.CLIENT_VIOLATION: 1}
        assert (lines[0]["log_level"], lines[0]["detail"]) == ("warning", detail)
        assert running.dialler.dialled == []


@pytest.mark.parametrize("said", [b"", LINE[:-1], BINARY[:-1]])
async def test_a_header_that_does_not_come_in_time_ends_the_connection(
    said: bytes, autojump_clock: Clock
) -> None:
    async with serving(proxies=TRUSTED, handshake=10) as running:
        client = running.connect()
        client.say(said)
        with capture_logs() as lines:
            assert await client.hear_all() == b""
            await until(lambda: running.ended)
        assert running.ended == {EndReason.CLIENT_VIOLATION: 1}
        assert lines[0]["detail"] == "no whole PROXY header came in time"


async def test_the_header_and_the_opening_have_one_deadline(autojump_clock: Clock) -> None:
    async with serving(proxies=TRUSTED, handshake=10) as running:
        client, began = running.connect(), trio.current_time()
        await trio.sleep(8)
        client.say(LINE)
        assert b"too long" in await client.hear_all()
        assert trio.current_time() - began < 12
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_a_proxy_that_only_looks_whether_a_listener_is_there_is_no_offender() -> None:
    async with serving(proxies=TRUSTED) as running:
        running.connect().close()
        await until(lambda: running.ended)
        assert running.ended == {EndReason.CLIENT_CLOSED: 1}


@pytest.mark.parametrize("said", [b"", LINE[:9]])
async def test_a_connection_that_is_reset_before_its_header_was_lost(said: bytes) -> None:
    async with serving(proxies=TRUSTED) as running:
        client = running.connect()
        client.say(said)
        await until(lambda: running.figures.opening)
        await trio.testing.wait_all_tasks_blocked()
        client.reset()
        await until(lambda: running.ended)
        assert running.ended == {EndReason.CLIENT_CLOSED: 1}


async def test_a_silent_proxy_gives_way_to_a_newcomer() -> None:
    async with serving(proxies=TRUSTED, most_opening=1, handshake=60) as running:
        running.connect()
        await until(lambda: running.figures.accepted == 1)
        await trio.testing.wait_all_tasks_blocked()
        client = running.connect()
        client.say(LINE + hello())
        await served(running, client)
        assert running.openings.figures.displaced == 1
        assert running.ended == {EndReason.CLIENT_VIOLATION: 1}


async def test_a_wait_for_a_header_that_is_cancelled_ends_as_drained() -> None:
    async with serving(proxies=TRUSTED) as running:
        client = running.connect()
        await until(lambda: running.counts == (1, 0))
        await trio.testing.wait_all_tasks_blocked()
        running.front.cancel()
        assert await client.hear_all() == b""
        await until(lambda: running.ended == {EndReason.DRAINED: 1})


async def test_a_full_listener_reads_the_header_before_its_farewell() -> None:
    async with serving(proxies=TRUSTED, connections=1) as running:
        first = running.connect()
        first.say(LINE + hello())
        await served(running, first)
        client = running.connect()
        with capture_logs() as lines:
            client.say(BINARY + hello())
            assert b"as many connections" in await client.hear_all()
        assert lines[0]["client"] == "10.0.0.1:40000"
        assert running.ended == {EndReason.TOO_MANY_CONNECTIONS: 1}


# -- before TLS ------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Return an authority with a folder of its own."""
    return House(tmp_path)


@BOTH
async def test_the_header_and_the_begin_of_tls_may_come_together(
    header: bytes, house: House
) -> None:
    origins: list[Origin] = []
    async with serving(noting(origins), tls=house.server(), proxies=TRUSTED) as running:
        talker = running.connect()
        outgoing = ssl.MemoryBIO()
        tls = ssl.create_default_context(cafile=house.authorities[0]).wrap_bio(
            incoming := ssl.MemoryBIO(), outgoing, server_hostname=NAME
        )
        with suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        talker.say(header + outgoing.read())
        while True:
            incoming.write(await some(talker))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                talker.say(outgoing.read())
        talker.say(outgoing.read())
        await until(lambda: origins)
        assert (origins[0].host, origins[0].server_name) == ("10.0.0.1", NAME)


async def some(talker: Talker) -> bytes:
    """Return what has come, at least one byte."""
    first = await talker.hear(1)
    with suppress(BlockingIOError):
        first += talker.sock.recv(1 << 16)
    return first


async def test_a_proxy_that_begins_with_tls_is_refused(house: House) -> None:
    async with serving(tls=house.server(), proxies=TRUSTED) as running:
        client = Client(running.connect(), house.client())
        client.stream.shake()
        with suppress(ConnectionResetError):
            assert await client.talker.hear_all() == b""
        await until(lambda: running.ended)
        assert running.ended == {EndReason.CLIENT_VIOLATION: 1}


# -- what brokers are told -------------------------------------------------------------------


def naming(principal: str | None) -> Callable[[Origin], Opening]:
    """Return an opening that says who the client is when it dials."""

    def opener(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        dialled = yield Dial(principal=principal)
        assert isinstance(dialled, Dialled)
        return Opened(FakeSession())

    return opener


def told(running: Serving) -> Header:
    """Return the header of the only connection to a broker."""
    (header,) = running.dialler.headers
    assert header is not None
    return read(header)


async def test_brokers_are_told_the_address_of_the_client() -> None:
    async with serving(introduction=Introduction()) as running:
        client, _ = await running.open()
        assert told(running) == Header(Address(*client.sock.getsockname()), running.address)


async def test_brokers_are_told_the_address_that_was_reached_not_the_one_that_is_bound() -> None:
    everywhere = LOOPBACK._replace(host="0.0.0.0")
    async with serving(bind=everywhere, introduction=Introduction()) as running:
        running.address = Address("127.0.0.3", running.address.port)
        await running.open()
        assert told(running).destination == running.address


async def test_brokers_are_told_what_a_proxy_told() -> None:
    async with serving(proxies=TRUSTED, introduction=Introduction()) as running:
        client = running.connect()
        client.say(LINE + hello())
        await served(running, client)
        assert told(running) == Header(CLIENT, REACHED)


async def test_brokers_are_not_told_by_default() -> None:
    async with serving() as running:
        await running.open()
        assert running.dialler.headers == [None]


@pytest.mark.parametrize("principal", ["alice", None])
async def test_brokers_are_told_the_principal_where_that_is_wanted(principal: str | None) -> None:
    for wanted in (True, False):
        introduction = Introduction(principal=wanted)
        async with serving(naming(principal), introduction=introduction) as running:
            running.connect().say(hello())
            await until(lambda running=running: running.counts == (0, 1))  # type: ignore[misc]
            named = wanted and principal is not None
            assert told(running).values == ((Value(PRINCIPAL, b"alice"),) if named else ())


@pytest.mark.parametrize("common", ["client.example", None])
async def test_brokers_are_told_how_the_client_spoke_tls(common: str | None, house: House) -> None:
    side = house.server(
        client_certificates=ClientCertificates.OPTIONAL, authorities=house.authorities
    )
    pair = house.pair(file="client", common=common) if common else None
    introduction = Introduction(common_name=common_name_of)
    async with serving(tls=side, introduction=introduction) as running:
        client = Client(running.connect(), house.client(pair=pair))
        await shake(client.stream)
        client.say(hello())
        await until(lambda: running.dialler.headers)
        shown = pair is not None
        tls = Tls("TLSv1.3", certificate=shown, now=shown, common_name=common)
        assert told(running).values == (Value(AUTHORITY, NAME.encode()), tls.value)
        assert told(running).values[1].type == SSL


async def test_a_client_that_names_no_server_has_no_authority(house: House) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with serving(tls=house.server(), introduction=Introduction()) as running:
        stream = trio.SSLStream(
            await trio.open_tcp_stream(*running.address.pair), context, server_hostname=None
        )
        await stream.send_all(hello())
        await until(lambda: running.dialler.headers)
        assert [value.type for value in told(running).values] == [SSL]
        await trio.aclose_forcefully(stream)
