"""One direction of a pair: receive, scan, send, and the exceptions."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.plane.memory import UNHEARD_BOUND
from gateway.plane.moving import SMALLEST_READ
from gateway.plane.pair import DECISIONS_AT_ONCE
from gateway.plane.pump import LEAST_SLOW_READ, PATIENCE
from gateway.plane.state import PlaneSettings
from gateway.wire.contract import DROP, FORWARD, Direction, Effects, EndReason, Inject, Peer

from .harness import BUFFER, KIB, Clock, Opened, Plane, Reception, Transmission, both, tcp_sockets
from .protocol import VIOLATION, FakeScanner, FakeSession, frame, frames, passing, stop

RESET = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
BROKEN = BrokenPipeError(errno.EPIPE, "Broken pipe")


# -- the usual way ---------------------------------------------------------------------------


@both
def test_frames_pass(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    said = passing(b"one") + passing(b"two" * 1000)
    speaker.say(said)
    plane.turn()
    assert hearer.hear() == said
    assert plane.memory.used == 0


def test_the_two_directions_are_independent(plane: Plane, pair: Opened) -> None:
    pair.client.say(passing(b"ping"))
    pair.broker.say(passing(b"pong"))
    plane.turn()
    assert pair.broker.hear() == passing(b"ping")
    assert pair.client.hear() == passing(b"pong")


@both
@pytest.mark.parametrize("cut", [1, 4])
def test_a_cut_header_is_carried(
    plane: Plane, pair: Opened, direction: Direction, cut: int
) -> None:
    speaker, hearer = pair.far(direction)
    first, second = passing(b"first"), passing(b"second")
    speaker.say(first + second[:cut])
    plane.turn()
    assert hearer.hear() == first
    assert plane.memory.used == cut
    speaker.say(second[cut:])
    plane.turn()
    assert hearer.hear() == first + second
    assert plane.memory.used == 0


@both
def test_owed_bytes_pass_as_they_come(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    long = passing(b"x" * 1000)
    for part in (long[:10], long[10:500], long[500:] + passing(b"next")):
        speaker.say(part)
        plane.turn()
        assert plane.memory.used == 0
    assert hearer.hear() == long + passing(b"next")


@both
def test_any_chunking_gives_the_same_result(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    said = passing(b"one") + stop(b"two") + passing() + stop() + stop(b"three") + passing(b"x" * 50)
    for at in range(len(said)):
        speaker.say(said[at : at + 1])
        plane.turn()
    assert hearer.hear() == said
    assert [frame for _, frame in pair.session.decided] == [stop(b"two"), stop(), stop(b"three")]
    assert plane.memory.used == 0


def test_more_than_a_buffer_passes(plane: Plane, pair: Opened) -> None:
    said = b"".join(passing(bytes([n]) * 7_000) for n in range(40))
    for at in range(0, len(said), 50_000):
        pair.client.say(said[at : at + 50_000])
        plane.turn()
        pair.broker.hear()
    assert pair.broker.heard == said


# -- stop frames -----------------------------------------------------------------------------


@both
def test_a_stop_frame_is_decided_in_order(plane: Plane, pair: Opened, direction: Direction) -> None:
    speaker, hearer = pair.far(direction)
    said = passing(b"before") + stop(b"me") + passing(b"behind")
    speaker.say(said)
    plane.turn()
    assert pair.session.decided == [(direction, stop(b"me"))]
    assert hearer.hear() == said


@both
def test_a_stop_frame_is_collected_across_chunks(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    said = stop(b"x" * 100)
    for at in range(0, 90, 30):
        speaker.say(said[at : at + 30])
        plane.turn()
        assert (plane.memory.used, plane.memory.collected) == (0, at + 30)
        assert pair.session.decided == []
        assert hearer.hear() == b""
    speaker.say(said[90:] + passing(b"behind"))
    plane.turn()
    assert pair.session.decided == [(direction, said)]
    assert hearer.hear() == said + passing(b"behind")
    assert plane.memory.kept == 0


def test_a_stop_frame_may_be_larger_than_the_buffer(plane: Plane, pair: Opened) -> None:
    said = stop(bytes(range(256)) * 1024)
    assert len(said) > 3 * BUFFER
    for at in range(0, len(said), 30_000):
        pair.client.say(said[at : at + 30_000])
        plane.turn()
    plane.until(lambda: len(pair.broker.hear()) == len(said))
    assert pair.broker.heard == said
    assert pair.session.decided == [(Direction.TO_BROKER, said)]


def test_nothing_behind_a_collected_frame_is_received_with_it(plane: Plane, pair: Opened) -> None:
    reception = Reception(pair.pair.client)
    said = stop(b"x" * 100)
    pair.client.say(said[:50])
    plane.turn()
    pair.client.say(said[50:] + passing(b"behind"))
    plane.turn()
    assert len(said) - 50 in reception.sizes


@pytest.mark.parametrize("said_first", [5, 1000])
def test_a_stop_frame_beyond_the_bound_ends_the_pair(plane: Plane, said_first: int) -> None:
    session = FakeSession(bound=1000)
    session.words[EndReason.FRAME_TOO_LARGE] = passing(b"too large")
    pair = plane.open(session)
    pair.client.say(passing(b"before") + stop(b"x" * 996)[:said_first])
    plane.turn()
    assert plane.hooks.reasons == [EndReason.FRAME_TOO_LARGE]
    assert plane.hooks.ends[0].detail == "a stop frame of 1001 bytes"
    assert pair.session.decided == []
    assert pair.client.hear() == passing(b"too large")
    assert pair.broker.hear() == passing(b"before")


def test_a_stop_frame_as_large_as_the_bound_is_decided(plane: Plane) -> None:
    pair = plane.open(FakeSession(bound=1000))
    said = stop(b"x" * 995)
    pair.client.say(said[:500])
    plane.turn()
    pair.client.say(said[500:])
    plane.turn()
    assert pair.broker.hear() == said


def test_a_chunk_of_stop_frames_does_not_delay_other_pairs(plane: Plane, pair: Opened) -> None:
    """Decisions cost much more than passing frames, so a turn makes a bounded number of them."""
    said = b"".join(stop(b"%d" % n) for n in range(3 * DECISIONS_AT_ONCE))
    pair.client.say(said)
    plane.reactor.turn()
    assert len(pair.session.decided) < 2 * DECISIONS_AT_ONCE
    plane.turn()
    assert pair.broker.hear() == said
    assert plane.memory.used == 0


def test_many_demanding_pairs_do_not_delay_others(plane: Plane) -> None:
    """All pairs together get as many decisions in a turn as one pair alone."""
    asking = [plane.open() for _ in range(20)]
    for pair in asking:
        pair.client.say(b"".join(stop(b"%d" % n) for n in range(DECISIONS_AT_ONCE)))
    innocent = plane.open()
    innocent.client.say(passing(b"ping"))
    plane.reactor.turn()
    assert innocent.broker.hear() == passing(b"ping")
    decided = sum(len(pair.session.decided) for pair in asking)
    assert decided < DECISIONS_AT_ONCE + len(asking)
    plane.turn()
    assert all(len(pair.session.decided) == DECISIONS_AT_ONCE for pair in asking)


def test_costly_decisions_stop_when_the_turn_ends(plane: Plane) -> None:
    asking, innocent = plane.open(), plane.open()

    def response(_direction: Direction, _frame: bytes) -> Effects:
        plane.clock.now += 0.4 * plane.settings.turn
        return FORWARD

    asking.session.response = response
    asking.client.say(b"".join(stop(b"%d" % n) for n in range(20)))
    plane.reactor.turn()
    assert len(asking.session.decided) == 3
    innocent.client.say(passing(b"ping"))
    plane.reactor.turn()
    assert innocent.broker.hear() == passing(b"ping")
    for _ in range(20):
        plane.clock.now += plane.settings.turn
        plane.turn()
    assert len(asking.session.decided) == 20


# -- frames that are slow to scan ------------------------------------------------------------


@both
def test_a_carry_is_given_back_once_if_the_sink_is_gone(plane: Plane, direction: Direction) -> None:
    pair = plane.open(sockets=tcp_sockets)
    speaker, _ = pair.far(direction)
    frame = passing(bytes(100))
    speaker.say(frame[:3])
    plane.turn()
    assert plane.memory.used == 3
    pair.pair.pumps[direction].sink.stream.shutdown(socket.SHUT_WR)
    speaker.say(frame[3:])
    plane.turn()
    assert pair.pair.over
    assert plane.memory.used == 0


LARGE_BUFFER = 512 * KIB
COSTLY = 140e-9
"""Seconds for each byte of the slowest frames."""

USUAL = 0.5e-9
"""Seconds for each byte of frames of 1 KB and more."""


class SlowScanner(FakeScanner):
    """Lets time pass for scanned bytes, and records the number of bytes of each call."""

    def __init__(self, clock: Clock, cost: float) -> None:
        super().__init__({})
        self._clock = clock
        self.cost = cost
        self.scanned: list[int] = []

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        self.scanned.append(end - start)
        self._clock.now += self.cost * (end - start)
        return super().scan(chunk, start, end)


@pytest.fixture
def large() -> Iterator[Plane]:
    """A plane with the default buffer."""
    plane = Plane(PlaneSettings(buffer=LARGE_BUFFER, memory=1 << 26))
    yield plane
    plane.close()


def slow(plane: Plane, direction: Direction, cost: float = COSTLY) -> tuple[Opened, SlowScanner]:
    """Return a pair in which scanning one direction costs `cost` seconds for each byte."""
    scanner = SlowScanner(plane.clock, cost)
    session = FakeSession()
    scanners = [scanner, FakeScanner({})]
    session.scanners = scanners[direction], scanners[1 - direction]
    return plane.open(session), scanner


def say_all(plane: Plane, pair: Opened, direction: Direction, said: bytes) -> None:
    """Send more than a socket takes at once."""
    speaker, hearer = pair.far(direction)
    rest = memoryview(said)
    while rest:
        with suppress(BlockingIOError):
            rest = rest[speaker.sock.send(rest[:100_000]) :]
        plane.turn()
        hearer.hear()


@both
def test_a_chunk_of_slow_frames_does_not_delay_other_pairs(
    large: Plane, direction: Direction
) -> None:
    """One piece is scanned before others have their turn, and then as much as a turn allows."""
    flooding, scanner = slow(large, direction)
    innocent = large.open()
    said = passing(b"tiny") * (LARGE_BUFFER // 9)
    flooding.pair.pumps[direction].offer(said, large.clock())
    assert sum(scanner.scanned) <= LARGE_BUFFER // 4
    assert large.memory.used >= len(said) // 2, "the rest is counted while it waits"
    for n in range(5):
        before = sum(scanner.scanned)
        innocent.client.say(passing(b"%d" % n))
        large.reactor.keep_deadlines()
        large.reactor.turn()
        assert innocent.broker.hear().endswith(passing(b"%d" % n))
        assert sum(scanner.scanned) - before <= LARGE_BUFFER // 8 + KIB
    large.until(lambda: len(flooding.far(direction)[1].hear()) == len(said))
    assert flooding.far(direction)[1].heard == said
    assert large.memory.used == 0


@both
def test_nothing_is_read_beyond_a_chunk_that_was_cut(large: Plane, direction: Direction) -> None:
    flooding, _ = slow(large, direction)
    pump = flooding.pair.pumps[direction]
    pump.offer(passing(b"tiny") * 40_000, large.clock())
    assert not pump.source.reading
    flooding.far(direction)[0].say(passing(b"later"))
    large.until(lambda: flooding.far(direction)[1].hear().endswith(passing(b"later")))
    assert pump.source.reading


def test_reads_of_slow_frames_become_small_and_recover(large: Plane) -> None:
    flooding, scanner = slow(large, Direction.TO_BROKER)
    reception = Reception(flooding.pair.client)
    say_all(large, flooding, Direction.TO_BROKER, passing(b"tiny") * 40_000)
    assert reception.sizes[0] == LARGE_BUFFER
    assert reception.sizes[-1] == LEAST_SLOW_READ
    scanner.cost = USUAL
    del reception.sizes[:]
    say_all(large, flooding, Direction.TO_BROKER, passing(b"x" * 995) * 800)
    assert reception.sizes[: PATIENCE - 1] == [LEAST_SLOW_READ] * (PATIENCE - 1)
    assert max(reception.sizes) >= 8 * LEAST_SLOW_READ


def test_a_client_that_mixes_slow_frames_into_others_gains_little(large: Plane) -> None:
    """Reads grow only after quick ones, so slow large reads are the exception."""
    flooding, scanner = slow(large, Direction.TO_BROKER)
    reception = Reception(flooding.pair.client)
    longest = []
    for _ in range(6):
        for cost in (*[USUAL] * 12, COSTLY):
            scanner.cost = cost
            before = large.clock.now
            with suppress(BlockingIOError):
                flooding.client.sock.send(passing(b"tiny") * 20_000)
            large.reactor.turn()
            longest.append(large.clock.now - before)
            scanner.cost = USUAL
            large.turn()
            flooding.broker.hear()
    assert max(longest) <= COSTLY * LARGE_BUFFER / 4 + 2 * large.settings.turn
    assert sum(longest) / len(longest) <= large.settings.turn
    assert min(reception.sizes) >= LEAST_SLOW_READ


def test_cleared_pieces_are_sent_before_a_violation_in_the_next_piece(large: Plane) -> None:
    """A farewell may be sent only at a border, and the scanner counts the piece as sent."""
    session = FakeSession()
    session.words[EndReason.BROKER_VIOLATION] = passing(b"bye")
    pair = large.open(session)
    one = passing(b"x" * 123)
    said = one * (LARGE_BUFFER // 4 // len(one) + 100)
    pair.pair.pumps[Direction.TO_CLIENT].offer(said + frame(VIOLATION), large.clock())
    assert large.hooks.reasons == [EndReason.BROKER_VIOLATION]
    large.until(lambda: pair.client.hear().endswith(passing(b"bye")))
    heard = pair.client.heard
    assert frames(heard)[:-1] == [one] * (LARGE_BUFFER // 4 // len(one))


def test_a_header_longer_than_a_piece_is_carried(large: Plane) -> None:
    """The next piece begins where the last one ended, not at the header that is cut."""

    class Cutting(FakeScanner):
        """A scanner whose first header has 100,000 bytes."""

        def scan(self, chunk: bytearray, start: int, end: int) -> int:
            return start if end < 100_000 else super().scan(chunk, start, end)

    session = FakeSession()
    session.scanners = Cutting({}), FakeScanner({})
    pair = large.open(session)
    pump = pair.pair.pumps[Direction.TO_BROKER]
    pump._read_size = LEAST_SLOW_READ
    said = passing(b"x" * 119_995)
    pump.offer(said, large.clock())
    large.until(lambda: pair.broker.hear() == said)


def test_large_passing_frames_are_scanned_at_once(large: Plane) -> None:
    pair, scanner = slow(large, Direction.TO_BROKER, USUAL)
    said = passing(b"x" * 400_000)
    pair.pair.pumps[Direction.TO_BROKER].offer(said, large.clock())
    assert len(scanner.scanned) == 2
    large.until(lambda: pair.broker.hear() == said)


# -- slow readers ----------------------------------------------------------------------------


def fill(plane: Plane, pair: Opened, direction: Direction) -> bytes:
    """Send passing frames until the plane stops reading. Return all bytes sent."""
    speaker, _ = pair.far(direction)
    source = pair.pair.pumps[direction].source
    said = rest = b""
    for n in range(10_000):
        rest = rest or passing(n.to_bytes(4) * 500)
        sent = 0
        with suppress(BlockingIOError):
            sent = speaker.sock.send(rest)
        said, rest = said + rest[:sent], rest[sent:]
        plane.turn()
        if not sent and not plane.woken(0.02):  # all bytes under way in TCP have arrived
            break
    assert not source.reading, "the plane reads without end"
    return said


@both
def test_a_slow_reader_stops_the_reading(plane: Plane, direction: Direction) -> None:
    pair = plane.open(send_buffer=8 * KIB)
    said = fill(plane, pair, direction)
    sink = pair.pair.pumps[direction].sink
    assert 0 < sink.kept <= BUFFER
    assert plane.memory.used == sink.kept
    _, hearer = pair.far(direction)
    plane.until(lambda: len(hearer.hear()) == len(said))
    assert hearer.heard == said
    assert plane.memory.used == 0
    assert pair.pair.pumps[direction].source.reading


def test_a_slow_reader_of_tcp_gets_everything(plane: Plane) -> None:
    pair = plane.open(sockets=tcp_sockets, send_buffer=8 * KIB)
    said = fill(plane, pair, Direction.TO_BROKER)
    assert plane.memory.used <= BUFFER
    plane.until(lambda: len(pair.broker.hear(50_000)) == len(said))
    assert pair.broker.heard == said


def test_reads_are_halved_for_a_slow_reader_and_recover(plane: Plane, pair: Opened) -> None:
    reception = Reception(pair.pair.client)
    transmission = Transmission(pair.pair.broker)
    for _ in range(4):
        transmission.most = 0
        pair.client.say(passing(b"blocked"))
        plane.reactor.turn()
        transmission.most = None
        plane.turn()
    assert reception.sizes[0] == BUFFER
    assert reception.sizes[-1] == SMALLEST_READ
    pair.client.say(b"".join(passing(b"x" * 995) for _ in range(150)))
    plane.until(lambda: len(pair.broker.hear()) >= 150_000)
    assert max(reception.sizes[5:]) == BUFFER


def test_a_slow_reader_does_not_stop_the_other_direction(plane: Plane) -> None:
    pair = plane.open(send_buffer=8 * KIB)
    fill(plane, pair, Direction.TO_BROKER)
    pair.broker.say(passing(b"still"))
    plane.turn()
    assert pair.client.hear() == passing(b"still")


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_short_writes_lose_nothing(plane: Plane, pair: Opened, most: int) -> None:
    Transmission(pair.pair.broker).most = most
    said = passing(b"one" * 9) + stop(b"two" * 9) + passing(b"three" * 9)
    pair.client.say(said)
    plane.until(lambda: len(pair.broker.hear()) == len(said))
    assert pair.broker.heard == said
    assert plane.memory.used == 0


def test_a_full_socket_is_tried_again_when_writable(plane: Plane, pair: Opened) -> None:
    transmission = Transmission(pair.pair.broker)
    transmission.most = 0
    said = passing(b"one") + stop(b"two") + passing(b"three")
    pair.client.say(said)
    plane.reactor.turn()
    assert plane.memory.used == len(said)
    transmission.most = None
    plane.turn()
    assert pair.broker.hear() == said


def test_a_wake_up_without_bytes_has_no_effect(plane: Plane, pair: Opened) -> None:
    pair.pair.pumps[0].readable(plane.clock())
    pair.client.say(stop(b"x" * 50)[:10])
    plane.turn()
    pair.pair.pumps[0].readable(plane.clock())
    assert plane.hooks.ends == []


# -- lost peers ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("collecting", [False, True])
def test_an_error_of_receiving_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction, collecting: bool
) -> None:
    speaker, hearer = pair.far(direction)
    if collecting:
        speaker.say(stop(b"x" * 50)[:10])
        plane.turn()
    source = pair.pair.pumps[direction].source
    Reception(source).error = RESET
    speaker.say(passing())
    plane.turn()
    lost = EndReason.CLIENT_LOST if source.peer is Peer.CLIENT else EndReason.BROKER_LOST
    assert plane.hooks.reasons == [lost]
    assert plane.hooks.ends[0].detail == "Connection reset by peer"
    assert hearer.told_the_end


@both
@pytest.mark.parametrize("kind", [passing, stop])
@pytest.mark.parametrize("error", [RESET, BROKEN])
def test_an_error_of_sending_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction, kind: type, error: OSError
) -> None:
    speaker, _ = pair.far(direction)
    sink = pair.pair.pumps[direction].sink
    Transmission(sink).error = error
    speaker.say(kind(b"x"))
    plane.turn()
    lost = EndReason.CLIENT_LOST if sink.peer is Peer.CLIENT else EndReason.BROKER_LOST
    assert plane.hooks.reasons == [lost]
    assert speaker.told_the_end


@both
def test_an_error_of_flushing_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, _ = pair.far(direction)
    sink = pair.pair.pumps[direction].sink
    transmission = Transmission(sink)
    transmission.most = 0
    speaker.say(passing(b"x"))
    plane.reactor.turn()
    transmission.error = RESET
    plane.turn()
    lost = EndReason.CLIENT_LOST if sink.peer is Peer.CLIENT else EndReason.BROKER_LOST
    assert plane.hooks.reasons == [lost]


@pytest.mark.parametrize("fails_at", range(1, 5))
def test_nothing_is_decided_or_kept_behind_a_lost_peer(
    plane: Plane, pair: Opened, fails_at: int
) -> None:
    """One chunk is sent in several parts; each send may find the sink gone."""
    transmission = Transmission(pair.pair.broker)
    transmission.fails_at = fails_at
    pair.client.say(passing(b"1") + stop(b"2") + passing(b"3") + stop(b"4") + passing(b"5")[:3])
    plane.turn()
    assert plane.hooks.reasons == [EndReason.BROKER_LOST]
    assert len(pair.session.decided) == fails_at // 2
    assert transmission.calls == fails_at
    assert plane.memory.used == 0


@both
def test_the_end_of_a_stream_ends_the_pair_after_its_bytes(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    speaker.say(passing(b"last words"))
    speaker.close()
    plane.turn()
    closed = (EndReason.CLIENT_CLOSED, EndReason.BROKER_CLOSED)[direction]
    assert plane.hooks.reasons == [closed]
    assert hearer.hear() == passing(b"last words")
    assert hearer.told_the_end


@both
def test_a_half_closed_stream_ends_the_pair(
    plane: Plane, pair: Opened, direction: Direction
) -> None:
    speaker, hearer = pair.far(direction)
    speaker.say(passing(b"last words"))
    speaker.sock.shutdown(socket.SHUT_WR)
    plane.turn()
    assert plane.hooks.reasons == [(EndReason.CLIENT_CLOSED, EndReason.BROKER_CLOSED)[direction]]
    assert hearer.hear() == passing(b"last words")
    assert hearer.told_the_end
    assert speaker.told_the_end


def test_the_end_of_a_stream_within_a_stop_frame(plane: Plane, pair: Opened) -> None:
    pair.client.say(stop(b"x" * 50)[:20])
    plane.turn()
    pair.client.close()
    plane.turn()
    assert plane.hooks.reasons == [EndReason.CLIENT_CLOSED]
    assert pair.session.decided == []


def test_the_end_of_a_stream_waits_for_a_slow_reader(plane: Plane) -> None:
    pair = plane.open(sockets=tcp_sockets, send_buffer=8 * KIB)
    said = fill(plane, pair, Direction.TO_BROKER)
    pair.client.close()
    plane.turn()
    assert plane.hooks.reasons == []
    plane.until(lambda: len(pair.broker.hear(50_000)) == len(said))
    plane.until(lambda: plane.hooks.reasons == [EndReason.CLIENT_CLOSED])
    assert pair.broker.heard == said


@both
def test_a_hang_up_of_a_lane_that_is_not_read_does_not_spin(
    plane: Plane, direction: Direction
) -> None:
    pair = plane.open(sockets=tcp_sockets, send_buffer=8 * KIB)
    said = fill(plane, pair, direction)
    speaker, hearer = pair.far(direction)
    kept = plane.memory.used
    speaker.reset()
    for _ in range(5):
        plane.turn()
    assert plane.hooks.reasons == []
    assert plane.memory.used == kept
    plane.until(lambda: (hearer.hear(50_000), plane.hooks.ends)[1])
    lost = (EndReason.CLIENT_LOST, EndReason.BROKER_LOST)[direction]
    assert plane.hooks.reasons == [lost]
    plane.until(lambda: hearer.told_the_end)
    assert said.startswith(hearer.heard)
    assert len(hearer.heard) >= kept


def test_a_hang_up_with_both_ways_blocked_ends_the_pair(plane: Plane) -> None:
    """The client's lane waits to be writable, so its hang-up is reported; the broker still gets its
    pending bytes."""
    pair = plane.open(sockets=tcp_sockets, send_buffer=8 * KIB)
    fill(plane, pair, Direction.TO_CLIENT)
    said = fill(plane, pair, Direction.TO_BROKER)
    kept = pair.pair.broker.kept
    assert pair.pair.client.kept
    assert kept
    pair.client.reset()
    plane.until(lambda: plane.hooks.ends)
    assert plane.hooks.reasons == [EndReason.CLIENT_LOST]
    plane.until(lambda: pair.broker.told_the_end)
    assert said.startswith(pair.broker.heard)
    assert len(pair.broker.heard) >= kept


# -- frames of our own -----------------------------------------------------------------------


def test_a_peer_that_does_not_read_its_answers_is_not_read(plane: Plane) -> None:
    """One client could otherwise fill the plane's memory with refusals."""
    pair = plane.open(send_buffer=8 * KIB)
    response = passing(b"no" * 500)
    pair.session.response = lambda direction, frame: (
        *DROP,
        Inject(Direction.TO_CLIENT, response),
    )
    asked = 0
    for _ in range(10_000):
        try:
            pair.client.say(stop(b"may I?") * 10)
        except BlockingIOError:
            break
        asked += 10
        plane.turn()
    assert asked < 10_000, "the client is read without end"
    assert plane.memory.used < 4 * BUFFER
    plane.until(lambda: len(pair.client.hear()) == asked * len(response))
    assert frames(pair.client.heard) == [response] * asked


