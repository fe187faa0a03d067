"""The gateway verifies clients by tokens that the broker does not know. Then it refuses what no
rule allows, and the broker decides the rest by the name that it is told."""

from __future__ import annotations

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.tokens import Authority, KeyPair
from tests.real.clients import assert_works, fresh_topic
from tests.real.fixtures import Connect, Route
from tests.real.frames import Connection, Kind, ServerError, Value
from tests.real.probes import assert_refused, figure
from tests.real.test_authentication import topic_for

from .bounds import PATIENCE
from .conftest import PROXY, USER, ClientOf

pytestmark = pytest.mark.gateway_only


def denials(route: Route, **labels: str) -> float:
    return figure(route.gateway, "gateway_access_denied_total", **labels)


def test_users_whose_tokens_the_broker_does_not_know_need_permission(
    verified: Route, client_of: ClientOf
) -> None:
    topic, before = topic_for(verified.broker, "alice", PROXY), denials(verified)
    assert_works(client_of("alice"), topic)
    with pytest.raises(client_library.AuthorizationError):
        client_of("bob").create_producer(topic)
    assert denials(verified) == before, "it was not the broker that refused"


def test_a_false_token_is_refused(verified: Route, issuer: KeyPair, authority: Authority) -> None:
    false = {
        "expired": issuer.token("alice", -3600),
        "of another issuer": KeyPair().token("alice"),
        "that only the broker would accept": authority.token("alice"),
    }
    for what, token in false.items():
        assert_refused(verified.url, token, what)


ALL_TOPICS = 2
"""A mode of a list."""
TOPICS, HASH = 2, 4
"""Fields of an answer."""


def test_no_list_tells_that_a_hidden_topic_matches(
    verified: Route,
    issuer: KeyPair,
    authority: Authority,
    connect: Connect,
    namespace: str,
) -> None:
    """A list without a hash, beside others that have one, spelled out names letter by letter."""
    secret = fresh_topic("secret", namespace)
    direct = connect(verified.broker.service_url, authority.token(USER), PATIENCE)
    direct.create_producer(secret)
    beginning = secret.rpartition("/")[2][:10]
    with Connection(verified.url) as alice:
        answer = alice.connect(issuer.token("alice"))
        assert answer is not None
        assert answer.kind == Kind.CONNECTED
        for pattern in (f".*/{beginning}.*", ".*/nothing.*"):
            asked: dict[int, Value] = {1: 1, 2: namespace, 3: ALL_TOPICS, 4: pattern}
            alice.send(Kind.GET_TOPICS_OF_NAMESPACE, asked)
            answer = alice.receive()
            assert answer is not None
            assert answer.kind == Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE
            assert HASH not in answer.fields
            assert TOPICS not in answer.fields
        alice.send(Kind.GET_TOPICS_OF_NAMESPACE, {1: 2, 2: "pulsar/system", 3: ALL_TOPICS})
        answer = alice.receive()
        assert answer is not None
        assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.AUTHORIZATION)


def test_a_denied_topic_is_refused_though_the_broker_permits_it(
    verified: Route, client_of: ClientOf, namespace: str
) -> None:
    client, secret = client_of("alice"), fresh_topic("secret", namespace)
    before = denials(verified, rule="secret")
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(secret)
    with pytest.raises(client_library.AuthorizationError):
        client.subscribe(secret, "s")
    assert denials(verified, rule="secret") >= before + 2
    assert_works(client, fresh_topic(namespace=namespace))


def test_who_has_no_rule_is_refused_though_the_broker_permits_it(
    verified: Route, client_of: ClientOf
) -> None:
    topic, before = topic_for(verified.broker, "eve", PROXY), denials(verified)
    with pytest.raises(client_library.AuthorizationError):
        client_of("eve").create_producer(topic)
    assert denials(verified) > before
