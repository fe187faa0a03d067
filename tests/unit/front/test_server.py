"""The server turns accepted sockets into pairs, or refuses them with a farewell."""

from __future__ import annotations

import errno
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from unittest.mock import Mock

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.errors import ConfigurationError
from gateway.front import server
from gateway.front.tracing import Tracing
from gateway.listening.acceptor import ACCEPTS_AT_ONCE, NO_DESCRIPTOR_PAUSE, SHARED_PAUSE
from gateway.listening.binding import addresses, listen
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    EndReason,
    Opened,
    Opening,
    Origin,
    Peer,
    Receive,
    Refused,
    Transmit,
)
from gateway.wire.subject import Caller
from gateway.wire.traced import TracedSession
from tests.plane.protocol import FakeSession, crash, passing, stop

from .fakes import LOOPBACK, NO_BROKER, greeting, hello, serving, until, welcome

# -- opening ---------------------------------------------------------------------------------


async def test_a_pair_is_opened_and_moves_bytes() -> None:
    async with serving() as running:
        client, broker = await running.open()
        await until(lambda: running.counts == (0, 1))
        client.say(passing(b"to broker"))
        assert await broker.hear(14) == passing(b"to broker")
        broker.say(passing(b"to client"))
        assert await client.hear(14) == passing(b"to client")
        client.close()
        assert await broker.hear_all() == b""
        await until(lambda: running.counts == (0, 0))
        assert running.ended == {EndReason.CLIENT_CLOSED: 1}
        assert running.figures.accepted == 1


async def test_bytes_sent_before_the_pair_opens_are_not_lost() -> None:
    """Both peers may send more than the opening reads."""
    early = passing(b"early") * 3 + stop(b"too") + passing(b"cut")[:3]
    async with serving() as running:
        client = running.connect()
        client.say(hello() + early)
        await until(lambda: running.dialler.brokers)
        broker = running.dialler.broker()
        assert await broker.hear(len(hello())) == hello()
        broker.say(welcome() + early)
        for peer, before in ((client, welcome()), (broker, b"")):
            whole = before + early[:-3]
            assert await peer.hear(len(whole)) == whole
        for speaker, hearer in ((client, broker), (broker, client)):
            speaker.say(passing(b"cut")[3:])
            assert await hearer.hear(8) == passing(b"cut")