def test_a_peer_that_reads_its_answers_is_read(plane: Plane, pair: Opened) -> None:
    """Delivered answers do not count, however many they are."""
    response = passing(b"no" * 2000)
    pair.session.response = lambda direction, frame: (
        *DROP,
        Inject(Direction.TO_CLIENT, response),
    )
    long = passing(b"x" * 100)
    for _ in range(3 * UNHEARD_BOUND // len(response)):
        pair.broker.say(long[:50])
        plane.turn()
        pair.client.say(stop(b"may I?"))
        plane.turn()
        pair.broker.say(long[50:])
        plane.turn()
        assert pair.pair.client.reading
        pair.client.hear()


def test_answers_that_wait_for_a_border_are_bounded_too(plane: Plane) -> None:
    pair = plane.open()
    response = passing(b"no" * 500)
    pair.session.response = lambda direction, frame: (
        *DROP,
        Inject(Direction.TO_CLIENT, response),
    )
    long = passing(b"x" * 100)
    pair.broker.say(long[:50])
    plane.turn()
    asked = 0
    for _ in range(10_000):
        try:
            pair.client.say(stop(b"may I?") * 10)
        except BlockingIOError:
            break
        asked += 10
        plane.turn()
    assert asked < 10_000, "the client is read without end"
    assert 0 < plane.memory.used < 4 * BUFFER
    pair.broker.say(long[50:])
    plane.until(lambda: len(pair.client.hear()) == len(long) + asked * len(response))
    assert frames(pair.client.heard) == [long] + [response] * asked
