"""Authorization: the broker decides by the identity that the gateway forwards or vouches for."""

import secrets
import time
from collections.abc import Callable

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .brokers.tokens import Authority
from .clients import Client, assert_works, fresh_topic, wait_until
from .fixtures import GATEWAY, Connect, GatewayOfMode, Reach, Route, StartBroker
from .frames import Connection, Kind
from .gateways import MODES, Plans

# The interval at which the broker `renewing` looks for expired tokens: it asks a client for a new
# one at the first look after the expiry, and closes at the second.
RENEWAL_CHECK_S = 2
# A client that cannot connect retries, and reports nothing but this timeout.
PATIENCE_S = 3


@pytest.fixture(scope="module")
def renewing(start_broker: StartBroker, authority: Authority) -> Standalone:
    """A broker that accepts a proxy only with the client's own credential, and checks often for
    expired ones."""
    extra = {
        "authenticateOriginalAuthData": "true",
        "authenticationRefreshCheckSeconds": RENEWAL_CHECK_S,
    }
    return start_broker("renewing", authority=authority, extra=extra)


def namespace_for(broker: Standalone, *roles: str) -> str:
    """Return a new namespace where `roles` may produce and consume."""
    namespace = f"public/{secrets.token_hex(6)}"
    broker.admin.create_namespace(namespace)
    for role in roles:
        broker.admin.grant(namespace, role)
    return namespace


def topic_for(broker: Standalone, *roles: str) -> str:
    return fresh_topic(namespace=namespace_for(broker, *roles))


@pytest.fixture(params=MODES)
def route(
    way: str,
    reach: Reach,
    pulsar_auth: Standalone,
    gateway_of_mode: GatewayOfMode,
    request: pytest.FixtureRequest,
) -> Route:
    through = gateway_of_mode(pulsar_auth, request.param) if way == GATEWAY else None
    return reach(pulsar_auth, through=through)


# --- in every mode -------------------------------------------------------------------------------


def test_the_broker_refuses_a_user_without_permission(
    route: Route, connect: Connect, authority: Authority
) -> None:
    topic = topic_for(route.broker, "alice", "proxy")
    client = connect(route.url, authority.token("bob"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)
    with pytest.raises(client_library.AuthorizationError):
        client.subscribe(topic, "s")


def test_permission_to_consume_does_not_permit_producing(
    route: Route, connect: Connect, authority: Authority
) -> None:
    namespace = namespace_for(route.broker, "proxy")
    route.broker.admin.grant(namespace, "bob", "consume")
    topic = fresh_topic(namespace=namespace)
    client = connect(route.url, authority.token("bob"))
    client.subscribe(topic, "s")
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)


