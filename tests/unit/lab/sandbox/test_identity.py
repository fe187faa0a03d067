"""Accepted clients, and the rules for proxy roles."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from gateway.identity.token import TokenVerifier
from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.identity import Authenticator, ClientRoles
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.unit.lab.sandbox.playbook import NOW, Client, kinds_of

KEY = OctKey.import_key(b"0123456789abcdef0123456789abcdef")
PROXY = "proxy"


@pytest.fixture
def authenticator() -> Authenticator:
    return Authenticator(TokenVerifier([KEY], ["HS256"]), [PROXY, "proxy2"])


def token(role: str, **claims: Any) -> dict[str, Any]:
    """Return the fields of a CONNECT with this role's token."""
    text = jwt.encode({"alg": "HS256"}, {"sub": role, **claims}, KEY)
    return {"auth_method_name": "token", "auth_data": text.encode()}


def connected(
    cluster: SandboxCluster, authenticator: Authenticator, **fields: Any
) -> tuple[Client, Any]:
    client = Client(cluster, authenticator=authenticator, connect=False)
    return client, client.ask(Kind.CONNECT, client_version="test", **fields)


def test_a_valid_token_is_accepted(cluster: SandboxCluster, authenticator: Authenticator) -> None:
    client, answer = connected(cluster, authenticator, **token("alice"))
    assert kinds_of([answer]) == ["Connected"]
    assert client.session.roles == ClientRoles("alice", None)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"auth_method_name": "basic", "auth_data": b"alice:secret"},
        {"auth_method_name": "token", "auth_data": b"nonsense"},
        token("alice", exp=int(NOW) - 1),
    ],
)
def test_other_credentials_are_refused(
    cluster: SandboxCluster, authenticator: Authenticator, fields: dict[str, Any]
) -> None:
    client, answer = connected(cluster, authenticator, **fields)
    assert answer.error == ServerError.AuthenticationError
    assert client.session.is_ended
    client.say(Kind.PING)
    assert client.take() == []


def test_a_proxy_role_names_an_original_principal(
    cluster: SandboxCluster, authenticator: Authenticator
) -> None:
    fields = {"original_principal": "alice", "proxy_version": "1"}
    client, answer = connected(cluster, authenticator, **token(PROXY), **fields)
    assert kinds_of([answer]) == ["Connected"]
    assert client.session.roles == ClientRoles(PROXY, "alice")


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        (PROXY, {}),
        (PROXY, {"original_principal": PROXY}),
        (PROXY, {"original_principal": "proxy2"}),
        ("alice", {"original_principal": "bob"}),
        ("alice", {"original_principal": "alice"}),
        ("alice", {"proxy_version": "1"}),
    ],
)
def test_invalid_combinations_of_roles_are_refused(
    cluster: SandboxCluster, authenticator: Authenticator, role: str, fields: dict[str, Any]
) -> None:
    client, answer = connected(cluster, authenticator, **token(role), **fields)
    assert (answer.error, answer.message) == (ServerError.AuthorizationError, "Invalid roles.")
    assert client.session.is_ended


def test_without_a_verifier_all_clients_are_accepted(cluster: SandboxCluster) -> None:
    client, _ = connected(cluster, Authenticator(), original_principal="alice")
    assert client.session.roles == ClientRoles(None, "alice")
