"""Connections that are not authenticated yet have a bound, and silent ones give way."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import trio
import trio.testing

from gateway.listening.openings import Openings
from gateway.wire.contract import EndReason, Opening, Origin, Peer, Receive, Refused, Wait
from tests.plane.protocol import FakeSession, passing

from .fakes import Serving, Talker, greeting, hello, refused, serving, until, welcome

SILENT = EndReason.HANDSHAKE_TIMEOUT

HOST = "192.0.2.1"

Clock = trio.testing.MockClock


# -- openings alone --------------------------------------------------------------------------


class Waits:
    """Openings, some of which wait for their clients."""

    def __init__(self, most: int) -> None:
        self.openings = Openings(most)
        self.scopes: dict[int, trio.CancelScope] = {}
        self.stack = ExitStack()

    def begin(self, *connections: int, host: str = HOST) -> None:
        """Begin openings of an address."""
        for connection in connections:
            self.openings.begin(connection, host)

    def wait(self, *connections: int) -> None:
        """Have openings wait for their clients."""
        for connection in connections:
            scope = self.scopes[connection] = trio.CancelScope()
            self.stack.enter_context(self.openings.waiting(connection, scope))

    def has_room(self) -> bool:
        """Return `Openings.has_room`. Mypy narrows a property after an assert, but not a call."""
        return self.openings.has_room

    @property
    def displaced(self) -> list[int]:
        """Return the connections that gave way."""
        return [number for number, scope in self.scopes.items() if scope.cancel_called]


async def test_nobody_gives_way_while_there_is_room() -> None:
    waits = Waits(3)
    waits.begin(1, 2)
    waits.wait(1, 2)
    waits.begin(3)
    assert waits.displaced == []
    assert len(waits.openings) == 3


async def test_nobody_gives_way_before_another_has_come() -> None:
    waits = Waits(2)
    waits.begin(1, 2)
    waits.wait(1, 2)
    assert waits.has_room()
    assert waits.displaced == []


async def test_the_oldest_that_waits_gives_way() -> None:
    waits = Waits(3)
    waits.begin(1, 2, 3)
    waits.wait(3, 2)
    waits.begin(4)
    assert waits.displaced == [2]
    waits.begin(5)
    assert waits.displaced == [3, 2]
    assert waits.openings.figures.displaced == 2
    assert len(waits.openings) == 3


async def test_there_is_no_room_if_none_waits_for_its_client() -> None:
    waits = Waits(2)
    waits.begin(1, 2)
    assert not waits.has_room()
    waits.wait(2)
    assert waits.has_room()
    waits.stack.close()
    assert not waits.has_room()
    waits.openings.end(1)
    assert waits.has_room()


async def test_an_opening_that_has_ended_gives_way_no_more() -> None:
    """As a client that is authenticated, and whose broker is dialled."""
    waits = Waits(1)
    waits.begin(1)
    waits.wait(1)
    waits.openings.end(1)
    waits.openings.end(1)
    assert len(waits.openings) == 0
    waits.wait(1)
    waits.begin(2)
    assert waits.displaced == []
    assert not waits.has_room()


async def test_room_is_waited_for_until_an_opening_ends_or_waits(autojump_clock: Clock) -> None:
    for frees in ("end", "wait"):
        waits = Waits(1)
        waits.begin(1)
        came = trio.Event()

        async def newcomer(waits: Waits = waits, came: trio.Event = came) -> None:
            await waits.openings.room()
            came.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(newcomer)
            await trio.testing.wait_all_tasks_blocked()
            assert not came.is_set()
            if frees == "end":
                waits.openings.end(1)
            else:
                waits.wait(1)
            with trio.fail_after(1):
                await came.wait()


async def test_an_address_that_opens_many_displaces_its_own() -> None:
    waits = Waits(4)
    waits.begin(1, host="198.51.100.7")
    waits.begin(2, 3, 4)
    waits.wait(1, 2, 3, 4)
    waits.begin(5)
    waits.wait(5)
    waits.begin(6)
    assert waits.displaced == [2, 3]
    waits.stack.close()


async def test_an_opening_counts_as_one_of_the_address_that_a_proxy_states() -> None:
    waits = Waits(3)
    waits.begin(1, host="198.51.100.7")
    waits.begin(2, 3)
    for number in (2, 3):
        waits.openings.attribute(number, f"203.0.113.{number}")
    waits.wait(1, 2, 3)
    waits.begin(4)
    assert waits.displaced == [1]
    waits.stack.close()


async def test_a_network_of_ipv6_counts_as_one_address() -> None:
    waits = Waits(3)
    waits.begin(1, host="198.51.100.7")
    waits.begin(2, host="2001:db8::1")
    waits.begin(3, host="2001:db8::2")
    waits.wait(1, 2, 3)
    waits.begin(4, host="198.51.100.8")
    assert waits.displaced == [2]
    waits.stack.close()


async def test_who_gave_way_as_its_bytes_came_waits_for_no_more() -> None:
    """It is not counted any more, so one that sends a byte now and then would stay for nothing."""
    waits = Waits(1)
    waits.begin(1)
    first, again = trio.CancelScope(), trio.CancelScope()
    with waits.openings.waiting(1, first):
        waits.begin(2)
    assert first.cancel_called
    with again, waits.openings.waiting(1, again):
        await trio.sleep_forever()
    assert again.cancelled_caught
    assert len(waits.openings) == 1
    assert waits.openings.figures.displaced == 1


async def test_who_gave_way_and_is_authenticated_all_the_same_may_wait() -> None:
    """Its last bytes came at the same moment."""
    waits = Waits(1)
    waits.begin(1)
    waits.wait(1)
    waits.begin(2)
    waits.openings.end(1)
    later = trio.CancelScope()
    with waits.openings.waiting(1, later):
        assert not later.cancel_called
    assert len(waits.openings) == 1
    waits.stack.close()


async def test_nothing_is_remembered_of_openings_that_are_over() -> None:
    waits = Waits(3)
    for number in range(100):
        waits.begin(number, host=f"2001:db8:{number:x}::1")
        waits.wait(number)
    assert len(waits.displaced) == 97
    for number in range(100):
        waits.openings.end(number)
    openings = waits.openings
    waits.stack.close()
    assert not openings._under_way
    assert not openings._waiting
    assert not openings._of_address
    assert not openings._gave_way


async def test_of_addresses_with_equally_many_the_oldest_gives_way() -> None:
    waits = Waits(4)
    for number, host in enumerate(("a", "b", "b", "a"), start=1):
        waits.begin(number, host=host)
    waits.wait(1, 2, 3, 4)
    waits.begin(5, host="c")
    assert waits.displaced == [1]
    waits.begin(6, host="c")
    assert waits.displaced == [1, 2]
    waits.stack.close()


async def test_one_that_is_stated_for_another_address_gives_way_as_that_one() -> None:
    """A proxy's connections count as its own until their headers have come."""
    waits = Waits(3)
    waits.begin(1, 2, 3)
    with waits.openings.waiting(1, trio.CancelScope()):
        pass
    waits.openings.attribute(1, "2001:db8::1")
    waits.openings.attribute(9, "2001:db8::1")  # it has gone
    waits.wait(1, 2, 3)
    waits.begin(4)
    assert waits.displaced == [2]
    assert len(waits.openings) == 3
    waits.stack.close()


