"""The plane moves large frames of Pulsar, alone and among small ones: it loses, reorders and
miscounts no byte. Compiled, it moves them by way of a pipe.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from gateway._pure import COMPILED
from gateway.plane.state import PlaneSettings
from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction, EndReason
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.support.commands import ACTIONS
from tests.support.frames import message, metadata_of, send, simple, tail
from tests.support.subjects import subject_of
from tests.support.tls import tls_sockets

from .harness import Opened, Plane, both
from .protocol import FakeSession

MIB = 1024 * 1024
BUFFER = 512 * 1024


class PulsarSession(FakeSession):
    """Decides as the other one does, and has producer 1 and consumer 1."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = Account(Action.PRODUCE, subject_of("a topic"))
        producing = ToBrokerScanner(ACTIONS[Direction.TO_BROKER, True])
        producing.open_producer(1, self.counted)
        consuming = ToClientScanner(ACTIONS[Direction.TO_CLIENT, True], Account(Action.CONSUME))
        consuming.open_consumer(1, self.counted)
        self.scanners: Any = (producing, consuming)


@pytest.fixture
def plane() -> Iterator[Plane]:
    """A plane with the usual buffer, larger than a large frame."""
    plane = Plane(PlaneSettings(buffer=BUFFER, memory=64 * MIB))
    yield plane
    plane.close()


@pytest.fixture
def pair(plane: Plane) -> Opened:
    return plane.open(PulsarSession(), sockets=large_sockets)


