"""A listener with TLS: clients are served behind a handshake, or refused before its end."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.tls.handshake import shake
from gateway.tls.sides import ClientCertificates, ClientSide
from gateway.tls.stream import Shake
from gateway.wire.contract import EndReason, Opening, Origin
from tests.plane.protocol import passing
from tests.support.tls import NAME
from tests.unit.tls.samples import House

from .fakes import Serving, Talker, greeting, hello, serving, until, welcome

Clock = trio.testing.MockClock


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Return an authority with a folder of its own."""
    return House(tmp_path)


class Client:
    """A client of a listener with TLS."""

    def __init__(self, talker: Talker, side: ClientSide) -> None:
        self.talker = talker
        self.stream = side.stream(talker.sock, NAME)

    def say(self, data: bytes) -> None:
        """Send all bytes at once."""
        assert self.stream.send(data) == len(data)

    async def hear(self, size: int) -> bytes:
        """Return `size` bytes, or fewer if the connection ends."""
        heard = b""
        while len(heard) < size:
            try:
                more = self.stream.recv(size - len(heard))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.talker.sock)
                continue
            if not more:
                break
            heard += more
        return heard


async def connected(running: Serving, side: ClientSide) -> Client:
    """Return a client after its handshake."""
    client = Client(running.connect(), side)
    await shake(client.stream)
    return client


async def test_a_client_is_served_over_tls(house: House) -> None:
    async with serving(tls=house.server()) as running:
        client = await connected(running, house.client())
        client.say(hello())
        await until(lambda: running.dialler.brokers)
        broker = running.dialler.broker()
        assert await broker.hear(len(hello())) == hello()
        broker.say(welcome())
        assert await client.hear(len(welcome())) == welcome()
        await until(lambda: running.counts == (0, 1))

        large = passing(b"x" * 100_000)
        client.say(large)
        assert await broker.hear(len(large)) == large
        broker.say(large[:50_000])
        broker.say(large[50_000:])
        assert await client.hear(len(large)) == large
        broker.close()
        assert await client.hear(1) == b""
        await until(lambda: running.ended == {EndReason.BROKER_CLOSED: 1})


async def test_bytes_that_come_with_the_end_of_the_handshake_are_not_lost(house: House) -> None:
    async with serving(tls=house.server()) as running:
        client = Client(running.connect(), house.client())
        while client.stream.shake() is not Shake.DONE:
            await trio.lowlevel.wait_readable(client.talker.sock)
        client.say(hello() + passing(b"early"))
        await until(lambda: running.dialler.brokers)
        broker = running.dialler.broker()
        assert await broker.hear(len(hello())) == hello()
        broker.say(welcome())
        assert await broker.hear(len(passing(b"early"))) == passing(b"early")


async def test_a_refused_client_reads_its_farewell_over_tls(house: House) -> None:
    async with serving(tls=house.server(), handshake_frame=100) as running:
        client = await connected(running, house.client())
        client.say(hello(b"x" * 100))
        farewell = await client.hear(1 << 20)
        assert b"a frame of 105 bytes" in farewell
        assert running.ended == {EndReason.FRAME_TOO_LARGE: 1}


def noting(origins: list[Origin]) -> Callable[[Origin], Opening]:
    """Return an opening that notes where clients come from."""

    def opener(origin: Origin) -> Opening:
        origins.append(origin)
        return (yield from greeting()(origin))

    return opener


async def test_the_origin_has_the_name_asked_for_and_the_certificate(house: House) -> None:
    pair = house.pair("client.example", file="client")
    side = house.server(
        client_certificates=ClientCertificates.OPTIONAL, authorities=house.authorities
    )
    origins: list[Origin] = []
    async with serving(noting(origins), tls=side) as running:
        clients = [await connected(running, it) for it in (house.client(pair=pair), house.client())]
        await until(lambda: len(origins) == 2)
        assert [origin.server_name for origin in origins] == [NAME, NAME]
        assert [origin.certificate is not None for origin in origins] == [True, False]
        assert origins[0].certificate == certificate_of(pair.certificate)
        assert all(client.stream.certificate for client in clients)


def certificate_of(path: Path) -> bytes:
    """Return a certificate in DER."""
    return ssl.PEM_cert_to_DER_cert(path.read_text())


async def test_without_tls_the_origin_has_neither() -> None:
    origins: list[Origin] = []
    async with serving(noting(origins)) as running:
        running.connect()
        await until(lambda: origins)
        assert (origins[0].server_name, origins[0].certificate) == (None, None)


# -- handshakes that fail --------------------------------------------------------------------


