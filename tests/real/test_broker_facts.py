"""How the broker treats identities and unusual commands.

The tests of authentication rely on these facts. No gateway is involved: if a test here fails, the
broker's rules have changed, and other tests fail for that reason.
"""

import pytest

from .brokers.standalone import Standalone
from .brokers.tokens import Authority
from .clients import fresh_topic
from .frames import Command, Connection, Kind, ServerError, encode

CONNECT, FAILED = 1, 2  # field 3 of a LOOKUP_RESPONSE


@pytest.fixture
def topic(pulsar_auth: Standalone) -> str:
    """Return a topic in a new namespace, where alice and the proxy may do everything."""
    namespace = f"public/{fresh_topic('facts')[-12:]}"
    pulsar_auth.admin.create_namespace(namespace)
    pulsar_auth.admin.grant(namespace, "alice")
    pulsar_auth.admin.grant(namespace, "proxy")
    return fresh_topic(namespace=namespace)


def lookup(broker: Standalone, topic: str, token: str, **others: str) -> Command:
    with Connection(broker.service_url) as connection:
        connected = connection.connect(token, **others)
        assert connected
        assert connected.kind == Kind.CONNECTED
        answer = connection.lookup(topic)
        assert answer
        assert answer.kind == Kind.LOOKUP_RESPONSE
        return answer


def test_a_proxy_may_act_for_a_user_if_both_have_permission(
    pulsar_auth: Standalone, authority: Authority, topic: str
) -> None:
    answer = lookup(pulsar_auth, topic, authority.token("proxy"), original_principal="alice")
    assert answer.fields[3] == CONNECT


def test_a_proxy_does_not_confer_its_permissions(
    pulsar_auth: Standalone, authority: Authority, topic: str
) -> None:
    answer = lookup(pulsar_auth, topic, authority.token("proxy"), original_principal="bob")
    assert (answer.fields[3], answer.fields[6]) == (FAILED, ServerError.AUTHORIZATION)


def test_a_proxy_without_permission_cannot_act_for_permitted_users(
    pulsar_auth: Standalone, authority: Authority
) -> None:
    namespace = f"public/{fresh_topic('facts')[-12:]}"
    pulsar_auth.admin.create_namespace(namespace)
    pulsar_auth.admin.grant(namespace, "alice")
    answer = lookup(
        pulsar_auth,
        fresh_topic(namespace=namespace),
        authority.token("proxy"),
        original_principal="alice",
    )
    assert (answer.fields[3], answer.fields[6]) == (FAILED, ServerError.AUTHORIZATION)


@pytest.mark.parametrize(
    ("role", "principal"),
    [("proxy", None), ("proxy", "proxy"), ("alice", "alice"), ("alice", "bob")],
)
def test_only_a_proxy_may_name_another_principal(
    pulsar_auth: Standalone, authority: Authority, role: str, principal: str | None
) -> None:
    named = {} if principal is None else {"original_principal": principal}
    with Connection(pulsar_auth.service_url) as connection:
        answer = connection.connect(authority.token(role), **named)
    assert answer
    assert answer.kind == Kind.ERROR
    assert answer.fields[2] == ServerError.AUTHORIZATION


def test_a_message_from_a_client_ends_its_connection(
    pulsar_auth: Standalone, authority: Authority
) -> None:
    """A gateway may therefore end it too: no client loses anything by that."""
    with Connection(pulsar_auth.service_url) as connection:
        assert connection.connect(authority.token("alice"))
        connection.send(Kind.MESSAGE, {1: 1, 2: encode({1: 1, 2: 1})})
        assert connection.receive() is None
