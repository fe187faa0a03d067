"""Who may do what: decided by the broker from the identity that the gateway lets through, or
vouches for.
"""

import functools
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .artifacts import Artifacts
from .brokers.standalone import Standalone
from .brokers.tokens import Authority, KeyPair, forged
from .clients import Client, fresh_topic, numbered, payloads, receive, wait_until
from .conftest import GATEWAY, Connect, Reach, Route, StartBroker
from .frames import Connection, Kind, ServerError
from .gateways import PASS_THROUGH, Gateway, Plan, verifying

# The broker `renewing` looks for expired tokens this often: it asks a client for a new one at the
# first look after the old one's end, and closes at the second.
RENEWAL_CHECK_S = 2
# A client that cannot connect retries, and reports nothing but this timeout.
PATIENCE_S = 3

ALL_MODES = ("pass-through", "verify", "verify-and-forward")


@dataclass(frozen=True)
class Plans:
    """Settings of gateways that trust `authority` and may speak as `proxy`."""

    secret: Path
    credential: Path

    def of(self, mode: str) -> Plan:
        if mode == "pass-through":
            return PASS_THROUGH
        forward = mode == "verify-and-forward"
        return verifying(
            self.credential, forward=forward, secret_file=str(self.secret), algorithms=["HS256"]
        )


