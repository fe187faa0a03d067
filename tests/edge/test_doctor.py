"""The doctor in front of a real broker with TLS, whose alerts are not those of OpenSSL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.doctor.command import FAILS, WORKS, doctor
from tests.support.certificates import CertificateAuthority, Wanted

from .conftest import Files, Secured

Examine = Callable[..., str]


@pytest.fixture
def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Examine:
    """Run the command, and return what it prints, on one line without the table's spaces."""

    def run(url: str, status: int, tls: dict[str, Any] | None = None) -> str:
        listener = {"name": "edge", "bind": "127.0.0.1:0", "cluster": "main"}
        cluster = {"brokers": url} | ({} if tls is None else {"tls": tls})
        path = tmp_path / "gateway.yaml"
        path.write_text(
            yaml.safe_dump({"version": 1, "listeners": [listener], "clusters": {"main": cluster}})
        )
        ended, said = doctor(path), capsys.readouterr().out
        assert ended == status, said
        return " ".join(said.split())

    return run


def test_a_broker_with_tls_works(pulsar_tls: Secured, files: Files, examine: Examine) -> None:
    at = pulsar_tls.service_url.removeprefix("pulsar+ssl://")
    said = examine(pulsar_tls.service_url, WORKS, files.cluster)
    assert f"ok broker {at} Pulsar Server" in said
    assert f"warn TLS of {at} TLSv1.3, " in said  # the certificate is for a day
    assert f"ok lookups at {at} lead to {at}" in said
    assert f"ok advertised {at} allowed, and can be connected to with TLS" in said


def test_a_broker_that_wants_a_certificate_is_recognized(
    pulsar_tls: Secured, files: Files, examine: Examine
) -> None:
    said = examine(pulsar_tls.service_url, FAILS, {"ca_file": str(files.authority)})
    assert "wants a certificate of the gateway, and the gateway has none" in said


def test_a_certificate_of_another_authority_is_not_accepted(
    pulsar_tls: Secured, files: Files, examine: Examine, tmp_path: Path
) -> None:
    other = CertificateAuthority("other").issue(Wanted(common="gateway")).written(tmp_path)
    own = {"certificate_file": str(other.certificate), "key_file": str(other.key)}
    said = examine(pulsar_tls.service_url, FAILS, files.cluster | {"certificate": own})
    assert "it does not accept the gateway's certificate, or has no cipher in common" in said


def test_an_unknown_authority_is_named(pulsar_tls: Secured, examine: Examine) -> None:
    said = examine(pulsar_tls.service_url, FAILS)
    assert "shows a certificate that test authority signed, which this machine does not" in said


def test_a_plain_port_is_recognized(pulsar_tls: Secured, files: Files, examine: Examine) -> None:
    url = pulsar_tls.broker.service_url.replace("pulsar://", "pulsar+ssl://")
    assert "speaks Pulsar without TLS" in examine(url, FAILS, files.cluster)


def test_a_port_with_tls_is_recognized(pulsar_tls: Secured, examine: Examine) -> None:
    url = pulsar_tls.service_url.replace("pulsar+ssl://", "pulsar://")
    assert "speaks TLS: not a broker's plain port" in examine(url, FAILS)
