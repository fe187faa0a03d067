"""Handshakes with peers that are slow, wrong or gone."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.plane.stream import Stream
from gateway.tls import handshake
from gateway.tls.handshake import reason_of
from gateway.tls.stream import LARGEST_HELLO, Shake, Shared, TlsStream
from tests.support.certificates import Wanted
from tests.support.records import ALERT
from tests.support.tls import NAME, SHARED, shake
from tests.unit.tls.samples import House, linked, stream_of, trusting

both_versions = pytest.mark.parametrize(
    "version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"]
)


class Peer:
    """A client that OpenSSL plays between two buffers, so that a test moves the bytes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=NAME)
        self.done = False

    def answer(self, said: bytes = b"") -> bytes:
        """Take bytes of the server, and return the answer."""
        self.incoming.write(said)
        try:
            self.tls.do_handshake()
            self.done = True
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()


def received(sock: socket.socket) -> bytes:
    """Return what a socket has received."""
    try:
        return sock.recv(1 << 20)
    except BlockingIOError:
        return b""


@both_versions
async def test_a_handshake_may_arrive_byte_by_byte(
    house: House, version: ssl.TLSVersion, nursery: trio.Nursery
) -> None:
    peer = Peer(trusting(house, minimum_version=version, maximum_version=version))
    with linked() as (near, far):
        stream = house.server().stream(near)
        shaken = trio.Event()

        async def shake() -> None:
            await handshake.shake(stream)
            shaken.set()

        nursery.start_soon(shake)
        said = peer.answer()
        while said or not peer.done:
            for byte in said:
                assert not shaken.is_set()
                far.send(bytes([byte]))
                await trio.testing.wait_all_tasks_blocked()
            said = peer.answer(received(far))
        await shaken.wait()
        assert stream.server_name == NAME
        stream.send(b"hello")
        peer.incoming.write(received(far))
        assert peer.tls.read() == b"hello"


@both_versions
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
async def test_a_peer_that_closes_in_the_middle_is_an_error(
    house: House, version: ssl.TLSVersion, share: float
) -> None:
    peer = Peer(trusting(house, minimum_version=version, maximum_version=version))
    with linked() as (near, far):
        stream = house.server().stream(near)
        hello = peer.answer()
        far.send(hello[: int(len(hello) * share)])
        far.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError, match="EOF") as caught:
            await handshake.shake(stream)
        assert reason_of(caught.value)


def test_nothing_is_kept_for_a_client_that_only_connects(house: House) -> None:
    with linked() as (near, far):
        stream = house.server().stream(near)
        assert stream.shake() is Shake.READS
        assert not hasattr(stream, "_tls")
        far.send(Peer(trusting(house)).answer())
        assert stream.shake() is Shake.READS
        assert stream._tls is not None


@pytest.mark.parametrize("pieces", [1, 7], ids=["at once", "in pieces"])
async def test_a_greeting_that_does_not_end_is_given_up(house: House, pieces: int) -> None:
    """OpenSSL would keep 128 KB of it."""
    body = b"\x01" + (100_000).to_bytes(3, "big") + bytes(99_999)
    records = [body[at : at + 16_000] for at in range(0, len(body), 16_000)]
    said = b"".join(b"\x16\x03\x01" + len(it).to_bytes(2, "big") + it for it in records)
    size = len(said) // pieces + 1
    taken = list[int]()

    def feed(stream: TlsStream, far: socket.socket) -> None:
        for at in range(0, len(said), size):
            far.sendall(said[at : at + size])
            assert stream.shake() is Shake.READS
            taken.append(size)

    with linked() as (near, far), pytest.raises(ConnectionAbortedError, match="too large"):
        feed(house.server().stream(near), far)
    assert sum(taken) <= LARGEST_HELLO


Edit = tuple[str, int, bytes]
"""What is done to bytes, where, and with which."""

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "cut", "repeat"]),
        st.integers(0, 600),
        st.binary(min_size=1, max_size=40),
    ),
    max_size=4,
)