async def test_garbage_ends_with_a_detail(house: House) -> None:
    async with serving(tls=house.server()) as running:
        client = running.connect()
        with capture_logs() as lines:
            client.say(b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
            with suppress(ConnectionResetError):  # it had sent more than was read
                await client.hear_all()
            await until(lambda: running.ended)
        assert running.ended == {EndReason.TLS_FAILED: 1}
        (line,) = lines
        assert (line["event"], line["log_level"]) == ("connection_ended", "warning")
        assert (line["reason"], line["detail"]) == ("tls_failed", "http request")
        assert running.dialler.dialled == []


@pytest.mark.parametrize("begun", [False, True])
async def test_a_client_that_closes_in_its_handshake_has_failed(house: House, begun: bool) -> None:
    async with serving(tls=house.server()) as running:
        client = Client(running.connect(), house.client())
        if begun:
            assert client.stream.shake() is Shake.READS
            await trio.testing.wait_all_tasks_blocked()
        client.talker.close()
        with capture_logs() as lines:
            await until(lambda: running.ended)
        assert running.ended == {EndReason.TLS_FAILED: 1}
        assert lines[0]["detail"]


async def test_a_client_that_is_not_believed_has_failed(house: House) -> None:
    side = house.server(
        client_certificates=ClientCertificates.REQUIRED, authorities=house.authorities
    )
    async with serving(tls=side) as running:
        with capture_logs() as lines:
            client = await connected(running, house.client())  # TLS 1.3: it learns later
            await until(lambda: running.ended)
        assert running.ended == {EndReason.TLS_FAILED: 1}
        assert lines[0]["detail"] == "peer did not return a certificate"
        with pytest.raises(OSError, match="CERTIFICATE_REQUIRED"):
            await client.hear(1)


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
async def test_a_silent_client_is_closed_at_its_deadline(
    house: House, said: bytes, autojump_clock: Clock
) -> None:
    async with serving(tls=house.server(), handshake=10) as running:
        client = running.connect()
        client.say(said)
        began = trio.current_time()
        assert await client.hear_all() == b""
        assert 10 <= trio.current_time() - began < 11
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_the_handshake_and_the_opening_have_one_deadline(
    house: House, autojump_clock: Clock
) -> None:
    async with serving(tls=house.server(), handshake=10) as running:
        client = Client(running.connect(), house.client())
        began = trio.current_time()
        await trio.sleep(8)
        await shake(client.stream)
        assert b"too long" in await client.hear(1 << 20)
        assert 10 <= trio.current_time() - began < 11
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_a_silent_handshake_gives_way_to_a_newcomer(
    house: House, autojump_clock: Clock
) -> None:
    async with serving(tls=house.server(), most_opening=2, handshake=60) as running:
        for number in (1, 2):
            running.connect()
            await until(lambda number=number: running.figures.accepted == number)  # type: ignore[misc]
        await trio.testing.wait_all_tasks_blocked()
        client = await connected(running, house.client())
        client.say(hello())
        await until(lambda: running.dialler.brokers)
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}
        assert running.openings.figures.displaced == 1


async def test_a_full_listener_closes_without_a_handshake(house: House) -> None:
    async with serving(tls=house.server(), connections=1) as running:
        await connected(running, house.client())
        client = Client(running.connect(), house.client())
        assert await client.talker.hear_all() == b""
        assert running.ended == {EndReason.TOO_MANY_CONNECTIONS: 1}


async def test_a_client_keeps_its_place_while_others_are_refused(house: House) -> None:
    """Those that come while it makes its handshake."""
    async with serving(tls=house.server(), connections=1) as running:
        client = Client(running.connect(), house.client())
        await until(lambda: running.counts == (1, 0))
        await trio.testing.wait_all_tasks_blocked()
        client.stream.shake()  # the server's answer and another client come at the same time
        while client.stream.shake() is not Shake.DONE:
            await trio.lowlevel.wait_readable(client.talker.sock)
        running.connect()
        client.say(hello())
        await until(lambda: running.dialler.brokers)


async def test_a_handshake_that_is_cancelled_ends_as_drained(house: House) -> None:
    async with serving(tls=house.server()) as running:
        client = running.connect()
        await until(lambda: running.counts == (1, 0))
        await trio.testing.wait_all_tasks_blocked()
        running.front.cancel()
        assert await client.hear_all() == b""
        await until(lambda: running.ended == {EndReason.DRAINED: 1})


async def test_a_new_certificate_is_shown_to_new_clients(house: House) -> None:
    pair = house.pair()
    side = house.server(pair)
    async with serving(tls=side) as running:
        shown = []
        for _ in range(2):
            client = await connected(running, house.client())
            shown.append(client.stream.certificate)
            house.renew(pair)
            side.load()()
        assert shown[0] != shown[1]
