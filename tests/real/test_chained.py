"""Two gateways in a row: the broker knows the last one, and still decides by the first client."""

from dataclasses import dataclass, replace
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .brokers.tokens import Authority
from .clients import assert_works, fresh_topic
from .fixtures import Connect, Reach, StartGateway
from .gateways import Gateway, Plan, verifying
from .test_authentication import topic_for

pytestmark = pytest.mark.gateway_only

PATIENCE_S = 3
OUTER = "outer"


@dataclass(frozen=True)
class Behind:
    """A gateway as the outer one sees it: clients may see neither it nor the broker."""

    gateway: Gateway
    broker: Standalone

    @property
    def service_url(self) -> str:
        return self.gateway.untapped_url

    @property
    def traces(self) -> tuple[str, ...]:
        return (*self.broker.traces, f":{self.gateway.port}")


@pytest.fixture
def keys(tmp_path: Path, authority: Authority) -> Path:
    """Return a folder with the verifying secret and the gateways' own tokens."""
    (tmp_path / "secret.key").write_bytes(authority.secret)
    for role in (OUTER, "proxy"):
        (tmp_path / role).write_text(authority.token(role))
    return tmp_path


def inner(keys: Path, *, forward: bool, trusts: str = OUTER) -> Plan:
    plan = verifying(keys / "proxy", forward=forward, secret_file=str(keys / "secret.key"))
    return replace(plan, identity={**plan.identity, "trusted_proxies": [trusts]})


def outer(keys: Path, *, forward: bool) -> Plan:
    plan = verifying(keys / OUTER, forward=forward, secret_file=str(keys / "secret.key"))
    return replace(plan, chained=True)


@pytest.mark.parametrize("forward", [False, True], ids=["verify", "verify-and-forward"])
def test_the_broker_decides_by_the_client_s_identity(
    pulsar_auth: Standalone,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    authority: Authority,
    keys: Path,
    forward: bool,
) -> None:
    topic = topic_for(pulsar_auth, "alice", "proxy")
    behind = Behind(gateway(pulsar_auth, inner(keys, forward=forward)), pulsar_auth)
    route = reach(behind, outer(keys, forward=forward))
    assert_works(connect(route.url, authority.token("alice")), topic)
    with pytest.raises(client_library.AuthorizationError):
        connect(route.url, authority.token("bob")).create_producer(topic)


def test_the_word_of_an_untrusted_gateway_is_rejected(
    pulsar_auth: Standalone,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    authority: Authority,
    keys: Path,
) -> None:
    behind = Behind(gateway(pulsar_auth, inner(keys, forward=False, trusts="another")), pulsar_auth)
    route = reach(behind, outer(keys, forward=False))
    client = connect(route.url, authority.token("alice"), PATIENCE_S)
    with pytest.raises(client_library.Timeout):
        client.create_producer(topic_for(pulsar_auth, "alice", "proxy"))


def test_two_pass_through_gateways_work(
    pulsar: Standalone, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    behind = Behind(gateway(pulsar), pulsar)
    assert_works(connect(reach(behind, Plan(chained=True)).url), fresh_topic())
