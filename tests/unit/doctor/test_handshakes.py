"""Handshakes of listeners: with the program that listens, or in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import build
from gateway.doctor import handshakes, ports
from gateway.doctor.finding import Finding, Status
from gateway.doctor.reach import Network
from gateway.wire.address import Address
from tests.support.certificates import DAY, CertificateAuthority, Wanted, self_signed
from tests.unit.doctor.fakes import HOST, PATIENCE, FakeBroker, free_port, peer, saying
from tests.unit.doctor.fronts import front, serving

AUTHORITY = CertificateAuthority()
ASKING = {"client_certificates": "required", "client_ca_file": "ca.crt"}


async def examined(
    folder: Path, bind: Address | None = None, *files: str, bound: bool = False, **tls: Any
) -> list[Finding]:
    """Return the findings of a listener with certificates in these files. `bound`: of its port."""
    (folder / "ca.crt").write_bytes(AUTHORITY.certificate)
    pairs = [{"certificate_file": f"{it}.crt", "key_file": f"{it}.key"} for it in files or ["tls"]]
    listener = {"name": "edge", "bind": str(bind or f"{HOST}:0"), "cluster": "main"}
    data = {
        "version": 1,
        "listeners": [listener | {"tls": {"certificates": pairs} | tls}],
        "clusters": {"main": {"brokers": "pulsar://192.0.2.1:6650"}},
    }
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    if bound:
        return await ports.examine(configuration, Network(PATIENCE))
    return await handshakes.examine(configuration, folder, Network(PATIENCE))


# -- nothing listens -------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [{}, {"minimum": "1.3"}, ASKING])
async def test_the_files_are_tried_in_memory(tmp_path: Path, tls: dict[str, Any]) -> None:
    AUTHORITY.issue(Wanted(["a.example"])).written(tmp_path)
    (found,) = await examined(tmp_path, **tls)
    assert (found.check, found.status) == ("TLS of edge", Status.OK)
    assert found.detail == ("tls.crt works: TLSv1.3, TLS_AES_256_GCM_SHA384; nothing listens yet")


async def test_a_free_port_is_tried_first(tmp_path: Path) -> None:
    self_signed("a.example").written(tmp_path)
    (found,) = await examined(tmp_path, Address("", free_port()))
    assert found.detail.endswith("nothing listens yet")


async def test_each_certificate_has_a_row(tmp_path: Path) -> None:
    self_signed("a.example").written(tmp_path, "a")
    AUTHORITY.issue(Wanted(["*.b.example"])).written(tmp_path, "b")
    one, two = await examined(tmp_path, None, "a", "b")
    assert one.detail.startswith("a.crt works")
    assert two.detail.startswith("b.crt works")


async def test_dates_are_left_to_the_row_of_the_file(tmp_path: Path) -> None:
    AUTHORITY.issue(Wanted(["a.example"], ends=-DAY)).written(tmp_path)
    (found,) = await examined(tmp_path)
    assert found.status is Status.OK


async def test_a_certificate_for_clients_alone_fails(tmp_path: Path) -> None:
    AUTHORITY.issue(Wanted(["a.example"], for_clients=True)).written(tmp_path)
    (found,) = await examined(tmp_path)
    assert found.status is Status.FAIL
    assert found.detail == "tls.crt is not for servers: clients refuse it"
    assert "serverAuth" in found.remedy


async def test_wrong_files_are_left_to_their_own_rows(tmp_path: Path) -> None:
    self_signed("a.example").written(tmp_path).key.write_text("none")
    assert await examined(tmp_path) == []


# -- something listens -----------------------------------------------------------------------


async def test_a_gateway_that_runs_is_asked(tmp_path: Path) -> None:
    pair = AUTHORITY.issue(Wanted(["a.example"])).written(tmp_path)
    with front(serving(pair)) as at:
        (found,) = await examined(tmp_path, at)
        (wild,) = await examined(tmp_path, Address("0.0.0.0", at.port))
    assert (found.status, wild.status) == (Status.OK, Status.OK)
    assert found.detail == "answers with TLSv1.3, TLS_AES_256_GCM_SHA384, and tls.crt"


async def test_another_certificate_than_that_of_the_file_is_a_warning(tmp_path: Path) -> None:
    with front(serving(self_signed("old.example").written(tmp_path))) as at:
        self_signed("new.example").written(tmp_path)
        (found,) = await examined(tmp_path, at)
    assert found.status is Status.WARN
    assert "another certificate than that in tls.crt: one for old.example" in found.detail


async def test_a_port_without_tls_is_left_to_its_own_row(tmp_path: Path) -> None:
    self_signed("a.example").written(tmp_path)
    async with peer(saying(b"")) as at:
        (found,) = await examined(tmp_path, at)
    assert found.detail.endswith("nothing listens yet")


# -- the row of the port ---------------------------------------------------------------------


async def test_a_port_that_speaks_pulsar_under_tls_may_be_the_gateway(tmp_path: Path) -> None:
    pair = self_signed("a.example").written(tmp_path)
    async with peer(FakeBroker()) as plain:
        with front(serving(pair), plain) as at:
            (found,) = await examined(tmp_path, at, bound=True)
    assert found.status is Status.WARN
    assert found.detail.startswith("taken by something that speaks Pulsar: a gateway seems")


async def test_a_port_that_wants_certificates_may_be_the_gateway(tmp_path: Path) -> None:
    pair = AUTHORITY.issue(Wanted(["a.example"])).written(tmp_path)
    context = serving(pair, clients_of=AUTHORITY.certificate.decode())
    with front(context) as at:
        (found,) = await examined(tmp_path, at, bound=True, **ASKING)
    assert found.status is Status.WARN
    assert "speaks TLS and wants a certificate: a gateway seems" in found.detail


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"), (b"", "speaks no TLS")],
)
async def test_a_port_of_another_process_fails(tmp_path: Path, answer: bytes, words: str) -> None:
    self_signed("a.example").written(tmp_path)
    async with peer(saying(answer)) as at:
        (found,) = await examined(tmp_path, at, bound=True)
    assert found.status is Status.FAIL
    assert found.detail == f"taken by something that {words}; it is no gateway"
