"""A whole cluster of fake brokers is checked: rows, statuses, and advertised addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from gateway.brokers.names import TemplateNames
from gateway.config.load import build
from gateway.config.model import Cluster
from gateway.doctor.brokers import examine
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Finding, Status
from gateway.doctor.pulsar.lookups import NAMESPACE, TOPICS
from gateway.doctor.reach import Network
from gateway.identity.credential import NoCredential, StoredCredential, TokenFile
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    CommandConnect,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import simple
from tests.unit.doctor.fakes import (
    CONNECTED,
    HOST,
    PATIENCE,
    FakeBroker,
    connect_to,
    error,
    failing,
    free_port,
    peer,
    redirect_to,
    saying,
    silent,
)

PASS_THROUGH = frozenset({"pass-through"})
VERIFY = frozenset({"verify"})


def cluster(*brokers: Address | str, **settings: Any) -> Cluster:
    data = {
        "version": 1,
        "listeners": [{"name": "l", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": [f"pulsar://{it}" for it in brokers], **settings}},
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return configuration.clusters["main"]


async def examined(
    of: Cluster,
    modes: Collection[str] = PASS_THROUGH,
    own: StoredCredential | None = None,
    network: Network | None = None,
) -> list[Finding]:
    role = "proxy" if own is not None else None
    template = of.names.template
    names = TemplateNames(template.advertise, template.broker) if template else None
    plan = Plan(
        "main",
        "pulsar",
        of,
        modes,
        own or NoCredential(),
        role,
        names,
        network or Network(PATIENCE),
    )
    return list((await examine(plan)).findings)


def at(findings: Sequence[Finding], check: str) -> Finding:
    (found,) = [it for it in findings if it.check == check]
    return found


def names(table: dict[str, Sequence[str]]) -> Network:
    """Return a network with these names."""

    async def look_up(host: str) -> Sequence[str]:
        if host not in table:
            raise OSError(None, "Name or service not known")
        return table[host]

    return Network(PATIENCE, look_up)


@pytest.fixture
def own(tmp_path: Path) -> TokenFile:
    path = tmp_path / "token"
    path.write_text("the-token")
    return TokenFile(path)


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Jump only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.01)


# -- one broker ------------------------------------------------------------------------------


async def test_a_good_broker_is_ok_in_every_row() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        broker.on_lookup = connect_to(address)
        findings = await examined(cluster(address))
    assert [it.check for it in findings] == [
        f"broker {address}",
        f"clients at {address}",
        f"lookups at {address}",
        f"advertised {address}",
    ]
    assert {it.status for it in findings} == {Status.OK}


async def test_a_refused_connection_is_one_row() -> None:
    (found,) = await examined(cluster(Address(HOST, free_port())))
    assert found.status is Status.FAIL
    assert "nothing listens there" in found.detail


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS"),
        (b"", "closes without a word"),
    ],
)
async def test_a_peer_that_is_not_a_broker_is_one_row(answer: bytes, detail: str) -> None:
    async with peer(saying(answer)) as address:
        (found,) = await examined(cluster(address))
    assert found.status is Status.FAIL
    assert detail in found.detail


async def test_a_name_that_does_not_resolve_is_one_row() -> None:
    (found,) = await examined(cluster("nowhere.internal:6650"), network=names({}))
    assert (found.check, found.status) == ("name nowhere.internal", Status.FAIL)
    assert "name or service not known" in found.detail


async def test_each_address_of_a_name_is_tried_and_one_may_be_down() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        named = Address("pulsar.internal", address.port)
        broker.on_lookup = connect_to(named)
        network = names({"pulsar.internal": [HOST, "127.0.0.2"]})
        findings = await examined(cluster(named), network=network)
    assert at(findings, "name pulsar.internal").detail.startswith(f"{HOST}, 127.0.0.2 in ")
    assert at(findings, f"broker {named} ({HOST})").status is Status.OK
    assert at(findings, f"broker {named} (127.0.0.2)").status is Status.WARN


async def test_a_slow_name_server_is_a_warning() -> None:
    clock = trio.testing.MockClock()

    async def look_up(_host: str) -> Sequence[str]:
        clock.jump(2.0)
        return [HOST]

    async def run() -> list[Finding]:
        of = cluster(Address("slow.internal", free_port()))
        return await examined(of, network=Network(PATIENCE, look_up))

    findings = await trio.to_thread.run_sync(lambda: trio.run(run, clock=clock))
    assert at(findings, "name slow.internal").detail == f"{HOST}, after 2.0 s"
    assert at(findings, "name slow.internal").status is Status.WARN


async def test_a_cluster_without_listeners_is_a_warning() -> None:
    async with peer(FakeBroker()) as address:
        findings = await examined(cluster(address), modes=())
    assert at(findings, "listeners").status is Status.WARN
    assert at(findings, f"broker {address}").status is Status.OK


# -- who is let in ---------------------------------------------------------------------------


def guarded(role_of: Callable[[CommandConnect], bytes | None]) -> FakeBroker:
    """Return a broker that requires the token, and asks `role_of` about the rest."""

    def on_connect(connect: CommandConnect) -> bytes:
        if connect.auth_data != b"the-token":
            return error(ServerError.AuthenticationError, "Failed to authenticate")
        return role_of(connect) or CONNECTED

    return FakeBroker(on_connect)


async def test_pass_through_to_a_broker_that_authenticates_tries_no_lookups() -> None:
    async with peer(guarded(lambda _connect: None)) as address:
        findings = await examined(cluster(address))
    assert {it.status for it in findings} == {Status.OK, Status.SKIP}
    assert at(findings, f"lookups at {address}").status is Status.SKIP


async def test_the_gateway_is_accepted_as_a_proxy(own: TokenFile) -> None:
    def proxy(connect: CommandConnect) -> bytes | None:
        invalid = error(ServerError.AuthorizationError, "Invalid roles.")
        return None if connect.original_principal else invalid

    broker = guarded(proxy)
    async with peer(broker) as address:
        broker.on_lookup = connect_to(address)
        findings = await examined(cluster(address), VERIFY, own)
    assert {it.status for it in findings} == {Status.OK}
    assert at(findings, f"gateway at {address}").detail.endswith('"proxy" as a proxy')


async def test_the_gateway_may_not_speak_for_others(own: TokenFile) -> None:
    def no_proxy(connect: CommandConnect) -> bytes | None:
        invalid = error(ServerError.AuthorizationError, "Invalid roles.")
        return invalid if connect.original_principal else None

    async with peer(guarded(no_proxy)) as address:
        findings = await examined(cluster(address), VERIFY, own)
    assert at(findings, f"gateway at {address}").example == "proxyRoles=proxy"
    assert at(findings, f"lookups at {address}").status is Status.SKIP


async def test_an_unreadable_token_is_not_tried() -> None:
    async with peer(guarded(lambda _connect: None)) as address:
        plan = Plan("main", "pulsar", cluster(address), VERIFY, None, None, None, Network(PATIENCE))
        findings = (await examine(plan)).findings
    assert [it.check for it in findings] == [f"broker {address}", f"lookups at {address}"]
    assert "cannot be read" in findings[1].detail


async def test_a_cluster_with_both_modes_is_checked_in_both(own: TokenFile) -> None:
    async with peer(guarded(lambda _connect: None)) as address:
        findings = await examined(cluster(address), PASS_THROUGH | VERIFY, own)
    assert at(findings, f"clients at {address}").status is Status.OK
    assert at(findings, f"gateway at {address}").status is Status.WARN


# -- lookups ---------------------------------------------------------------------------------


async def test_a_broker_advertised_under_another_name_is_reported_with_the_line_to_add() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        inner = Address("pulsar-0.internal", address.port)
        broker.on_lookup = connect_to(inner)
        findings = await examined(cluster(address), network=names({inner.host: [HOST]}))
    found = at(findings, f"advertised {inner}")
    assert found.status is Status.FAIL
    assert found.example == f"targets: {{hosts: [{HOST}, {inner.host}], ports: [{inner.port}]}}"


async def test_one_address_of_an_advertised_name_may_be_down() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        named = Address("pulsar-0.internal", address.port)
        broker.on_lookup = connect_to(named)
        targets = {"hosts": ["*.internal"], "ports": [named.port]}
        network = names({named.host: ["127.0.0.2", HOST]})
        findings = await examined(cluster(address, targets=targets), network=network)
    assert at(findings, f"advertised {named}").status is Status.OK


async def test_a_redirect_is_followed_to_the_owner() -> None:
    first, second = FakeBroker(), FakeBroker()
    async with peer(first) as one, peer(second) as two:
        first.on_lookup, second.on_lookup = redirect_to(two), connect_to(two)
        findings = await examined(cluster(one, two))
    assert at(findings, f"lookups at {one}").detail == f"lead to {two}, by redirects"
    assert at(findings, f"lookups at {one}").status is Status.OK
    assert at(findings, f"lookups at {two}").status is Status.OK
    # Its own CONNECT, its own lookups, and one connection for all topics redirected by the first.
    assert len(second.connects) == 3


async def test_a_redirect_to_an_unlisted_host_is_not_followed() -> None:
    first, second = FakeBroker(), FakeBroker()
    async with peer(first) as one, peer(second) as two:
        first.on_lookup = redirect_to(two)
        findings = await examined(cluster(one))
    assert second.connects == []
    assert at(findings, f"lookups at {one}").detail == (
        f"are redirected to {two}, where the gateway may not go"
    )
    found = at(findings, f"advertised {two}")
    assert found.status is Status.FAIL
    assert str(two.port) in found.example


async def test_a_redirect_to_an_unresolvable_name_is_reported_as_such() -> None:
    broker = FakeBroker(on_lookup=redirect_to(Address("inner.invalid", 6650)))
    async with peer(broker) as address:
        findings = await examined(cluster(address), network=names({}))
    assert at(findings, f"lookups at {address}").detail.endswith("does not resolve here")
    assert at(findings, "advertised inner.invalid:6650").status is Status.FAIL


async def test_an_answer_without_a_broker_is_a_warning() -> None:
    def lookup(asked: CommandLookupTopic) -> bytes:
        connect = CommandLookupTopicResponse.Connect
        return simple(Kind.LOOKUP_RESPONSE, request_id=asked.request_id, response=connect)

    async with peer(FakeBroker(on_lookup=lookup)) as address:
        findings = await examined(cluster(address))
    assert at(findings, f"lookups at {address}").detail.endswith("no broker is named in the answer")


async def test_circular_redirects_end() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        broker.on_lookup = redirect_to(address)
        findings = await examined(cluster(address))
    found = at(findings, f"lookups at {address}")
    assert found.status is Status.WARN
    assert f"{len(TOPICS)} of {len(TOPICS)} lookups" in found.detail


async def test_a_redirect_to_an_unreachable_broker_is_reported() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        down = Address(HOST, free_port())
        broker.on_lookup = redirect_to(down)
        of = cluster(address, targets={"hosts": [HOST], "ports": [address.port, down.port]})
        findings = await examined(of)
    assert at(findings, f"lookups at {address}").detail.endswith("cannot be connected to")
    assert "nothing listens there" in at(findings, f"advertised {down}").detail


async def test_an_unresolvable_advertised_name_fails() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        broker.on_lookup = connect_to(Address("inner.invalid", 6650))
        findings = await examined(cluster(address), network=names({}))
    found = at(findings, "advertised inner.invalid:6650")
    assert found.status is Status.FAIL
    assert "advertisedAddress" in found.remedy


async def test_a_broker_advertised_only_with_tls_fails() -> None:
    def lookup(asked: CommandLookupTopic) -> bytes:
        return simple(
            Kind.LOOKUP_RESPONSE,
            request_id=asked.request_id,
            response=CommandLookupTopicResponse.Connect,
            brokerServiceUrlTls="pulsar+ssl://inner.internal:6651",
        )

    async with peer(FakeBroker(on_lookup=lookup)) as address:
        findings = await examined(cluster(address))
    found = at(findings, f"lookups at {address}")
    assert found.status is Status.FAIL
    assert "pulsar+ssl://inner.internal:6651" in found.detail


async def test_lookups_without_rights_are_skipped_and_name_the_missing_rights(
    own: TokenFile,
) -> None:
    broker = FakeBroker(on_lookup=failing(ServerError.AuthorizationError))
    async with peer(broker) as address:
        findings = await examined(cluster(address), VERIFY, own)
    found = at(findings, f"lookups at {address}")
    assert found.status is Status.SKIP
    assert "--role gateway-doctor" in found.example
    assert "--role proxy" in found.example


async def test_failing_lookups_are_a_warning_with_the_brokers_text() -> None:
    broker = FakeBroker(on_lookup=failing(ServerError.MetadataError, "Namespace not found"))
    async with peer(broker) as address:
        findings = await examined(cluster(address))
    found = at(findings, f"lookups at {address}")
    assert found.status is Status.WARN
    assert NAMESPACE in found.detail
    assert "MetadataError: Namespace not found" in found.detail


async def test_unanswered_lookups_time_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with peer(FakeBroker(on_lookup=lambda _reachable: b"")) as address:
        findings = await examined(cluster(address))
    found = at(findings, f"lookups at {address}")
    assert found.status is Status.WARN
    assert found.detail.endswith("no answer in time")


async def test_an_invalid_lookup_answer_is_a_warning() -> None:
    async with peer(FakeBroker(on_lookup=lambda _reachable: CONNECTED)) as address:
        findings = await examined(cluster(address))
    assert at(findings, f"lookups at {address}").status is Status.WARN


async def test_a_silent_broker_does_not_block_the_checks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with peer(silent) as address:
        (found,) = await examined(cluster(address))
    assert "says nothing" in found.detail


# -- names of templates ----------------------------------------------------------------------

TEMPLATE = {"advertise": "broker-{n}.example", "broker": "pulsar-{n}.internal:6650"}


async def test_a_broker_that_fits_the_template_has_a_name() -> None:
    broker = FakeBroker(on_lookup=connect_to(Address("pulsar-3.internal", 6650)))
    async with peer(broker) as address:
        of = cluster(address, names={"template": TEMPLATE})
        findings = await examined(of, network=names({}))
    assert at(findings, "name of pulsar-3.internal:6650").detail.startswith("broker-3.example")


async def test_a_broker_that_does_not_fit_the_template_fails() -> None:
    broker = FakeBroker()
    async with peer(broker) as address:
        broker.on_lookup = connect_to(address)
        findings = await examined(cluster(address, names={"template": TEMPLATE}))
    assert at(findings, f"name of {address}").status is Status.FAIL