async def test_a_refused_client_gets_its_farewell() -> None:
    def opener(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        caller = Caller(principal="alice")
        return Refused(EndReason.AUTHENTICATION_FAILED, passing(b"no"), "not you", caller=caller)

    async with serving(opener) as running:
        client = running.connect()
        client.say(hello() + b"unread" * 1000)
        with capture_logs() as lines:
            assert await client.hear_all() == passing(b"no")
        assert running.ended == {EndReason.AUTHENTICATION_FAILED: 1}
        assert running.counts == (0, 0)
        (line,) = lines
        assert line["event"] == "connection_ended"
        assert line["log_level"] == "warning"
        assert line["reason"] == "authentication_failed"
        assert line["detail"] == "not you"
        assert line["principal"] == "alice"


async def test_an_ordinary_end_is_logged_as_information() -> None:
    async with serving() as running:
        client, _ = await running.open()
        with capture_logs() as lines:
            client.close()
            await until(lambda: running.ended)
        assert [line["log_level"] for line in lines] == ["info"]


async def test_the_broker_connection_of_a_refused_client_is_closed() -> None:
    def opener(origin: Origin) -> Opening:
        yield Dial()
        return Refused(EndReason.BROKER_REFUSED)

    async with serving(opener) as running:
        client = running.connect()
        assert await client.hear_all() == b""
        assert await running.dialler.broker().hear_all() == b""


async def test_without_a_broker_the_client_is_refused() -> None:
    async with serving() as running:
        running.dialler.denial = NO_BROKER
        client = running.connect()
        client.say(hello())
        assert await client.hear_all() == passing(b"no broker")
        assert running.ended == {EndReason.NO_BROKER: 1}


@pytest.mark.parametrize("early", [True, False])
async def test_a_client_that_closes_during_its_opening_is_counted(early: bool) -> None:
    async with serving() as running:
        client = running.connect()
        if not early:
            client.say(hello()[:3])
        client.close()
        await until(lambda: running.ended)
        assert running.ended == {EndReason.CLIENT_CLOSED: 1}


async def test_a_client_that_resets_during_its_opening_is_counted() -> None:
    async with serving() as running:
        for _ in range(20):
            running.connect().reset()
        await until(lambda: running.figures.accepted == 20 and running.counts == (0, 0))
        assert running.ended == {EndReason.CLIENT_CLOSED: 20}


async def test_a_client_that_closes_before_the_broker_answers_is_counted() -> None:
    async with serving() as running:
        client = running.connect()
        client.say(hello())
        await until(lambda: running.dialler.brokers)
        client.close()
        running.dialler.broker().say(welcome())
        await until(lambda: running.ended)
        assert sum(running.ended.values()) == 1


async def test_a_broker_that_closes_during_the_opening_refuses_the_client() -> None:
    async with serving() as running:
        client = running.connect()
        client.say(hello())
        await until(lambda: running.dialler.brokers)
        running.dialler.broker().close()
        assert (await client.hear_all()).endswith(b"the connection was closed")


async def test_a_frame_that_is_too_large_is_refused_at_its_first_bytes() -> None:
    async with serving(handshake_frame=100) as running:
        client = running.connect()
        client.say(hello(b"x" * 96)[:50])
        assert b"101 bytes" in await client.hear_all()
        assert running.ended == {EndReason.FRAME_TOO_LARGE: 1}


async def test_a_bug_in_an_opening_ends_it_alone() -> None:
    def opener(origin: Origin) -> Opening:
        said = yield Receive(Peer.CLIENT)
        if said == hello(b"bug"):
            raise RuntimeError("a bug")
        return (yield from greeting()(origin))

    async with serving(opener) as running:
        client = running.connect()
        with capture_logs() as lines:
            client.say(hello(b"bug"))
            assert await client.hear_all() == b""
        assert running.ended == {EndReason.INTERNAL_ERROR: 1}
        assert lines[0]["event"] == "internal_error"
        assert isinstance(lines[0]["exc_info"], RuntimeError)
        other = running.connect()
        other.say(hello())
        other.say(hello())
        await until(lambda: running.dialler.brokers)


async def test_a_pair_without_a_broker_is_a_bug_that_ends_it_alone() -> None:
    def opener(origin: Origin) -> Opening:
        yield Transmit(Peer.CLIENT, welcome())
        return Opened(FakeSession())

    async with serving(opener) as running:
        for _ in range(2):
            client = running.connect()
            assert await client.hear_all() == welcome()
        assert running.ended == {EndReason.INTERNAL_ERROR: 2}


async def test_a_bug_in_an_open_pair_ends_it_alone() -> None:
    session = FakeSession()
    session.response = crash
    async with serving(greeting(lambda: session)) as running:
        client, _ = await running.open()
        with capture_logs() as lines:
            client.say(stop())
            assert await client.hear_all() == b""
        assert running.ended == {EndReason.INTERNAL_ERROR: 1}
        assert isinstance(lines[0]["exc_info"], RuntimeError)


async def test_ends_are_logged_with_connection_number_and_addresses() -> None:
    async with serving() as running:
        client, _ = await running.open()
        address = Address(*client.sock.getsockname())
        with capture_logs() as lines:
            client.close()
            await until(lambda: running.ended)
        assert lines[0]["connection"] == 1
        assert lines[0]["client"] == str(address)
        assert lines[0]["listener"] == "clients"


async def test_accepted_sockets_get_their_options() -> None:
    async with serving(socket_buffer=16 * 1024) as running:
        await running.open()
        await until(lambda: running.reactor.pairs)
        (pair,) = running.reactor.pairs
        sock = pair.client.stream
        assert isinstance(sock, socket.socket)
        assert not sock.getblocking()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            # The kernel doubles the size, for its own needs.
            assert sock.getsockopt(socket.SOL_SOCKET, option) == 32 * 1024


# -- deadlines -------------------------------------------------------------------------------


async def test_a_silent_client_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with serving() as running:
        client = running.connect()
        assert await client.hear_all() == passing(b"the handshake took too long")
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_a_client_that_sends_half_a_frame_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as running:
        client = running.connect()
        client.say(hello(b"x" * 50)[:20])
        assert await client.hear_all() == passing(b"the handshake took too long")
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_a_client_that_sends_slowly_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as running:
        client = running.connect()

        async def drip() -> None:
            with suppress(OSError):
                for byte in hello(b"x" * 1000):
                    client.say(bytes([byte]))
                    await trio.sleep(0.5)

        running.nursery.start_soon(drip)
        assert await client.hear_all() == passing(b"the handshake took too long")
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}


