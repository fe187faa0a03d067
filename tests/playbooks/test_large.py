"""SENDs that are too large to be collected: their head is decided, and the rest passes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import (
    Await,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Postpone,
    Resume,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.counts import Suspects
from gateway.wire.pulsar.frames import BROKER_ENTRY_MAGIC, Kind
from gateway.wire.pulsar.incarnations import FEW_STRAYS, LONGEST_WAIT, LOOK
from tests.playbooks.frames import close_producer, producer, producer_success
from tests.playbooks.script import Play
from tests.support.frames import command, frame, metadata_of, number, send, tail

KIB = 1024
BOUNDS = Bounds(collected=64 * KIB, all_collected=64 * KIB)
CHUNK = 16 * KIB


class Large:
    """A connection with one producer, whose account has no allowance at first, and a stream of its
    client, which comes chunk by chunk."""

    def __init__(self, **settings: Any) -> None:
        self.play = Play(bounds=BOUNDS, **settings)
        self.play.client(producer(1)).forwards()
        self.play.broker(producer_success()).forwards()
        self.account = self.play.account
        self.passed = b""
        self._stream = b""

    @property
    def stop(self) -> bytes:
        """Return the stop frame at which the scanner halts; empty if there is none."""
        return self._stream[: self.play.session.scanners[0].stop]

    def says(self, frame: bytes) -> None:
        """Add a frame to the stream, and scan."""
        self._stream += frame
        self.scan()

    def scan(self) -> None:
        """Scan up to the next stop frame, or the end of the stream."""
        scanner, at = self.play.session.scanners[0], 0
        while at < len(self._stream):
            chunk = bytearray(self._stream[at : at + CHUNK])
            cleared = scanner.scan(chunk, 0, len(chunk))
            self.passed += chunk[:cleared]
            at += cleared
            if cleared < len(chunk):
                break
        self._stream = self._stream[at:]

    def decide(self, now: float = 0.0) -> Effects:
        """Decide the stop frame; if it goes on, scan what follows."""
        head = self.stop
        effects = self.play.session.decide(Direction.TO_BROKER, head, now)
        if Forward() in effects:
            self.passed += head
            self._stream = self._stream[len(head) :]
            self.scan()
        return effects


PAYLOAD = bytes(range(256)) * 800


def large(sequence: int = 7) -> bytes:
    return send(1, sequence, PAYLOAD)


def batch(stated: int, actual: int) -> bytes:
    """Return a SEND that states a number of messages, and whose batch has another."""
    fields = number(1, 1) + number(2, 7) + number(3, stated)
    rest = tail(metadata_of(7, num_messages_in_batch=actual), PAYLOAD)
    return frame(command(Kind.SEND, fields), rest)


@pytest.fixture(params=[False, True], ids=["", "checksums"])
def connection(request: pytest.FixtureRequest) -> Large:
    return Large(checksums=request.param)


def test_with_allowance_a_large_send_passes_without_a_stop(connection: Large) -> None:
    connection.says(large())
    assert connection.passed == large()
    assert (connection.account.messages, connection.account.bytes) == (1, len(large()))


def test_without_allowance_its_head_waits_and_then_all_of_it_passes(connection: Large) -> None:
    connection.account.hold()
    connection.says(large() + send(1, 8))
    assert 0 < len(connection.stop) < 200
    assert connection.decide(10.0) == (Await(connection.account), Postpone(10.0 + LOOK))
    assert connection.play.session.delivered(10.1) == ()
    connection.account.grant()
    assert connection.play.session.delivered(10.2) == (Resume(Direction.TO_BROKER),)
    assert connection.decide(10.2) == (Forward(),)
    connection.scan()
    assert connection.passed == large() + send(1, 8)
    assert connection.account.messages == 2
    assert connection.account.bytes == len(large() + send(1, 8))


def test_after_its_longest_wait_the_connection_ends(connection: Large) -> None:
    connection.account.hold()
    connection.says(large() + send(1, 8))
    connection.decide(10.0)
    assert connection.decide(10.0 + LONGEST_WAIT - LOOK / 2)[-1] == Postpone(10.0 + LONGEST_WAIT)
    (end,) = connection.decide(10.0 + LONGEST_WAIT)
    assert isinstance(end, End)
    assert end.reason is EndReason.OVER_LIMIT
    assert (connection.passed, connection.account.bytes) == (b"", 0)


def test_its_accounts_next_lease_covers_it(connection: Large) -> None:
    connection.account.hold()
    connection.says(large())
    connection.decide(10.0)
    assert connection.account.needs == len(large())
    connection.account.grant()
    connection.decide(11.0)
    assert not connection.account.needs


def test_the_next_one_waits_as_long_again() -> None:
    connection = Large()
    connection.account.hold()
    connection.says(large() * 2)
    connection.decide(10.0)
    connection.account.grant(1)
    connection.decide(20.0)
    assert connection.decide(40.0)[-1] == Postpone(40.0 + LOOK)


def limited() -> Large:
    connection = Large(limited=True, suspects=Suspects(lambda: 0.5))
    connection.account.hold()
    return connection


def test_its_count_is_compared_with_its_metadata() -> None:
    connection = limited()
    connection.says(batch(9, 9))
    assert connection.decide()[0] == Await(connection.account)
    connection = limited()
    connection.says(batch(3, 9))
    with pytest.raises(PeerError, match="says 3 messages holds 9"):
        connection.decide()


def test_of_no_producer_it_is_dropped_or_ends_the_connection() -> None:
    connection = Large()
    stray = large().replace(number(1, 1), number(1, 2), 1)
    connection.says(stray)
    for _ in range(FEW_STRAYS // len(stray)):
        assert connection.decide() == (Drop(owed=True),)
    with pytest.raises(PeerError, match="not open"):
        connection.decide()


def test_of_a_producer_that_is_not_open_it_is_dropped_whole(connection: Large) -> None:
    connection.play.client(close_producer(1)).forwards()
    connection.says(large())
    assert connection.decide() == (Drop(owed=True),)
    assert connection.play.session.scanners[0].owed == len(large()) - len(connection.stop)


def test_one_that_waits_is_dropped_if_its_producer_is_reset(connection: Large) -> None:
    """The client repeats it when it has opened the producer again."""
    connection.account.hold()
    connection.says(large())
    connection.decide(10.0)
    assert connection.play.session.reset(connection.account)
    assert connection.decide(11.0) == (Drop(owed=True),)
    assert connection.play.session.delivered(11.1) is None


def test_a_client_learns_that_its_large_send_was_damaged() -> None:
    connection = Large(checksums=True)
    with pytest.raises(PeerError, match="checksum"):
        connection.says(large()[:-1] + b"?")
    assert len(connection.passed) < len(large())
    farewell = connection.play.session.farewell(EndReason.CLIENT_VIOLATION, "")
    error = BaseCommand.FromString(farewell[8:]).send_error
    assert (error.producer_id, error.sequence_id) == (1, 7)
    assert error.error == ServerError.ChecksumError
    assert connection.account.damaged == 1


def test_one_that_waited_is_verified_too() -> None:
    connection = Large(checksums=True)
    connection.account.hold()
    connection.says(large()[:-1] + b"?")
    connection.decide(0.0)
    connection.account.grant()
    with pytest.raises(PeerError, match="checksum"):
        connection.decide(1.0)
    assert len(connection.passed) < len(large())
    assert connection.account.damaged == 1


def test_broker_entry_metadata_of_any_size_is_not_waited_for() -> None:
    """Only brokers write it. A client could make the gateway keep all that it sends."""
    connection = Large()
    connection.account.hold()
    head = frame(command(Kind.SEND, number(1, 1) + number(2, 7)), bytes(6))
    entry = BROKER_ENTRY_MAGIC.to_bytes(2) + (3 << 20).to_bytes(4)
    connection.says((4 << 20).to_bytes(4) + head[4:-6] + entry + bytes(100_000))
    assert connection.stop == (4 << 20).to_bytes(4) + head[4:-6] + entry


@pytest.mark.parametrize("behind", [b"", b"\x0e", b"\x0e\x01", b"\x0e\x01\x00\x00\x00"])
def test_a_head_without_a_checksum_is_not_read_beyond_its_end(behind: bytes) -> None:
    connection = Large(checksums=True)
    connection.account.hold()
    head = frame(command(Kind.SEND, number(1, 1) + number(2, 7)))
    connection.play.session.scanners[0].go_on(
        (1 << 20).to_bytes(4) + head[4:] + behind, connection.account
    )
    assert connection.play.session.scanners[0].owed == (1 << 20) + 4 - len(head + behind)


def test_it_does_not_overtake_frames_of_its_producer() -> None:
    connection = Large()
    connection.account.hold()
    connection.account.queued = 100
    connection.says(large())
    connection.decide(10.0)
    effects = connection.decide(10.0 + LONGEST_WAIT)
    assert effects == (Await(connection.account), Postpone(11.0 + LONGEST_WAIT))
    connection.account.queued = 0
    connection.account.grant()
    assert connection.decide(11.0 + LONGEST_WAIT) == (Forward(),)
