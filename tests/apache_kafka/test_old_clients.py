"""Clients that speak the first versions of the protocol, which brokers before Kafka 4.0 serve."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import OLDER, Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.working import PATIENCE_S
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say, filled_once, run_tool
from tests.real.clients import wait_until
from tests.real.fixtures import or_skip
from tests.real.gateways import HOST, Gateway

pytestmark = pytest.mark.real

CLIENT = "kafka-python==2.0.2"
VERSIONS = ("0.9", "0.10.1", "0.10.2", "0.11", "1.0")
COUNT = 20

PROTOCOLS = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
FIRST_OF_KRAFT = f"listener.security.protocol.map={PROTOCOLS}\n"
"""A setting that brokers needed then."""


@pytest.fixture(scope="module", params=OLDER)
def broker(
    request: pytest.FixtureRequest, say: Say, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kafka]:
    older: str = request.param
    folder = tmp_path_factory.mktemp(f"kafka-{older}")

    def make(say: Say) -> Kafka:
        return Kafka(folder, say, FIRST_OF_KRAFT, older=older)

    made = or_skip(make, say)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def served(broker: Kafka, artifacts: Artifacts) -> Iterator[Gateway]:
    made = Gateway(broker, KafkaPlan(), artifacts.directory("gateway-old-clients"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def topic(served: Gateway) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": f"{HOST}:{served.port}"})
    for made in admin.create_topics([NewTopic(name, 1, 1)]).values():
        made.result(PATIENCE_S)
    return name


def _old_kafka_python(_say: Say) -> Path:
    def fill(into: Path) -> None:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(into),
        ]
        run_tool("pip", [*pip, CLIENT])

    return filled_once("kafka-python-2.0.2", fill)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="kafka-python 2.0.2 runs up to Python 3.11")
@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_python_sends_and_receives(
    served: Gateway, topic: str, version: str, say: Say
) -> None:
    path = str(or_skip(_old_kafka_python, say))
    script = Path(__file__).with_name("old.py")
    done = subprocess.run(
        [sys.executable, script, f"{HOST}:{served.port}", topic, version],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
        timeout=180,
    )  # fmt: skip
    assert done.stdout.split() == [str(COUNT), str(COUNT), str(COUNT - 1)], done.stderr


@pytest.mark.parametrize("version", ["0.9.0", "0.10.1", "0.11.0", "1.0.0"])
def test_librdkafka_sends_and_receives(served: Gateway, topic: str, version: str) -> None:
    old = {
        "bootstrap.servers": f"{HOST}:{served.port}",
        "api.version.request": False,
        "broker.version.fallback": version,
    }
    producer = confluent_kafka.Producer(old)
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer(old | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    heard: list[bytes] = []

    def consume() -> bool:
        heard.extend(it.value() or b"" for it in consumer.consume(COUNT, 0.2) if not it.error())
        return len(heard) >= COUNT

    wait_until(consume)
    consumer.close()
    assert sorted(heard) == sorted(b"%d" % number for number in range(COUNT))
