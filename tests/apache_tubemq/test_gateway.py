"""Java clients reach a real TubeMQ through the gateway alone, and see no address of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from gateway.usage import reading
from tests.apache_kafka.gateways import TAP, Tap
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Produced, Tube, balance, produce, pull
from tests.apache_tubemq.gateways import in_front_of
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import totals

pytestmark = pytest.mark.real

COUNT = 200
LARGE = 300_000
TOPICS = [f"t{number}" for number in range(16)]
PULL, BALANCE = pull, balance


@pytest.fixture
def tube(broker: TubeMQ) -> Tube:
    return Tube(broker.classpath)


def group() -> str:
    return f"g{uuid.uuid4().hex}"


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_what_is_sent_is_received_once_counted_and_names_no_server(
    broker: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topics: Iterator[str],
    receive: Callable[[Tube, str, str, str, int], list[int]],
) -> None:
    plan, topic = in_front_of(broker, host=TAP), next(topics)
    started = gateway(broker, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    assert produce(tube, address, topic, COUNT) == (COUNT, [])
    assert sorted(receive(tube, address, topic, group(), COUNT)) == list(range(COUNT))
    tap.close()
    assert len(tap.told) > COUNT
    assert [it for it in broker.traces if it.encode() in tap.told] == []
    found = totals(
        started.ask("metrics/topics")[1], "gateway_topic_messages_total", "topic", "direction"
    )
    assert found == {(topic, "to_broker"): COUNT, (topic, "to_client"): COUNT}


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_a_consumer_that_is_the_first_client_of_a_gateway_sees_no_server(
    broker: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topics: Iterator[str],
    receive: Callable[[Tube, str, str, str, int], list[int]],
) -> None:
    """Nobody has told this gateway yet where brokers are."""
    plan, topic = in_front_of(broker, host=TAP), next(topics)
    started = gateway(broker, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    assert produce(tube, broker.master, topic, COUNT) == (COUNT, [])
    assert sorted(receive(tube, address, topic, group(), COUNT)) == list(range(COUNT))
    tap.close()
    assert [it for it in broker.traces if it.encode() in tap.told] == []
    assert _passed(started, topic) == COUNT


def test_large_messages_pass_in_their_many_blocks(
    broker: TubeMQ, gateway: StartGateway, tube: Tube, topics: Iterator[str]
) -> None:
    started, topic = gateway(broker, in_front_of(broker)), next(topics)
    address = f"{HOST}:{started.port}"
    assert produce(tube, address, topic, 20, LARGE) == (20, [])
    assert sorted(pull(tube, address, topic, group(), 20)) == list(range(20))


def test_a_group_whose_members_come_and_go_receives_all(
    broker: TubeMQ, gateway: StartGateway, tube: Tube, topics: Iterator[str]
) -> None:
    """The master spreads the partitions anew while messages are sent: a second member comes, the
    first one leaves, and a third takes the rest."""
    started, topic, its, count = gateway(broker, in_front_of(broker)), next(topics), group(), 9_000
    address = f"{HOST}:{started.port}"
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(pull, tube, address, topic, its, count // 3)
        sending = pool.submit(produce, tube, address, topic, count)
        _await(started, topic, COUNT)
        second = pool.submit(pull, tube, address, topic, its, count // 3)
        assert sending.result() == (count, [])
        received = [*first.result(), *second.result()]
    assert min(len(first.result()), len(second.result())) >= count // 3
    received += pull(tube, address, topic, its, count - len(set(received)))
    assert set(received) == set(range(count))


def test_a_gateway_that_starts_again_loses_nothing(
    broker: TubeMQ, gateway: StartGateway, tube: Tube, topics: Iterator[str]
) -> None:
    """A producer in Java fails at once as long as a server is away, and goes through its messages
    meanwhile; nothing that it was told to be stored is missing, and the next one sends all."""
    started, topic, count = gateway(broker, in_front_of(broker)), next(topics), 5_000
    address = f"{HOST}:{started.port}"

    def happens() -> None:
        started.stop()
        started.start()

    produced = _meanwhile(started, happens, lambda: produce(tube, address, topic, count), topic)
    assert produced.sent >= COUNT
    received = pull(tube, address, topic, group(), produced.sent)
    assert len(set(received)) >= produced.sent
    assert produce(tube, address, next(topics), COUNT) == (COUNT, [])


def test_a_broker_that_starts_again_loses_nothing_that_it_has_taken(
    broker: TubeMQ, gateway: StartGateway, tube: Tube, topics: Iterator[str]
) -> None:
    started, topic, count = gateway(broker, in_front_of(broker)), next(topics), 5_000
    address = f"{HOST}:{started.port}"

    def happens() -> None:
        broker.stop_broker(1)
        broker.start_broker(1)

    produced = _meanwhile(started, happens, lambda: produce(tube, address, topic, count), topic)
    received = pull(tube, address, topic, group(), produced.sent)
    assert produced.sent >= COUNT
    assert len(set(received)) >= produced.sent


def _meanwhile(
    started: Gateway, happens: Callable[[], None], work: Callable[[], Produced], topic: str
) -> Produced:
    """Return what came of some work during which something happens, once messages pass."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        _await(started, topic, COUNT)
        happens()
        return done.result()


