"""How far groups have come is noted as brokers say it: ends of partitions, and what they accept."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.telemetry.progress import Position
from gateway.wire.account import Right
from gateway.wire.budget import Quota
from gateway.wire.kafka import commits
from tests.support.versions import by_version, versions

from .frames import (
    EVERY_VERSION,
    FETCH,
    OFFSET_COMMIT,
    PRODUCE,
    ask,
    asked,
    batch,
    fetch,
    id_of,
    known,
    named,
    produce,
    produced,
    split,
    tell,
)
from .script import KafkaServices, Play

TXN_OFFSET_COMMIT, DELETE_GROUPS = 28, 42

FETCHES = versions(known(FETCH).response)
PRODUCES = versions(known(PRODUCE).response)
COMMITS = by_version(it for it in EVERY_VERSION if it[0] in {OFFSET_COMMIT, TXN_OFFSET_COMMIT})


def topic_of(key: int, version: int, topic: str) -> dict[str, Any]:
    by_id = key == OFFSET_COMMIT and version >= 10
    return {"TopicId": id_of(topic)} if by_id else {"Name": topic}


def commit(
    key: int, version: int, correlation: int = 1, group: str = "shop", /, **offsets: int
) -> bytes:
    """Return a request that commits these offsets of the topics' partitions 0 and 1."""
    topics = [
        {
            **topic_of(key, version, topic),
            "Partitions": [
                {"PartitionIndex": index, "CommittedOffset": offset + index} for index in (0, 1)
            ],
        }
        for topic, offset in offsets.items()
    ]
    return ask(key, version, correlation, GroupId=group, Topics=topics)


def taken(key: int, version: int, correlation: int = 1, /, **errors: int) -> bytes:
    """Return the response to it, with these errors of partition 1."""
    topics = [
        {
            **topic_of(key, version, topic),
            "Partitions": [
                {"PartitionIndex": 0, "ErrorCode": 0},
                {"PartitionIndex": 1, "ErrorCode": error},
            ],
        }
        for topic, error in errors.items()
    ]
    return tell(key, version, correlation, Topics=topics)


def committed(play: Play) -> list[Position]:
    found: list[Position] = list(play.services.progress.committed())
    return found


def ends(play: Play) -> dict[tuple[str, int], int]:
    return {(it.topic, it.partition): it.offset for it in play.services.progress.ends()}


# -- what is committed -----------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), COMMITS)
def test_what_a_broker_accepts_is_committed(key: int, version: int) -> None:
    play = Play(known=("a", "b"))
    play.client(commit(key, version, 1, a=5, b=7))
    assert committed(play) == []
    # Brokers may answer in another order.
    play.broker(taken(key, version, 1, b=25, a=0))
    assert sorted(committed(play)) == [
        Position("shop", "a", 0, 5),
        Position("shop", "a", 1, 6),
        Position("shop", "b", 0, 7),
    ]
    play.client(commit(key, version, 2, a=9))
    play.broker(taken(key, version, 2, a=3))
    assert Position("shop", "a", 0, 9) in committed(play)
    assert play.budget.taken == 0


def test_a_topic_without_the_right_has_no_offset() -> None:
    services = KafkaServices()
    services.forbidden = {(Right.CONSUME, "secret")}
    play = Play(services)
    reached = play.client(commit(OFFSET_COMMIT, 9, 1, a=5, secret=7))
    (_, other) = asked(reached)["Topics"]
    play.broker(taken(OFFSET_COMMIT, 9, 1, **{"a": 0, other["Name"]: 3}))
    assert {it.topic for it in committed(play)} == {"a"}


def test_a_later_request_takes_the_place_of_one_without_an_answer() -> None:
    play = Play()
    play.client(commit(OFFSET_COMMIT, 9, 1, a=5), commit(OFFSET_COMMIT, 9, 2, a=6))
    play.broker(taken(OFFSET_COMMIT, 9, 1, a=0))
    assert committed(play) == []
    play.broker(taken(OFFSET_COMMIT, 9, 2, a=0))
    assert Position("shop", "a", 0, 6) in committed(play)


def test_requests_with_one_correlation_id_are_told_apart() -> None:
    """Otherwise a client could have an offset counted for a group that the broker refuses it."""
    play = Play()
    mine, theirs = (commit(OFFSET_COMMIT, 9, 1, group, a=5) for group in ("mine", "theirs"))
    play.client(mine, theirs)
    play.broker(taken(OFFSET_COMMIT, 9, 1, a=0))
    assert committed(play) == []
    refused = tell(OFFSET_COMMIT, 9, 1, Topics=[])
    play.broker(refused)
    assert committed(play) == []


def test_requests_without_answers_take_a_bounded_part_of_the_budget() -> None:
    play = Play()
    for number in range(100):
        play.client(commit(OFFSET_COMMIT, 9, number, a=5))
    assert play.budget.taken == 2 * commits.SIZE


