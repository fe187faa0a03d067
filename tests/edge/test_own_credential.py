"""The gateway's own credential towards a real broker, while it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import EARLIEST, assert_works, payloads, receive, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import Plans
from tests.real.probes import figure
from tests.real.test_authentication import topic_for
from tests.support.boxes import close, usage
from tests.support.issuer import TOKEN, Issuer, in_thread

from .conftest import renewed

pytestmark = pytest.mark.gateway_only

LIFETIME = 4
"""Seconds that the gateway's token is valid."""

LIVES = 3
SECRET, WRONG = "se cret&", "another"


@pytest.fixture
def issuer(authority: Authority) -> Iterator[Issuer]:
    """Yield an issuer whose tokens for the right secret are accepted by brokers."""
    issuer = Issuer()
    issuer.grant = granting(authority, "proxy")
    with in_thread(issuer):
        yield issuer


def granting(
    authority: Authority, role: str
) -> Callable[[Mapping[str, str]], Mapping[str, object] | None]:
    asked = {"grant_type": "client_credentials", "client_id": "gateway"}

    def grant(form: Mapping[str, str]) -> Mapping[str, object] | None:
        if form != asked | {"client_secret": SECRET, "audience": "brokers"}:
            return None
        token = authority.token(role, LIFETIME)
        return {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME}

    return grant


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return the file of the gateway's secret."""
    (tmp_path / "own.secret").write_text(SECRET)
    return tmp_path / "own.secret"


def granted(secret: Path, **issuer: str) -> dict[str, Any]:
    """Return the settings of a credential that an issuer grants."""
    asked = {"client_id": "gateway", "client_secret_file": str(secret), "audience": "brokers"}
    return {"oauth2": asked | issuer}


@pytest.fixture(params=["file", "issuer"])
def credential(
    request: pytest.FixtureRequest,
    authority: Authority,
    issuer: Issuer,
    secret: Path,
    tmp_path: Path,
) -> Iterator[dict[str, Any]]:
    """Yield the settings of a short-lived token: in a file, where it is renewed every second, or
    from an issuer."""
    if request.param == "issuer":
        yield granted(secret, token_url=issuer.token_url)
        assert issuer.asked.count(TOKEN) >= LIVES
        return
    with renewed(tmp_path / "own.token", lambda: authority.token("proxy", LIFETIME), 1) as file:
        yield {"token_file": str(file)}


def test_short_lived_tokens_of_the_gateway_drop_no_client(
    pulsar_auth: Standalone,
    credential: dict[str, Any],
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
) -> None:
    through = gateway(pulsar_auth, replace(plans.of("verify"), credential=credential))
    client = connect(reach(pulsar_auth, through=through).url, authority.token("alice"))
    topic = topic_for(pulsar_auth, "alice", "proxy")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic)
    ends, sent = time.monotonic() + LIVES * LIFETIME, list[bytes]()
    while time.monotonic() < ends:
        sent.append(str(len(sent)).encode())
        producer.send(sent[-1])
        time.sleep(0.02)
    assert payloads(receive(consumer, len(sent))) == sent
    closed = {"listener": "clients", "reason": "broker_closed"}
    assert figure(through, "gateway_connections_ended_total", **closed) == 0


@pytest.fixture(params=["file", "issuer"])
def of_records(
    request: pytest.FixtureRequest,
    authority: Authority,
    issuer: Issuer,
    secret: Path,
    tmp_path: Path,
) -> Iterator[dict[str, Any]]:
    """Yield the settings of a short-lived token of the role `records`, which is no proxy."""
    if request.param == "issuer":
        issuer.grant = granting(authority, "records")
        yield granted(secret, token_url=issuer.token_url)
        assert issuer.asked.count(TOKEN) >= LIVES
        return
    file = tmp_path / "records.token"
    with renewed(file, lambda: authority.token("records", LIFETIME), 1):
        yield {"token_file": str(file)}


@pytest.mark.parametrize("workers", [1, 2])
def test_records_go_to_their_topic_while_their_token_changes(
    pulsar_auth: Standalone,
    of_records: dict[str, Any],
    gateway: StartGateway,
    plans: Plans,
    workers: int,
    tmp_path: Path,
) -> None:
    folder, url = tmp_path / "usage", pulsar_auth.service_url
    clusters = {
        "main": {"brokers": url, "credential": {"token_file": str(plans.credential)}},
        "records": {"brokers": url, "credential": of_records},
    }
    topic = {"cluster": "records", "records": topic_for(pulsar_auth, "records")}
    sent = {"folder": str(folder), "gateway": "edge", "topic": topic}
    more = {"usage": sent, "clusters": clusters}
    plan = replace(plans.of("verify"), workers=workers, more=more)
    running = gateway(pulsar_auth, plan)
    for number in range(LIVES * LIFETIME):
        close(folder, [usage(number + 1)])
        time.sleep(1)
    shipped = "gateway_usage_shipped_records_total"
    wait_until(lambda: figure(running, shipped, stream="usage") >= LIVES * LIFETIME)
    assert "usage_topic_away" not in running.log.read_text()


def test_a_gateway_is_ready_when_its_issuer_accepts_its_secret(
    pulsar_auth: Standalone,
    issuer: Issuer,
    secret: Path,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
) -> None:
    secret.write_text(WRONG)
    plan = replace(plans.of("verify"), credential=granted(secret, issuer=issuer.url))
    through = gateway(pulsar_auth, plan, until="livez")
    wait_until(lambda: TOKEN in issuer.asked)
    wait_until(lambda: "own_token_unavailable" in through.log.read_text())
    wait_until(lambda: through.ask("readyz") == (503, "no credential for cluster main\n"))
    secret.write_text(SECRET)
    wait_until(lambda: through.ask("readyz")[0] == 200)
    client = connect(reach(pulsar_auth, through=through).url, authority.token("alice"))
    assert_works(client, topic_for(pulsar_auth, "alice", "proxy"))
    log = through.log.read_text()
    assert "own_token_back" in log
    assert WRONG not in log
    assert SECRET not in log