async def test_an_open_connection_whose_client_is_unknown_gives_way() -> None:
    waits, ended = Waits(2), list[int]()
    for connection in (1, 2):
        end = partial(ended.append, connection)
        waits.openings.keep(connection, HOST, lambda: False, end)
    waits.begin(3)
    assert ended == [1]
    waits.begin(4)
    assert ended == [1, 2]
    assert waits.openings.figures.displaced == 2


async def test_an_open_connection_counts_no_more_once_its_client_is_known() -> None:
    waits, ended, known = Waits(3), list[int](), set[int]()
    for connection in (1, 2, 3):
        end = partial(ended.append, connection)
        waits.openings.keep(connection, HOST, partial(known.__contains__, connection), end)
    known.add(1)
    waits.begin(4)
    assert (len(waits.openings), ended) == (3, [])
    known.add(3)
    waits.begin(5)
    assert (len(waits.openings), ended) == (3, [2])
    waits.begin(6)
    assert (len(waits.openings), ended) == (3, [2])
    waits.openings.end(3)
    assert len(waits.openings) == 3, "it left before"


# -- through a server ------------------------------------------------------------------------


async def silent(running: Serving, number: int) -> list[Talker]:
    """Connect clients that say nothing, one after the other."""
    clients = []
    for _ in range(number):
        accepted = running.figures.accepted
        clients.append(running.connect())
        await until(lambda accepted=accepted: running.figures.accepted > accepted)  # type: ignore[misc]
    await trio.testing.wait_all_tasks_blocked()
    return clients


def slow(origin: Origin) -> Opening:
    """Refuse a client after a while, as if authenticating it had taken so long."""
    said = yield Receive(Peer.CLIENT)
    if not isinstance(said, bytes):
        return refused(said)
    yield Wait(20)
    return Refused(EndReason.AUTHENTICATION_FAILED, passing(b"no"))


async def test_as_many_clients_as_allowed_may_be_silent(autojump_clock: Clock) -> None:
    async with serving(most_opening=3) as running:
        await silent(running, 3)
        assert len(running.openings) == 3
        assert running.openings.figures.displaced == 0
        assert running.ended == {}


async def test_silent_clients_give_way_one_by_one(autojump_clock: Clock) -> None:
    async with serving(most_opening=3) as running:
        clients = await silent(running, 5)
        assert running.openings.figures.displaced == 2
        assert running.ended == {SILENT: 2}
        assert running.counts == (3, 0)
        for client in clients[:2]:
            assert b"too long" in await client.hear_all()
        assert len(running.openings) == 3


