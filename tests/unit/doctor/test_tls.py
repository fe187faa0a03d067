"""Brokers with TLS by Python's `ssl`: each way in which a handshake fails is a row."""

from __future__ import annotations

import gc
import ssl
import warnings
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from gateway.assembly import make_client_side
from gateway.config.load import build
from gateway.doctor.brokers import examine
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Finding, Status
from gateway.doctor.reach import Network
from gateway.doctor.secured import connect
from gateway.errors import ConfigurationError
from gateway.identity.credential import NoCredential, StoredCredential, TokenFile
from gateway.tls.files import KeyPair
from gateway.tls.stream import Shared
from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    CommandLookupTopic,
    CommandLookupTopicResponse,
)
from gateway.wire.pulsar.frames import Kind
from tests.support.certificates import DAY, CertificateAuthority, Wanted
from tests.support.frames import simple
from tests.unit.doctor.fakes import HOST, FakeBroker, OnLookup, peer, saying, silent
from tests.unit.doctor.fronts import front, serving

AUTHORITY, OTHER = CertificateAuthority(), CertificateAuthority("another authority")
PEM = AUTHORITY.certificate.decode()
CA = {"ca_file": "ca.crt"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    (tmp_path / "other.crt").write_bytes(OTHER.certificate)
    return tmp_path


def issued(folder: Path, *names: str, ends: timedelta = 90 * DAY) -> KeyPair:
    wanted = Wanted(names, common="broker", ends=ends, lives=365 * DAY)
    return AUTHORITY.issue(wanted).written(folder, "broker")


def plan_of(
    folder: Path,
    url: str,
    tls: dict[str, Any] | None,
    own: StoredCredential | None = None,
    timeout: float = 2.0,
    **more: Any,
) -> Plan:
    cluster = {"brokers": url} | ({} if tls is None else {"tls": tls}) | more
    data = {
        "version": 1,
        "listeners": [{"name": "l", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": cluster},
    }
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    found = configuration.clusters["main"]
    try:
        side = make_client_side(found, Shared())
    except ConfigurationError:
        side = None
    modes = ["pass-through" if own is None else "verify"]
    network = Network(timeout=timeout)
    return Plan("main", "pulsar", found, modes, own or NoCredential(), None, None, network, side)


async def examined(
    folder: Path, at: Address, tls: dict[str, Any] | None, own: StoredCredential | None = None
) -> list[Finding]:
    scheme = "pulsar+ssl" if at.tls else "pulsar"
    return list((await examine(plan_of(folder, f"{scheme}://{at}", tls, own))).findings)


def of(findings: Sequence[Finding], check: str) -> Finding:
    (found,) = [it for it in findings if it.check.startswith(check)]
    return found


def advertising(
    plain: Address,
    with_tls: Address | None,
    kind: int = CommandLookupTopicResponse.Connect,
) -> OnLookup:
    def lookup(asked: CommandLookupTopic) -> bytes:
        return simple(
            Kind.LOOKUP_RESPONSE,
            request_id=asked.request_id,
            response=kind,
            brokerServiceUrl=f"pulsar://{plain}",
            brokerServiceUrlTls=f"pulsar+ssl://{with_tls}" if with_tls else "",
        )

    return lookup


# -- success ---------------------------------------------------------------------------------


async def test_a_good_broker_is_ok_in_every_row(folder: Path) -> None:
    broker, context = FakeBroker(), serving(issued(folder, HOST))
    async with peer(broker) as plain:
        with front(context, plain) as at:
            broker.on_lookup = advertising(plain, at)
            findings = await examined(folder, at, CA)
    assert [it.check for it in findings] == [
        f"broker {at}",
        f"TLS of {at}",
        f"clients at {at}",
        f"lookups at {at}",
        f"advertised {at}",
    ]
    assert {it.status for it in findings} == {Status.OK}
    assert "TLSv1.3, TLS_AES_256_GCM_SHA384; its certificate is for 127.0.0.1" in repr(findings)
    assert of(findings, "advertised").detail == "allowed, and can be connected to with TLS"


async def test_redirects_are_followed_by_their_urls_with_tls(folder: Path) -> None:
    one, two, context = FakeBroker(), FakeBroker(), serving(issued(folder, HOST))
    async with peer(one) as first, peer(two) as second:
        with front(context, first) as at, front(context, second) as other:
            redirect = CommandLookupTopicResponse.Redirect
            one.on_lookup = advertising(Address(HOST, 1), other, redirect)
            two.on_lookup = advertising(Address(HOST, 1), other)
            targets = {"hosts": [HOST], "ports": [other.port]}
            plan = plan_of(folder, f"pulsar+ssl://{at}", CA, targets=targets)
            findings = list((await examine(plan)).findings)
    found = of(findings, "lookups")
    assert (found.status, found.detail) == (Status.OK, f"lead to {other}, by redirects")


async def test_brokers_that_lead_to_their_plain_port_are_a_warning(folder: Path) -> None:
    broker, context = FakeBroker(), serving(issued(folder, HOST))
    async with peer(broker) as plain:
        with front(context, plain) as at:
            broker.on_lookup = advertising(Address(HOST, at.port), None)
            findings = await examined(folder, at, CA)
    found = of(findings, "lookups")
    assert found.status is Status.WARN
    assert "without TLS, and the gateway goes there without" in found.detail


async def test_an_advertised_broker_with_a_wrong_certificate_fails(folder: Path) -> None:
    broker, context = FakeBroker(), serving(issued(folder, HOST))
    wrong = OTHER.issue(Wanted([HOST])).written(folder, "wrong")
    async with peer(broker) as plain:
        with front(context, plain) as at, front(serving(wrong)) as second:
            broker.on_lookup = advertising(plain, second)
            targets = {"hosts": [HOST], "ports": [second.port]}
            plan = plan_of(folder, f"pulsar+ssl://{at}", CA, targets=targets)
            findings = list((await examine(plan)).findings)
    found = of(findings, "advertised")
    assert found.status is Status.FAIL
    assert "that another authority signed, which ca.crt does not have" in found.detail


async def test_a_certificate_for_another_host_is_taken_where_hosts_are_not_verified(
    folder: Path,
) -> None:
    broker = FakeBroker()
    async with peer(broker) as plain:
        with front(serving(issued(folder, "a.example")), plain) as at:
            broker.on_lookup = advertising(plain, at)
            findings = await examined(folder, at, CA | {"verify_host": False})
    assert {it.status for it in findings} == {Status.OK}


# -- failures --------------------------------------------------------------------------------


async def one_row(folder: Path, context: ssl.SSLContext, tls: dict[str, Any] | None) -> Finding:
    """Return the only row of a broker with this TLS."""
    async with peer(FakeBroker()) as plain:
        with front(context, plain) as at:
            (found,) = await examined(folder, at, tls)
    assert found.status is Status.FAIL
    return found


@pytest.mark.parametrize(
    ("tls", "detail"),
    [
        (None, "that test authority signed, which this machine does not trust"),
        ({"ca_file": "other.crt"}, "that test authority signed, which other.crt does not have"),
    ],
)
async def test_an_unknown_authority_is_named(
    folder: Path, tls: dict[str, Any] | None, detail: str
) -> None:
    found = await one_row(folder, serving(issued(folder, HOST)), tls)
    assert found.detail == f"shows a certificate {detail}"


async def test_the_names_of_a_certificate_for_others_are_listed(folder: Path) -> None:
    found = await one_row(folder, serving(issued(folder, "a.example", "b.example")), CA)
    assert found.detail == f"shows a certificate for a.example, b.example, and not for {HOST}"


async def test_an_expired_certificate_is_named(folder: Path) -> None:
    found = await one_row(folder, serving(issued(folder, HOST, ends=-DAY)), CA)
    assert found.detail.startswith("shows a certificate that expired 20")


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_broker_that_wants_a_certificate_is_recognized(
    folder: Path, newest: ssl.TLSVersion
) -> None:
    context = serving(issued(folder, HOST), clients_of=PEM, newest=newest)
    found = await one_row(folder, context, CA)
    assert "wants a certificate" in found.detail
    assert "clusters.main.tls.certificate" in found.remedy


async def test_a_certificate_that_the_broker_does_not_accept_is_recognized(folder: Path) -> None:
    OTHER.issue(Wanted(common="gateway")).written(folder, "own")
    own = {"certificate": {"certificate_file": "own.crt", "key_file": "own.key"}}
    context = serving(issued(folder, HOST), clients_of=PEM)
    found = await one_row(folder, context, CA | own)
    assert found.detail == "does not accept the gateway's certificate (tlsv1 alert unknown ca)"


async def test_a_certificate_that_the_broker_accepts_is_shown(folder: Path) -> None:
    AUTHORITY.issue(Wanted(common="gateway")).written(folder, "own")
    own = {"certificate": {"certificate_file": "own.crt", "key_file": "own.key"}}
    context = serving(issued(folder, HOST), clients_of=PEM)
    async with peer(FakeBroker()) as plain:
        with front(context, plain) as at:
            findings = await examined(folder, at, CA | own)
    assert of(findings, "broker").status is Status.OK


async def test_a_plain_port_is_recognized_and_gets_no_credential(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("the-token")
    broker = FakeBroker()
    async with peer(broker) as plain:
        at = Address(plain.host, plain.port, tls=True)
        (found,) = await examined(folder, at, CA, TokenFile(tmp_path / "token"))
    assert found.status is Status.FAIL
    assert found.detail == "speaks Pulsar without TLS: not a broker's port with TLS"
    assert found.example == f"brokers: pulsar://{at}"
    assert [it.auth_data for it in broker.connects] == [b""]


async def test_a_web_port_is_recognized(folder: Path) -> None:
    async with peer(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as plain:
        (found,) = await examined(folder, Address(plain.host, plain.port, tls=True), CA)
    assert found.detail == "speaks HTTP: not a broker's port with TLS"
    assert "webServicePortTls (8443)" in found.remedy


async def test_a_peer_that_closes_on_everything_speaks_no_tls(folder: Path) -> None:
    async with peer(saying(b"")) as plain:
        (found,) = await examined(folder, Address(plain.host, plain.port, tls=True), CA)
    assert found.detail.startswith("does not speak TLS there (")


async def test_a_peer_that_says_nothing_is_recognized(folder: Path) -> None:
    async with peer(silent) as plain:
        plan = plan_of(folder, f"pulsar+ssl://{plain}", CA, timeout=0.2)
        (found,) = (await examine(plan)).findings
    assert found.detail == "accepts, and does not answer the TLS handshake"


async def test_a_port_with_tls_is_recognized_by_a_plain_url(folder: Path) -> None:
    with front(serving(issued(folder, HOST))) as at:
        (found,) = await examined(folder, Address(at.host, at.port), None)
    assert found.detail == "speaks TLS: not a broker's plain port"
    assert found.example == f"brokers: pulsar+ssl://{at}"


async def test_a_wrong_file_is_left_to_its_own_row(folder: Path) -> None:
    (folder / "ca.crt").write_text("no certificate")
    (found,) = await examined(folder, Address(HOST, 1, tls=True), CA)
    assert (found.check, found.status) == (f"broker {HOST}:1", Status.SKIP)


async def test_no_socket_is_left_open_if_a_handshake_is_given_up(folder: Path) -> None:
    gc.collect()  # what other tests have left
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with peer(silent) as plain:
            plan = plan_of(folder, f"pulsar+ssl://{plain}", CA)
            with trio.move_on_after(0.1) as scope:
                await connect(plan.network, plain, plan.secure(plan.cluster.brokers[0]))
        gc.collect()
    assert scope.cancelled_caught
    assert [it.message for it in caught if "socket" in str(it.message)] == []
