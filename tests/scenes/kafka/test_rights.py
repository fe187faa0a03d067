"""A gateway by TLS that verifies who clients are, and says what they may do and how much."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest
import yaml
from confluent_kafka.admin import AdminClient

from gateway.usage import reading
from gateway.usage.records import Usage
from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.secured import shown_by, users_file
from tests.apache_kafka.working import PATIENCE_S, create, librdkafka, payloads, received
from tests.real.artifacts import Artifacts
from tests.real.clients import wait_until
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import scrape, total
from tests.support.certificates import CertificateAuthority, Wanted

DENIED, DENIED_GROUP = 29, 30
LIMIT = 400
"""Messages a second of a limited topic."""
SECONDS = 3
"""In which a limit lets pass what is sent."""

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORDS = {"bob": "builder", "carol": "singer"}
RULES: list[Mapping[str, Any]] = [
    {"id": "bob", "match": {"principal": "bob"}, "allow": ["produce", "consume"]},
    {
        "id": "topics",
        "match": {"principal": "carol", "topic": "allowed-*"},
        "allow": ["produce", "consume"],
    },
    {
        "id": "groups",
        "match": {"principal": "carol", "subscription": "good-*"},
        "allow": ["consume"],
    },
    {
        "id": "slow",
        "match": {"topic": "slow-*"},
        "limit": {"publish": {"messages": f"{LIMIT}/s"}},
        "burst": "100ms",
    },
]


class Guarded(NamedTuple):
    """A gateway that knows some users. `trusted`: what their clients trust. `usage`: the folder of
    records. `direct`: the broker's address."""

    gateway: Gateway
    trusted: Path
    usage: Path
    direct: str

    @property
    def address(self) -> str:
        return f"{HOST}:{self.gateway.port}"

    def topic(self, kind: str) -> str:
        """Return a new topic of this kind."""
        name = f"{kind}-{uuid.uuid4().hex[:8]}"
        create({"bootstrap.servers": self.direct}, name)
        return name

    def client(
        self, user: str = "bob", password: str | None = None, mechanism: str = MECHANISMS[0]
    ) -> dict[str, Any]:
        """Return settings of a client that says who it is."""
        secured = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self.trusted)}
        known = shown_by(user, password or PASSWORDS[user], mechanism)
        return {"bootstrap.servers": self.address, **known, **secured}


