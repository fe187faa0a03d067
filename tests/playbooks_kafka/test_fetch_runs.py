"""Fetches of one partition that follow one another are counted like each by itself."""

from __future__ import annotations

from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.kafka.pieces import HEAD
from gateway.wire.kafka.to_broker import FLEXIBLE_FETCH
from gateway.wire.kafka.to_client import MOST_ENDS
from tests.support.versions import versions

from .frames import (
    API_VERSIONS,
    FETCH,
    ask,
    batch,
    correlations,
    fetch,
    fetched,
    known,
    metadata,
    named,
    produce,
    produced,
    tell,
    told,
)
from .script import KafkaServices, Play
from .test_runs import SIZES, sized

VERSIONS = versions(known(FETCH).response, FLEXIBLE_FETCH)
SPOILT = {
    "a batch of format 1": (16, b"\x01"),
    "less than no message": (57, b"\xff\xff\xff\xff"),
    "a batch that is shorter than its head": (8, b"\x00\x00\x00\x01"),
    "a batch of less than nothing": (8, b"\xff\xff\xff\xf0"),
    "a batch that is longer": (8, b"\x00\x00\x10\x00"),
}


def going_on(version: int, services: KafkaServices | None = None) -> Play:
    """Return a play whose consumer has got two responses, the last of which is remembered."""
    play = Play(services, known=("a",))
    for number in (1, 2):
        play.client(fetch(version, number, "a"))
        play.broker(ended(version, number, 10, batch(1)))
    return play


def ended(
    version: int, correlation: int, end: int, records: bytes, partition: int = 0, error: int = 0
) -> bytes:
    """Return a response of one partition, which ends at an offset."""
    said = {"PartitionIndex": partition, "ErrorCode": error, "HighWatermark": end}
    responses = [{**named(version, "a", "Topic"), "Partitions": [{**said, "Records": records}]}]
    return tell(FETCH, version, correlation, Responses=responses)


