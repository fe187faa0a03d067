"""A cluster of fake Kafka brokers is checked, and the listeners that lead there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from gateway.assembly import make_client_side
from gateway.config.load import build
from gateway.doctor.brokers import examine
from gateway.doctor.checks import Plan, Spoken
from gateway.doctor.finding import Finding, Status
from gateway.doctor.kafka import checks
from gateway.doctor.reach import Network
from gateway.identity.credential import NoCredential, PasswordFile
from gateway.lab.kafka.server import KafkaSandbox, KafkaSettings
from gateway.tls.stream import Shared
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import METADATA
from gateway.wire.kafka.frames import API_VERSIONS
from tests.support.certificates import DAY, CertificateAuthority, Wanted
from tests.unit.doctor.fakes import (
    HOST,
    PATIENCE,
    FakeBroker,
    free_port,
    peer,
    saying,
    silent,
    tls_server,
)
from tests.unit.doctor.fronts import front, serving
from tests.unit.doctor.kafka.fakes import FakeKafka, metadata

AUTHORITY = CertificateAuthority()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    return tmp_path


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Jump only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.01)


def ports(ids: str = "0-2", host: str = HOST, first_port: int = 9093) -> dict[str, Any]:
    return {"ports": {"host": host, "ids": ids, "first_port": first_port}}


def plan_of(
    folder: Path,
    *brokers: Address | str,
    bind: str = "127.0.0.1:9092",
    advertise: dict[str, Any] | None = None,
    network: Network | None = None,
    listener: Mapping[str, Any] | None = None,
    **more: Any,
) -> Plan:
    """Return the plan of a cluster with one listener. `listener`: more of it. `more`: of the
    cluster."""
    urls = [f"kafka{'+ssl' * (isinstance(it, Address) and it.tls)}://{it}" for it in brokers]
    edge = {"name": "edge", "protocol": "kafka", "bind": bind, "cluster": "main"}
    data = {
        "version": 1,
        "listeners": [edge | {"advertise": advertise or ports(), **(listener or {})}],
        "clusters": {"main": {"brokers": urls} | more},
    }
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    cluster = configuration.clusters["main"]
    return Plan(
        "main",
        "kafka",
        cluster,
        ["pass-through"],
        NoCredential(),
        None,
        None,
        network or Network(PATIENCE),
        make_client_side(cluster, Shared()),
        configuration.listeners,
    )


async def examined(plan: Plan) -> list[Finding]:
    return list((await examine(plan)).findings)


def at(findings: Sequence[Finding], check: str) -> Finding:
    (found,) = [it for it in findings if it.check == check]
    return found


def names(table: Mapping[str, Sequence[str]]) -> Network:
    """Return a network with these names."""

    async def look_up(host: str) -> Sequence[str]:
        if host not in table:
            raise OSError(None, "Name or service not known")
        return table[host]

    return Network(PATIENCE, look_up)


# -- brokers ---------------------------------------------------------------------------------


async def test_a_good_broker_is_ok_in_every_row(folder: Path) -> None:
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell({0: address})
        findings = await examined(plan_of(folder, address))
    assert [it.check for it in findings] == [
        f"broker {address}",
        f"metadata at {address}",
        f"advertised {address}",
        "ids at edge",
        "address of edge",
    ]
    assert {it.status for it in findings} == {Status.OK}
    assert broker.asked == [(API_VERSIONS, 0), (METADATA, 1)]


async def test_a_good_broker_with_tls_is_ok_in_every_row(folder: Path) -> None:
    wanted = Wanted([HOST], common="broker", ends=90 * DAY, lives=365 * DAY)
    context, broker = serving(AUTHORITY.issue(wanted).written(folder, "broker")), FakeKafka()
    async with peer(broker) as plain:
        with front(context, plain) as secured:
            broker.tell({1: Address(HOST, secured.port)})
            findings = await examined(plan_of(folder, secured, tls={"ca_file": "ca.crt"}))
    assert {it.status for it in findings} == {Status.OK}
    assert "TLSv1.3" in at(findings, f"TLS of {secured}").detail
    assert at(findings, f"advertised {secured}").detail.endswith("connected to with TLS")


async def test_a_plain_broker_that_is_named_with_tls_is_recognized(folder: Path) -> None:
    async with peer(FakeKafka()) as plain:
        plan = plan_of(folder, plain._replace(tls=True), tls={"ca_file": "ca.crt"})
        found = at(await examined(plan), f"broker {plain}")
    assert found.status is Status.FAIL
    assert found.detail == "speaks Kafka without TLS: not a broker's port with TLS"
    assert found.example == f"brokers: kafka://{plain}"


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "speaks HTTP"),
        (saying(b"\x15\x03\x03\x00\x02\x02\x46"), "speaks TLS"),
        (tls_server, "speaks TLS"),
        (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), "answers in a protocol that is not Kafka's"),
        (saying(b"\0\0\0\x06\0\0\0\x12\0\0"), "answers in a protocol that is not Kafka's"),
        (saying(metadata({})), "answers in a protocol that is not Kafka's"),
        (saying(b""), "accepts, and closes without a word"),
        (FakeBroker(), "accepts, and closes without a word"),
    ],
)
async def test_a_peer_that_is_not_a_broker_is_one_row_of_it(
    folder: Path, script: Any, detail: str
) -> None:
    async with peer(script) as address:
        broker, listener = await examined(plan_of(folder, address))
    assert (broker.status, broker.detail) == (Status.FAIL, f"{detail}: not a broker's plain port")
    assert listener.check == "address of edge"


async def test_a_silent_peer_does_not_block_the_checks(
    folder: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with peer(silent) as address:
        findings = await examined(plan_of(folder, address))
    assert "says nothing" in at(findings, f"broker {address}").detail


async def test_a_broker_that_wants_sasl_first_is_ok_and_the_rest_is_skipped(folder: Path) -> None:
    async with peer(FakeKafka()) as address:
        findings = await examined(plan_of(folder, address))
    assert [(it.check, it.status) for it in findings] == [
        (f"broker {address}", Status.OK),
        (f"metadata at {address}", Status.SKIP),
        ("address of edge", Status.OK),
    ]


async def test_the_address_that_tells_most_counts(folder: Path) -> None:
    """One name leads to a broker, and to where nothing listens."""
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell({0: address})
        table = {"kafka.example": [HOST, "127.0.0.254"]}
        plan = plan_of(folder, f"kafka.example:{address.port}", network=names(table))
        findings = await examined(plan)
    assert at(findings, f"broker kafka.example:{address.port} ({HOST})").status is Status.OK
    down = at(findings, f"broker kafka.example:{address.port} (127.0.0.254)")
    assert down.status is Status.WARN
    assert at(findings, f"metadata at kafka.example:{address.port}").status is Status.OK


# -- the gateway's credential -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "without_tls", "status", "words"),
    [
        ("secret", True, Status.OK, "accepts the gateway's credential (PLAIN)"),
        ("wrong", True, Status.FAIL, "does not accept the gateway's credential"),
        ("secret", False, Status.FAIL, "may show its credential; it offers PLAIN"),
    ],
)
async def test_the_credential_is_shown_to_brokers_before_metadata(
    folder: Path, password: str, without_tls: bool, status: Status, words: str
) -> None:
    (folder / "password").write_text(password)
    basic = {"username": "gateway", "password_file": "password", "without_tls": without_tls}
    sandbox = KafkaSandbox(KafkaSettings(users={"gateway": "secret"}))
    async with trio.open_nursery() as nursery:
        await nursery.start(sandbox.serve)
        first, second = sandbox.bootstrap.split(",")
        own = PasswordFile("gateway", folder / "password")
        plan = plan_of(folder, first, second, credential={"basic": basic})
        findings = await examined(replace(plan, modes=["verify"], own=own))
        nursery.cancel_scope.cancel()
    found = at(findings, f"gateway at {first}")
    assert found.status is status
    assert found.detail.endswith(words)
    metadata = at(findings, f"metadata at {first}").status
    assert metadata is (Status.OK if status is Status.OK else Status.SKIP)


# -- where clients are led -------------------------------------------------------------------


async def test_advertised_brokers_that_targets_lack_are_printed_as_targets(folder: Path) -> None:
    broker, down = FakeKafka(), Address("127.0.0.99", free_port())
    async with peer(broker) as address:
        broker.tell({0: address, 1: down})
        findings = await examined(plan_of(folder, address))
    found = at(findings, f"advertised {down}")
    assert found.status is Status.FAIL
    assert "127.0.0.99" in found.example


async def test_an_advertised_name_without_an_address_names_kafkas_setting(folder: Path) -> None:
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell({0: Address("inner.invalid", 9092)})
        plan = plan_of(folder, address, network=names({}))
        found = at(await examined(plan), "advertised inner.invalid:9092")
    assert found.status is Status.FAIL
    assert "(advertised.listeners in server.properties)" in found.remedy


# -- what listeners declare ------------------------------------------------------------------


async def test_ids_without_an_address_fail_with_the_line_to_write(folder: Path) -> None:
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell(dict.fromkeys([0, 1, 2, 3, 4, 7], address))
        plan = plan_of(folder, address, advertise=ports("1,0,9"))
        found = at(await examined(plan), "ids at edge")
    assert found.status is Status.FAIL
    assert "no address is declared for 2-4,7" in found.detail
    assert found.example == "ids: 1,0,9,2-4,7"
    assert "9096-9099" in found.remedy
    written = plan_of(folder, address, advertise=ports(found.example.removeprefix("ids: ")))
    assert written.listeners[0].advertise is not None


async def test_ids_that_no_broker_has_are_fine(folder: Path) -> None:
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell({1: address})
        found = at(await examined(plan_of(folder, address)), "ids at edge")
    assert (found.status, found.detail) == (Status.OK, "each of 1 has a port of 9093-9095")


async def test_brokers_of_all_named_ones_together_need_addresses(folder: Path) -> None:
    one, two = FakeKafka(), FakeKafka()
    async with peer(one) as first, peer(two) as second:
        one.tell({1: first})
        two.tell({5: second})
        found = at(await examined(plan_of(folder, first, second)), "ids at edge")
    assert found.example == "ids: 0-2,5"


NAMES = {"names": {"host": "kafka.example", "template": "broker-{n}.kafka.example"}}


async def test_names_of_brokers_have_to_resolve(folder: Path) -> None:
    AUTHORITY.issue(Wanted(["kafka.example"])).written(folder, "own")
    broker = FakeKafka()
    async with peer(broker) as address:
        broker.tell({1: address, 2: address})
        certificate = {"certificate_file": "own.crt", "key_file": "own.key"}
        plan = plan_of(
            folder,
            address,
            bind=":9092",
            advertise=NAMES,
            network=names({"kafka.example": ["10.0.0.1"]}),
            listener={"tls": {"certificates": [certificate]}},
        )
        findings = await examined(plan)
    assert at(findings, "ids at edge").detail == "each broker has a name"
    found = at(findings, "address of edge")
    assert found.status is Status.WARN
    assert "broker-1.kafka.example, broker-2.kafka.example" in found.detail
    assert "led to kafka.example" not in found.detail


@pytest.mark.parametrize(
    ("host", "ips", "bind", "status"),
    [
        ("kafka.example", ["10.0.0.1"], ":9092", Status.OK),
        ("kafka.example", [], ":9092", Status.WARN),
        ("kafka.example", ["127.0.1.1"], ":9092", Status.WARN),
        ("kafka.example", ["127.0.1.1"], "127.0.0.1:9092", Status.OK),
        ("kafka.example", ["127.0.0.1", "10.0.0.1"], ":9092", Status.OK),
        ("127.0.0.1", [], ":9092", Status.WARN),
        ("127.0.0.1", [], "10.1.2.3:9092", Status.WARN),
        ("127.0.0.1", [], "127.0.0.1:9092", Status.OK),
        ("10.0.0.1", [], ":9092", Status.OK),
    ],
)
async def test_the_host_has_to_lead_clients_here(
    folder: Path, host: str, ips: list[str], bind: str, status: Status
) -> None:
    network = names({host: ips} if ips else {})
    plan = plan_of(
        folder,
        Address(HOST, free_port()),
        bind=bind,
        advertise=ports(host=host),
        network=network,
    )
    found = at(await examined(plan), "address of edge")
    assert found.status is status
    assert host in found.detail


# -- who listens on a port -------------------------------------------------------------------


async def test_a_gateway_is_identified_by_its_protocol() -> None:
    async with peer(FakeKafka()) as address:
        assert await checks.identify(Network(PATIENCE), address, None) == Spoken(
            True, "speaks Kafka"
        )
    async with peer(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert await checks.identify(Network(PATIENCE), address, None) == Spoken(
            False, "speaks HTTP"
        )
    assert await checks.identify(Network(PATIENCE), Address(HOST, free_port()), None) is None
