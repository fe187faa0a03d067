"""Client identity: what the broker learns of it, and which clients are refused."""

from pathlib import Path

import pytest

from tests.real.brokers.tokens import Authority, KeyPair, forged
from tests.real.clients import assert_works
from tests.real.fixtures import GATEWAY, Connect, GatewayOfMode, Reach, Route
from tests.real.frames import Connection, Kind, ServerError
from tests.real.gateways import MODES, Plans, verifying
from tests.real.probes import assert_refused

from .brokers import Secured


@pytest.fixture(params=MODES)
def route(
    way: str,
    reach: Reach,
    secured: Secured,
    gateway_of_mode: GatewayOfMode,
    request: pytest.FixtureRequest,
) -> Route:
    through = gateway_of_mode(secured, request.param) if way == GATEWAY else None
    return reach(secured, through=through)


# --- in every mode -------------------------------------------------------------------------------


def test_a_permitted_user_produces_and_consumes(
    route: Route, connect: Connect, authority: Authority
) -> None:
    assert_works(
        connect(route.url, authority.token("alice")), route.broker.topic_for("alice", "proxy")
    )


def test_a_false_token_gets_an_error_and_a_close(route: Route, authority: Authority) -> None:
    token = authority.token("alice")
    header, claims, _ = token.split(".")
    false = {
        "of another authority": Authority().token("alice"),
        "expired": authority.expired("alice"),
        "with the claims of another": ".".join(
            [header, authority.token("bob").split(".")[1], token.split(".")[2]]
        ),
        "unsigned": f"{header}.{claims}.",
        "no token at all": "garbage",
        "empty": "",
    }
    for what, shown in false.items():
        assert_refused(route.url, shown, what)


def test_a_false_token_is_refused_on_a_direct_connection_too(
    route: Route, authority: Authority
) -> None:
    topic = route.broker.topic_for("alice", "proxy")
    with Connection(route.url) as connection:
        connection.connect(authority.token("alice"))
        answer = connection.lookup(topic)
    assert answer
    assert answer.kind == Kind.LOOKUP_RESPONSE
    assert_refused(
        route.url, "garbage", proxy_to_broker_url=answer.text(1).removeprefix("pulsar://")
    )


def test_the_proxy_s_token_does_not_admit_a_user(route: Route, authority: Authority) -> None:
    with Connection(route.url) as connection:
        answer = connection.connect(authority.token("proxy"))
    assert answer
    assert answer.kind == Kind.ERROR
    assert answer.fields[2] in (ServerError.AUTHENTICATION, ServerError.AUTHORIZATION)


def test_a_client_cannot_name_another_principal(route: Route, authority: Authority) -> None:
    """The claimed name is refused or ignored: bob may not act as alice."""
    topic = route.broker.topic_for("alice", "proxy")
    with Connection(route.url) as connection:
        answer = connection.connect(authority.token("bob"), original_principal="alice")
        if answer and answer.kind == Kind.CONNECTED:
            answer = connection.lookup(topic)
            assert answer
            assert answer.fields[3] != 1
            assert answer.fields[6] == ServerError.AUTHORIZATION
        else:
            assert answer is None or answer.kind == Kind.ERROR


# --- where the gateway vouches -------------------------------------------------------------------


@pytest.mark.gateway_only
def test_users_may_have_tokens_unknown_to_the_broker(
    reach: Reach, connect: Connect, secured: Secured, plans: Plans, tmp_path: Path
) -> None:
    pair = KeyPair()
    public = pair.write_public(tmp_path / "public.pem")
    plan = verifying(plans.credential, public_key_file=str(public), algorithms=["RS256"])
    route = reach(secured, plan)
    assert_works(connect(route.url, pair.token("alice")), secured.topic_for("alice", "proxy"))
    assert_refused(route.url, pair.token("alice", -3600), "expired")
    assert_refused(route.url, KeyPair().token("alice"), "of another pair")


@pytest.mark.gateway_only
def test_a_public_key_is_not_accepted_as_a_secret(
    reach: Reach, secured: Secured, plans: Plans, tmp_path: Path
) -> None:
    """The classic forgery: an HS256 token whose secret is the well-known public key."""
    public = KeyPair().write_public(tmp_path / "public.pem")
    plan = verifying(plans.credential, public_key_file=str(public), algorithms=["RS256"])
    assert_refused(reach(secured, plan).url, forged("alice", public.read_bytes()))
