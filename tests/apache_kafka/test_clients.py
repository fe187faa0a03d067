"""What clients do beside sending and receiving: transactions, groups of each kind; and
Kafka's own tools and franz-go, which use the newest versions of each API."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.working import COUNT, PATIENCE_S, create, payloads, received
from tests.clients.builders import go_tool
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say, digest, filled_once, java, run_tool
from tests.real.clients import wait_until
from tests.real.fixtures import or_skip
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import scrape, totals

pytestmark = pytest.mark.real

FRANZ = Path(__file__).with_name("franz")
TOOLS = "org.apache.kafka.tools"
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


Where = dict[str, str | int | float | bool]
"""Where a client finds its brokers."""


@pytest.fixture(scope="module")
def served(kafka: Kafka, artifacts: Artifacts) -> Iterator[Gateway]:
    made = Gateway(kafka, KafkaPlan(), artifacts.directory("gateway-kafka-clients"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def where(served: Gateway) -> Where:
    return {"bootstrap.servers": f"{HOST}:{served.port}"}


@pytest.fixture
def topic(where: Where) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(where)
    for made in admin.create_topics([NewTopic(name, 3, 1)]).values():
        made.result(PATIENCE_S)
    return name


def _received(consumer: confluent_kafka.Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def consume() -> bool:
        found.extend(it.value() or b"" for it in consumer.consume(COUNT, 0.2) if not it.error())
        return len(found) >= count

    wait_until(consume)
    return found


def test_transactions_are_committed_and_aborted(where: Where, topic: str) -> None:
    producer = confluent_kafka.Producer(where | {"transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for commits in (False, True):
        producer.begin_transaction()
        for payload in payloads():
            producer.produce(topic, payload if commits else b"never")
        ends = producer.commit_transaction if commits else producer.abort_transaction
        ends(PATIENCE_S)
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(where | group | {"isolation.level": "read_committed"})
    consumer.subscribe([topic])
    assert sorted(_received(consumer, COUNT)) == sorted(payloads())
    consumer.close()


def test_offsets_are_committed_within_a_transaction(where: Where, topic: str) -> None:
    group = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(where | group)
    consumer.subscribe([topic])
    producer = confluent_kafka.Producer(where | {"transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for payload in payloads():
        producer.produce(topic, payload)
    producer.commit_transaction(PATIENCE_S)
    assert len(_received(consumer, COUNT)) == COUNT
    producer.begin_transaction()
    places = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
    producer.commit_transaction(PATIENCE_S)
    kept = consumer.committed(consumer.assignment(), PATIENCE_S)
    assert sum(max(0, it.offset) for it in kept) >= COUNT
    consumer.close()


def test_groups_of_the_new_protocol_share_a_topic(where: Where, topic: str) -> None:
    """KIP-848: brokers assign, by heartbeats of their own kind."""
    group = {"group.id": topic, "auto.offset.reset": "earliest", "group.protocol": "consumer"}
    members = [confluent_kafka.Consumer(where | group) for _ in range(2)]
    for member in members:
        member.subscribe([topic])

    def assigned() -> bool:
        for member in members:
            member.poll(0.1)
        return all(member.assignment() for member in members)

    wait_until(assigned)
    producer = confluent_kafka.Producer(where)
    for number, payload in enumerate(payloads()):
        producer.produce(topic, payload, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    found: list[bytes] = []

    def all_came() -> bool:
        for member in members:
            found.extend(it.value() or b"" for it in member.consume(COUNT, 0.1) if not it.error())
        return len(found) >= COUNT

    wait_until(all_came)
    assert sorted(found) == sorted(payloads())
    for member in members:
        member.close()


# -- Kafka's own tools ---------------------------------------------------------------------------


def _tool(kafka: Kafka, name: str, *arguments: str, said: str = "") -> str:
    """Run one of Kafka's tools, and return what it prints."""
    command = [java(), *SMALL, "-cp", f"{kafka.jars}/*", f"{TOOLS}.{name}", *arguments]
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _at(where: Where, *others: str) -> Sequence[str]:
    return ("--bootstrap-server", str(where["bootstrap.servers"]), *others)


def test_kafkas_own_producer_and_consumer_measure_themselves(
    kafka: Kafka, where: Where, topic: str
) -> None:
    load = ("--num-records", "20000", "--record-size", "1000", "--throughput", "-1")
    props = (f"bootstrap.servers={where['bootstrap.servers']}", "enable.idempotence=true")
    sent = _tool(kafka, "ProducerPerformance", "--topic", topic, *load, "--producer-props", *props)
    assert "20000 records sent" in sent
    read = _tool(
        kafka, "ConsumerPerformance", *_at(where), "--topic", topic, "--num-records", "20000"
    )
    assert "20000" in read