@pytest.fixture(scope="module")
def guarded(
    kafka: Kafka, artifacts: Artifacts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority, rules, trusted = CertificateAuthority(), folder / "rules.yaml", folder / "ca.crt"
    shown = authority.issue(Wanted(names=[HOST])).written(folder)
    trusted.write_bytes(authority.certificate)
    rules.write_text(yaml.safe_dump({"version": 1, "rules": RULES}))
    users = users_file(folder, PASSWORDS, MECHANISMS)
    usage: dict[str, Any] = {"folder": str(folder / "usage"), "client_ids": True}
    usage |= {"interval": "1s", "close_after": "1s"}
    pair = {"certificate_file": str(shown.certificate), "key_file": str(shown.key)}
    plan = KafkaPlan(
        identity={"mode": "verify", "scram": {"credentials_file": str(users)}},
        tls={"certificates": [pair]},
        access="closed",
        unknown="mask",
        rules=rules,
        more={"usage": usage},
    )
    made = Gateway(kafka, plan, artifacts.directory("gateway-kafka-guarded"))
    made.start()
    yield Guarded(made, trusted, folder / "usage", f"{BROKERS_HOST}:{kafka.port}")
    made.stop()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_trusts_the_gateway_and_is_known_to_it_is_served(
    guarded: Guarded, mechanism: str
) -> None:
    topic = guarded.topic("t")
    known = guarded.client(mechanism=mechanism)
    assert sorted(librdkafka(guarded.address, topic, known)) == sorted(payloads())


def test_a_client_that_does_not_trust_the_gateways_certificate_leaves(
    guarded: Guarded, tmp_path: Path
) -> None:
    other = tmp_path / "ca.crt"
    other.write_bytes(CertificateAuthority().certificate)
    wrong = guarded.client() | {"ssl.ca.location": str(other)}
    error = _error_of(wrong, confluent_kafka.KafkaError._SSL)
    assert "certificate verify failed" in error.str()


@pytest.mark.parametrize(("user", "password"), [("bob", "wrong"), ("nobody", "builder")])
def test_a_client_that_is_not_known_gets_the_same_error_whoever_it_is(
    guarded: Guarded, user: str, password: str
) -> None:
    error = _error_of(guarded.client(user, password), confluent_kafka.KafkaError._AUTHENTICATION)
    assert "SASL authentication error: Authentication failed (after" in error.str()


def _error_of(settings: Mapping[str, Any], code: int) -> confluent_kafka.KafkaError:
    """Return the first error of this code that a client tells of."""
    errors: list[confluent_kafka.KafkaError] = []
    told_by: dict[str, Any] = {"error_cb": errors.append}
    admin = AdminClient({**settings, **told_by})

    def told() -> bool:
        admin.poll(0.1)
        return any(it.code() == code for it in errors)

    wait_until(told)
    return next(it for it in errors if it.code() == code)


def test_usage_records_name_principals_and_clients_as_they_do_themselves(guarded: Guarded) -> None:
    topic = guarded.topic("t")
    known = guarded.client() | {"client.id": "billing"}
    assert librdkafka(guarded.address, topic, known)

    def used() -> list[Usage]:
        return [it for it in reading.usage(guarded.usage) if it.topic == topic]

    def sums() -> dict[str, int]:
        return {op: sum(it.msgs for it in used() if it.op == op) for op in ("send", "deliver")}

    def connected() -> set[tuple[str | None, str | None]]:
        return {(it.principal, it.client_id) for it in reading.events(guarded.usage)}

    wait_until(lambda: sums() == dict.fromkeys(("send", "deliver"), len(payloads())))
    names = {(it.proto, it.principal, it.client_id) for it in used()}
    assert names == {("kafka", "bob", "billing")}
    wait_until(lambda: ("bob", "billing") in connected())


def test_a_client_without_a_right_gets_the_protocols_errors_and_sees_no_topic(
    guarded: Guarded,
) -> None:
    allowed, denied = guarded.topic("allowed"), guarded.topic("denied")
    carol = guarded.client("carol")
    seen = AdminClient(carol).list_topics(timeout=PATIENCE_S)
    assert allowed in seen.topics
    assert denied not in seen.topics
    outcomes: dict[str, set[int]] = {allowed: set(), denied: set()}

    def done(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        outcomes[message.topic() or ""].add(error.code() if error else 0)

    producer = confluent_kafka.Producer(carol)
    for payload in payloads():
        for topic in outcomes:
            try:
                producer.produce(topic, payload, on_delivery=done)
            except confluent_kafka.KafkaException as error:  # once it knows, it refuses at once
                outcomes[topic].add(error.args[0].code())
    assert producer.flush(PATIENCE_S) == 0
    assert outcomes == {allowed: {0}, denied: {DENIED}}
    for group, expected in (("good-one", 0), ("bad-one", DENIED_GROUP)):
        assert _consume(carol, group, allowed) == expected


def _consume(client: Mapping[str, Any], group: str, topic: str) -> int:
    """Return the error of a consumer; 0 if it receives a message."""
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**client, **settings})
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    consumer.close()
    assert message is not None
    error = message.error()
    return 0 if error is None else error.code()


def test_a_limit_binds_clients_that_do_not_wait(guarded: Guarded) -> None:
    """librdkafka ignores what answers say about throttling, and is not read meanwhile."""
    topic, count = guarded.topic("slow"), SECONDS * LIMIT
    producer = confluent_kafka.Producer(
        guarded.client() | {"batch.num.messages": 20, "linger.ms": 5}
    )
    began = time.monotonic()
    for number in range(count):
        producer.produce(topic, b"%d" % number)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    spent = time.monotonic() - began
    assert count <= LIMIT * (spent + 1)  # a burst, a lease, and what was sent last pass earlier
    waits = scrape(guarded.gateway.metrics_url)
    assert total(waits, "gateway_rule_waits_total", rule="slow") > 0
    assert sorted(received(guarded.client(), topic, count)) == sorted(
        b"%d" % number for number in range(count)
    )
