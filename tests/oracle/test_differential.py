"""A broker understands each frame as the gateway counted, limited and admitted it."""

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
"""Takes some seconds. `make fuzz` plays ten million."""

FEW_FRAMES = 4_000


@pytest.mark.tier("test")
def test_a_broker_understands_what_the_gateway_did(oracle: Oracles) -> None:
    outcome = runs.run(oracle, FEW_FRAMES, seed=10_000)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.reached > FEW_FRAMES / 10


def test_brokers_understand_what_the_gateway_did(oracles: Oracles) -> None:
    outcome = runs.run(oracles, FRAMES, seed=1)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.reached > FRAMES / 10


def test_the_same_seed_plays_the_same_connection() -> None:
    played = [runs.play(House(), seed) for seed in (5, 5)]
    assert played[0].number > 0
    assert runs._frames(played[0]) == runs._frames(played[1])


def test_a_connection_does_not_depend_on_those_before_it() -> None:
    house = House()
    for seed in range(40):
        runs.play(house, seed)
    for seed in range(40, 60):
        assert runs._frames(runs.play(house, seed)) == runs._frames(runs.play(House(), seed))


@pytest.mark.parametrize("beside", [0, 1])
def test_a_repeated_request_beside_another_opening_is_no_finding(
    oracles: Oracles, beside: int
) -> None:
    """An admission names no id. `beside`: undecided commands, each of which must be found."""
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


def test_old_brokers_use_the_last_command_type_that_they_know(oracles: Oracles) -> None:
    """Decoders disagree here, which is why the oracles are the judge."""
    smuggled = frame(number(1, Kind.PING) + number(1, 70) + command(Kind.PING, b"")[2:])
    old, middle, new = oracles.frames([smuggled])[0]
    assert old["t"] == middle["t"] == Kind.PING
    assert new["ex"]


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.SUBSCRIBE, Kind.SEND])
def test_an_undecided_command_is_found(oracles: Oracles, kind: Kind) -> None:
    """The judge detects bytes that bypass the session."""
    record = Record(House(), listener(services := WatchedServices()), services)
    record.watched._lanes[Direction.TO_CLIENT].outbox += {
        Kind.PRODUCER: producer(9, topic="secret"),
        Kind.SUBSCRIBE: subscribe(9, topic="secret"),
        Kind.SEND: send(9, 1),
    }[kind]
    record.look(Direction.TO_BROKER)
    assert len(runs.judged(oracles, record.played())) >= len(oracles.all)
