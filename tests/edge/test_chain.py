"""Two gateways in a row that know each other by certificates, and a real broker that decides by the
name of the first one's client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.real.brokers.standalone import Standalone
from tests.real.fixtures import StartGateway
from tests.real.frames import Kind, ServerError
from tests.real.gateways import Plan, Plans
from tests.real.test_authentication import topic_for

from .conftest import Certificates, Files, assert_moves_all

pytestmark = pytest.mark.gateway_only

OUTER, PROXY = "outer", "proxy"
"""The first gateway's name, by which the second one knows it; and the broker's name of that."""

BY_CERTIFICATE = {"mode": "verify", "tls": {}}


@dataclass(frozen=True)
class Behind:
    """The second gateway, as the first one knows it."""

    service_url: str
    traces: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def behind(
    module_gateway: StartGateway, pulsar_auth: Standalone, plans: Plans, files: Files
) -> Behind:
    identity = BY_CERTIFICATE | {"trusted_proxies": [OUTER]}
    plan = replace(plans.of("verify"), identity=identity, tls=files.asking("required"))
    return Behind(module_gateway(pulsar_auth, plan).untapped_url)


@pytest.fixture(scope="module")
def url(
    module_gateway: StartGateway, behind: Behind, files: Files, certificates: Certificates
) -> str:
    """Return the URL of the first gateway."""
    plan = Plan(
        BY_CERTIFICATE,
        {"tls": True},
        chained=True,
        tls=files.asking("required"),
        brokers_tls=files.dialling(certificates.of(OUTER)),
    )
    return module_gateway(behind, plan).untapped_url


def test_a_client_with_rights_loses_nothing(
    client: Program, url: str, certificates: Certificates, pulsar_auth: Standalone, logs: Path
) -> None:
    """The broker permits neither the first gateway nor anybody else."""
    topic = topic_for(pulsar_auth, "alice", PROXY)
    assert_moves_all(certificates.by(client, "alice"), url, logs, topic)


def test_a_client_without_rights_fails(
    client: Program, url: str, certificates: Certificates, pulsar_auth: Standalone, logs: Path
) -> None:
    topic = topic_for(pulsar_auth, "alice", OUTER, PROXY)
    refused = certificates.by(client, "eve")
    with refused.producing(url, topic, 1, logs / "producer.log") as producer:
        assert "Authorization" in producer.refused()


@pytest.mark.parametrize("name", [OUTER, PROXY])
def test_a_client_is_no_gateway(url: str, certificates: Certificates, name: str) -> None:
    """Who has a gateway's certificate is still a client of the first gateway, and may not be one of
    those whom the next one, or the broker, believes."""
    answer = certificates.answer(url, name)
    assert answer.kind == Kind.ERROR
    assert answer.fields[2] in (ServerError.AUTHENTICATION, ServerError.AUTHORIZATION)


def test_a_client_of_the_second_gateway_is_no_gateway(
    behind: Behind, certificates: Certificates
) -> None:
    answer = certificates.answer(behind.service_url, "alice", original_principal="eve")
    assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.AUTHENTICATION)
