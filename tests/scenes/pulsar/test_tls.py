"""Clients that speak TLS with the gateway."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import assert_works, open_client
from tests.real.fixtures import StartGateway
from tests.real.frames import Connection
from tests.real.gateways import HOST, Plan
from tests.real.probes import figure
from tests.support.certificates import self_signed

from .bounds import PATIENCE
from .conftest import USER


@pytest.mark.gateway_only
def test_clients_speak_tls_with_the_gateway(
    gateway: StartGateway,
    pulsar_auth: Standalone,
    authority: Authority,
    topic: str,
    tmp_path: Path,
) -> None:
    """And a client that speaks plainly gets no answer."""
    shown, token = self_signed(HOST).written(tmp_path), authority.token(USER)
    certificate = {"certificate_file": str(shown.certificate), "key_file": str(shown.key)}
    through = gateway(pulsar_auth, Plan(tls={"certificates": [certificate]}))
    trusting = {"tls_trust_certs_file_path": str(shown.certificate), "tls_validate_hostname": True}
    url = through.untapped_url
    assert url.startswith("pulsar+ssl://")
    with closing(open_client(url, token, PATIENCE, **trusting)) as client:
        assert_works(client, topic)
    assert figure(through, "gateway_tls_handshakes_total", version="TLSv1.3") > 0
    with Connection(url) as plain:
        assert plain.connect(token) is None
