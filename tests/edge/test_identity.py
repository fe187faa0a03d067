"""Real clients that show different credentials, keys that their issuer changes, and its outages.

The brokers are in memory, and tell whom the gateway vouches for.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bcrypt
import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.clients import (
    Client,
    assert_works,
    close_client,
    fresh_topic,
    open_client,
    wait_until,
)
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.frames import Connection, Kind, ServerError
from tests.real.gateways import Gateway, Plan, Plans
from tests.real.metrics import scrape, total, totals
from tests.real.probes import ended, figure
from tests.real.traffic import Traffic
from tests.support.issuer import Issuer, SigningKey, in_thread
from tests.support.sandbox import Sandbox

from .conftest import Files

pytestmark = pytest.mark.gateway_only

OLD, NEW, OTHER = SigningKey("old"), SigningKey("new"), SigningKey("other")
PATIENCE_S = 3
"""Until a client that is refused gives up: it tries again, and reports nothing but a timeout."""

LONG_PATIENCE_S = 40
"""Of a client that has to come again."""


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer(OLD)
    with in_thread(issuer):
        yield issuer


def keys_from(issuer: Issuer, **more: object) -> dict[str, Any]:
    """Return the settings of an issuer whose keys are fetched."""
    settings = {"issuer": issuer.url, "jwks_url": issuer.keys_url, "algorithms": ["ES256"]}
    return {**settings, **more}


def verifying(plans: Plans, ways: dict[str, Any], tls: dict[str, Any] | None = None) -> Plan:
    """Return a plan that verifies clients in these ways."""
    credential = {"token_file": str(plans.credential)}
    return Plan({"mode": "verify", **ways}, credential, tls=tls)


def fetches(gateway: Gateway, outcome: str) -> float:
    """Return how often keys were fetched, by outcome."""
    return total(scrape(gateway.metrics_url), "gateway_issuer_fetches_total", outcome=outcome)


# -- several ways at once ----------------------------------------------------------------------

Open = Callable[..., Client]


@pytest.fixture
def secured(files: Files) -> Iterator[Open]:
    """Yield a function that opens clients which speak TLS."""
    with ExitStack() as opened:

        def open_one(url: str, **options: Any) -> Client:
            trusting = {"tls_trust_certs_file_path": str(files.authority)}
            validating = {"tls_validate_hostname": True}
            client = open_client(url, None, PATIENCE_S, **trusting, **validating, **options)
            opened.callback(close_client, client)
            return client

        yield open_one


@pytest.fixture
def secured_issuer(files: Files) -> Iterator[Issuer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.gateway.certificate, files.gateway.key)
    issuer = Issuer(OTHER, tls=context)
    with in_thread(issuer):
        yield issuer


def test_a_listener_verifies_clients_in_several_ways(
    sandbox_auth: Sandbox,
    gateway: StartGateway,
    secured: Open,
    plans: Plans,
    files: Files,
    issuer: Issuer,
    secured_issuer: Issuer,
    tmp_path: Path,
) -> None:
    users = tmp_path / "users"
    users.write_text(f"carol:{bcrypt.hashpw(b'se:cret', bcrypt.gensalt(10)).decode()}\n")
    discovered: dict[str, Any] = {"issuer": secured_issuer.url, "discovery": True}
    discovered["algorithms"] = ["ES256"]
    discovered["ca_file"] = str(files.authority)
    ways = {
        "token": {"issuers": [keys_from(issuer), discovered]},
        "tls": {},
        "basic": {"htpasswd_file": str(users)},
        "principals": [
            {"match": "(carol|client)", "principal": "{1}@here"},
            {"match": "alice|bob", "principal": "{0}"},
        ],
    }
    through = gateway(sandbox_auth, verifying(plans, ways, files.asking("optional")))
    url = through.untapped_url
    token, basic = client_library.AuthenticationToken, client_library.AuthenticationBasic
    certificate = client_library.AuthenticationTLS(
        str(files.client.certificate), str(files.client.key)
    )
    accepted = {
        "alice": token(OLD.token("alice", iss=issuer.url)),
        "bob": token(OTHER.token("bob", iss=secured_issuer.url)),
        "carol@here": basic("carol", "se:cret"),
        "client@here": certificate,
    }
    for principal, authentication in accepted.items():
        topic = fresh_topic()
        producer = secured(url, authentication=authentication).create_producer(topic)
        (shown,) = sandbox_auth.topics()[topic]["producers"]
        assert shown["original_principal"] == principal
        producer.send(b"message")
        producer.close()
    refused = [
        token(SigningKey("old", OTHER.key).token("alice", iss=issuer.url)),
        token(OLD.token("carol", iss=issuer.url + "/")),
        token(OLD.token("mallory", iss=issuer.url)),
        basic("carol", "secret"),
        # A good certificate, as this listener has no list of revoked ones, but of no known name.
        client_library.AuthenticationTLS(str(files.revoked.certificate), str(files.revoked.key)),
        None,
    ]
    assert ended(through, "authentication_failed") == 0

    def try_to_produce(authentication: Any) -> None:
        with pytest.raises((client_library.Timeout, client_library.AuthenticationError)):
            secured(url, authentication=authentication).create_producer(fresh_topic())

    with ThreadPoolExecutor(len(refused)) as pool:
        list(pool.map(try_to_produce, refused))
    assert ended(through, "authentication_failed") >= len(refused)
    assert_counted(through)


def assert_counted(through: Gateway) -> None:
    """What was verified is counted by method, and how its connections were secured."""
    for method in ("token", "basic", "tls"):
        name = "gateway_authentications_total"
        assert figure(through, name, method=method, outcome="accepted") > 0
    assert figure(through, "gateway_authentications_total", outcome="refused") > 0
    assert figure(through, "gateway_tls_handshakes_total", version="TLSv1.3") > 0
    scraped = totals(scrape(through.metrics_url), "gateway_clients", "library")
    assert [library for (library,) in scraped if library.startswith("Pulsar-CPP")]
    assert figure(through, "gateway_dial_seconds_count") > 0


# -- keys that change --------------------------------------------------------------------------


def test_a_rotated_key_is_accepted_while_clients_of_the_old_one_go_on(
    sandbox_auth: Sandbox, reach: Reach, connect: Connect, plans: Plans, issuer: Issuer
) -> None:
    route = reach(sandbox_auth, verifying(plans, {"token": keys_from(issuer)}))
    assert route.gateway is not None
    old, new = (key.token("alice", iss=issuer.url) for key in (OLD, NEW))
    producer = connect(route.url, old).create_producer(fresh_topic())
    traffic = Traffic(producer)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(traffic.run)
        issuer.keys = [OLD, NEW]
        assert_works(connect(route.url, new, LONG_PATIENCE_S), fresh_topic())
        assert_works(connect(route.url, old), fresh_topic())
        sending.result()
    assert traffic.results == [client_library.Result.Ok] * len(traffic.sent)
    assert fetches(route.gateway, "fetched") == 2
    assert fetches(route.gateway, "failed") == 0
    assert total(scrape(route.gateway.metrics_url), "gateway_issuer_keys") == 2


def test_an_outage_of_the_issuer_is_noticed_only_by_clients_of_new_keys(
    sandbox_auth: Sandbox, reach: Reach, connect: Connect, plans: Plans, issuer: Issuer
) -> None:
    route = reach(sandbox_auth, verifying(plans, {"token": keys_from(issuer)}))
    through = route.gateway
    assert through is not None
    old, new = (key.token("alice", iss=issuer.url) for key in (OLD, NEW))
    assert_works(connect(route.url, old), fresh_topic())
    issuer.keys, issuer.is_down = [OLD, NEW], True
    with ThreadPoolExecutor(1) as pool:
        patient = connect(route.url, new, LONG_PATIENCE_S)
        working = pool.submit(assert_works, patient, fresh_topic())
        with Connection(route.url, LONG_PATIENCE_S) as stranger:
            answer = stranger.connect(new)
        assert answer is not None
        assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.SERVICE_NOT_READY)
        assert answer.text(3) == "the keys of the token's issuer cannot be had now"
        assert_works(connect(route.url, old), fresh_topic())
        wait_until(lambda: fetches(through, "failed") >= 1)
        assert not working.done()
        issuer.is_down = False
        working.result()
    log = through.log.read_text()
    assert log.count("issuer_keys_unavailable") == 1
    assert "issuer_keys_fetched" in log.partition("issuer_keys_unavailable")[2]


def test_a_gateway_starts_while_the_issuer_is_down(
    sandbox_auth: Sandbox, reach: Reach, connect: Connect, plans: Plans, issuer: Issuer
) -> None:
    issuer.is_down = True
    route = reach(sandbox_auth, verifying(plans, {"token": keys_from(issuer)}))
    through = route.gateway
    assert through is not None
    wait_until(lambda: fetches(through, "failed") >= 1)
    issuer.is_down = False
    client = connect(route.url, OLD.token("alice", iss=issuer.url), LONG_PATIENCE_S)
    assert_works(client, fresh_topic())
