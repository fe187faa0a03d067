"""Clients with certificates, as those in Go have them.

The one in Go is in no registry, and the one in Java cannot speak TLS, so frames are made here as
the gateway's own encoder makes them.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.frames import HEAD, length
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.gateways import ALICE_ALONE, TubePlan, in_front_of
from tests.playbooks_tubemq.script import ask, reply_of, told
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.support.certificates import CertificateAuthority, Wanted

ID = "a-client"
PATIENCE_S = 60


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
            socket.create_connection((HOST, port), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as stream,
        ):
            stream.sendall(frame)
            frame = _frame(stream)
            failure = reply_of(frame).error
            assert failure is None, failure
            return told(frame)


def named_by_certificates(broker: TubeMQ, gateway: StartGateway, folder: Path) -> Site:
    """Start the gateway of a site, with files in this folder."""
    authority, rules = CertificateAuthority(), folder / "rules.yaml"
    shown = authority.issue(Wanted(names=[HOST])).written(folder, "gateway")
    (folder / "ca.crt").write_bytes(authority.certificate)
    rules.write_text(ALICE_ALONE)
    plan = in_front_of(
        broker,
        identity={"mode": "verify", "tls": {}},
        tls={
            "certificates": [
                {"certificate_file": str(shown.certificate), "key_file": str(shown.key)}
            ],
            "client_certificates": "optional",
            "client_ca_file": str(folder / "ca.crt"),
        },
        rules=rules,
        access="closed",
    )
    return Site(gateway(broker, plan), plan, authority, folder)


def register(topic: str) -> bytes:
    """Return the frame by which a producer asks the master where a topic is."""
    fields: dict[str, Any] = {"clientId": ID, "brokerCheckSum": -1, "hostName": HOST}
    return ask(m.REGISTER_PRODUCER, 1, **fields, topicList=[topic])


def message(topic: str, number: int) -> bytes:
    """Return the frame by which it sends a message, whose text is its number."""
    fields: dict[str, Any] = {"clientId": ID, "topicName": topic, "partitionId": 0, "flag": 0}
    return ask(
        m.SEND_MESSAGE, number, **fields, data=b"%d" % number, checkSum=-1, sentAddr=2130706433
    )


def _frame(stream: ssl.SSLSocket) -> bytes:
    """Return the next frame."""
    data = b""
    while len(data) < HEAD.size or (size := length(data)) is None or len(data) < size:
        more = stream.recv(65536)
        if not more:
            raise ConnectionError("the gateway closed the connection")
        data += more
    return data
