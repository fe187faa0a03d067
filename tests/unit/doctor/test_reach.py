"""Names, connections and conversations, with peers of all kinds on loopback."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from gateway.doctor.pulsar.asking import ask
from gateway.doctor.pulsar.hello import Accepted, Answer, anonymous
from gateway.doctor.reach import MOST_ADDRESSES, Network, Resolved, Unreached, run_all
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from tests.unit.doctor.fakes import (
    PATIENCE,
    FakeBroker,
    Script,
    free_port,
    peer,
    saying,
    silent,
    tls_server,
)


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Jump only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.01)


async def heard(script: Script) -> Answer:
    async with peer(script) as address:
        return (await ask(Network(PATIENCE), address, anonymous())).answer


# -- names -----------------------------------------------------------------------------------


async def test_an_address_needs_no_name_server() -> None:
    async def never(host: str) -> Sequence[str]:
        raise AssertionError(host)

    assert (await Network(look_up=never).resolve("::1")).ips == ("::1",)


async def test_addresses_of_a_name_are_distinct_and_bounded() -> None:
    many = [f"10.0.0.{number}" for number in range(MOST_ADDRESSES + 2)]

    async def look_up(_host: str) -> Sequence[str]:
        return many + many

    found = await Network(look_up=look_up).resolve("many.internal")
    assert found.ips == tuple(many[:MOST_ADDRESSES])
    assert found.others == 2


async def test_a_name_that_does_not_resolve_says_why() -> None:
    async def look_up(_host: str) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    found = await Network(look_up=look_up).resolve("nowhere.internal")
    assert (found.ips, found.error) == ((), "name or service not known")


async def test_a_silent_name_server_times_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def look_up(_host: str) -> Sequence[str]:
        await trio.sleep_forever()

    found = await Network(look_up=look_up).resolve("slow.internal")
    assert found == Resolved((), found.seconds, "the name server does not answer")


# -- CONNECT ---------------------------------------------------------------------------------


async def test_a_broker_answers() -> None:
    assert isinstance(await heard(FakeBroker()), Accepted)


@pytest.mark.parametrize(
    ("script", "oddity"),
    [
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Stranger.HTTP),
        (saying(b"\x15\x03\x03\x00\x02\x02\x46"), Stranger.TLS),
        (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), Stranger.STRANGE),
        (saying(b"\0\0\0\4\0\0\0\xff"), Stranger.STRANGE),
        (saying(b""), Stranger.CLOSED),
        (tls_server, Stranger.TLS),
    ],
)
async def test_other_protocols_are_recognized(script: Script, oddity: Stranger) -> None:
    assert await heard(script) is oddity


async def test_a_silent_peer_times_out(autojump_clock: trio.testing.MockClock) -> None:
    assert await heard(silent) is Stranger.SILENT


async def test_a_port_where_nobody_listens_refuses() -> None:
    answer = (await ask(Network(PATIENCE), Address("127.0.0.1", free_port()), anonymous())).answer
    assert answer == Unreached(errno.ECONNREFUSED)


async def test_no_socket_is_left_open() -> None:
    """Warnings are errors here, those of unclosed sockets too."""
    broker = FakeBroker()
    async with peer(broker) as address, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, Network(PATIENCE), address, anonymous())
    assert len(broker.connects) == 3


async def test_run_all_keeps_the_order_of_the_calls(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def slow() -> str:
        await trio.sleep(1)
        return "slow"

    async def quick() -> str:
        return "quick"

    assert await run_all([slow, quick]) == ["slow", "quick"]
    assert await run_all([]) == []