@pytest.mark.parametrize("piece", [1, 100, 5000, 1_000_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_all_sizes_follow_one_another(version: int, piece: int) -> None:
    random = Random(version)
    play = going_on(version)
    account = play.account("a")
    asked = b"".join(fetch(version, number, "a") for number in range(100, 160))
    assert play.client(asked) == asked
    counts = [[random.randrange(1, 9) for _ in range(random.choice((1, 1, 3)))] for _ in range(60)]
    records = [
        b"".join(sized(count, random.choice((HEAD, *SIZES))) for count in its) for its in counts
    ]
    said = b"".join(ended(version, 100 + at, at, it) for at, it in enumerate(records))
    assert b"".join(play.broker(said[at : at + piece]) for at in range(0, len(said), piece)) == said
    assert account.messages == 2 + sum(map(sum, counts))
    assert account.frames == 2 + len(records)
    assert account.bytes == 2 * len(batch(1)) + sum(map(len, records))
    assert [it.offset for it in play.services.progress.ends()] == [59]


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_that_name_nothing_follow_one_another(version: int) -> None:
    play = going_on(version)
    asked = [fetch(version, number) for number in range(100, 110)]
    asked.insert(5, fetch(version, 99, "a"))
    assert play.client(*asked) == b"".join(asked)


def test_requests_that_differ_are_not_taken_for_the_last_one() -> None:
    """A topic without an account stops its request, which opens one."""
    play = going_on(12)
    asked = fetch(12, 3, "a") + fetch(12, 4, "b") + fetch(12, 5, "a", "b") + fetch(12, 6, "a")
    assert play.client(asked) == asked
    play.broker(*(fetched(12, number, b=batch(5)) for number in (3, 4)))
    assert play.account("b").messages == 10


@pytest.mark.parametrize("version", VERSIONS)
def test_a_torn_batch_at_the_end_is_not_counted(version: int) -> None:
    play = going_on(version)
    play.client(*(fetch(version, number, "a") for number in (3, 4)))
    torn = batch(2) + batch(5)[:-1]
    said = ended(version, 3, 1, torn) + ended(version, 4, 1, torn[len(batch(2)) :])
    assert play.broker(said) == said
    assert play.account("a").messages == 2 + 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_one_is_judged_as_if_it_were_the_first(version: int, how: str) -> None:
    at, lie = SPOILT[how]
    good = batch(3)
    records = good[:at] + lie + good[at + len(lie) :] + batch(4)
    response = ended(version, 7, 1, records)

    def judged(play: Play) -> tuple[bytes, int] | str:
        play.client(fetch(version, 7, "a"))
        before = play.account("a").messages
        try:
            return play.broker(response), play.account("a").messages - before
        except PeerError as error:
            return str(error)

    assert judged(going_on(version)) == judged(Play(known=("a",)))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_among_them_is_counted(version: int) -> None:
    play = going_on(version)
    play.client(fetch(version, 3, "a"))
    said = ended(version, 3, -1, b"", error=6)
    assert play.broker(said) == said
    assert play.services.errors == {("Fetch", 6): 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_one_to_another_request_is_a_violation(version: int) -> None:
    play = going_on(version)
    play.client(*(fetch(version, number, "a") for number in (3, 4)))
    with pytest.raises(PeerError, match="a response to 4 in place of 3"):
        play.broker(ended(version, 4, 1, batch(1)))


@pytest.mark.parametrize("version", VERSIONS)
def test_one_to_a_request_of_another_kind_is_read_as_its_kind(version: int) -> None:
    play = going_on(version)
    play.client(metadata(12, 3))
    with pytest.raises(PeerError):
        play.broker(ended(version, 3, 1, batch(1)))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_may_be_cut_anywhere(version: int) -> None:
    play = going_on(version)
    response = ended(version, 3, 1, sized(2, 200))
    before = play.account("a").frames
    for at in range(len(response)):
        play.client(fetch(version, 3, "a"))
        assert play.broker(response[:at]) + play.broker(response[at:]) == response
    assert play.account("a").messages == 2 + 2 * len(response)
    assert play.account("a").frames == before + len(response)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_one_that_uses_up_the_allowance_says_so(version: int) -> None:
    services = KafkaServices()
    play = going_on(version, services)
    account = play.account("a")
    play.client(*(fetch(version, number, "a") for number in (3, 4, 5)))
    account.hold()
    account.grant(messages=3)
    services.due[account] = 0.5
    heard = play.broker(*(ended(version, number, 1, batch(2)) for number in (3, 4)))
    size = len(heard) // 2
    said = [told(FETCH, version, it)["ThrottleTimeMs"] for it in (heard[:size], heard[size:])]
    assert said == [0, 500]
    play.client(fetch(version, 6, "a"))
    assert play.is_waiting


def test_a_cut_one_that_uses_up_the_allowance_says_so_too() -> None:
    services = KafkaServices()
    play = going_on(12, services)
    account = play.account("a")
    play.client(fetch(12, 3, "a"))
    account.hold()
    account.grant(messages=1)
    services.due[account] = 0.5
    response = ended(12, 3, 1, sized(2, 5000))
    heard = play.broker(response[:1000]) + play.broker(response[1000:])
    assert told(FETCH, 12, heard)["ThrottleTimeMs"] == 500


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_in_turn_end_each_for_itself(version: int) -> None:
    play = going_on(version)
    play.client(*(fetch(version, number, "a") for number in range(100, 106)))
    for number in range(100, 106):
        said = ended(version, number, number, batch(1), partition=number % 3)
        assert play.broker(said) == said
    ends = {it.partition: it.offset for it in play.services.progress.ends()}
    assert ends == {0: 105, 1: 103, 2: 104}


def test_partitions_that_no_cluster_has_take_no_memory() -> None:
    play = going_on(12)
    ends = play.account("a").ends
    assert ends is not None
    ends.update(dict.fromkeys(range(MOST_ENDS), 0))
    for number in range(MOST_ENDS, MOST_ENDS + 10):
        play.client(fetch(12, number, "a"))
        play.broker(ended(12, number, number, batch(1), partition=number))
    assert len(ends) == MOST_ENDS


def test_a_producer_and_consumer_on_one_connection_gets_both_kinds_of_answers() -> None:
    """Librdkafka uses one connection for both."""
    play = going_on(12)
    for number in range(100, 110, 2):
        play.client(fetch(12, number, "a"), produce(9, number + 1, a=batch(1)))
        said = ended(12, number, 1, batch(1)) + produced(9, number + 1, a=0)
        assert play.broker(said) == said
    sent, got = play.account("a"), play.services.admitted[0]
    assert (sent.action, sent.messages, sent.outstanding) == (Action.PRODUCE, 5, 0)
    assert (got.action, got.messages) == (Action.CONSUME, 2 + 5)


@pytest.mark.parametrize("cut", [0, 5, 100, 200])
def test_an_answer_of_the_gateways_own_comes_behind_the_one_before(cut: int) -> None:
    play = going_on(12)
    newer = bytearray(ask(API_VERSIONS, 3, 4))
    newer[6:8] = b"\x00\x63"
    play.client(fetch(12, 3, "a"), bytes(newer))
    said = ended(12, 3, 1, sized(2, 300))
    heard = play.broker(said[:cut]) + play.broker(said[cut:])
    assert heard.startswith(said)
    assert correlations(heard) == [3, 4]
    assert play.account("a").messages == 2 + 2