def test_what_finds_no_room_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quota, "fits", lambda *_: False)
    play = Play()
    play.client(commit(OFFSET_COMMIT, 9, 1, a=5))
    assert play.broker(taken(OFFSET_COMMIT, 9, 1, a=0))
    assert committed(play) == []


@pytest.mark.parametrize("version", versions(known(DELETE_GROUPS).request))
def test_a_deleted_group_is_forgotten(version: int) -> None:
    play = Play()
    for number, group in enumerate(("shop", "bank")):
        play.client(commit(OFFSET_COMMIT, 9, number, group, a=5))
        play.broker(taken(OFFSET_COMMIT, 9, number, a=0))
    play.client(ask(DELETE_GROUPS, version, 7, GroupsNames=["shop", "bank"]))
    results = [{"GroupId": "shop"}, {"GroupId": "bank", "ErrorCode": 68}]
    play.broker(tell(DELETE_GROUPS, version, 7, Results=results))
    assert {it.group for it in committed(play)} == {"bank"}


# -- where partitions end --------------------------------------------------------------------------


def fetched_up_to(version: int, end: int, records: bytes, error: int = 0) -> bytes:
    """Return a response to Fetch of a topic whose two partitions end there, the second with an
    error."""
    partitions = [
        {"PartitionIndex": 0, "HighWatermark": end, "Records": records},
        {"PartitionIndex": 1, "HighWatermark": end + 1, "ErrorCode": error, "Records": b""},
    ]
    return tell(FETCH, version, 1, Responses=[_of_topic(version, partitions)])


def _of_topic(version: int, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    return {**named(version, "a", "Topic"), "Partitions": partitions}


@pytest.mark.parametrize("piece", [1, 30, 10_000])
@pytest.mark.parametrize("version", FETCHES)
def test_an_answer_to_fetch_says_where_partitions_end(version: int, piece: int) -> None:
    play = Play(known=("a",))
    play.client(fetch(version, 1, "a"))
    said = fetched_up_to(version, 300, batch(2))
    for at in range(0, len(said), piece):
        play.broker(said[at : at + piece])
    assert ends(play) == {("a", 0): 300, ("a", 1): 301}


@pytest.mark.parametrize("piece", [70, 10_000])
@pytest.mark.parametrize("version", FETCHES)
def test_an_answer_with_one_partition_says_where_it_ends(version: int, piece: int) -> None:
    play = Play(known=("a",))
    play.client(fetch(version, 1, "a"))
    partitions = [{"PartitionIndex": 3, "HighWatermark": 300, "Records": batch(2, 4000)}]
    said = tell(FETCH, version, 1, Responses=[_of_topic(version, partitions)])
    for at in range(0, len(said), piece):
        play.broker(said[at : at + piece])
    assert ends(play) == {("a", 3): 300}


@pytest.mark.parametrize("version", FETCHES)
def test_an_error_says_no_end(version: int) -> None:
    play = Play(known=("a",))
    play.client(fetch(version, 1, "a"))
    play.broker(fetched_up_to(version, 300, batch(1), error=6))
    assert ends(play) == {("a", 0): 300}


@pytest.mark.parametrize("version", PRODUCES)
def test_what_is_produced_moves_the_end(version: int) -> None:
    play = Play(known=("a",))
    play.client(produce(version, 0, a=batch(1)))
    play.broker(produced_at(version, 0, 40))  # it stops, since the topic is new
    play.client(produce(version, 1, a=batch(1)))
    play.broker(produced_at(version, 1, 41))
    assert ends(play) == {("a", 0): 42}
    play.client(produce(version, 2, a=batch(1)))
    play.broker(produced_at(version, 2, 17))  # of before, when it was sent again
    assert ends(play) == {("a", 0): 42}


def produced_at(version: int, correlation: int, base: int) -> bytes:
    said = {"Index": 0, "BaseOffset": base, "LogAppendTimeMs": -1, "LogStartOffset": 0}
    responses = [{**named(version, "a"), "PartitionResponses": [said]}]
    return tell(PRODUCE, version, correlation, Responses=responses)


def test_the_last_answer_of_a_read_moves_the_end() -> None:
    play = Play()
    play.client(*(produce(9, number, a=batch(1)) for number in range(4)))
    play.broker(produced_at(9, 0, 0))
    play.broker(*(produced_at(9, number, 10 * number) for number in range(1, 4)))
    assert ends(play) == {("a", 0): 31}


def test_an_answer_about_several_topics_moves_no_end() -> None:
    play = Play()
    play.client(produce(9, 1, a=batch(1), b=batch(1)))
    assert len(split(play.broker(produced(9, 1, a=0, b=0)))) == 1
    assert ends(play) == {}