def large_sockets() -> tuple[socket.socket, socket.socket]:
    """Return two TCP ends with the buffers that the kernel gives."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        near, _ = server.accept()
    return near, far


@pytest.fixture(params=["plain", "TLS of the client", "TLS of both"])
def mixed(request: pytest.FixtureRequest, plane: Plane) -> Opened:
    """Return an open pair without TLS, with TLS towards the client, or with TLS on both sides."""
    secured = {"plain": (), "TLS of the client": (0,), "TLS of both": (0, 1)}[request.param]
    sides = count()
    return plane.open(
        PulsarSession(),
        sockets=lambda: tls_sockets() if next(sides) in secured else large_sockets(),  # type: ignore[return-value,arg-type]
    )


def frame(direction: Direction, size: int, number: int = 0) -> bytes:
    """Return a SEND or MESSAGE with a payload of this size."""
    payload = random.Random(number).randbytes(size)
    if direction is Direction.TO_BROKER:
        return send(1, number, payload=payload)
    return message(1, tail(metadata_of(), payload))


def account_of(pair: Opened) -> Account:
    assert isinstance(pair.session, PulsarSession)
    return pair.session.counted


def relay(plane: Plane, pair: Opened, direction: Direction, data: bytes, most: int = MIB) -> bytes:
    """Say all bytes, in pieces of at most `most`, and return what is heard."""
    return finish(plane, pair, direction, memoryview(data), len(data), most)


def finish(
    plane: Plane, pair: Opened, direction: Direction, left: memoryview, size: int, most: int = MIB
) -> bytes:
    """Say what is left, until `size` bytes have been heard in all. Return them."""
    source, sink = pair.far(direction)
    heard = bytearray()
    while len(heard) < size:
        if left:
            with suppress(BlockingIOError):
                left = left[source.sock.send(left[:most]) :]
        plane.turn()
        heard += sink.hear()
        sink.heard = b""
    return bytes(heard)


@both
@pytest.mark.parametrize("most", [MIB, 40_000, 9000])
def test_frames_of_all_sizes_arrive_and_count(
    plane: Plane, mixed: Opened, direction: Direction, most: int
) -> None:
    noise = random.Random(most)
    sizes = [noise.choice((100, 20_000, 130_000, 400_000, 1_500_000)) for _ in range(40)]
    frames = [frame(direction, size, number) for number, size in enumerate(sizes)]
    data = b"".join(frames)
    assert relay(plane, mixed, direction, data, most) == data
    account = account_of(mixed)
    assert (account.messages, account.bytes) == (len(frames), len(data))
    assert plane.memory.used == 0


@both
def test_a_peer_that_reads_late_gets_all_in_order(
    plane: Plane, mixed: Opened, direction: Direction
) -> None:
    source, _ = mixed.far(direction)
    data = b"".join(frame(direction, 300_000, number) for number in range(100))
    left = memoryview(data)
    for _ in range(1000):
        try:
            left = left[source.sock.send(left[:MIB]) :]
        except BlockingIOError:
            break
        plane.turn()
    assert 0 < plane.memory.used <= BUFFER, "it keeps what the peer has not taken"
    assert finish(plane, mixed, direction, left, len(data)) == data


@both
def test_a_peer_that_ends_within_a_frame_is_heard_to_its_end(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    source, sink = pair.far(direction)
    whole = frame(direction, 200_000)
    assert relay(plane, pair, direction, whole) == whole
    source.sock.setblocking(True)
    source.sock.sendall(whole[:100_000])
    source.sock.shutdown(socket.SHUT_WR)
    plane.until(lambda: pair.pair.over)
    plane.turn()
    assert sink.hear() == whole[:100_000]
    reasons = {Direction.TO_BROKER: EndReason.CLIENT_CLOSED}
    expected = reasons.get(direction, EndReason.BROKER_CLOSED)
    assert [end.reason for end in plane.hooks.ends] == [expected]


@both
def test_a_peer_that_is_gone_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    source, sink = pair.far(direction)
    whole = frame(direction, 200_000)
    assert relay(plane, pair, direction, whole) == whole
    sink.reset()
    source.sock.setblocking(True)
    source.sock.sendall(whole)
    plane.until(lambda: pair.pair.over)
    assert len(plane.hooks.ends) == 1


@both
def test_an_urgent_byte_within_a_large_frame_stops_nobody(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    """A pipe takes no urgent byte, nor what follows it (TCP, RFC 6093). A receive leaves it out."""
    source, sink = pair.far(direction)
    whole = frame(direction, 200_000)
    assert relay(plane, pair, direction, whole) == whole
    source.sock.setblocking(True)
    source.sock.sendall(whole[:100_000])
    source.sock.send(b"!", socket.MSG_OOB)
    source.sock.sendall(whole[100_000:])
    plane.until(lambda: len(sink.hear()) == len(whole))
    assert sink.heard == whole
    plane.turn()
    assert pair.pair.pumps[direction].scanner.owed == 0


def test_a_stop_frame_among_large_ones_keeps_its_place(plane: Plane, mixed: Opened) -> None:
    lookup = simple(Kind.LOOKUP, topic="t", request_id=1)
    large = [frame(Direction.TO_BROKER, 150_000, number) for number in range(3)]
    data = large[0] + lookup + large[1] + large[2] + lookup + lookup
    assert relay(plane, mixed, Direction.TO_BROKER, data) == data
    assert [frame for _, frame in mixed.session.decided] == [lookup] * 3


def test_a_frame_of_a_held_account_is_not_poured(plane: Plane, pair: Opened) -> None:
    whole = frame(Direction.TO_BROKER, 150_000)
    assert relay(plane, pair, Direction.TO_BROKER, whole) == whole
    account_of(pair).hold()
    source, sink = pair.far(Direction.TO_BROKER)
    source.sock.setblocking(True)
    source.sock.sendall(whole[:60_000])
    plane.until(lambda: pair.pair.pumps[0]._collection is not None)
    assert sink.hear() == b""
    assert account_of(pair).messages == 1


def test_all_pairs_share_one_pipe(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the loops are compiled: the pure version has none."""
    made, make = list[int](), os.pipe2

    def counted(flags: int) -> tuple[int, int]:
        made.append(flags)
        return make(flags)

    monkeypatch.setattr(os, "pipe2", counted)
    data = frame(Direction.TO_BROKER, 200_000)
    for _ in range(3):
        pair = plane.open(PulsarSession(), sockets=large_sockets)
        assert relay(plane, pair, Direction.TO_BROKER, data) == data
    assert len(made) == COMPILED


@both
def test_without_a_pipe_bytes_are_copied(
    plane: Plane, pair: Opened, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", none)
    data = b"".join(frame(direction, 200_000, number) for number in range(10))
    assert relay(plane, pair, direction, data) == data
    assert account_of(pair).messages == 10


@both
def test_a_violation_behind_a_large_frame_leaves_no_bytes_to_another_pair(
    plane: Plane, direction: Direction
) -> None:
    """All pairs share the pipe through which large frames go."""
    attacker = plane.open(PulsarSession(), sockets=large_sockets)
    victim = plane.open(PulsarSession(), sockets=large_sockets)
    whole = frame(direction, 300_000)
    assert relay(plane, attacker, direction, whole) == whole
    source, _ = attacker.far(direction)
    source.sock.setblocking(True)
    source.sock.sendall(whole + bytes(10))
    plane.until(lambda: attacker.pair.over)
    data = frame(direction, 400_000, 1) * 3
    assert relay(plane, victim, direction, data) == data


def test_a_carry_without_room_ends_the_pair(plane: Plane, pair: Opened) -> None:
    """No scanner waits for so many bytes."""
    pump = pair.pair.pumps[Direction.TO_BROKER]
    pump._keep(bytes(plane.memory.size))
    pair.far(Direction.TO_BROKER)[0].sock.sendall(frame(Direction.TO_BROKER, 100))
    plane.until(lambda: pair.pair.over)
