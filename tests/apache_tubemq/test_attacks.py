"""What a client tried at servers in the name of another one, and does not get.

Mallory has every right on alice's topics and groups: what is alice's own is not hers for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gateway.wire.tubemq import methods as m
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import group
from tests.apache_tubemq.gateways import TubePlan, in_front_of
from tests.apache_tubemq.raw import Connection
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway
from tests.real.gateways import Gateway

pytestmark = pytest.mark.real

BROKER = 1
PATIENCE_S = 60
REGISTER, UNREGISTER = 31, 32
RULES: list[dict[str, Any]] = [
    {"id": "alice", "match": {"principal": "alice"}, "allow": ["produce", "consume"]},
    {"id": "mallory", "match": {"principal": "mallory"}, "allow": ["produce", "consume"]},
    {"id": "bob", "match": {"principal": "bob", "topic": "pub*"}, "allow": ["consume"]},
    {
        "id": "carol",
        "match": {"principal": "carol", "subscription": "carol-*"},
        "allow": ["consume"],
    },
]


class Door(NamedTuple):
    """A gateway whose clients are all of one principal."""

    gateway: Gateway
    plan: TubePlan

    def master(self) -> Connection:
        return Connection(self.gateway.port)

    def broker(self) -> Connection:
        return Connection(self.plan.first_port + BROKER)


Doors = Callable[[str], Door]


@pytest.fixture
def doors(tubemq: TubeMQ, gateway: StartGateway, tmp_path: Path) -> Doors:
    """Return a function that opens another gateway for clients of a principal."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"version": 1, "rules": RULES}))

    def opened(principal: str) -> Door:
        identity = {"mode": "verify", "anonymous": {"principal": principal}}
        plan = in_front_of(tubemq, identity=identity, rules=rules, access="closed")
        return Door(gateway(tubemq, plan), plan)

    return opened


class Consumer(NamedTuple):
    """A consumer in alice's name: its id and its group, at a master and a broker."""

    id: str
    group: str
    topic: str
    master: Connection
    broker: Connection

    @property
    def named(self) -> dict[str, Any]:
        return {"clientId": self.id, "groupName": self.group}

    @property
    def partition(self) -> dict[str, Any]:
        return {**self.named, "topicName": self.topic, "partitionId": 0}

    def registers(self) -> Any:
        topics = {"hostName": "127.0.0.1", "topicList": [self.topic]}
        return self.master(m.REGISTER_CONSUMER, **self.named, **topics)

    def beats(self) -> Any:
        return self.master(m.BEAT_CONSUMER, **self.named, reportSubscribeInfo=False)

    def takes(self, operation: int = REGISTER) -> Any:
        """Register at the broker for the partition, or leave it."""
        fields = {**self.partition, "opType": operation, "readStatus": 0}
        return self.broker(m.REGISTER_PARTITION, **fields)

    def asks(self) -> int:
        """Return the code of a request for messages."""
        code: int = self.broker(m.GET_MESSAGES, **self.partition).errCode
        return code


def consumer(door: Door, topic: str, like: Consumer | None = None) -> Consumer:
    """Return a consumer at a gateway, with an id as clients in Java have it, or that of another
    consumer."""
    name = group() if like is None else like.group
    id = f"{name}_127.0.0.1-77-{time.time_ns()}-1-Pull-1.13.0" if like is None else like.id
    return Consumer(id, name, topic, door.master(), door.broker())


@pytest.fixture
def alice(doors: Doors, topic: str) -> Iterator[Consumer]:
    """Return alice's consumer, which has registered at the master and for a partition."""
    door = doors("alice")
    made = consumer(door, topic)
    with closing(made.master), closing(made.broker):
        assert made.registers().success
        wait_until(lambda: made.takes().success, PATIENCE_S)
        yield made


@pytest.fixture
def mallory(doors: Doors, alice: Consumer) -> Iterator[Consumer]:
    """Return a consumer of mallory with the id of alice's."""
    made = consumer(doors("mallory"), alice.topic, alice)
    with closing(made.master), closing(made.broker):
        yield made


