"""The control's views, actions and errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.lab.sandbox import answers
from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.control import Control
from gateway.lab.sandbox.faults import Faults, falsify_size
from gateway.wire.pulsar.frames import Kind
from tests.unit.lab.sandbox.playbook import TOPIC, URLS, Client


@dataclass
class FakeBroker:
    """A broker that counts cuts and records announced frames."""

    url: str
    faults: Faults = field(default_factory=Faults)
    cuts: int = 0
    announced: list[bytes] = field(default_factory=list)

    def announce(self, frame: bytes) -> int:
        self.announced.append(frame)
        return 3

    def cut(self) -> int:
        self.cuts += 1
        return 3


@pytest.fixture
def brokers() -> list[FakeBroker]:
    return [FakeBroker(url) for url in URLS]


@pytest.fixture
def control(cluster: SandboxCluster, brokers: list[FakeBroker]) -> Control:
    return Control(cluster, brokers)


def did(control: Control, path: str, **query: str) -> tuple[int, Any]:
    answer = control.actions()[path](query)
    text = b"".join(answer.body).decode()
    return answer.status, json.loads(text) if answer.status == 200 else text


def shown(control: Control) -> Any:
    return json.loads(b"".join(control.routes()["/topics"]().body))


def test_topics_are_shown(control: Control, client: Client, other: Client) -> None:
    client.produce(producer_name="p")
    ids = client.send(b"a", b"b", b"c")
    other.subscribe(consumer_name="c", subType=1)
    other.acknowledge(ids[0])
    found = shown(control)[TOPIC]
    nobody = {"principal": None, "original_principal": None}
    assert found["owner"] == URLS[0]
    assert found["entries"] == 3
    assert found["bytes"] > 3
    assert found["producers"] == [{"name": "p", **nobody}]
    consumer = {"subscription": "s", "type": "Shared", "unacknowledged": 2}
    assert found["consumers"] == [{"name": "c", **nobody, **consumer}]
    assert found["backlog"] == {"s": 2}


def test_topics_are_created(control: Control) -> None:
    assert did(control, "/topics", name="new", partitions="2")[0] == 200
    assert did(control, "/topics", name="plain")[0] == 200
    names = [name.rpartition("/")[2] for name in shown(control)]
    assert sorted(names) == ["new-partition-0", "new-partition-1", "plain", "t"]


def test_topics_are_moved(control: Control, client: Client) -> None:
    client.produce()
    status, announced = did(control, "/move", topic="t", assigned="false")
    assert (status, announced["owners"]) == (200, {TOPIC: URLS[1]})
    (close,) = client.read()
    assert not close.assignedBrokerServiceUrl


@pytest.mark.parametrize(
    ("kind", "seconds", "expected"),
    [
        ("delay", "0.5", {"delay": 0.5}),
        ("lie", "0", {"lies": 1}),
        ("cut", "0", {}),
    ],
)
def test_faults_affect_one_broker(
    control: Control, brokers: list[FakeBroker], kind: str, seconds: str, expected: dict[str, Any]
) -> None:
    status, announced = did(control, "/fault", broker="1", kind=kind, seconds=seconds)
    assert (status, announced["broker"]) == (200, URLS[1])
    assert brokers[1].faults == Faults(**expected)
    assert brokers[1].cuts == announced.get("connections", 0) / 3
    assert brokers[0] == FakeBroker(URLS[0])


@pytest.mark.parametrize("kind", ["freeze", "refuse"])
def test_lasting_faults_begin_now_and_can_be_ended(
    control: Control, brokers: list[FakeBroker], kind: str
) -> None:
    did(control, "/fault", broker="0", kind=kind, seconds="3600")
    (until,) = {brokers[0].faults.frozen_until, brokers[0].faults.refusing_until} - {0}
    assert brokers[0].faults.is_refusing(until - 1) is (kind == "refuse")
    did(control, "/fault", broker="0", kind=kind, seconds="0")
    assert max(brokers[0].faults.frozen_until, brokers[0].faults.refusing_until) < until


@pytest.mark.parametrize(
    ("path", "query", "text"),
    [
        ("/topics", {}, "name= must name a topic"),
        ("/topics", {"name": "a", "partitions": "many"}, "partitions=many is not a number"),
        ("/topics", {"name": "a", "partitions": "1001"}, "from 0 to 1000"),
        ("/topics", {"name": "t", "partitions": "2"}, "is there already"),
        ("/move", {"topic": "nowhere"}, "there is no topic persistent://public/default/nowhere"),
        ("/move", {"topic": "t", "assigned": "maybe"}, "assigned=maybe is not one of true, false"),
        ("/fault", {"broker": "2", "kind": "cut"}, "broker=2 is not a number from 0 to 1"),
        ("/fault", {"broker": "0", "kind": "burn"}, "kind=burn is not one of freeze, cut"),
        ("/fault", {"broker": "0", "kind": "delay", "seconds": "nan"}, "seconds=nan is not"),
        ("/fault", {"broker": "0", "kind": "delay", "seconds": "-1"}, "seconds=-1 is not"),
        ("/say", {"broker": "0", "frame": "0"}, "in hexadecimal digits"),
        ("/say", {"broker": "0", "frame": "00", "to": "lookup"}, "to=lookup is not one of CONNECT"),
    ],
)
def test_invalid_parameters_are_rejected_with_the_reason(
    control: Control, path: str, query: dict[str, str], text: str
) -> None:
    status, announced = did(control, path, **query)
    assert status == 400
    assert text in announced
    assert announced.count("\n") == 1


def test_a_single_broker_cannot_move_topics() -> None:
    cluster = SandboxCluster(URLS[:1])
    control = Control(cluster, [FakeBroker(URLS[0])])
    did(control, "/topics", name="t")
    assert did(control, "/move", topic="t") == (400, "there is only one broker\n")


def test_help_shows_examples(control: Control) -> None:
    control.url = "http://127.0.0.1:16680"
    text = b"".join(control.routes()["/"]().body).decode()
    assert "in memory" in text
    for path in [*control.actions(), "/topics"]:
        assert f"http://127.0.0.1:16680{path}" in text
    for kind in ("freeze", "cut", "delay", "refuse", "lie"):
        assert f"kind={kind}" in text


def test_a_given_frame_is_sent_to_all_clients(control: Control, brokers: list[FakeBroker]) -> None:
    announced = {"broker": URLS[1], "bytes": 2, "connections": 3}
    assert did(control, "/say", broker="1", frame="00ff") == (200, announced)
    assert (brokers[0].announced, brokers[1].announced) == ([], [b"\x00\xff"])


def test_a_given_reply_answers_one_kind_until_it_is_removed(
    control: Control, cluster: SandboxCluster, brokers: list[FakeBroker]
) -> None:
    asking = Client(cluster, faults=brokers[0].faults)
    did(control, "/say", broker="0", frame="00ff", to="PING")
    asking.say(Kind.PING)
    did(control, "/say", broker="0", to="PING")
    asking.say(Kind.PING)
    assert asking.take() == [b"\x00\xff", answers.frame(Kind.PONG)]


def test_falsify_size_changes_only_the_size() -> None:
    frame = b"\x00\x00\x00\x05\x00\x00\x00\x01\x08"
    assert falsify_size(frame)[4:] == frame[4:]
    assert falsify_size(frame)[:4] != frame[:4]