def edited(said: bytes, edits: list[Edit]) -> bytes:
    for what, place, by in edits:
        at, size = place % (len(said) + 1), len(by)
        behind = {"replace": at + size, "insert": at, "cut": at + size, "repeat": max(0, at - size)}
        put = by if what in ("replace", "insert") else b""
        said = said[:at] + put + said[behind[what] :]
    return said


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Return an authority for all examples."""
    return House(tmp_path_factory.mktemp("lasting"))


@both_versions
@given(hello=EDITS, answer=EDITS, cut=st.integers(1, 700))
@settings(max_examples=300, deadline=None)
def test_whatever_a_client_says_ends_the_handshake_or_goes_on(
    lasting: House, version: ssl.TLSVersion, hello: list[Edit], answer: list[Edit], cut: int
) -> None:
    """Nothing but `OSError` comes out, whichever bytes of a real handshake are others."""
    peer = Peer(trusting(lasting, minimum_version=version, maximum_version=version))
    with linked() as (near, far):
        stream, state, said = (
            lasting.server().stream(near),
            Shake.READS,
            edited(peer.answer(), hello),
        )
        with suppress(OSError):
            for edits in (answer, []):
                for at in range(0, len(said), cut):
                    far.send(said[at : at + cut])
                    state = stream.shake()
                said = edited(peer.answer(received(far)), edits)
        assert state in Shake


async def test_a_peer_that_resets_is_an_error(house: House) -> None:
    with linked() as (near, far):
        stream = house.server().stream(near)
        far.send(Peer(trusting(house)).answer())
        far.close()
        with pytest.raises(OSError, match=r".") as caught:
            await handshake.shake(stream)
        assert reason_of(caught.value)


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "http request"),
        (b"CONNECT a:1 HTTP/1.1\r\n\r\n", "https proxy request"),
        (b"SSH-2.0-OpenSSH_9.7\r\n", "wrong version number"),
        (b"\0\0\0\x15\0\0\0\x11\x08\x02" + bytes(15), "wrong version number"),
        (b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", "unexpected message"),
        (b"\x16\x03\x01\xff\xff" + bytes(100), "packet length too long"),
    ],
)
async def test_garbage_is_an_error_with_a_reason(house: House, garbage: bytes, reason: str) -> None:
    with linked() as (near, far):
        far.send(garbage)
        with pytest.raises(OSError, match=r".") as caught:
            await handshake.shake(house.server().stream(near))
        assert reason_of(caught.value) == reason


async def test_a_peer_that_fails_is_sent_the_alert_that_says_why(house: House) -> None:
    with linked() as (near, far):
        far.send(b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00")
        with pytest.raises(ssl.SSLError):
            await handshake.shake(house.server().stream(near))
        fatal, unexpected_message = 2, 10
        alert = received(far)
        assert (alert[0], alert[-2:]) == (ALERT, bytes([fatal, unexpected_message]))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (OSError("in words"), "in words"),
        (ConnectionAbortedError(), "ConnectionAbortedError"),
    ],
)
def test_each_error_has_a_reason(error: OSError, reason: str) -> None:
    assert reason_of(error) == reason


async def test_the_reason_of_an_alert_is_readable(house: House) -> None:
    with linked() as (near, far):
        server = house.server().stream(near)
        client = stream_of(house.client(), far, "other.example")
        with pytest.raises(ssl.SSLError) as ours:
            shake(client, server)
        assert "certificate is not valid for 'other.example'" in reason_of(ours.value)
        with pytest.raises(OSError, match=r".") as of_server:
            await handshake.shake(server)
        assert reason_of(of_server.value) == "sslv3 alert bad certificate"


# -- turns -----------------------------------------------------------------------------------


class Noting(TlsStream):
    """A stream that notes its steps, and whether it had the turn."""

    steps: list[tuple[int, bool]]

    def shake(self) -> Shake:
        self.steps.append((self.fileno(), self.turn.locked()))
        return super().shake()


async def test_handshakes_take_their_steps_in_turn(house: House, nursery: trio.Nursery) -> None:
    shared, steps = Shared(), list[tuple[int, bool]]()
    side = house.server(shared=shared)
    with ExitStack() as stack:
        ends = [stack.enter_context(linked()) for _ in range(3)]
        streams = [Noting(near, side._context, shared, None) for near, _ in ends]
        peers = [Peer(trusting(house)) for _ in ends]
        for peer, (_, far) in zip(peers, ends, strict=True):
            far.send(peer.answer())
        await shared.turn.acquire()
        for stream in streams:
            stream.steps = steps
            nursery.start_soon(handshake.shake, stream)
            await trio.testing.wait_all_tasks_blocked()
        assert steps == []
        assert shared.turn.statistics().tasks_waiting == 3
        shared.turn.release()
        await trio.testing.wait_all_tasks_blocked()
        assert steps == [(stream.fileno(), True) for stream in streams]
        for peer, (_, far) in zip(peers, ends, strict=True):
            far.send(peer.answer(received(far)))
        await trio.testing.wait_all_tasks_blocked()
        assert all(had_turn for _, had_turn in steps)
        assert [peer.done for peer in peers] == [True, True, True]


async def test_the_turn_is_free_while_a_peer_is_waited_for(
    house: House, nursery: trio.Nursery
) -> None:
    with linked() as (near, _):
        nursery.start_soon(handshake.shake, house.server().stream(near))
        await trio.testing.wait_all_tasks_blocked()
        assert not SHARED.turn.locked()
        nursery.cancel_scope.cancel()


async def test_the_turn_is_free_after_a_failure(house: House) -> None:
    with linked() as (near, far):
        far.send(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(ssl.SSLError):
            await handshake.shake(house.server().stream(near))
    assert not SHARED.turn.locked()


# -- waiting ---------------------------------------------------------------------------------


class Waits:
    """Notes waits for a peer."""

    def __init__(self) -> None:
        self.number = 0
        self.is_waiting = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.number += 1
        self.is_waiting = True
        try:
            yield
        finally:
            self.is_waiting = False


async def test_waiting_is_entered_only_while_the_peer_is_waited_for(house: House) -> None:
    waits = Waits()
    peer = Peer(trusting(house))
    shared = Shared()

    class Watched(TlsStream):
        def shake(self) -> Shake:
            assert not waits.is_waiting
            return super().shake()

    with linked() as (near, far):
        stream = Watched(near, house.server()._context, shared, None)

        async def readable(waited: Stream) -> None:
            assert waited is stream
            assert waits.is_waiting
            assert not shared.turn.locked()
            await handshake.readable(waited)

        async with trio.open_nursery() as nursery:
            await shared.turn.acquire()
            nursery.start_soon(shaking(stream, readable, waits))
            await trio.testing.wait_all_tasks_blocked()
            assert waits.number == 0, "it waits for its turn"
            shared.turn.release()
            await trio.testing.wait_all_tasks_blocked()
            assert (waits.number, waits.is_waiting) == (1, True)
            said = peer.answer()
            while said:
                far.send(said)
                await trio.testing.wait_all_tasks_blocked()
                said = peer.answer(received(far))
    assert (waits.number, waits.is_waiting) == (2, False)


def shaking(
    stream: TlsStream, readable: Callable[[Stream], Awaitable[None]], waits: Waits
) -> Callable[[], Awaitable[None]]:
    """Return a task that makes a handshake."""

    async def shake() -> None:
        await handshake.shake(stream, readable, waits)

    return shake


async def test_a_handshake_that_needs_no_wait_enters_none(house: House) -> None:
    waits = Waits()
    with linked() as (near, far):
        far.send(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(ssl.SSLError):
            await handshake.shake(house.server().stream(near), waiting=waits)
    assert waits.number == 0


# -- room to send ----------------------------------------------------------------------------


@both_versions
async def test_a_chain_larger_than_the_sockets_buffer_is_sent_in_pieces(
    house: House, version: ssl.TLSVersion, nursery: trio.Nursery
) -> None:
    pair = house.pair()
    chain = b"".join(house.authority.issue(Wanted([NAME])).certificate for _ in range(60))
    pair.certificate.write_bytes(pair.certificate.read_bytes() + chain)
    peer = Peer(trusting(house, minimum_version=version, maximum_version=version))
    waits = Waits()
    with linked() as (near, far):
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the kernel's least
        stream = house.server(pair).stream(near)
        far.send(peer.answer())
        assert stream.shake() is Shake.SENDS
        assert stream.shake() is Shake.SENDS, "nothing has changed"
        shaken = trio.Event()

        async def shake() -> None:
            await handshake.shake(stream, waiting=waits)
            shaken.set()

        nursery.start_soon(shake)
        await trio.testing.wait_all_tasks_blocked()
        assert (waits.number, waits.is_waiting) == (1, True), "for room"
        pieces = 0
        while not (peer.done and shaken.is_set()):
            await trio.testing.wait_all_tasks_blocked()
            said = peer.answer(received(far))
            pieces += 1
            if said:
                far.send(said)
        assert pieces > 3