@pytest.fixture(scope="module")
def plans(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Plans:
    directory = tmp_path_factory.mktemp("keys")
    plans = Plans(directory / "secret.key", directory / "proxy.token")
    plans.secret.write_bytes(authority.secret)
    plans.credential.write_text(authority.token("proxy"))
    return plans


@pytest.fixture(scope="module")
def renewing(start_broker: StartBroker, authority: Authority) -> Standalone:
    """Believes a proxy only with the client's own credential, and looks for expired ones often."""
    extra = {
        "authenticateOriginalAuthData": "true",
        "authenticationRefreshCheckSeconds": RENEWAL_CHECK_S,
    }
    return start_broker("renewing", authority=authority, extra=extra)


def namespace_for(broker: Standalone, *roles: str) -> str:
    """A new namespace where `roles` may produce and consume."""
    namespace = f"public/{secrets.token_hex(6)}"
    broker.admin.create_namespace(namespace)
    for role in roles:
        broker.admin.grant(namespace, role)
    return namespace


def topic_for(broker: Standalone, *roles: str) -> str:
    return fresh_topic(namespace=namespace_for(broker, *roles))


def assert_works(client: Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(5):
        producer.send(payload)
    assert payloads(receive(consumer, 5)) == numbered(5)


@pytest.fixture(params=ALL_MODES)
def mode(request: pytest.FixtureRequest) -> str:
    chosen = request.param
    assert isinstance(chosen, str)
    return chosen


@pytest.fixture(scope="module")
def shared_gateway(
    pulsar_auth: Standalone, plans: Plans, artifacts: Artifacts
) -> Iterator[Callable[[str], Gateway]]:
    """One gateway for each mode, started when first asked for."""
    with ExitStack() as running:

        @functools.cache
        def start(mode: str) -> Gateway:
            started = Gateway(pulsar_auth, plans.of(mode), artifacts.directory(f"gateway-{mode}"))
            started.start()
            running.callback(started.stop)
            return started

        yield start


@pytest.fixture
def route(
    way: str,
    reach: Reach,
    pulsar_auth: Standalone,
    shared_gateway: Callable[[str], Gateway],
    mode: str,
) -> Route:
    return reach(pulsar_auth, through=shared_gateway(mode) if way == GATEWAY else None)


# --- in every mode -------------------------------------------------------------------------------


def test_a_permitted_user_produces_and_consumes(
    route: Route, connect: Connect, authority: Authority
) -> None:
    assert_works(
        connect(route.url, authority.token("alice")), topic_for(route.broker, "alice", "proxy")
    )


def test_the_broker_refuses_a_user_without_permission(
    route: Route, connect: Connect, authority: Authority
) -> None:
    topic = topic_for(route.broker, "alice", "proxy")
    client = connect(route.url, authority.token("bob"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)
    with pytest.raises(client_library.AuthorizationError):
        client.subscribe(topic, "s")


def test_permission_to_consume_is_not_permission_to_produce(
    route: Route, connect: Connect, authority: Authority
) -> None:
    namespace = namespace_for(route.broker, "proxy")
    route.broker.admin.grant(namespace, "bob", "consume")
    topic = fresh_topic(namespace=namespace)
    client = connect(route.url, authority.token("bob"))
    client.subscribe(topic, "s")
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)


def test_permission_may_come_later(route: Route, connect: Connect, authority: Authority) -> None:
    namespace = namespace_for(route.broker, "proxy")
    topic = fresh_topic(namespace=namespace)
    client = connect(route.url, authority.token("alice"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic)
    route.broker.admin.grant(namespace, "alice")
    assert_works(client, topic)


def test_a_false_token_gets_an_error_and_the_end(route: Route, authority: Authority) -> None:
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


def assert_refused(url: str, token: str, what: str = "", **others: str) -> None:
    with Connection(url) as connection:
        answer = connection.connect(token, **others)
        assert answer is not None, f"{what}: closed without a word"
        assert (answer.kind, answer.fields.get(2)) == (Kind.ERROR, ServerError.AUTHENTICATION), what
        assert connection.receive() is None, f"{what}: still open"


def test_a_false_token_is_refused_on_a_direct_connection_too(
    route: Route, authority: Authority
) -> None:
    topic = topic_for(route.broker, "alice", "proxy")
    with Connection(route.url) as connection:
        connection.connect(authority.token("alice"))
        answer = connection.lookup(topic)
    assert answer
    assert answer.kind == Kind.LOOKUP_RESPONSE
    assert_refused(
        route.url, "garbage", proxy_to_broker_url=answer.text(1).removeprefix("pulsar://")
    )


def test_the_python_client_sees_a_timeout_when_its_token_is_false(
    route: Route, connect: Connect
) -> None:
    client = connect(route.url, Authority().token("alice"), PATIENCE_S)
    with pytest.raises(client_library.Timeout):
        client.create_producer(fresh_topic())


def test_the_proxy_s_own_token_is_no_user_s(route: Route, authority: Authority) -> None:
    with Connection(route.url) as connection:
        answer = connection.connect(authority.token("proxy"))
    assert answer
    assert answer.kind == Kind.ERROR
    assert answer.fields[2] in (ServerError.AUTHENTICATION, ServerError.AUTHORIZATION)


def test_a_client_cannot_name_another_principal(route: Route, authority: Authority) -> None:
    """Either the name is refused or it is not heeded: bob may not act as alice."""
    topic = topic_for(route.broker, "alice", "proxy")
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
def test_the_proxy_needs_permission_itself(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, plans: Plans, authority: Authority
) -> None:
    client = connect(reach(pulsar_auth, plans.of("verify")).url, authority.token("alice"))
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(topic_for(pulsar_auth, "alice"))


@pytest.mark.gateway_only
def test_users_may_have_tokens_that_the_broker_does_not_know(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, plans: Plans, tmp_path: Path
) -> None:
    pair = KeyPair()
    public = pair.write_public(tmp_path / "public.pem")
    plan = verifying(plans.credential, public_key_file=str(public), algorithms=["RS256"])
    route = reach(pulsar_auth, plan)
    topic = topic_for(pulsar_auth, "alice", "proxy")
    assert_works(connect(route.url, pair.token("alice")), topic)
    with pytest.raises(client_library.AuthorizationError):
        connect(route.url, pair.token("bob")).create_producer(topic)
    assert_refused(route.url, pair.token("alice", -3600), "expired")
    assert_refused(route.url, KeyPair().token("alice"), "of another pair")


@pytest.mark.gateway_only
def test_a_public_key_is_no_secret(
    reach: Reach, pulsar_auth: Standalone, plans: Plans, tmp_path: Path
) -> None:
    """The classic forgery: an HS256 token whose secret is the public key that everybody knows."""
    public = KeyPair().write_public(tmp_path / "public.pem")
    plan = verifying(plans.credential, public_key_file=str(public), algorithms=["RS256"])
    assert_refused(reach(pulsar_auth, plan).url, forged("alice", public.read_bytes()))


# --- a broker that wants the client's credential as well -----------------------------------------


@pytest.mark.parametrize("mode", ["pass-through", "verify-and-forward"])
def test_a_broker_that_checks_for_itself_is_satisfied(
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
def test_a_broker_that_checks_for_itself_does_not_take_our_word(
    reach: Reach, renewing: Standalone, plans: Plans, authority: Authority
) -> None:
    with Connection(reach(renewing, plans.of("verify")).url) as connection:
        answer = connection.connect(authority.token("alice"))
    assert answer is None or answer.kind == Kind.ERROR


# --- tokens that end -----------------------------------------------------------------------------


class Wallet:
    """Hands out a new short-lived token whenever the client wants to show one, and counts them."""

    def __init__(self, authority: Authority, lifetime: float) -> None:
        self._authority, self._lifetime = authority, lifetime
        self.shown = 0

    def __call__(self) -> str:
        self.shown += 1
        return self._authority.token("alice", self._lifetime)


def assert_renews_in_place(
    client: Client, topic: str, broker: Standalone, wallet: Wallet, seconds: float
) -> None:
    """The client shows new tokens while it works, and its producer's connection is never lost."""
    producer = client.create_producer(topic)
    producer.send(b"first")
    (before,) = broker.admin.stats(topic)["publishers"]
    shown, end = wallet.shown, time.monotonic() + seconds
    while time.monotonic() < end:
        producer.send(b"x")
        time.sleep(0.1)
    assert wallet.shown > shown, "no new token was asked for"
    (after,) = broker.admin.stats(topic)["publishers"]
    assert [after[key] for key in ("address", "connectedSince")] == [
        before[key] for key in ("address", "connectedSince")
    ]


def test_a_client_renews_its_token_in_place(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, authority: Authority
) -> None:
    """Tokens of 7 s, looked at every 5 s: asked for a new one at 10 s, and closed at 15
    s without.
    """
    wallet = Wallet(authority, 7)
    client = connect(reach(pulsar_auth).url, wallet)
    assert_renews_in_place(client, topic_for(pulsar_auth, "alice"), pulsar_auth, wallet, 17)


def test_a_client_renews_its_token_where_it_is_forwarded(
    reach: Reach, connect: Connect, renewing: Standalone, plans: Plans, authority: Authority
) -> None:
    wallet = Wallet(authority, RENEWAL_CHECK_S + 1)
    client = connect(reach(renewing, plans.of("verify-and-forward")).url, wallet)
    assert_renews_in_place(
        client, topic_for(renewing, "alice", "proxy"), renewing, wallet, 5 * RENEWAL_CHECK_S
    )


@pytest.mark.parametrize("mode", ["pass-through", "verify-and-forward"])
def test_a_client_that_does_not_renew_is_cut_off(
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
def test_a_user_is_cut_off_when_the_token_that_we_checked_ends(
    reach: Reach, connect: Connect, pulsar_auth: Standalone, plans: Plans, authority: Authority
) -> None:
    """Here the broker knows our own credential only, so nobody but the gateway can notice."""
    client = connect(reach(pulsar_auth, plans.of("verify")).url, authority.token("alice", 3))
    assert_cut_off(client, topic_for(pulsar_auth, "alice", "proxy"))


def assert_cut_off(client: Client, topic: str, within_s: float = 20) -> None:
    producer = client.create_producer(topic, send_timeout_millis=2000)
    producer.send(b"while it lasts")
    is_connected: Callable[[], bool] = producer.is_connected
    wait_until(lambda: not is_connected(), within_s)
    with pytest.raises(client_library.Timeout):
        producer.send(b"too late")