async def test_a_newcomer_is_served_however_many_are_silent(autojump_clock: Clock) -> None:
    async with serving(most_opening=3) as running:
        await silent(running, 10)
        client, broker = await running.open()
        client.say(passing(b"to broker"))
        assert await broker.hear(14) == passing(b"to broker")
        await until(lambda: running.counts == (2, 1))
        assert running.ended == {SILENT: 8}


async def test_age_decides_who_gives_way_and_not_the_last_byte(autojump_clock: Clock) -> None:
    async with serving(most_opening=3) as running:
        clients = await silent(running, 3)
        for byte in hello()[:3]:
            clients[0].say(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
        await silent(running, 1)
        assert running.ended == {SILENT: 1}
        assert b"too long" in await clients[0].hear_all()
        clients[1].say(hello())
        await until(lambda: running.dialler.brokers)
        running.dialler.broker().say(welcome())
        assert await clients[1].hear(len(welcome())) == welcome()


async def test_a_client_whose_broker_is_dialled_has_left_the_openings(
    autojump_clock: Clock,
) -> None:
    async with serving(most_opening=2, handshake=60) as running:
        running.dialler.delay = 20
        waiting = await silent(running, 2)
        for client in waiting:
            client.say(hello())
        await until(lambda: len(running.dialler.dialled) == 2)
        assert len(running.openings) == 0
        assert running.counts == (2, 0)
        await silent(running, 4)
        assert running.openings.figures.displaced == 2
        await until(lambda: len(running.dialler.brokers) == 2)
        for number in range(2):  # in any order
            running.dialler.broker(number).say(welcome())
        for client in waiting:
            assert await client.hear(len(welcome())) == welcome()


def unknown() -> FakeSession:
    session = FakeSession()
    session.is_known = False
    return session


async def test_strangers_whose_pairs_are_open_do_not_keep_a_newcomer_out(
    autojump_clock: Clock,
) -> None:
    """As before brokers that authenticate clients on open pairs, and the strangers never do."""
    async with serving(greeting(unknown), most_opening=3, connections=5) as running:
        for _ in range(10):
            await running.open()
        assert running.ended == {SILENT: 7}
        assert (running.counts, len(running.openings)) == ((0, 3), 3)
        client, broker = await running.open()
        client.say(passing(b"to broker"))
        assert await broker.hear(14) == passing(b"to broker")


async def test_a_pair_that_has_ended_is_unauthenticated_no_more(autojump_clock: Clock) -> None:
    async with serving(greeting(unknown), most_opening=3) as running:
        client, _ = await running.open()
        assert len(running.openings) == 1
        client.close()
        await until(lambda: running.ended)
        assert len(running.openings) == 0


async def test_nobody_is_accepted_while_all_wait_for_the_gateway(autojump_clock: Clock) -> None:
    async with serving(slow, most_opening=2, handshake=60) as running:
        first = await silent(running, 2)
        for client in first:
            client.say(hello())
        await trio.testing.wait_all_tasks_blocked()
        newcomers = [running.connect() for _ in range(2)]
        await trio.sleep(15)
        assert running.figures.accepted == 2
        assert running.openings.figures.displaced == 0
        for client in first:
            assert await client.hear(len(passing(b"no"))) == passing(b"no")
        await until(lambda: running.figures.accepted == 4)
        for client in newcomers:
            client.say(hello())
        await until(lambda: running.ended == {EndReason.AUTHENTICATION_FAILED: 4})
        assert running.openings.figures.displaced == 0


async def test_one_that_waits_for_the_gateway_does_not_give_way(autojump_clock: Clock) -> None:
    async with serving(slow, most_opening=2, handshake=60) as running:
        oldest, _ = await silent(running, 2)
        oldest.say(hello())
        await trio.testing.wait_all_tasks_blocked()
        await silent(running, 3)
        assert running.ended == {SILENT: 3}
        assert await oldest.hear(len(passing(b"no"))) == passing(b"no")


async def test_clients_that_come_at_once_are_all_accepted(autojump_clock: Clock) -> None:
    """More than the gateway accepts in a row."""
    async with serving(most_opening=4) as running:
        for _ in range(40):
            running.connect()
        await until(lambda: running.figures.accepted == 40)
        await until(lambda: running.ended == {SILENT: 36})
        assert running.openings.figures.displaced == 36
        assert len(running.openings) == 4


async def test_a_refused_client_that_reads_its_farewell_is_no_opening(
    autojump_clock: Clock,
) -> None:
    async with serving(most_opening=1) as running:
        await silent(running, 1)
        await silent(running, 1)
        assert running.ended == {SILENT: 1}
        assert len(running.openings) == 1
        running.clients[1].close()
        await until(lambda: len(running.openings) == 0)
