"""Java clients reach a real TubeMQ through the gateway alone.

What users notice most is in `tests/scenes/tubemq`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gateway.usage import reading
from tests.apache_kafka.gateways import TAP, Tap
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, balance, group, produce, pull
from tests.apache_tubemq.gateways import in_front_of
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import totals

pytestmark = pytest.mark.real

COUNT = 200
PULL, BALANCE = pull, balance

RATE = 100
SECONDS = 5
SIZE = 5_000
LARGEST_REPLY = 2 * 327_680 // SIZE
"""Messages of a reply, of which a broker reads so many bytes at once, and of one that was under
way. A reply passes whole: what is beyond the limit is debt."""


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_a_consumer_that_is_the_first_client_of_a_gateway_sees_no_server(
    tubemq: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topic: str,
    receive: Callable[[Tube, str, str, str, int], list[int]],
) -> None:
    """Nobody has told this gateway yet where brokers are."""
    plan = in_front_of(tubemq, host=TAP)
    started = gateway(tubemq, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    assert produce(tube, tubemq.master, topic, COUNT) == (COUNT, [])
    assert sorted(receive(tube, address, topic, group(), COUNT)) == list(range(COUNT))
    tap.close()
    assert [it for it in tubemq.traces if it.encode() in tap.told] == []
    found = totals(started.ask("metrics/topics")[1], "gateway_topic_messages_total", "topic")
    assert found == {(topic,): COUNT}


def test_no_more_is_received_than_a_limit(
    tubemq: TubeMQ, gateway: StartGateway, tube: Tube, topic: str, tmp_path: Path
) -> None:
    """A consumer waits for as long as it is told."""
    rule = {"id": "all", "limit": {"dispatch": {"messages": f"{RATE}/s"}}, "per": "topic"}
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"version": 1, "rules": [rule]}))
    started, stored = gateway(tubemq, in_front_of(tubemq, rules=rules)), 4 * RATE * SECONDS
    assert produce(tube, tubemq.master, topic, stored, SIZE) == (stored, [])
    began = time.monotonic()
    address = f"{HOST}:{started.port}"
    received = pull(tube, address, topic, group(), stored, seconds=SECONDS)
    took = time.monotonic() - began
    assert RATE < len(received) <= RATE * took * 1.01 + LARGEST_REPLY


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_a_group_lags_until_it_has_confirmed_all(
    tubemq: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topic: str,
    receive: Callable[[Tube, str, str, str, int], list[int]],
) -> None:
    started, its = gateway(tubemq, in_front_of(tubemq)), group()
    address = f"{HOST}:{started.port}"
    assert produce(tube, address, topic, COUNT) == (COUNT, [])
    received = receive(tube, address, topic, its, COUNT // 2)
    assert _lag(started, its, topic) >= COUNT - len(received) > 0
    received += receive(tube, address, topic, its, COUNT - len(received))
    assert sorted(received) == list(range(COUNT))
    assert _lag(started, its, topic) == 0


def test_usage_records_say_what_a_group_has_received(
    tubemq: TubeMQ, gateway: StartGateway, tube: Tube, topic: str, tmp_path: Path
) -> None:
    usage = {"folder": str(tmp_path), "interval": "1s"}
    started = gateway(tubemq, in_front_of(tubemq, more={"usage": usage}))
    its, address = group(), f"{HOST}:{started.port}"
    assert produce(tube, address, topic, COUNT, 100) == (COUNT, [])
    assert len(pull(tube, address, topic, its, COUNT)) == COUNT
    started.stop()
    found = [it for it in reading.usage(tmp_path) if it.topic == topic]
    sums = {op: sum(it.msgs for it in found if it.op == op) for op in ("send", "deliver")}
    assert sums == dict.fromkeys(("send", "deliver"), COUNT)
    assert {(it.proto, it.tenant) for it in found} == {("tubemq", "tubemq")}
    assert {it.subscription for it in found if it.op == "deliver"} == {its}


def _lag(gateway: Gateway, group: str, topic: str) -> float:
    """Return how many messages a group may not have confirmed, as a rule of Prometheus adds them
    up: at most, as partitions of one store share an index."""
    found = gateway.ask("metrics/topics")[1]
    ends = totals(found, "gateway_partition_end_offset", "topic", "partition")
    offsets = totals(found, "gateway_group_offset", "group", "topic", "partition")
    its = {
        number: offset
        for (name, of, number), offset in offsets.items()
        if (name, of) == (group, topic)
    }
    return sum(ends[topic, number] - offset for number, offset in its.items())