def test_permission_may_be_granted_later(
    route: Route, connect: Connect, authority: Authority
) -> None:
    namespace = namespace_for(route.broker, "proxy")
    topic = fresh_topic(namespace=namespace)
    client = connect(route.url, authority.token("alice"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)
    route.broker.admin.grant(namespace, "alice")
    assert_works(client, topic)


def test_the_python_client_reports_a_false_token_as_a_timeout(
    route: Route, connect: Connect
) -> None:
    client = connect(route.url, Authority().token("alice"), PATIENCE_S)
    with pytest.raises(client_library.Timeout):
        client.create_producer(fresh_topic())


# --- where the gateway vouches -------------------------------------------------------------------


@pytest.mark.gateway_only
def test_the_proxy_needs_permission_itself(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, plans: Plans, authority: Authority
) -> None:
    client = connect(reach(pulsar_auth, plans.of("verify")).url, authority.token("alice"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic_for(pulsar_auth, "alice"))


# --- a broker that requires the client's credential as well --------------------------------------


@pytest.mark.parametrize("mode", ["pass-through", "verify-and-forward"])
def test_a_broker_that_also_verifies_clients_accepts_forwarded_tokens(
    reach: Reach,
    connect: Connect,
    renewing: Standalone,
    plans: Plans,
    authority: Authority,
    mode: str,
) -> None:
    route = reach(renewing, plans.of(mode))
    topic = topic_for(renewing, "alice", "proxy")
    assert_works(connect(route.url, authority.token("alice")), topic)
    with pytest.raises(client_library.AuthorizationError):
        connect(route.url, authority.token("bob")).create_producer(topic)


@pytest.mark.gateway_only
def test_a_broker_that_also_verifies_clients_rejects_the_gateway_s_word(
    reach: Reach, renewing: Standalone, plans: Plans, authority: Authority
) -> None:
    with Connection(reach(renewing, plans.of("verify")).url) as connection:
        answer = connection.connect(authority.token("alice"))
    assert answer is None or answer.kind == Kind.ERROR


# --- tokens that expire --------------------------------------------------------------------------


class Wallet:
    """Returns a new short-lived token whenever the client needs one, and counts them."""

    def __init__(self, authority: Authority, lifetime: float) -> None:
        self._authority, self._lifetime = authority, lifetime
        self.shown = 0

    def __call__(self) -> str:
        self.shown += 1
        return self._authority.token("alice", self._lifetime)


def assert_renews_in_place(
    client: Client, topic: str, broker: Standalone, wallet: Wallet, seconds: float
) -> None:
    """Assert that the client presents new tokens while it works, and that its producer's connection
    is never lost."""
    producer = client.create_producer(topic)
    producer.send(b"first")
    (before,) = broker.admin.stats(topic)["publishers"]
    shown, end = wallet.shown, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.send(b"x")
        time.sleep(0.1)
    assert wallet.shown > shown, "the client was asked for no new token"
    (after,) = broker.admin.stats(topic)["publishers"]
    assert [after[key] for key in ("address", "connectedSince")] == [
        before[key] for key in ("address", "connectedSince")
    ]


def test_a_client_renews_its_token_on_the_open_connection(
    reach: Reach, connect: Connect, renewing: Standalone, authority: Authority
) -> None:
    """Tokens of 3 s, checked every 2 s: a new one is requested at 4 s, without which the broker
    closes at 6 s."""
    wallet = Wallet(authority, RENEWAL_CHECK_S + 1)
    client = connect(reach(renewing).url, wallet)
    assert_renews_in_place(
        client, topic_for(renewing, "alice"), renewing, wallet, 5 * RENEWAL_CHECK_S
    )


def test_a_client_renews_a_forwarded_token(
    reach: Reach, connect: Connect, renewing: Standalone, plans: Plans, authority: Authority
) -> None:
    wallet = Wallet(authority, RENEWAL_CHECK_S + 1)
    client = connect(reach(renewing, plans.of("verify-and-forward")).url, wallet)
    assert_renews_in_place(
        client, topic_for(renewing, "alice", "proxy"), renewing, wallet, 5 * RENEWAL_CHECK_S
    )


@pytest.mark.parametrize("mode", ["pass-through", "verify-and-forward"])
def test_a_client_that_does_not_renew_its_token_is_closed(
    reach: Reach,
    connect: Connect,
    renewing: Standalone,
    plans: Plans,
    authority: Authority,
    mode: str,
) -> None:
    client = connect(
        reach(renewing, plans.of(mode)).url, authority.token("alice", RENEWAL_CHECK_S + 1)
    )
    assert_cut_off(client, topic_for(renewing, "alice", "proxy"))


@pytest.mark.gateway_only
def test_a_user_is_closed_when_a_token_verified_by_the_gateway_expires(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, plans: Plans, authority: Authority
) -> None:
    """The broker knows only the gateway's credential here, so that only the gateway can notice."""
    client = connect(reach(pulsar_auth, plans.of("verify")).url, authority.token("alice", 3))
    assert_cut_off(client, topic_for(pulsar_auth, "alice", "proxy"))


def assert_cut_off(client: Client, topic: str, within_s: float = 20) -> None:
    producer = client.create_producer(topic, send_timeout_millis=2000)
    producer.send(b"while it lasts")
    is_connected: Callable[[], bool] = producer.is_connected
    wait_until(lambda: not is_connected(), within_s)
    with pytest.raises(client_library.Timeout):
        producer.send(b"too late")
