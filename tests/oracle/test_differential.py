"""What reaches a broker it understands as the gateway counted, limited and admitted it."""

from __future__ import annotations

import pytest

from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from tests.playbooks.frames import producer, subscribe
from tests.playbooks.script import listener
from tests.support.frames import command, frame, number, send

from . import run as runs
from .oracle import Oracles
from .play import Record
from .watched import House, WatchedServices

FRAMES = 40_000
"""Some seconds. `make fuzz` plays ten million."""


def test_brokers_understand_what_the_gateway_did(oracles: Oracles) -> None:
    outcome = runs.run(oracles, FRAMES, seed=1)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.reached > FRAMES / 10


def test_the_same_seed_plays_the_same_connection() -> None:
    played = [runs.play(House(), seed) for seed in (5, 5)]
    assert played[0].number > 0
    assert runs._frames(played[0]) == runs._frames(played[1])


def test_a_connection_is_played_as_if_it_were_the_first() -> None:
    house = House()
    for seed in range(40):
        runs.play(house, seed)
    for seed in range(40, 60):
        assert runs._frames(runs.play(house, seed)) == runs._frames(runs.play(House(), seed))


@pytest.mark.parametrize("beside", [0, 1])
def test_one_that_is_asked_for_once_more_beside_another_is_no_finding(
    oracles: Oracles, beside: int
) -> None:
    """An admission names no id. `beside`: commands that nobody decided, of which each is found."""
    record = Record(House(), listener(services := WatchedServices()), services)
    record.say(Direction.TO_BROKER, producer(1, request=1))
    record.say(Direction.TO_BROKER, producer(1, request=2), producer(2, request=3))
    outbox = record.watched._lanes[Direction.TO_CLIENT].outbox
    for id in range(beside):
        outbox += producer(9 + id)
        record.look(Direction.TO_BROKER)
    assert len(runs.judged(oracles, record.played())) == beside * len(oracles.all)


def test_frames_are_understood_alike_by_all_versions(oracles: Oracles) -> None:
    frames = [producer(3, request=7, topic="orders"), subscribe(2, topic="t/n/x"), send(1, 9)]
    for readings in oracles.frames(frames):
        assert readings[0] == readings[1] == readings[2]
        assert "ex" not in readings[0]
    opening = oracles.frames(frames)[0][0]
    assert opening["t"] == Kind.PRODUCER
    assert opening["tn"] == "persistent://public/default/orders"


def test_a_type_that_old_brokers_do_not_know_leaves_the_one_before_it(oracles: Oracles) -> None:
    """The oracles are the judge because of this: decoders disagree."""
    smuggled = frame(number(1, Kind.PING) + number(1, 70) + command(Kind.PING, b"")[2:])
    old, middle, new = oracles.frames([smuggled])[0]
    assert old["t"] == middle["t"] == Kind.PING
    assert new["ex"]


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.SUBSCRIBE, Kind.SEND])
def test_a_command_that_nobody_decided_is_found(oracles: Oracles, kind: Kind) -> None:
    """The judge is not blind: bytes that go on without the session are a finding."""
    record = Record(House(), listener(services := WatchedServices()), services)
    record.watched._lanes[Direction.TO_CLIENT].outbox += {
        Kind.PRODUCER: producer(9, topic="secret"),
        Kind.SUBSCRIBE: subscribe(9, topic="secret"),
        Kind.SEND: send(9, 1),
    }[kind]
    record.look(Direction.TO_BROKER)
    assert len(runs.judged(oracles, record.played())) >= len(oracles.all)