def test_nobody_ends_the_consumer_of_another(alice: Consumer, mallory: Consumer) -> None:
    assert mallory.beats().errCode == 411
    assert mallory.master(m.END_CONSUMER, **mallory.named)
    assert alice.beats().success
    # Mallory's own consumer of the same id and group is another one, and its end is its own.
    assert mallory.registers().success
    assert mallory.beats().success
    assert mallory.master(m.END_CONSUMER, **mallory.named).success
    assert mallory.beats().errCode == 411
    assert alice.beats().success


def test_nobody_ends_a_consumer_by_an_id_that_the_master_would_split(
    alice: Consumer, mallory: Consumer
) -> None:
    """The master reads `client@group` up to the second `@`."""
    with pytest.raises(AssertionError):  # it is refused by an exception, which has no message
        mallory.master(m.END_CONSUMER, clientId=f"{alice.id}@{alice.group}", groupName="m")
    assert alice.beats().success


def test_nobody_has_the_partition_of_another(alice: Consumer, mallory: Consumer) -> None:
    occupied = mallory.takes()
    assert occupied.errCode == 410
    assert alice.id[:20] not in occupied.errMsg
    left = mallory.takes(UNREGISTER)
    assert left.errCode == 412
    assert mallory.asks() == 412
    committed = mallory.broker(m.COMMIT, **mallory.partition)
    assert (committed.success, committed.errCode) == (False, 401)
    for refused in (left, committed):
        assert alice.id[:20] not in refused.errMsg
    place = f"{BROKER}:127.0.0.1:1#{alice.topic}:0"
    beat = {**mallory.named, "readStatus": 0, "partitionInfo": [place]}
    assert mallory.broker(m.BEAT_PARTITIONS, **beat).failureInfo[0].startswith("412:")
    assert alice.asks() in (200, 404)
    assert alice.takes(UNREGISTER).success


def test_a_group_tells_nobody_which_topics_it_has(
    alice: Consumer, mallory: Consumer, topics: Iterator[str]
) -> None:
    other = mallory._replace(topic=next(topics)).registers()
    assert other.errCode == 425
    assert alice.topic not in other.errMsg


def test_nobody_ends_the_producer_of_another(doors: Doors, topic: str) -> None:
    id = f"127.0.0.1-77-{time.time_ns()}-1-1.13.0"
    producer = {"clientId": id, "brokerCheckSum": -1, "hostName": "h", "topicList": [topic]}
    with closing(doors("alice").master()) as alice, closing(doors("mallory").master()) as mallory:
        assert alice(m.REGISTER_PRODUCER, **producer).success
        assert mallory(m.BEAT_PRODUCER, **producer).errCode == 411
        assert mallory(m.END_PRODUCER, clientId=id)
        beat = alice(m.BEAT_PRODUCER, **producer)
        assert beat.success
        assert [text.partition("#")[0] for text in beat.topicInfos] == [topic]


def test_a_client_is_the_same_at_another_gateway(alice: Consumer, doors: Doors) -> None:
    again = consumer(doors("alice"), alice.topic, alice)
    with closing(again.master), closing(again.broker):
        assert again.beats().success
        assert again.asks() in (200, 404)
        assert again.takes(UNREGISTER).success
        assert again.master(m.END_CONSUMER, **again.named).success
    assert alice.beats().errCode == 411


@pytest.mark.parametrize("principal", ["bob", "carol"])
def test_heartbeats_and_ends_need_a_right_by_the_group(
    alice: Consumer, doors: Doors, principal: str
) -> None:
    """Bob has a right on other topics by any group, carol one by other groups."""
    code = {"bob": 411, "carol": 450}[principal]
    made = consumer(doors(principal), alice.topic, alice)
    with closing(made.master), closing(made.broker):
        assert made.beats().errCode == code
        ended = made.master(m.END_CONSUMER, **made.named)
        assert ended.success == (principal == "bob"), "bob ends what is not there"
        assert made.asks() == 401
        assert made.takes().errCode == 401
    assert alice.beats().success
