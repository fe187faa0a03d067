"""One peer's socket: pending bytes and epoll registration."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Iterator

import pytest

from gateway.plane.lane import Lane
from gateway.plane.memory import Memory
from gateway.wire.contract import Peer

from .harness import Far, Transmission, unix_sockets


class Ends:
    """A lane, its far end and its epoll."""

    def __init__(self) -> None:
        near, far = unix_sockets()
        near.setblocking(False)
        self.memory = Memory(1024, 1 << 20)
        self.epoll = select.epoll()
        self.lane = Lane(near, Peer.CLIENT, self.epoll, self.memory)
        self.far = Far(far)
        self.transmission = Transmission(self.lane)

    @property
    def events(self) -> int:
        """Return the events that epoll reports for the lane."""
        return dict(self.epoll.poll(0)).get(self.lane.fd, 0)

    def close(self) -> None:
        if self.lane.stream.fileno() >= 0:
            self.lane.close()
        self.far.close()
        self.epoll.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()
    assert ends.memory.used == 0


def test_bytes_that_the_socket_takes_are_not_kept(ends: Ends) -> None:
    ends.lane.send(b"hello")
    assert ends.far.hear() == b"hello"
    assert ends.lane.pending is None
    assert ends.memory.used == 0


@pytest.mark.parametrize("taken", [0, 1, 4])
def test_bytes_that_the_socket_does_not_take_are_pending(ends: Ends, taken: int) -> None:
    ends.transmission.most = taken
    ends.lane.send(b"hello")
    assert ends.far.hear() == b"hello"[:taken]
    assert ends.memory.used == ends.lane.kept == 5 - taken
    assert ends.events == select.EPOLLOUT


def test_nothing_overtakes_pending_bytes(ends: Ends) -> None:
    ends.transmission.most = 0
    ends.lane.send(b"one ")
    ends.transmission.most = None
    ends.lane.send(b"two")
    assert ends.far.hear() == b""
    assert ends.lane.flush()
    assert ends.far.hear() == b"one two"


def test_a_partial_flush_continues_later(ends: Ends) -> None:
    ends.transmission.most = 0
    ends.lane.send(b"one ")
    ends.lane.send(b"two")
    ends.transmission.most = 3
    assert not ends.lane.flush()
    assert ends.memory.used == ends.lane.kept == 4
    ends.transmission.most = 0
    assert not ends.lane.flush()
    ends.transmission.most = None
    assert ends.lane.flush()
    assert ends.far.hear() == b"one two"
    assert ends.memory.used == 0


def test_pending_bytes_are_a_copy(ends: Ends) -> None:
    shared = bytearray(b"hello")
    ends.transmission.most = 0
    ends.lane.send(memoryview(shared))
    shared[:] = b"world"
    ends.transmission.most = None
    ends.lane.flush()
    assert ends.far.hear() == b"hello"


def test_a_flushed_lane_no_longer_waits_to_write(ends: Ends) -> None:
    ends.transmission.most = 0
    ends.lane.send(b"hello")
    ends.transmission.most = None
    ends.lane.flush()
    assert ends.events == 0


def test_socket_errors_are_raised_to_the_caller(ends: Ends) -> None:
    ends.transmission.error = ConnectionResetError(errno.ECONNRESET, "gone")
    with pytest.raises(ConnectionResetError):
        ends.lane.send(b"hello")
    ends.lane.keep(b"hello")
    with pytest.raises(ConnectionResetError):
        ends.lane.flush()


def test_a_lane_that_waits_for_nothing_is_not_registered(ends: Ends) -> None:
    ends.lane.read(True)
    ends.lane.read(False)
    ends.far.close()
    assert ends.events == 0, "a hang-up would be reported without end"


def test_reading_and_writing_are_registered_independently(ends: Ends) -> None:
    ends.lane.read(True)
    ends.lane.keep(b"x")
    ends.far.say(b"y")
    assert ends.events == select.EPOLLIN | select.EPOLLOUT
    ends.lane.read(False)
    assert ends.events == select.EPOLLOUT
    ends.lane.flush()
    assert ends.events == 0
    ends.lane.read(True)
    assert ends.events == select.EPOLLIN


def test_a_lane_is_unregistered_before_it_is_closed(ends: Ends) -> None:
    """A duplicate descriptor, such as a child process's, would keep the registration alive."""
    ends.lane.read(True)
    duplicate = socket.socket(fileno=socket.dup(ends.lane.fd))
    ends.lane.close()
    ends.far.say(b"x")
    assert ends.epoll.poll(0) == []
    duplicate.close()


def test_closing_frees_pending_bytes(ends: Ends) -> None:
    ends.lane.keep(b"hello")
    ends.lane.close()
    assert ends.memory.used == 0
