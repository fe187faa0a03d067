"""Scanners count what the tables of the protocol say, in all versions, however frames are cut."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.to_broker import (
    BY_ID,
    FLEXIBLE_FETCH,
    FLEXIBLE_PRODUCE,
    LAST_FETCH,
    LAST_PRODUCE,
)
from tests.support.versions import versions

from .frames import FETCH, PRODUCE, ask, batch, known, named, old, produce, tell
from .script import Play

PRODUCES = versions(known(PRODUCE).request)
FETCHES = versions(known(FETCH).response)
TOPICS = ("a", "topic-b", "c" * 130)


def first_with(schema: Schema, name: str) -> int:
    """Return the first version that has a field of this name."""
    return min(
        it.first for field in schema.fields for it in (field, *field.fields) if it.name == name
    )


def test_the_scanners_know_the_versions_of_the_tables() -> None:
    sides = [side for key in (PRODUCE, FETCH) for side in (known(key).request, known(key).response)]
    assert [(it.first, it.last) for it in sides] == [
        (0, LAST_PRODUCE), (0, LAST_PRODUCE), (0, LAST_FETCH), (0, LAST_FETCH),
    ]  # fmt: skip
    flexible = [FLEXIBLE_PRODUCE, FLEXIBLE_PRODUCE, FLEXIBLE_FETCH, FLEXIBLE_FETCH]
    assert [it.flexible for it in sides] == flexible
    assert {first_with(it, "TopicId") for it in sides} == {BY_ID}


class Made:
    """A random frame, and what it has of each topic: messages and bytes of batches."""

    def __init__(self, random: Random, version: int, number: int) -> None:
        self.random = random
        self.version = version
        self.number = number
        self.counts: dict[str, tuple[int, int]] = {}
        self.ends: dict[tuple[str, int], int] = {}

    def _batches(self, topic: str) -> bytes | None:
        choices = (
            None,
            b"",
            old(self.random.randrange(14, 50)),
            batch(self.random.randrange(9), 40),
        )
        parts = [self.random.choice(choices) for _ in range(self.random.randrange(4))]
        records = None if parts == [None] else b"".join(it or b"" for it in parts)
        messages = sum(
            0 if not it else 1 if it[16] == 1 else int.from_bytes(it[57:61]) for it in parts
        )
        before = self.counts.get(topic, (0, 0))
        self.counts[topic] = before[0] + messages, before[1] + len(records or b"")
        return records

    def _topics(self) -> list[str]:
        return self.random.sample(TOPICS, self.random.randrange(1, 4))

    def produce(self) -> bytes:
        data = [
            {
                **named(self.version, topic),
                "PartitionData": [
                    {"Index": index, "Records": self._batches(topic)}
                    for index in range(self.random.randrange(1, 5))
                ],
            }
            for topic in self._topics()
        ]
        transaction = self.random.choice((None, "", "t" * 200))
        fields = {"TransactionalId": transaction, "Acks": -1, "TopicData": data}
        return ask(PRODUCE, self.version, self.number, **fields)

    def fetched(self) -> bytes:
        responses = [
            {
                **named(self.version, topic, "Topic"),
                "Partitions": [
                    self._partition(topic, index) for index in range(self.random.randrange(1, 5))
                ],
            }
            for topic in self._topics()
        ]
        return tell(FETCH, self.version, self.number, SessionId=0, Responses=responses)

    def _partition(self, topic: str, index: int) -> dict[str, Any]:
        self.ends[topic, index] = self.random.randrange(1 << 40)
        aborted = [{"ProducerId": 7, "FirstOffset": 1}] * self.random.randrange(4)
        return {
            "PartitionIndex": index,
            "HighWatermark": self.ends[topic, index],
            "AbortedTransactions": self.random.choice((None, aborted)),
            "CurrentLeader": {"LeaderId": self.random.choice((-1, 2)), "LeaderEpoch": 2},
            "DivergingEpoch": {"Epoch": self.random.choice((-1, 3)), "EndOffset": 9},
            "Records": self._batches(topic),
        }


def pieces(random: Random, data: bytes) -> list[bytes]:
    """Return data cut at random places."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(6)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("version", PRODUCES)
def test_requests_of_produce_are_counted_by_topic(version: int, seed: int) -> None:
    random = Random(seed)
    play = Play(known=TOPICS)
    if random.randrange(2):  # otherwise cut requests of several topics are collected
        play.client(produce(version, 1, 1, None, **dict.fromkeys(TOPICS, batch(1))))
    before = {topic: (it.messages, it.bytes) for topic in TOPICS for it in _accounts(play, topic)}
    made = Made(random, version, 2)
    said = made.produce()
    assert b"".join(play.client(it) for it in pieces(random, said)) == said
    for topic, (messages, size) in made.counts.items():
        account = play.account(topic)
        messages_before, size_before = before.get(topic, (0, 0))
        assert account.messages - messages_before == max(1, messages)
        assert account.bytes - size_before == size


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("version", FETCHES)
def test_responses_to_fetch_are_counted_by_topic(version: int, seed: int) -> None:
    random = Random(seed)
    play = Play(known=TOPICS)
    wanted = [{**named(version, topic, "Topic"), "Partitions": [{}]} for topic in TOPICS]
    play.client(ask(FETCH, version, 2, Topics=wanted))
    made = Made(random, version, 2)
    said = made.fetched()
    assert b"".join(play.broker(it) for it in pieces(random, said)) == said
    for topic, (messages, size) in made.counts.items():
        account = play.account(topic)
        assert (account.messages, account.bytes) == ((messages, size) if messages else (0, 0))
    assert {
        (it.topic, it.partition): it.offset for it in play.services.progress.ends()
    } == made.ends


def _accounts(play: Play, topic: str) -> list[Any]:
    return [it for it in play.services.admitted if it.topic == topic]
