"""Pairs with record streams: real TLS, and a stream that waits for the other readiness."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.plane.lane import Lane, RecordLane
from gateway.plane.memory import Memory
from gateway.plane.moving import SMALLEST_READ
from gateway.plane.stream import IN, OUT, has_records, is_open
from gateway.wire.contract import Direction, Peer
from tests.support.tls import tls_sockets

from .harness import BUFFER, Far, Opened, Plane, Reception, both, unix_sockets
from .protocol import FakeSession, passing, stop

RECORD = 16 * 1024
"""Bytes of plaintext in one record of TLS."""


def opened(plane: Plane) -> Opened:
    """Return a pair with TLS on both sides."""
    return plane.open(sockets=tls_sockets)  # type: ignore[arg-type]


def test_a_plain_socket_is_a_stream_and_its_lane_a_plain_one() -> None:
    near, far = unix_sockets()
    near.setblocking(False)
    with near, far:
        assert not has_records(near)
        assert is_open(near)
        far.close()
        assert not is_open(near)


@both
def test_frames_of_any_size_pass_through_tls(plane: Plane, direction: Direction) -> None:
    pair = opened(plane)
    speaker, hearer = pair.far(direction)
    said = b"".join(passing(b"x" * size) for size in (0, 1, 100, RECORD - 5, RECORD, 40_000))
    speaker.say(said[:RECORD])
    rest = said[RECORD:]
    while rest:
        rest = rest[speaker.sock.send(rest) :]
        plane.turn()
    plane.until(lambda: len(hearer.hear()) == len(said))
    assert hearer.heard == said


@both
def test_a_stop_frame_is_decided_behind_tls(plane: Plane, direction: Direction) -> None:
    pair = opened(plane)
    speaker, hearer = pair.far(direction)
    speaker.say(passing() + stop(b"question") + passing(b"more"))
    plane.until(lambda: hearer.hear().endswith(passing(b"more")))
    assert [frame for _, frame in pair.session.decided] == [stop(b"question")]


def test_a_read_takes_several_records(plane: Plane) -> None:
    """Reads of 512 KiB make large frames cheap, so a record must not bound them."""
    pair = opened(plane)
    reception = Reception(pair.pair.client)
    pair.client.say(passing(b"x" * (4 * RECORD - 5)))
    plane.until(lambda: len(pair.broker.hear()) == 4 * RECORD)
    assert max(reception.counts) > RECORD


def test_buffered_bytes_are_read_without_an_event(plane: Plane) -> None:
    """Memory is short, so each read is smaller than a record, and the socket stays empty."""
    pair = opened(plane)
    plane.memory.used += plane.memory.ample + 1
    said = passing(b"x" * 2 * RECORD)
    reception = Reception(pair.pair.client)
    pair.client.say(said)
    plane.until(lambda: len(pair.broker.hear()) == len(said))
    plane.memory.used -= plane.memory.ample + 1
    assert max(reception.sizes) < RECORD


def test_bytes_buffered_before_a_pause_are_read_after_it(plane: Plane) -> None:
    pair = opened(plane)
    to_broker = pair.pair.pumps[Direction.TO_BROKER]
    plane.memory.used += plane.memory.ample + 1  # reads are smaller than the frame
    pair.client.say(passing(b"x" * RECORD))
    plane.reactor.turn()
    assert pair.pair.client.stream.buffered  # type: ignore[attr-defined]
    to_broker.pause()
    plane.turn()
    heard = len(pair.broker.hear())
    to_broker.unpause(plane.clock())
    plane.until(lambda: len(pair.broker.hear()) == RECORD + 5)
    plane.memory.used -= plane.memory.ample + 1
    assert heard < RECORD


def test_bytes_received_with_the_handshake_are_moved(plane: Plane) -> None:
    (client, far_client), (broker, far_broker) = tls_sockets(), tls_sockets()
    far_client.send(passing(b"early"))
    assert client.recv(3) == passing(b"early")[:3]
    assert client.buffered

    session = FakeSession()
    received = (passing(b"early")[:3], b"")
    pair = plane.reactor.add(client, broker, session, None, received)
    ends = plane.adopt(Opened(pair, session, Far(far_client), Far(far_broker)))  # type: ignore[arg-type]
    plane.until(lambda: ends.broker.hear() == passing(b"early"))


def test_a_slow_reader_behind_tls_stops_the_reading_and_loses_nothing(plane: Plane) -> None:
    pair = opened(plane)
    frame = passing(b"x" * 30_000)
    said = rest = frame * 40
    for _ in range(200):  # the far end does not read: kernel buffers fill, then reading stops
        try:
            rest = rest[pair.client.sock.send(rest) :]
        except BlockingIOError:
            break
        plane.turn()
    assert rest
    assert plane.memory.used < 4 * BUFFER

    def heard_all() -> bool:
        nonlocal rest
        if rest:
            with suppress(BlockingIOError):
                rest = rest[pair.client.sock.send(rest) :]
        return len(pair.broker.hear()) == len(said)

    plane.until(heard_all)
    assert pair.broker.heard == said


def test_the_end_of_a_stream_is_sent_by_tls(plane: Plane) -> None:
    pair = opened(plane)
    pair.client.say(passing(b"last"))
    pair.client.sock.shutdown(socket.SHUT_WR)
    plane.until(lambda: plane.hooks.ends)
    plane.until(lambda: pair.broker.told_the_end)
    assert pair.broker.heard == passing(b"last")


def test_a_stream_knows_its_peer() -> None:
    server, client = tls_sockets()
    assert client.certificate
    assert server.certificate is None
    assert server.is_open()
    client.close()
    server.close()


# -- streams that wait for the other readiness ---------------------------------------------------


class Crossed:
    """A stream that may have to send before it can receive, and the reverse."""

    certificate: bytes | None = None
    server_name: str | None = None
    buffered = False

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.receives_on = IN
        self.sends_on = OUT
        self.fileno = sock.fileno
        self.shutdown = sock.shutdown
        self.close = sock.close
        self.getpeername = sock.getpeername
        self.recv = sock.recv

    def recv_into(self, buffer: bytearray | memoryview, size: int) -> int:
        if self.receives_on == OUT:
            raise BlockingIOError
        return self.sock.recv_into(buffer, size)

    def send(self, data: bytes | memoryview) -> int:
        if self.sends_on == IN:
            raise BlockingIOError
        return self.sock.send(data)

    def is_open(self) -> bool:
        return True


class Noted:
    """A reader that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def timed(self, now: float, stands_for: int) -> None:
        self.readable(now)

    def readable(self, now: float) -> None:
        self.calls.append("readable")

    def flushed(self) -> None:
        self.calls.append("flushed")

    def lost(self, error: OSError) -> None:
        raise AssertionError


