"""Files of TLS: contents, dates, chains and access rights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import build
from gateway.config.model import Configuration
from gateway.doctor import tls_files
from gateway.doctor.finding import Finding, Status
from gateway.tls.files import KeyPair
from tests.support.certificates import (
    DAY,
    CertificateAuthority,
    Certified,
    Wanted,
    self_signed,
)

AUTHORITY = CertificateAuthority()

Examine = Callable[..., list[Finding]]


def configured(
    folder: Path, listener: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> Configuration:
    """Return a configuration with these settings of TLS."""
    data: dict[str, Any] = {
        "version": 1,
        "listeners": [{"name": "edge", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar+ssl://127.0.0.1:1"}},
    }
    if listener is not None:
        data["listeners"][0]["tls"] = listener
    if cluster is not None:
        data["clusters"]["main"]["tls"] = cluster
    configuration, mistakes = build(data, folder)
    assert configuration is not None, mistakes
    return configuration


@pytest.fixture
def examined(tmp_path: Path) -> Examine:
    """Return the findings of a configuration with these settings of TLS."""

    def run(**tls: Any) -> list[Finding]:
        return list(tls_files.examine(configured(tmp_path, **tls), tmp_path, time.time()))

    return run


def kept(folder: Path, certified: Certified, name: str = "tls") -> KeyPair:
    pair = certified.written(folder, name)
    pair.key.chmod(0o600)
    return pair


def shown(name: str = "tls") -> dict[str, Any]:
    return {"certificates": [{"certificate_file": f"{name}.crt", "key_file": f"{name}.key"}]}


def leaf(*names: str, ends: timedelta = 90 * DAY) -> Wanted:
    issuer_at = "http://ca.example/1"
    return Wanted(names or ["a.example"], ends=ends, lives=365 * DAY, issuer_at=issuer_at)


# -- certificates of listeners ---------------------------------------------------------------


def test_a_self_signed_certificate_and_its_key_are_ok(tmp_path: Path, examined: Examine) -> None:
    kept(tmp_path, self_signed("a.example"))
    certificate, key = examined(listener=shown())
    assert (certificate.check, certificate.status) == ("tls.crt", Status.WARN)  # for a day
    assert certificate.detail.startswith("for a.example, until 20")
    assert (key.check, key.status, key.detail) == ("tls.key", Status.OK, "the key of tls.crt")


def test_a_certificate_without_its_issuer_is_a_warning(tmp_path: Path, examined: Examine) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf()))
    certificate, chain, _key = examined(listener=shown())
    assert certificate.status is Status.OK
    assert (chain.check, chain.status) == ("tls.crt", Status.WARN)
    assert "does not hold the certificate of test authority" in chain.detail


def test_an_issuer_that_clients_trust_themselves_is_no_warning(
    tmp_path: Path, examined: Examine
) -> None:
    kept(tmp_path, AUTHORITY.issue(replace(leaf(), issuer_at="")))
    findings = examined(listener=shown())
    assert [it.status for it in findings] == [Status.OK] * 3
    assert findings[1].detail.startswith("signed by test authority")


@pytest.mark.parametrize("ends", [90 * DAY, -DAY])
def test_an_issuer_behind_the_certificate_completes_it(
    tmp_path: Path, examined: Examine, ends: timedelta
) -> None:
    between = AUTHORITY.intermediate("between")
    issued = between.issue(leaf(ends=ends))
    kept(tmp_path, issued._replace(certificate=issued.certificate + between.certificate))
    assert not [it for it in examined(listener=shown()) if "does not hold" in it.detail]


def test_an_issuer_that_the_configuration_knows_completes_it(
    tmp_path: Path, examined: Examine
) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf()))
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    findings = examined(listener=shown(), cluster={"ca_file": "ca.crt"})
    assert not [it for it in findings if "does not hold" in it.detail]


@pytest.mark.parametrize("ends", [90 * DAY, -DAY])
def test_an_issuer_that_the_machine_trusts_completes_it(
    tmp_path: Path, examined: Examine, monkeypatch: pytest.MonkeyPatch, ends: timedelta
) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf(ends=ends)))
    (tmp_path / "machine.crt").write_bytes(AUTHORITY.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "machine.crt"))
    assert not [it for it in examined(listener=shown()) if "does not hold" in it.detail]


def test_a_certificate_without_hosts_is_a_warning(tmp_path: Path, examined: Examine) -> None:
    kept(tmp_path, AUTHORITY.issue(Wanted(ends=90 * DAY, lives=365 * DAY)))
    assert "names no host" in examined(listener=shown())[1].detail


def test_an_expired_certificate_fails(tmp_path: Path, examined: Examine) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf(ends=-DAY)))
    found = examined(listener=shown())[0]
    assert found.status is Status.FAIL
    assert "expired since" in found.detail


@pytest.mark.parametrize(
    ("mode", "status"), [(0o600, Status.OK), (0o640, Status.OK), (0o644, Status.WARN)]
)
def test_a_key_that_others_may_read_is_a_warning(
    tmp_path: Path, examined: Examine, mode: int, status: Status
) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf())).key.chmod(mode)
    assert examined(listener=shown())[-1].status is status


def test_a_key_of_another_certificate_fails_in_the_row_of_the_key(
    tmp_path: Path, examined: Examine
) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf()))
    (tmp_path / "tls.key").write_bytes(self_signed("b.example").key)
    (found,) = examined(listener=shown())
    assert (found.check, found.status) == ("tls.key", Status.FAIL)
    assert "is not the key of the certificate in" in found.detail


def test_a_file_that_is_no_certificate_fails_in_its_row(tmp_path: Path, examined: Examine) -> None:
    kept(tmp_path, AUTHORITY.issue(leaf())).certificate.write_text("none")
    (found,) = examined(listener=shown())
    assert (found.check, found.status) == ("tls.crt", Status.FAIL)


# -- certificates of clients -----------------------------------------------------------------


@pytest.fixture
def asking(tmp_path: Path) -> dict[str, Any]:
    """Return the settings of a listener that asks clients for certificates, with a list."""
    kept(tmp_path, AUTHORITY.issue(leaf()))
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    (tmp_path / "ca.crl").write_bytes(AUTHORITY.revoke(due=30 * DAY))
    asks = {"client_certificates": "required", "client_ca_file": "ca.crt"}
    return shown() | asks | {"crl_files": ["ca.crl"]}


def test_authorities_and_lists_have_rows(asking: dict[str, Any], examined: Examine) -> None:
    findings = examined(listener=asking)
    assert [it.check for it in findings] == ["tls.crt", "tls.key", "ca.crt", "ca.crl"]
    assert findings[2].detail.startswith("test authority, until")
    assert findings[3].status is Status.OK


def test_an_overdue_list_fails(tmp_path: Path, asking: dict[str, Any], examined: Examine) -> None:
    (tmp_path / "ca.crl").write_bytes(AUTHORITY.revoke(due=-DAY))
    found = examined(listener=asking)[3]
    assert found.status is Status.FAIL
    assert "every client's certificate of test authority is refused" in found.detail


def test_an_authority_without_a_list_is_a_warning(
    tmp_path: Path, asking: dict[str, Any], examined: Examine
) -> None:
    second = CertificateAuthority("second")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate + second.certificate)
    found = examined(listener=asking)[-1]
    assert (found.check, found.status) == ("ca.crt", Status.WARN)
    assert "is of second" in found.detail


@pytest.mark.parametrize("name", ["ca.crt", "ca.crl"])
def test_a_wrong_file_fails_in_its_row(
    tmp_path: Path, asking: dict[str, Any], examined: Examine, name: str
) -> None:
    (tmp_path / name).write_text("none")
    failing = [it.check for it in examined(listener=asking) if it.status is Status.FAIL]
    assert failing == [name]


# -- brokers ---------------------------------------------------------------------------------


def test_files_of_a_cluster_have_rows(tmp_path: Path, examined: Examine) -> None:
    """A certificate for brokers needs neither hosts nor its issuer."""
    wanted = Wanted(common="gateway", ends=90 * DAY, lives=365 * DAY)
    kept(tmp_path, AUTHORITY.issue(wanted), "own")
    (tmp_path / "ca.crt").write_bytes(CertificateAuthority("theirs").certificate)
    own = shown("own")["certificates"][0]
    findings = examined(cluster={"ca_file": "ca.crt", "certificate": own})
    assert [it.check for it in findings] == ["ca.crt", "own.crt", "own.key"]
    assert findings[0].detail.startswith("theirs, until")
    assert findings[1].detail.startswith("of gateway, until")
    assert findings[1].detail.endswith("; shown to brokers of main")


def test_without_tls_there_is_no_row(examined: Examine) -> None:
    assert examined() == []
