"""Where a rule limits messages, a SEND holds as many as it says, or its connection ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.wire.account import Account, Action
from gateway.wire.contract import FORWARD, Direction, EndReason, ViolationError
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar import counts
from gateway.wire.pulsar.counts import DISTANCE, FIRST, MOST, SUSPECTS, CountChecks, Suspects
from gateway.wire.pulsar.to_broker import COMPARED_AT_ONCE
from tests.support import frames
from tests.support.subjects import subject_of

from .frames import producer, producer_success
from .script import Play


def limited(
    suspects: Suspects | None = None, allowance: int = 1 << 40, *, checksums: bool = False
) -> Play:
    """Return a pair with the open producers 1 to 3, of which a rule limits the messages."""
    play = Play(limited=True, suspects=suspects or Suspects(lambda: 0.5), checksums=checksums)
    for id in range(1, 4):
        play.client(producer(id, request=id)).happens()
        play.account.hold()
        play.account.grant(allowance)
        play.broker(producer_success(id)).forwards()
    return play


def liar(said: int | None, found: int | None, id: int = 1) -> bytes:
    """Return a SEND that says one count, and whose metadata says another one. None: nothing."""
    about = {} if found is None else {"num_messages_in_batch": found}
    rest = frames.tail(frames.metadata_of(7, **about), b"payload")
    fields = frames.number(1, id) + frames.number(2, 7)
    if said is not None:
        fields += frames.number(3, said)
    return frames.frame(frames.command(6, fields), rest)


def hiding(size: int, messages: int) -> bytes:
    """Return a SEND that says 1, with metadata of so many messages behind broker entry metadata."""
    about = frames.metadata_of(7, num_messages_in_batch=messages)
    rest = frames.tail(about, b"payload", entry=bytes(size))
    return frames.frame(frames.command(6, frames.number(1, 1) + frames.number(2, 7)), rest)


LIES = {"too few": (None, 1000), "none": (1, 2), "too many": ((1 << 31) - 1, None)}


@pytest.mark.parametrize(("said", "found"), LIES.values(), ids=LIES)
def test_a_wrong_count_ends_the_connection(said: int | None, found: int | None) -> None:
    with pytest.raises(ViolationError, match="a SEND that says") as ended:
        limited().client(liar(said, found))
    assert ended.value.reason is EndReason.MISCOUNTED


@pytest.mark.parametrize(("said", "found"), LIES.values(), ids=LIES)
def test_a_wrong_count_of_a_held_send_ends_the_connection(
    said: int | None, found: int | None
) -> None:
    with pytest.raises(ViolationError, match="a SEND that says"):
        limited(allowance=0).client(liar(said, found))


def test_messages_beyond_the_stated_count_are_charged() -> None:
    for said, found, charged in ((1, 1000, 999), (1000, 1, 0)):
        play = limited()
        first = play.services.admitted[0]
        with pytest.raises(ViolationError):
            play.client(liar(said, found))
        assert first.messages == charged


def test_more_messages_than_a_batch_can_hold_end_the_connection() -> None:
    with pytest.raises(ViolationError, match="a SEND of 1000001 messages"):
        limited().client(liar(MOST + 1, MOST + 1))
    limited().client(liar(MOST, MOST)).passes()


@pytest.mark.parametrize("count", [None, 1, 2, 1000])
def test_a_right_count_passes(count: int | None) -> None:
    play = limited()
    for _ in range(5):
        play.client(liar(count, count)).passes()
    assert play.services.admitted[0].messages == 5 * (count or 1)


def test_a_batch_of_one_need_not_say_so() -> None:
    limited().client(liar(None, 1)).passes()
    limited().client(liar(1, None)).passes()


def test_nothing_is_compared_where_no_rule_limits_messages() -> None:
    play = Play(limited=True)
    play.client(producer(1)).happens()
    play.broker(producer_success(1)).forwards()
    play.client(liar(1, 1000)).passes()


@pytest.mark.parametrize("size", [0, 22, 4096, 4097, 5000, 100_000])
@pytest.mark.parametrize("allowance", [0, 1 << 40])
def test_broker_entry_metadata_hides_no_count(size: int, allowance: int) -> None:
    """Brokers skip it, of any size. They and nobody else write it."""
    suspects = Suspects(lambda: 0.5)
    for messages in (1, 1000):
        with pytest.raises(ViolationError, match="broker entry metadata") as ended:
            limited(suspects, allowance).client(hiding(size, messages))
        assert ended.value.reason is EndReason.MISCOUNTED
    assert "alice" in suspects


def test_broker_entry_metadata_is_seen_before_it_has_come() -> None:
    """So it need not be kept."""
    frame = hiding(100_000, 1000)
    with pytest.raises(ViolationError, match="broker entry metadata"):
        limited().session.scanners[Direction.TO_BROKER].scan(bytearray(frame[:60]), 0, 60)


def test_broker_entry_metadata_passes_where_no_rule_limits_messages() -> None:
    play = Play(limited=True)
    play.client(producer(1)).happens()
    play.broker(producer_success(1)).forwards()
    play.client(hiding(5000, 1000)).passes()


# -- frames that wait --------------------------------------------------------------------------


def waiting(play: Play, behind: bytes) -> int:
    """Return how much of `behind` waits with a SEND before it, without being decided."""
    scanner, account = play.session.scanners[Direction.TO_BROKER], play.services.admitted[0]
    account.hold()
    chunk = bytearray(SINGLE + behind)
    assert scanner.scan(chunk, 0, len(chunk)) == 0
    assert scanner.stop == len(SINGLE)
    return play.session.following(account, chunk, len(SINGLE), len(chunk)) - len(SINGLE)


@pytest.mark.parametrize("passed", [1, FIRST - 1])
def test_the_first_frames_are_decided_one_by_one_before_they_wait(passed: int) -> None:
    play = limited()
    passes(play, SINGLE * passed)
    assert waiting(play, SINGLE * 3) == 0
    with pytest.raises(ViolationError):
        play.client(liar(None, 1000))


def test_all_frames_of_a_suspect_are_decided_one_by_one_before_they_wait() -> None:
    suspects = Suspects(lambda: 0.99)
    suspects.add("alice")
    play = limited(suspects)
    honest(play)
    assert waiting(play, SINGLE * 3) == 0
    with pytest.raises(ViolationError):
        play.client(liar(None, 1000))


def test_waiting_frames_are_kept_unread_if_no_counts_are_compared() -> None:
    """A rule that limits bytes alone has no use for counts."""
    play = limited()
    account = play.services.admitted[0]
    play.client(SINGLE).passes()
    scanner = play.session.scanners[Direction.TO_BROKER]
    account.messages_ceiling, account.bytes_ceiling = ENDLESS, 0
    chunk = bytearray(SINGLE * 4)
    assert scanner.scan(chunk, 0, len(chunk)) == 0
    assert play.session.following(account, chunk, len(SINGLE), len(chunk)) == len(chunk)


def test_what_waited_unread_is_compared_by_samples_when_it_is_released() -> None:
    lie = liar(None, 1000)
    play = limited(Suspects(lambda: 4 * len(lie) / (2 * DISTANCE)))
    honest(play)
    play.client(SINGLE).passes()
    assert waiting(play, lie * 9) == 9 * len(lie)
    play.services.admitted[0].grant(1 << 40)
    scanner, held = play.session.scanners[Direction.TO_BROKER], bytearray(lie * 9)
    with pytest.raises(ViolationError):
        scanner.scan(held, 0, len(held))


# -- samples -----------------------------------------------------------------------------------

SINGLE = frames.send(1, 7)


def passes(play: Play, *said: bytes) -> None:
    """Scan all of these as one chunk."""
    scanner = play.session.scanners[Direction.TO_BROKER]
    chunk = bytearray(b"".join(said))
    assert scanner.scan(chunk, 0, len(chunk)) == len(chunk)
    assert not scanner.stop


def honest(play: Play, of: Callable[[int], bytes] = lambda number: SINGLE) -> None:
    """Have all frames that are compared at first pass."""
    passes(play, *(of(number) for number in range(FIRST + 1)))


@pytest.mark.parametrize("at", [0, 1, FIRST // 2, FIRST - 1])
def test_the_first_frames_are_all_compared(at: int) -> None:
    play = limited()
    with pytest.raises(ViolationError):
        passes(play, *[SINGLE] * at, liar(None, 1000))


@pytest.mark.parametrize("drawn", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("producers", [1, 3])
def test_after_them_one_frame_is_compared_at_a_drawn_distance(drawn: float, producers: int) -> None:
    """All frames are as long as the lie, so the place of the one that is compared is known."""
    lie = liar(None, 1000)
    pad = b"x" * (len(b"payload") + len(lie) - len(SINGLE))
    truth = [frames.send(1 + number % producers, 7, pad) for number in range(producers)]
    compared = -(-int(drawn * 2 * DISTANCE) // len(lie))
    for wrong in (compared - 1, compared, compared + 1):
        play = limited(Suspects(lambda: drawn))
        honest(play, lambda number: truth[number % producers])
        run = [truth[number % producers] for number in range(compared + 2)]
        run[wrong] = lie
        if wrong == compared:
            with pytest.raises(ViolationError):
                passes(play, *run)
        else:
            passes(play, *run)


def test_a_count_beyond_usual_batches_is_always_compared() -> None:
    play = limited()
    honest(play)
    passes(play, liar(5, 6))
    with pytest.raises(ViolationError):
        passes(play, liar(counts.SUSPICIOUS + 1, 1))


def test_metadata_that_is_too_large_to_wait_for_is_compared_by_the_session() -> None:
    for found in (1, 1000):
        play = limited()
        properties = [{"key": "k", "value": "v" * 100_000}]
        about = frames.metadata_of(7, properties=properties, num_messages_in_batch=found)
        fields = frames.number(1, 1) + frames.number(2, 7)
        frame = frames.frame(frames.command(6, fields), frames.tail(about, b"payload"))
        scanner = play.session.scanners[Direction.TO_BROKER]
        half = len(frame) // 2
        assert scanner.scan(bytearray(frame[:half]), 0, half) == 0
        assert scanner.stop == len(frame)
        if found == 1:
            assert play.session.decide(Direction.TO_BROKER, frame, 0.0) == FORWARD
        else:
            with pytest.raises(ViolationError):
                play.session.decide(Direction.TO_BROKER, frame, 0.0)


def test_metadata_that_lenient_decoders_read_otherwise_ends_the_connection() -> None:
    """The key of a property reaches beyond it: the count behind is swallowed, or is not."""
    overrun = b"\x22\x02\x0a\x7f" + frames.number(11, 1)
    rest = frames.tail(frames.metadata_of(7) + overrun, b"payload")
    said = frames.frame(frames.command(6, frames.number(1, 1) + frames.number(2, 7)), rest)
    with pytest.raises(ViolationError, match="cannot be decoded"):
        limited().client(said)


def test_a_short_cut_waits_for_the_metadata() -> None:
    scanner = limited().session.scanners[Direction.TO_BROKER]
    frame = liar(None, 1000)
    for cut in range(len(frame) - len(b"payload")):
        assert scanner.scan(bytearray(frame[:cut]), 0, cut) == 0
    with pytest.raises(ViolationError):
        scanner.scan(bytearray(frame), 0, len(frame))


def test_all_frames_of_a_suspect_are_compared() -> None:
    suspects = Suspects(lambda: 0.99)
    with pytest.raises(ViolationError):
        limited(suspects).client(liar(1, 2))
    again = limited(suspects)
    honest(again)
    with pytest.raises(ViolationError):
        passes(again, SINGLE, liar(1, 2))


def test_suspects_are_bounded() -> None:
    suspects = Suspects()
    for number in range(SUSPECTS + 5):
        suspects.add(str(number))
    assert "4" not in suspects
    assert "5" in suspects
    assert str(SUSPECTS + 4) in suspects


def test_distances_are_drawn_anew() -> None:
    drawn = iter([0.25, 0.75])
    checks = CountChecks(Suspects(lambda: next(drawn)), "alice")
    assert [checks.distance() for _ in range(FIRST)] == [0] * FIRST
    assert [checks.distance(), checks.distance()] == [DISTANCE // 2, 3 * DISTANCE // 2]
    checks.compare(
        Account(Action.PRODUCE, subject_of("t")), 3, frames.metadata_of(7, num_messages_in_batch=3)
    )


def far(stated: int, actual: int) -> bytes:
    """Return a SEND whose count stands so far behind that its metadata is not waited for."""
    about = frames.metadata_of(
        7, num_messages_in_batch=actual, properties=[{"key": "k", "value": "v" * 10_000}]
    )
    fields = frames.number(1, 1) + frames.number(2, 7) + frames.number(3, stated)
    return frames.frame(frames.command(6, fields), frames.tail(about, bytes(3 * DISTANCE)))


def test_a_send_that_has_stopped_once_stops_again() -> None:
    """The plane looks at the begin of large frames, and scans them again when they have come."""
    play = limited(Suspects(lambda: 1.0))
    scanner = play.session.scanners[0]
    begin = bytearray(far(9, 9)[:2000])
    for _ in range(3):
        assert scanner.scan(begin, 0, len(begin)) == 0
        assert scanner.stop == len(far(9, 9))


def test_a_send_that_comes_in_pieces_is_compared_once() -> None:
    play = limited(checksums=True)
    scanner, whole = play.session.scanners[0], liar(1, 1)
    for end in range(12, len(whole)):
        assert scanner.scan(bytearray(whole[:end]), 0, end) == 0
    assert play.session._checks is not None
    assert play.session._checks._left == FIRST


def test_many_comparisons_leave_the_rest_to_another_turn() -> None:
    suspects = Suspects()
    suspects.add("alice")
    play = limited(suspects)
    scanner, chunk = play.session.scanners[0], bytearray(liar(1, 1) * (COMPARED_AT_ONCE + 9))
    passed = scanner.scan(chunk, 0, len(chunk))
    assert scanner.is_slow
    assert passed == COMPARED_AT_ONCE * len(liar(1, 1))
    assert scanner.scan(chunk, passed, len(chunk)) == len(chunk)
    assert not scanner.is_slow
