"""Clients with TLS and certificates, as those in Go have them, reach servers that have neither.

The one in Go is in no registry, and the one in Java cannot speak TLS, so frames are made here as
the gateway's own encoder makes them.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.frames import HEAD, length
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.gateways import ALICE_ALONE, TubePlan, in_front_of
from tests.playbooks_tubemq.script import ask, reply_of, told
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import totals
from tests.support.certificates import CertificateAuthority, Wanted

pytestmark = pytest.mark.real

TOPIC = "t0"
TOPICS = [TOPIC]
COUNT = 20
ID = "a-client"


class Site(NamedTuple):
    """A gateway that names clients by their certificates, of whom alice may do everything."""

    gateway: Gateway
    plan: TubePlan
    authority: CertificateAuthority
    folder: Path

    def client(self, name: str) -> ssl.SSLContext:
        """Return the TLS of a client with a certificate of this name."""
        pair = self.authority.issue(Wanted(common=name, for_clients=True))
        files = pair.written(self.folder, name)
        context = self.anybody()
        context.load_cert_chain(files.certificate, files.key)
        return context

    def anybody(self) -> ssl.SSLContext:
        """Return the TLS of a client without a certificate."""
        return ssl.create_default_context(cadata=self.authority.certificate.decode())

    def call(self, context: ssl.SSLContext, port: int, frame: bytes) -> Any:
        """Send one request on a connection of its own; return the message of its reply."""
        with (
            socket.create_connection((HOST, port), 10) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as stream,
        ):
            stream.sendall(frame)
            frame = _frame(stream)
            failure = reply_of(frame).error
            assert failure is None, failure
            return told(frame)


def _frame(stream: ssl.SSLSocket) -> bytes:
    """Return the next frame."""
    data = b""
    while len(data) < HEAD.size or (size := length(data)) is None or len(data) < size:
        more = stream.recv(65536)
        if not more:
            raise ConnectionError("the gateway closed the connection")
        data += more
    return data


@pytest.fixture
def site(broker: TubeMQ, gateway: StartGateway, tmp_path: Path) -> Site:
    authority, rules = CertificateAuthority(), tmp_path / "rules.yaml"
    shown = authority.issue(Wanted(names=[HOST])).written(tmp_path, "gateway")
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    rules.write_text(ALICE_ALONE)
    plan = in_front_of(
        broker,
        identity={"mode": "verify", "tls": {}},
        tls={
            "certificates": [
                {"certificate_file": str(shown.certificate), "key_file": str(shown.key)}
            ],
            "client_certificates": "optional",
            "client_ca_file": str(tmp_path / "ca.crt"),
        },
        rules=rules,
        access="closed",
    )
    return Site(gateway(broker, plan), plan, authority, tmp_path)


def register() -> bytes:
    fields: dict[str, Any] = {"clientId": ID, "brokerCheckSum": -1, "hostName": HOST}
    return ask(m.REGISTER_PRODUCER, 1, **fields, topicList=[TOPIC])


def message(number: int) -> bytes:
    fields: dict[str, Any] = {"clientId": ID, "topicName": TOPIC, "partitionId": 0, "flag": 0}
    return ask(
        m.SEND_MESSAGE, number, **fields, data=b"%d" % number, checkSum=-1, sentAddr=2130706433
    )


def test_who_has_a_certificate_sends_under_its_name(site: Site) -> None:
    alice = site.client("alice")
    reply = site.call(alice, site.gateway.port, register())
    ports = {it.split(":")[0]: int(it.rpartition(":")[2]) for it in reply.brokerInfos}
    assert set(ports) == {"1", "2"}
    assert set(ports.values()) <= {site.plan.first_port + id for id in range(4)}
    for number in range(COUNT):
        sent = site.call(alice, ports["1"], message(number))
        assert (sent.success, sent.errCode) == (True, 200)
    found = totals(site.gateway.ask("metrics/topics")[1], "gateway_topic_messages_total", "topic")
    assert found == {(TOPIC,): COUNT}


def test_who_has_a_certificate_of_another_name_has_no_right(site: Site) -> None:
    bob = site.client("bob")
    reply = site.call(bob, site.gateway.port, register())
    port = int(reply.brokerInfos[0].rpartition(":")[2])
    assert site.call(bob, port, message(1)).errCode == 401


def test_who_has_no_certificate_is_not_served(site: Site) -> None:
    with pytest.raises((ConnectionError, ssl.SSLError)):
        site.call(site.anybody(), site.gateway.port, register())