def _await(started: Gateway, topic: str, count: int) -> None:
    """Return when so many messages of a topic have passed, or after 30 seconds."""
    until = time.monotonic() + 30
    while _passed(started, topic) < count and time.monotonic() < until:
        time.sleep(0.02)


def _passed(started: Gateway, topic: str) -> float:
    found = totals(started.ask("metrics/topics")[1], "gateway_topic_messages_total", "topic")
    return found.get((topic,), 0.0)


# -- limits and rights ---------------------------------------------------------------------------

RATE = 100
SECONDS = 5
SIZE = 5_000
LARGEST_REPLY = 2 * 327_680 // SIZE
"""Messages of a reply, of which a broker reads so many bytes at once, and of one that was under
way. A reply passes whole: what is beyond the limit is debt."""


@pytest.mark.parametrize("action", ["publish", "dispatch"])
def test_no_more_passes_than_a_limit(
    broker: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topics: Iterator[str],
    tmp_path: Path,
    action: str,
) -> None:
    """A message waits for its allowance, and a consumer for as long as it is told."""
    topic = next(topics)
    rule = {"id": "all", "limit": {action: {"messages": f"{RATE}/s"}}, "per": "topic"}
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"version": 1, "rules": [rule]}))
    started = gateway(broker, in_front_of(broker, rules=rules))
    address, direct = f"{HOST}:{started.port}", broker.master
    began = time.monotonic()
    if action == "publish":
        assert produce(tube, address, topic, RATE * SECONDS) == (RATE * SECONDS, [])
        took = time.monotonic() - began
        assert RATE * took * 1.01 + 20 >= RATE * SECONDS
    else:
        stored = 4 * RATE * SECONDS
        assert produce(tube, direct, topic, stored, SIZE) == (stored, [])
        began = time.monotonic()
        received = pull(tube, address, topic, group(), stored, seconds=SECONDS)
        took = time.monotonic() - began
        assert RATE < len(received) <= RATE * took * 1.01 + LARGEST_REPLY


@pytest.mark.parametrize("receive", [PULL, BALANCE], ids=["server-balanced", "client-balanced"])
def test_a_group_lags_until_it_has_confirmed_all(
    broker: TubeMQ,
    gateway: StartGateway,
    tube: Tube,
    topics: Iterator[str],
    receive: Callable[[Tube, str, str, str, int], list[int]],
) -> None:
    started, topic, its = gateway(broker, in_front_of(broker)), next(topics), group()
    address = f"{HOST}:{started.port}"
    assert produce(tube, address, topic, COUNT) == (COUNT, [])
    received = receive(tube, address, topic, its, COUNT // 2)
    assert _lag(started, its, topic) >= COUNT - len(received) > 0
    received += receive(tube, address, topic, its, COUNT - len(received))
    assert sorted(received) == list(range(COUNT))
    assert _lag(started, its, topic) == 0


def test_usage_records_say_what_a_group_has_received(
    broker: TubeMQ, gateway: StartGateway, tube: Tube, topics: Iterator[str], tmp_path: Path
) -> None:
    usage = {"folder": str(tmp_path), "interval": "1s"}
    started = gateway(broker, in_front_of(broker, more={"usage": usage}))
    topic, its, address = next(topics), group(), f"{HOST}:{started.port}"
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
