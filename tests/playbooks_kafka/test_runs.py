"""Requests that follow one another in one form are counted like each by itself."""

from __future__ import annotations

from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.pieces import HEAD
from gateway.wire.kafka.to_broker import BY_ID, FLEXIBLE_PRODUCE
from gateway.wire.kafka.to_client import MOST_ENDS

from .frames import PRODUCE, batch, metadata, named, produce, tell, told
from .script import KafkaServices, Play

VERSIONS = range(FLEXIBLE_PRODUCE, BY_ID + 1)
BORDERS = (127, 128, 16_383, 16_384)
"""Bytes of a batch and of its length's one, at which the length takes a byte more."""

TAIL = 3
"""Bytes behind the batches of a frame with one partition: three times no tagged fields."""

SIZES = [border + more for border in BORDERS for more in (-3, -2, -1, 0, 1)]


def sized(count: int, size: int) -> bytes:
    """Return a batch of so many bytes."""
    found = batch(count, size - HEAD)
    assert len(found) == size
    return found


@pytest.mark.parametrize("acks", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_lengths_of_all_sizes_follow_one_another(version: int, acks: int) -> None:
    random = Random(version)
    play = Play(known=("a",))
    batches = [sized(random.randrange(1, 9), random.choice((HEAD, *SIZES))) for _ in range(200)]
    counts = [int.from_bytes(it[57:61]) for it in batches]
    stream = b"".join(produce(version, 1, acks, a=it) for it in batches)
    assert play.client(stream) == stream
    account = play.account("a")
    assert account.messages == sum(counts)
    assert account.frames == len(batches)
    assert account.bytes == sum(map(len, batches))
    assert account.receipts == (0 if acks else len(batches))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_length_that_takes_more_bytes_than_it_needs_is_counted_too(version: int) -> None:
    play = Play(known=("a",))
    usual = produce(version, 1, 0, a=sized(3, 100))
    at = len(usual) - TAIL - 100 - 1
    assert usual[at] == 101
    longer = usual[4:at] + b"\xe5\x00" + usual[at + 1 :]
    stream = usual + len(longer).to_bytes(4) + longer + usual
    assert play.client(stream) == stream
    assert play.account("a").messages == 9
    assert play.account("a").bytes == 300


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_may_be_cut_anywhere(version: int) -> None:
    play = Play(known=("a",))
    request = produce(version, 2, 0, a=sized(2, 200))
    for cut in range(len(request)):
        assert play.client(request[:cut]) + play.client(request[cut:]) == request
    assert play.account("a").messages == 2 * len(request)
    assert play.account("a").frames == len(request)


def test_a_run_ends_where_the_allowance_does() -> None:
    services = KafkaServices()
    play = Play(services, known=("a",))
    request = produce(9, 1, 0, a=sized(2, 100))
    play.client(request)
    account = play.account("a")
    account.hold()
    account.grant(messages=5)
    assert play.client(request * 10) == request * 3
    assert account.messages == 2 + 6
    assert play.is_waiting


# -- answers ---------------------------------------------------------------------------------------


def going_on(version: int, acks: int = 1) -> Play:
    """Return a play whose producer has got two responses, the last of which is remembered."""
    play = Play(known=("a",))
    for number in (1, 2):
        play.client(produce(version, number, acks, a=batch(1)))
        play.broker(appended(version, number, 10 * number))
    return play


def appended(
    version: int, correlation: int, offset: int, error: int = 0, partition: int = 0
) -> bytes:
    said = {"Index": partition, "ErrorCode": error, "BaseOffset": offset, "LogAppendTimeMs": -1}
    responses = [{**named(version, "a"), "PartitionResponses": [said]}]
    return tell(PRODUCE, version, correlation, Responses=responses)


@pytest.mark.parametrize("piece", [1, 50, 10_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_answers_that_follow_one_another_are_receipts(version: int, piece: int) -> None:
    play = going_on(version)
    play.client(*(produce(version, number, a=batch(1)) for number in range(100, 150)))
    said = b"".join(appended(version, number, number) for number in range(100, 150))
    heard = b"".join(play.broker(said[at : at + piece]) for at in range(0, len(said), piece))
    assert heard == said
    assert play.account("a").outstanding == 0
    assert [it.offset for it in play.services.progress.ends()] == [150]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_among_them_is_counted(version: int) -> None:
    play = going_on(version)
    play.client(*(produce(version, number, a=batch(1)) for number in (3, 4, 5)))
    said = [appended(version, 3, 30), appended(version, 4, -1, error=7), appended(version, 5, 50)]
    assert play.broker(*said) == b"".join(said)
    account = play.account("a")
    assert (account.outstanding, account.errors) == (0, 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_to_another_request_is_a_violation(version: int) -> None:
    play = going_on(version)
    play.client(*(produce(version, number, a=batch(1)) for number in (3, 4)))
    with pytest.raises(PeerError, match="a response to 4 in place of 3"):
        play.broker(appended(version, 4, 40))


@pytest.mark.parametrize("version", VERSIONS)
def test_one_to_a_request_of_another_kind_is_read_as_its_kind(version: int) -> None:
    """It looks the same, and is torn for what was asked."""
    play = going_on(version)
    play.client(metadata(12, 3))
    with pytest.raises(PeerError):
        play.broker(appended(version, 3, 40))


def test_one_of_another_topic_counts_for_that_one() -> None:
    play = going_on(9)
    play.client(produce(9, 3, a=batch(1)), produce(9, 4, b=batch(1)))
    said = [appended(9, 3, 30), appended(9, 4, 40).replace(b"\x02a", b"\x02b", 1)]
    assert play.broker(*said) == b"".join(said)
    assert play.account("a").outstanding == play.account("b").outstanding == 0


def test_one_says_for_how_long_its_client_is_held() -> None:
    services = KafkaServices()
    play = Play(services, known=("a",))
    for number in (1, 2):
        play.client(produce(9, number, a=batch(1)))
        play.broker(appended(9, number, number))
    play.client(produce(9, 3, a=batch(1)))
    play.account("a").hold()
    services.due[play.account("a")] = 0.5
    assert told(PRODUCE, 9, play.broker(appended(9, 3, 30)))["ThrottleTimeMs"] == 500


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_several_partitions_in_turn_are_receipts(version: int) -> None:
    play = going_on(version)
    play.client(*(produce(version, number, a=batch(1)) for number in range(100, 106)))
    for number in range(100, 106):
        said = appended(version, number, number, partition=number % 3)
        assert play.broker(said) == said
    assert play.account("a").outstanding == 0
    ends = {it.partition: it.offset for it in play.services.progress.ends()}
    assert ends == {0: 106, 1: 104, 2: 105}


def test_partitions_that_no_cluster_has_take_no_memory() -> None:
    play = going_on(9)
    ends = play.account("a").ends
    assert ends is not None
    ends.update(dict.fromkeys(range(MOST_ENDS), 0))
    for number in range(MOST_ENDS, MOST_ENDS + 10):
        play.client(produce(9, number, a=batch(1)))
        play.broker(appended(9, number, number, partition=number))
    assert len(ends) == MOST_ENDS