async def test_a_silent_broker_is_reported_and_the_client_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as running:
        client = running.connect()
        client.say(hello())
        assert await client.hear_all() == passing(b"the handshake took too long")
        assert running.ended == {EndReason.HANDSHAKE_TIMEOUT: 1}
        assert running.dialler.silent == 1
        assert await running.dialler.broker().hear_all() == hello()


async def test_a_slow_dial_refuses_the_client_at_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(handshake=10) as running:
        running.dialler.delay = 11
        client = running.connect()
        client.say(hello())
        assert await client.hear_all() == passing(b"the handshake took too long")


async def test_a_client_that_does_not_answer_is_no_silent_broker(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def opener(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        yield Transmit(Peer.CLIENT, welcome(b"who are you?"))
        denial = yield Receive(Peer.CLIENT)
        assert isinstance(denial, Denial)
        return Refused(EndReason.HANDSHAKE_TIMEOUT, passing(b"late"))

    async with serving(opener) as running:
        client = running.connect()
        client.say(hello())
        assert await client.hear_all() == welcome(b"who are you?") + passing(b"late")
        assert running.dialler.silent == 0


async def test_a_client_that_does_not_read_its_farewell(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as running:
        running.connect()
        await until(lambda: running.figures.accepted)
        await trio.sleep(running.server.settings.handshake)
        await until(lambda: running.ended)
        assert running.counts == (0, 0)


@pytest.mark.parametrize("expires_at", [1_000_050.0, 999_000.0])
async def test_a_pair_ends_with_the_credential_that_opened_it(
    expires_at: float, autojump_clock: trio.testing.MockClock
) -> None:
    session = FakeSession()
    session.expires_at = expires_at
    session.words[EndReason.CREDENTIAL_EXPIRED] = passing(b"expired")
    opener = greeting(lambda: session)
    async with serving(opener, wall_clock=lambda: trio.current_time() + 1e6) as running:
        client, _ = await running.open()
        assert await client.hear_all() == passing(b"expired")
        assert running.ended == {EndReason.CREDENTIAL_EXPIRED: 1}
        assert trio.current_time() + 1e6 >= expires_at


# -- bounds ----------------------------------------------------------------------------------


async def test_too_many_connections_are_refused() -> None:
    async with serving(connections=2) as running:
        client, _ = await running.open()
        await running.open()
        third = running.connect()
        assert b"as many connections" in await third.hear_all()
        assert running.ended == {EndReason.TOO_MANY_CONNECTIONS: 1}
        client.close()
        await until(lambda: running.counts == (0, 1))
        await running.open()


async def test_opening_connections_count_too() -> None:
    async with serving(connections=2) as running:
        for _ in range(2):
            running.connect()
        await until(lambda: running.counts == (2, 0))
        await trio.testing.wait_all_tasks_blocked()  # each is counted before it is judged
        assert b"as many connections" in await running.connect().hear_all()


async def test_a_refused_client_does_not_count_as_a_connection() -> None:
    """It does not count as a connection while it reads its farewell."""
    async with serving(connections=2) as running:
        client, _ = await running.open()
        await running.open()
        for _ in range(5):
            running.connect()
        await until(lambda: running.ended == {EndReason.TOO_MANY_CONNECTIONS: 5})
        client.close()
        await until(lambda: running.counts == (0, 1))
        await running.open()


async def test_of_many_connections_at_once_the_allowed_number_is_served() -> None:
    """All connections are accepted before the first one is read."""
    async with serving(connections=5) as running:
        for _ in range(ACCEPTS_AT_ONCE):
            running.connect()
        await until(lambda: running.figures.accepted == ACCEPTS_AT_ONCE)
        await until(lambda: running.counts == (5, 0))
        assert running.ended == {EndReason.TOO_MANY_CONNECTIONS: ACCEPTS_AT_ONCE - 5}


async def test_in_a_flood_only_some_clients_get_a_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FAREWELLS_AT_ONCE", 3)

    def opener(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        return Refused(EndReason.AUTHENTICATION_FAILED, passing(b"no"))

    async with serving(opener) as running:
        for number in range(1, 7):
            running.connect().say(hello())
            await until(lambda number=number: running.figures.accepted == number)  # type: ignore[misc]
        await until(lambda: running.ended == {EndReason.AUTHENTICATION_FAILED: 6})
        heard = [await client.hear_all() for client in running.clients]
        assert heard == [passing(b"no")] * 3 + [b""] * 3
        for client in running.clients:
            client.close()
        late = running.connect()
        late.say(hello())
        assert await late.hear_all() == passing(b"no")


class Failing:
    """A listening socket whose first calls of `accept` fail."""

    def __init__(self, sock: socket.socket, error: OSError, times: int) -> None:
        self._sock = sock
        self._error = error
        self.left = times
        self.fileno = sock.fileno
        self.close = sock.close

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """See `socket.socket`."""
        if self.left:
            self.left -= 1
            raise self._error
        return self._sock.accept()


def failing(error: OSError, times: int = 1) -> Callable[[socket.socket], socket.socket]:
    """Return a wrapper that makes the first calls of `accept` fail."""
    return lambda sock: Failing(sock, error, times)  # type: ignore[return-value]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_without_descriptors_accepting_pauses(
    code: int, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    with capture_logs() as lines:
        async with serving(wrap=failing(OSError(code, "no more"), times=10)) as running:
            await running.open()
            # The server does not retry in a busy loop, so time has passed.
            assert trio.current_time() - began >= 10 * NO_DESCRIPTOR_PAUSE
            assert running.figures.accept_failures == 10
            running.server.stop()
    assert [line["event"] for line in lines[:10]] == ["accept_failed"] * 10


async def test_another_accept_error_concerns_one_connection() -> None:
    with capture_logs() as lines:
        async with serving(wrap=failing(OSError(errno.EPERM, "firewall"))) as running:
            await running.open()
    assert lines[0]["event"] == "accept_failed"


async def test_a_client_that_closed_before_it_was_accepted_is_ignored() -> None:
    error = ConnectionAbortedError(errno.ECONNABORTED, "gone")
    with capture_logs() as lines:
        async with serving(wrap=failing(error)) as running:
            await running.open()
    assert "accept_failed" not in [line["event"] for line in lines]


# -- several processes -----------------------------------------------------------------------


async def test_a_server_accepts_on_sockets_of_another_process() -> None:
    bound = listen([LOOPBACK])
    async with serving(inherited=bound) as running:
        assert running.address == addresses(bound)[0]
        await running.open()
    with pytest.raises(OSError, match="Bad file descriptor"):
        bound[0].getsockname()


@pytest.mark.parametrize(("shared", "rows"), [(True, [1, 1, 1]), (False, [3])])
async def test_other_processes_get_a_turn_after_each_accepted_connection(
    shared: bool, rows: list[int], autojump_clock: trio.testing.MockClock
) -> None:
    """The clock stands still while any task runs, so connections of one time came in a row."""
    times: list[float] = []
    async with serving(shared=shared, wrap=lambda sock: timed(sock, times)) as running:
        for _ in range(3):
            running.connect()
        await until(lambda: running.figures.accepted == 3)
    assert list(Counter(times).values()) == rows
    assert all(later - time >= SHARED_PAUSE for time, later in pairwise(sorted(set(times))))


def timed(sock: socket.socket, times: list[float]) -> socket.socket:
    """Return a socket that records the time of each accepted connection."""
    recorder = Mock(wraps=sock)

    def accept() -> tuple[socket.socket, tuple[str, int]]:
        accepted = sock.accept()
        times.append(trio.current_time())
        return accepted

    recorder.accept = accept
    return recorder


# -- listening and stopping ------------------------------------------------------------------


async def test_all_address_families_share_one_port() -> None:
    async with serving(bind=Address("", 0)) as running:
        ports = {sock.getsockname()[1] for sock in running.server._acceptor._sockets}
        assert ports == {running.address.port}


async def test_a_server_listens_on_several_addresses_and_knows_which_was_reached() -> None:
    origins: list[Origin] = []

    def opener(origin: Origin) -> Opening:
        origins.append(origin)
        return greeting()(origin)

    async with serving(opener, more=(Address("127.0.0.2", 0),)) as running:
        for reached in addresses(running.server._acceptor._sockets):
            with socket.create_connection(reached.pair):
                await until(lambda: origins)
                assert origins.pop().reached == reached


def test_if_one_address_is_taken_the_other_sockets_are_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = Address("127.0.0.2", taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match="address already in use"):
            listen([free, Address("127.0.0.1", free.port)])
        socket.create_server(free.pair).close()


async def test_an_address_in_use_is_a_configuration_error() -> None:
    async with serving() as running:
        with pytest.raises(ConfigurationError, match="address already in use"):
            async with serving(bind=running.address):
                pass


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6 in the kernel")
async def test_a_bind_without_a_host_needs_both_families() -> None:
    """If one family's port is taken, the start fails rather than serving the other family alone."""
    with socket.socket(socket.AF_INET6) as taken:
        taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(("::1", 0))
        taken.listen()
        with pytest.raises(ConfigurationError, match="address already in use"):
            async with serving(bind=Address("", taken.getsockname()[1])):
                pass


async def test_after_a_stop_open_pairs_and_openings_continue() -> None:
    async with serving() as running:
        client, broker = await running.open()
        opening = running.connect()
        await until(lambda: running.counts == (1, 1))
        running.server.stop()
        with pytest.raises(ConnectionRefusedError):
            running.connect()
        client.say(passing(b"x"))
        assert await broker.hear(6) == passing(b"x")
        opening.say(hello())
        await until(lambda: len(running.dialler.brokers) == 2)
        running.dialler.broker().say(welcome())
        assert await opening.hear(5) == welcome()
        assert running.counts == (0, 2)


async def test_serving_ends_with_the_last_opening() -> None:
    async with serving() as running:
        await running.open()
        opening = running.connect()
        await until(lambda: running.counts == (1, 1))
        running.server.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert not running.served.is_set()
        opening.close()
        await running.served.wait()
        assert running.counts == (0, 1)


async def test_a_server_can_stop_while_accepting_pauses(
    autojump_clock: trio.testing.MockClock,
) -> None:
    with capture_logs():
        wrap = failing(OSError(errno.EMFILE, "no more"), times=1000)
        async with serving(wrap=wrap) as running:
            running.connect()
            await trio.sleep(0.05)
            running.server.stop()
            await trio.sleep(1)


async def test_openings_are_cancelled_with_the_server() -> None:
    """No socket of theirs stays open, and no count stays."""
    async with serving() as running:
        waits = running.connect()
        asks = running.connect()
        asks.say(hello())
        await until(lambda: running.dialler.brokers)
        running.dialler.delay = 1000.0
        dials = running.connect()
        dials.say(hello())
        await until(lambda: len(running.dialler.dialled) == 2)
        with capture_logs():
            figures, broker = running.figures, running.dialler.broker()
            running.server.stop()
            running.front.cancel()
            for client in (waits, asks, dials):
                assert await client.hear_all() == b""
            assert await broker.hear_all() == hello()
        assert running.ended == {EndReason.DRAINED: 3}
        assert (figures.opening, figures.open) == (0, 0)


async def test_a_farewell_is_cut_short_when_the_server_is_cancelled() -> None:
    def opener(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        return Refused(EndReason.AUTHENTICATION_FAILED, passing(b"no"))

    async with serving(opener) as running:
        client = running.connect()
        client.say(hello())
        await until(lambda: running.ended)
        running.front.cancel()
        assert await client.hear_all() == passing(b"no")
        assert running.ended == {EndReason.AUTHENTICATION_FAILED: 1}


# -- tracing ---------------------------------------------------------------------------------


async def test_a_chosen_connection_is_traced() -> None:
    async with serving(tracing=Tracing(everything=True)) as running:
        with capture_logs() as lines:
            await running.open(b"secret")
            await until(lambda: running.reactor.pairs)
        (pair,) = running.reactor.pairs
        assert isinstance(pair.session, TracedSession)
        traced = [line for line in lines if line["event"] == "frame"]
        assert [line["frame"] for line in traced] == ["frame h", "frame w"]
        assert "secret" not in str(lines)


async def test_other_connections_are_not_traced() -> None:
    async with serving() as running:
        with capture_logs() as lines:
            await running.open()
        assert lines == []