@pytest.mark.parametrize("consumer", ["ConsoleConsumer", "ConsoleShareConsumer"])
def test_kafkas_own_console_sends_and_receives(
    kafka: Kafka, where: Where, topic: str, consumer: str
) -> None:
    tool = f"consumer.{consumer}"
    if consumer == "ConsoleShareConsumer":
        named = ("--group", topic, "--alter", "--add-config", "share.auto.offset.reset=earliest")
        _configure(kafka, where, *named)
        options: tuple[str, ...] = ("--group", topic)
    else:
        options = ("--from-beginning",)
    lines = "\n".join(it.decode() for it in payloads()) + "\n"
    _tool(kafka, "ConsoleProducer", *_at(where, "--topic", topic), said=lines)
    count = ("--max-messages", str(COUNT), "--timeout-ms", str(PATIENCE_S * 1000))
    got = _tool(kafka, tool, *_at(where, "--topic", topic), *options, *count)
    assert sorted(got.split("\n")[:-1]) == sorted(it.decode() for it in payloads())


def _configure(kafka: Kafka, where: Where, *arguments: str) -> None:
    command = [java(), *SMALL, "-cp", f"{kafka.jars}/*", "kafka.admin.ConfigCommand"]
    run_tool("ConfigCommand", [*command, *_at(where), *arguments])


# -- many partitions -----------------------------------------------------------------------------

WIDE = 50
NUMBERED = [b"%0100d" % number for number in range(2000)]
FETCHED = {"max.partition.fetch.bytes": 2000}
"""So that partitions come in several parts, whose last batches are cut off."""


def _by_librdkafka(_kafka: Kafka, where: Where, topic: str) -> list[bytes]:
    producer = confluent_kafka.Producer(where | {"batch.num.messages": 7})
    for number, payload in enumerate(NUMBERED):
        producer.produce(topic, payload, partition=number % WIDE)
    assert producer.flush(PATIENCE_S) == 0
    return received(where | FETCHED, topic, len(NUMBERED))


def _by_java(kafka: Kafka, where: Where, topic: str) -> list[bytes]:
    """Send with keys, which spread messages over all partitions."""
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    small = ("--command-property", "batch.size=700")
    patient = ("--request-timeout-ms", "30000")  # after 1.5 s it would send again, which is counted
    lines = "".join(f"{number}:{it.decode()}\n" for number, it in enumerate(NUMBERED))
    _tool(
        kafka,
        "ConsoleProducer",
        *_at(where, "--topic", topic),
        *keyed,
        *small,
        *patient,
        said=lines,
    )
    fetched = (f"--command-property={name}={value}" for name, value in FETCHED.items())
    all_of_it = ("--from-beginning", "--max-messages", str(len(NUMBERED)))
    got = _tool(
        kafka, "consumer.ConsoleConsumer", *_at(where, "--topic", topic), *all_of_it, *fetched
    )
    return got.encode().split()


@pytest.mark.parametrize("client", [_by_librdkafka, _by_java])
def test_each_message_of_many_partitions_arrives_once(
    kafka: Kafka,
    served: Gateway,
    where: Where,
    client: Callable[[Kafka, Where, str], list[bytes]],
) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    create(where, topic, partitions=WIDE)
    assert sorted(client(kafka, where, topic)) == NUMBERED
    exposed = scrape(served.metrics_url)
    counted = totals(exposed, "gateway_topic_messages_total", "topic", "direction")
    passed = [counted[topic, it] for it in ("to_broker", "to_client")]
    assert passed == [len(NUMBERED)] * 2


# -- franz-go ------------------------------------------------------------------------------------


def _franz(say: Say) -> Path:
    """Build the program. Raises MissingToolError without Go, FetchError."""
    go = go_tool()
    sources = sorted(FRANZ.iterdir())

    def build(into: Path) -> None:
        say("building franz-go (a minute, once) ...")
        env = os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false"}
        run_tool("go build", [go, "build", "-o", str(into / "franz"), "."], cwd=FRANZ, env=env)

    recipe = b"".join(source.read_bytes() for source in sources)
    return filled_once(f"franz-{digest(recipe)}", build) / "franz"


def test_franz_go_sends_and_receives(where: Where, topic: str, say: Say) -> None:
    program = or_skip(_franz, say)
    command = [str(program), str(where["bootstrap.servers"]), topic, str(COUNT)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )
    assert done.stdout == f"{COUNT}\n", done.stderr