class Ends:
    """A lane of records with an epoll of its own."""

    def __init__(self) -> None:
        near, self.far = unix_sockets()
        near.setblocking(False)
        self.stream = Crossed(near)
        self.epoll = select.epoll()
        memory = Memory(BUFFER, 1 << 20)
        self.lane = RecordLane(self.stream, Peer.CLIENT, self.epoll, memory, self._again)
        self.lane.reader = self.reader = Noted()

    def _again(self, lane: Lane) -> None:
        raise AssertionError("nothing is buffered")

    @property
    def events(self) -> int:
        """Return the events that the kernel reports for the lane."""
        return dict(self.epoll.poll(0)).get(self.lane.fd, 0)

    @property
    def means(self) -> int:
        """Return the lane's translation of these events."""
        return self.lane.meaning(self.events)


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.lane.close()
    ends.far.close()
    ends.epoll.close()


def test_a_read_that_must_send_first_waits_for_writability(ends: Ends) -> None:
    ends.lane.read(True)
    ends.far.send(b"hello")
    assert ends.events == IN
    ends.stream.receives_on = OUT
    with pytest.raises(BlockingIOError):
        ends.lane.receive_into(bytearray(10), 10)
    assert ends.events == OUT  # and not IN, which would be reported again and again
    assert ends.means == IN
    ends.stream.receives_on = IN
    assert ends.lane.receive_into(bytearray(10), 10) == 5


def test_a_send_that_must_receive_first_waits_for_readability(ends: Ends) -> None:
    ends.stream.sends_on = IN
    ends.lane.read(True)
    ends.lane.send(b"hello")
    assert ends.lane.kept == 5
    assert ends.events == 0
    ends.far.send(b"keys")
    assert ends.events != IN, "the reactor would take that for bytes to read"
    assert ends.means == IN | OUT
    ends.stream.sends_on = OUT
    assert ends.lane.flush()
    assert ends.far.recv(10) == b"hello"
    assert ends.events == IN


def test_a_lane_that_is_not_read_is_registered_for_sending_alone(ends: Ends) -> None:
    ends.stream.sends_on = IN
    ends.lane.send(b"hello")
    ends.far.send(b"keys")
    assert ends.means == OUT
    ends.lane.read(False)
    assert ends.means == OUT


def test_the_smallest_read_holds_a_record() -> None:
    assert SMALLEST_READ >= RECORD
