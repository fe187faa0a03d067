"""Clients that speak the first versions of the protocol, which brokers before Kafka 4.0 serve."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)

from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import OLDER, Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.old.commands import (
    JAVAS,
    KAFKA_NODE,
    OLDEST,
    OTHERS,
    PYTHONS,
    Command,
    java_client,
)
from tests.apache_kafka.secured import shown_by, users_file
from tests.apache_kafka.working import PATIENCE_S, received
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import scrape, totals
from tests.support.certificates import CertificateAuthority, Wanted

pytestmark = pytest.mark.real

PROVING = PYTHONS | JAVAS | KAFKA_NODE
"""Clients that can say who they are."""
WITHOUT_SCRAM = {"kafka-node", "java 0.10.2.2", "java 0.11.0.3"}
"""Those of Java need `javax.xml.bind` for it, which Java 11 and later do not have."""
CLIENTS = OLDEST | PROVING | OTHERS
MECHANISMS = ("PLAIN", "SCRAM-SHA-256")
FALLBACKS = ("0.10.1", "0.11.0", "1.0.0")
"""What librdkafka takes brokers for that it does not ask."""
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


@pytest.fixture
def topic(broker: Kafka) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": f"{BROKERS_HOST}:{broker.port}"})
    for made in admin.create_topics([NewTopic(name, 1, 1)]).values():
        made.result(PATIENCE_S)
    return name


def _ran(command: Command, *arguments: str) -> str:
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _librdkafka(address: str, topic: str, version: str, known: Mapping[str, str]) -> list[bytes]:
    """Send and receive as if the broker were of a version."""
    old = {"api.version.request": False, "broker.version.fallback": version, **known}
    where = {"bootstrap.servers": address, **old}
    producer = confluent_kafka.Producer(where)
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    return received(where, topic, COUNT)


# -- clients that do not say who they are ----------------------------------------------------------


@pytest.fixture(scope="module")
def served(broker: Kafka, artifacts: Artifacts) -> Iterator[Gateway]:
    made = Gateway(broker, KafkaPlan(), artifacts.directory("gateway-old-clients"))
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_sends_and_receives(served: Gateway, topic: str, name: str, say: Say) -> None:
    client = or_skip(CLIENTS[name], say)
    assert _ran(client, f"{HOST}:{served.port}", topic) == f"{COUNT} {COUNT}\n"
    counted = totals(
        scrape(served.metrics_url), "gateway_topic_messages_total", "topic", "direction"
    )
    assert [counted[topic, it] for it in ("to_broker", "to_client")] == [COUNT, COUNT]


@pytest.mark.parametrize("version", ["0.9.0", *FALLBACKS])
def test_librdkafka_sends_and_receives(served: Gateway, topic: str, version: str) -> None:
    heard = _librdkafka(f"{HOST}:{served.port}", topic, version, {})
    assert sorted(heard) == sorted(b"%d" % number for number in range(COUNT))


@pytest.mark.parametrize("version", ["0.11.0.3", "1.0.2"])
def test_the_first_admin_clients_describe_settings(
    broker: Kafka, served: Gateway, topic: str, version: str, say: Say
) -> None:
    client = or_skip(lambda say: java_client(say, version, "Described"), say)
    through, direct = (
        _ran(client, it, topic) for it in (f"{HOST}:{served.port}", f"{BROKERS_HOST}:{broker.port}")
    )
    assert through == direct
    assert "retention.ms=" in direct


# -- clients that say who they are, as bob, to the gateway -----------------------------------------


@dataclass(frozen=True)
class Verifying:
    """A gateway that verifies clients. `folder`: where clients find its authority's certificate."""

    address: str
    folder: Path


@pytest.fixture(scope="module")
def verifying(
    broker: Kafka, artifacts: Artifacts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Verifying]:
    folder, authority = tmp_path_factory.mktemp("verifying"), CertificateAuthority()
    (folder / "authority.crt").write_bytes(authority.certificate)
    trusted = PKCS12Certificate(x509.load_pem_x509_certificate(authority.certificate), b"authority")
    lock = BestAvailableEncryption(b"needed before 0.11")
    (folder / "authority.p12").write_bytes(serialize_java_truststore([trusted], lock))
    pair = authority.issue(Wanted([HOST])).written(folder)
    hashed = folder / "htpasswd"
    hashed.write_text(f"bob:{bcrypt.hashpw(b'builder', bcrypt.gensalt(10)).decode()}\n")
    users = users_file(folder, {"bob": "builder"}, ["SCRAM-SHA-256"])
    plan = KafkaPlan(
        identity={
            "mode": "verify",
            "basic": {"htpasswd_file": str(hashed)},
            "scram": {"credentials_file": str(users)},
        },
        tls={
            "certificates": [{"certificate_file": str(pair.certificate), "key_file": str(pair.key)}]
        },
    )
    made = Gateway(broker, plan, artifacts.directory("gateway-old-clients-verified"))
    made.start()
    yield Verifying(f"{HOST}:{made.port}", folder)
    made.stop()


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        *((name, "PLAIN") for name in PROVING),
        *((name, "SCRAM-SHA-256") for name in PROVING if name not in WITHOUT_SCRAM),
    ],
)
def test_a_client_that_says_who_it_is_sends_and_receives(
    verifying: Verifying, topic: str, name: str, mechanism: str, say: Say
) -> None:
    client = or_skip(PROVING[name], say)
    proof = (mechanism, str(verifying.folder))
    assert _ran(client, verifying.address, topic, *proof) == f"{COUNT} {COUNT}\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", FALLBACKS)
def test_librdkafka_says_who_it_is(
    verifying: Verifying, topic: str, version: str, mechanism: str
) -> None:
    known = shown_by("bob", "builder", mechanism) | {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(verifying.folder / "authority.crt"),
    }
    heard = _librdkafka(verifying.address, topic, version, known)
    assert sorted(heard) == sorted(b"%d" % number for number in range(COUNT))
