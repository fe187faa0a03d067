"""Brokers that speak TLS, credentials of all who take part, and clients in three languages."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from gateway.tls.files import KeyPair
from tests.clients.builders import BUILDERS, python_client
from tests.clients.programs import Program, Tls
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports
from tests.real.brokers.standalone import HOST, Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import fresh_topic
from tests.real.fixtures import StartBroker, StartGateway, or_skip
from tests.real.frames import Command, Connection, Kind
from tests.real.gateways import HOST as GATEWAY_HOST
from tests.real.gateways import PASS_THROUGH, Gateway, Plan, Upstream
from tests.support.certificates import CertificateAuthority, Wanted

CLIENTS = BUILDERS | {"python": python_client}
COUNT = 200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/edge/"):
            item.add_marker(pytest.mark.real)


@dataclass(frozen=True)
class Files:
    """Files in PEM form: of the authority that signed all others, and of its list of revoked
    certificates. `gateway`: shown to clients. `broker`: shown to the gateway. `client`: shown by
    clients, and by the gateway to brokers. `revoked`: shown by a client that must be refused."""

    authority: Path
    revocations: Path
    gateway: KeyPair
    broker: KeyPair
    client: KeyPair
    revoked: KeyPair

    @property
    def listener(self) -> dict[str, Any]:
        """Return the settings of a listener."""
        return {"certificates": [_settings(self.gateway)]}

    @property
    def cluster(self) -> dict[str, Any]:
        """Return the settings of a cluster."""
        return self.dialling(self.client)

    def dialling(self, shown: KeyPair) -> dict[str, Any]:
        """Return the settings of a cluster to which a certificate is shown."""
        return {"ca_file": str(self.authority), "certificate": _settings(shown)}

    def asking(self, which: str) -> dict[str, Any]:
        """Return the settings of a listener that asks clients for certificates."""
        return self.listener | {"client_certificates": which, "client_ca_file": str(self.authority)}

    @property
    def trusting(self) -> Tls:
        """Return the settings of a client that shows no certificate."""
        return Tls(self.authority)

    def showing(self, pair: KeyPair) -> Tls:
        """Return the settings of a client that shows a certificate."""
        return Tls(self.authority, pair.certificate, pair.key)


def _settings(pair: KeyPair) -> dict[str, str]:
    return {"certificate_file": str(pair.certificate), "key_file": str(pair.key)}


@pytest.fixture(scope="session")
def signer() -> CertificateAuthority:
    """Return the authority of all certificates."""
    return CertificateAuthority()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, signer: CertificateAuthority) -> Files:
    folder, authority = tmp_path_factory.mktemp("tls"), signer
    (folder / "authority.crt").write_bytes(authority.certificate)
    revoked = authority.issue(Wanted(common="revoked"))
    (folder / "authority.crl").write_bytes(authority.revoke(revoked))
    return Files(
        folder / "authority.crt",
        folder / "authority.crl",
        authority.issue(Wanted([GATEWAY_HOST, "localhost"])).written(folder, "gateway"),
        authority.issue(Wanted([HOST])).written(folder, "broker"),
        authority.issue(Wanted(common="client")).written(folder, "client"),
        revoked.written(folder, "revoked"),
    )


# -- ways to say who one is --------------------------------------------------------------------


class Shown(Protocol):
    """A kind of credentials, of which everybody has one by name."""

    def by(self, client: Program, name: str) -> Program:
        """Return the client, which shows the credential of a name."""

    def answer(self, url: str, name: str, **others: str) -> Command:
        """Return the answer to a CONNECT with that credential, and with other texts as in
        `Connection.connect`; an ERROR must be followed by a close."""


@dataclass(frozen=True)
class Tokens:
    authority: Authority

    def by(self, client: Program, name: str) -> Program:
        return replace(client, token=self.authority.token(name))

    def answer(self, url: str, name: str, **others: str) -> Command:
        with Connection(url) as connection:
            return _answer(connection, self.authority.token(name), "token", others)


@dataclass(frozen=True)
class Certificates:
    """Certificates of clients, which `signer` signs when they are first needed."""

    files: Files
    signer: CertificateAuthority
    folder: Path

    def of(self, name: str) -> KeyPair:
        pair = KeyPair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        if pair.key.exists():
            return pair
        return self.signer.issue(Wanted(common=name)).written(self.folder, name)

    def by(self, client: Program, name: str) -> Program:
        return replace(client, tls=replace(self.files.showing(self.of(name)), as_credential=True))

    def answer(self, url: str, name: str, **others: str) -> Command:
        context = ssl.create_default_context(cafile=self.files.authority)
        context.load_cert_chain(*self.of(name))
        with Connection(url, tls=context) as connection:
            return _answer(connection, "", "tls", others)


def _answer(connection: Connection, shown: str, method: str, others: dict[str, str]) -> Command:
    answer = connection.connect(shown, method, **others)
    assert answer is not None, "closed without an answer"
    assert answer.kind == Kind.CONNECTED or connection.receive() is None, "still open"
    return answer


@pytest.fixture(scope="session")
def tokens(authority: Authority) -> Tokens:
    return Tokens(authority)


@pytest.fixture(scope="session")
def certificates(
    files: Files, signer: CertificateAuthority, tmp_path_factory: pytest.TempPathFactory
) -> Certificates:
    return Certificates(files, signer, tmp_path_factory.mktemp("clients"))


# -- brokers and gateways ----------------------------------------------------------------------


@dataclass(frozen=True)
class Secured:
    """The TLS port of a broker, which requires a certificate of its clients."""

    broker: Standalone
    port: int

    @property
    def service_url(self) -> str:
        return f"pulsar+ssl://{self.broker.host}:{self.port}"

    @property
    def traces(self) -> tuple[str, ...]:
        return (*self.broker.traces, f":{self.port}")


@pytest.fixture(scope="session")
def pulsar_tls(start_session_broker: StartBroker, files: Files) -> Secured:
    """A broker with a plain port, and one with TLS that requires certificates of clients."""
    (port,) = free_ports(HOST, 1)
    extra = {
        "brokerServicePortTls": port,
        "tlsCertificateFilePath": str(files.broker.certificate),
        "tlsKeyFilePath": str(files.broker.key),
        "tlsTrustCertsFilePath": str(files.authority),
        "tlsRequireTrustedClientCertOnConnect": "true",
        # Its own clients, of its web pages and its topics, stay on the plain port.
        "brokerClientTlsEnabled": "false",
    }
    return Secured(start_session_broker("tls", extra=extra), port)


@pytest.fixture(scope="module")
def module_gateway(artifacts: Artifacts, request: pytest.FixtureRequest) -> Iterator[StartGateway]:
    """Yield a function that starts gateways for the file's tests."""
    with ExitStack() as running:

        def start(broker: Upstream, plan: Plan = PASS_THROUGH, until: str = "readyz") -> Gateway:
            folder = artifacts.directory(f"gateway-{request.node.path.stem}")
            started = Gateway(broker, plan, folder)
            started.start(until)
            running.callback(started.stop)
            return started

        yield start


# -- clients -----------------------------------------------------------------------------------


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest, say: Say) -> Program:
    """Return a client in each language."""
    return or_skip(CLIENTS[request.param], say)


def assert_moves_all(
    client: Program,
    url: str,
    logs: Path,
    topic: str | None = None,
    *,
    count: int = COUNT,
    interval_ms: int = 0,
) -> None:
    """Assert that all messages which the client produces are received, each once."""
    topic = topic or fresh_topic()
    with (
        client.consuming(url, topic, "s", count, logs / "consumer.log") as consumer,
        client.producing(
            url, topic, count, logs / "producer.log", batch=True, interval_ms=interval_ms
        ) as producer,
    ):
        sent, received = producer.sent(), consumer.received()
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == received.received == set(range(count))


@contextmanager
def renewed(file: Path, token: Callable[[], str], seconds: float) -> Iterator[Path]:
    """Write a new token into a file again and again."""
    over = threading.Event()

    def write() -> None:
        new = file.with_suffix(".new")
        new.write_text(token())
        new.replace(file)

    def renew() -> None:
        while not over.wait(seconds):
            write()

    write()
    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield file
    finally:
        over.set()
        thread.join()
