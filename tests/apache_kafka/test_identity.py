"""Clients say who they are to the gateway, and the gateway says who it is to real brokers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.secured import SASL, USERS, shown_by, users_file
from tests.apache_kafka.traffic import Traffic
from tests.apache_kafka.working import PATIENCE_S, librdkafka, payloads
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import HOST, Gateway

pytestmark = pytest.mark.real

SESSION_S = 3
"""Seconds after which a broker closes a connection, unless it is shown a credential again."""


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    folder = artifacts.directory("kafka-identity")
    made = or_skip(lambda say: Kafka(folder, say, SASL, USERS), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def verifying(tmp_path: Path) -> KafkaPlan:
    """A plan that verifies bob, and shows brokers the credential of alice."""
    users = users_file(tmp_path, {"bob": "builder"}, ("SCRAM-SHA-256", "SCRAM-SHA-512"))
    own = tmp_path / "password"
    own.write_text("se:cret")
    return KafkaPlan(
        identity={"mode": "verify", "scram": {"credentials_file": str(users)}},
        credential={"basic": {"username": "alice", "password_file": str(own)}},
    )


def _address(gateway: Gateway) -> str:
    return f"{HOST}:{gateway.port}"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_that_the_gateway_knows_is_served_by_brokers_that_know_the_gateway(
    broker: Kafka, gateway: StartGateway, verifying: KafkaPlan, mechanism: str
) -> None:
    started = gateway(broker, verifying)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    known = shown_by("bob", "builder", mechanism)
    assert sorted(librdkafka(_address(started), topic, known)) == sorted(payloads())


def test_each_client_may_have_a_name_of_its_own_at_brokers(
    broker: Kafka, gateway: StartGateway, verifying: KafkaPlan, tmp_path: Path
) -> None:
    passwords = tmp_path / "passwords.yaml"
    passwords.write_text('bob: {username: alice, password: "se:cret"}')
    each = {"each_principal": {"passwords_file": str(passwords)}}
    started = gateway(broker, replace(verifying, credential=each))
    topic = f"t-{uuid.uuid4().hex[:8]}"
    known = shown_by("bob", "builder", "SCRAM-SHA-256")
    assert sorted(librdkafka(_address(started), topic, known)) == sorted(payloads())
    passwords.write_text('carol: {username: alice, password: "se:cret"}')
    admin = AdminClient({"bootstrap.servers": _address(started), **known})
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=3)
    wait_until(lambda: "each_principal does not name it" in started.log.read_text())


def test_connections_outlive_the_sessions_of_brokers(
    artifacts: Artifacts, say: Say, gateway: StartGateway, verifying: KafkaPlan
) -> None:
    """A broker closes a connection on which the gateway does not show its credential again."""
    folder = artifacts.directory("kafka-sessions")
    more = f"{SASL}connections.max.reauth.ms={SESSION_S * 1000}\n"
    ending = or_skip(lambda say: Kafka(folder, say, more, USERS), say)
    ending.start()
    try:
        started = gateway(ending, verifying)
        known = shown_by("bob", "builder", "SCRAM-SHA-256")
        admin = AdminClient({"bootstrap.servers": _address(started), **known})
        topic = f"t-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(PATIENCE_S)
        with Traffic(_address(started), topic, known=known) as traffic:
            time.sleep(4 * SESSION_S)
            traffic.end()
        assert traffic.failed == []
        assert traffic.lost_and_doubled == (0, 0)
        assert "broker_closed" not in started.log.read_text()
        assert "broker_refused" not in started.log.read_text()
    finally:
        ending.stop()


def test_a_client_that_says_not_who_it_is_is_not_served(
    broker: Kafka, gateway: StartGateway, verifying: KafkaPlan
) -> None:
    started = gateway(broker, verifying)
    admin = AdminClient({"bootstrap.servers": _address(started)})
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=3)
    wait_until(lambda: "authentication_failed" in started.log.read_text())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_brokers_may_know_clients_themselves(
    broker: Kafka, gateway: StartGateway, mechanism: str
) -> None:
    started = gateway(broker, KafkaPlan())
    topic = f"t-{uuid.uuid4().hex[:8]}"
    known = shown_by("alice", "se:cret", mechanism)
    assert sorted(librdkafka(_address(started), topic, known)) == sorted(payloads())
