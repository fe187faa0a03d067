"""The side of a server and that of a client: what they show, and whom they believe."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509

from gateway.errors import ConfigurationError
from gateway.tls import sides
from gateway.tls.files import KeyPair, Kind, load_pair
from gateway.tls.sides import ClientCertificates, ClientSide, ServerSide, signs_of
from gateway.tls.stream import Shake, TlsStream
from tests.support.certificates import DAY, CertificateAuthority, Certified, Wanted, self_signed
from tests.support.records import HANDSHAKE, Forger
from tests.support.tls import NAME, shake
from tests.unit.tls.samples import House, linked, met, stream_of, trusting

V1_2, V1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

both_versions = pytest.mark.parametrize("version", [V1_2, V1_3], ids=["1.2", "1.3"])


def only(version: ssl.TLSVersion) -> dict[str, ssl.TLSVersion]:
    """Return the settings of a client that speaks one version."""
    return {"minimum_version": version, "maximum_version": version}


def der(certificate: Path | bytes) -> bytes:
    """Return the first certificate of a PEM file in DER."""
    content = certificate if isinstance(certificate, bytes) else certificate.read_bytes()
    return ssl.PEM_cert_to_DER_cert(content.decode())


def received(stream: TlsStream) -> bytes:
    """Return what a stream has received."""
    try:
        return stream.recv(1000)
    except BlockingIOError:
        return b""


# -- the choice of the certificate -----------------------------------------------------------


class Named(NamedTuple):
    """A server with three certificates: for one name, for all of a domain, and for both."""

    side: ServerSide
    shown: dict[bytes, str]


@pytest.fixture
def named(house: House) -> Named:
    """Return such a server."""
    pairs = {
        "first": house.pair("first.example", file="first"),
        "domain": house.pair("*.domain.example", file="domain"),
        "one": house.pair("one.domain.example", "Two.Example", "first.example", file="one"),
    }
    shown = {der(pair.certificate): name for name, pair in pairs.items()}
    return Named(house.server(*pairs.values()), shown)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param("first.example", "first", id="the first that has the name"),
        pytest.param("two.example", "one", id="another name of a certificate"),
        pytest.param("TWO.EXAMPLE", "one", id="capitals"),
        pytest.param("any.domain.example", "domain", id="wildcard"),
        pytest.param("ANY.Domain.example", "domain", id="wildcard and capitals"),
        pytest.param("one.domain.example", "one", id="a name goes before a wildcard"),
        pytest.param("a.b.domain.example", "first", id="a wildcard is for one label"),
        pytest.param("domain.example", "first", id="a wildcard is not for its domain"),
        pytest.param("*.domain.example", "domain", id="the wildcard itself"),
        pytest.param("other.example", "first", id="an unknown name"),
        pytest.param("localhost", "first", id="a name of one label"),
    ],
)
def test_the_certificate_is_chosen_by_the_name_that_is_asked_for(
    named: Named, house: House, asked: str, expected: str
) -> None:
    context = trusting(house)
    context.check_hostname = False
    with met(named.side, context, asked) as (server, client):
        assert client.certificate is not None
        assert named.shown[client.certificate] == expected
        assert server.server_name == asked
        assert server.certificate is None


def test_a_client_that_asks_for_no_name_gets_the_first_certificate(
    named: Named, house: House
) -> None:
    context = trusting(house)
    context.check_hostname = False
    with met(named.side, context, "127.0.0.1") as (server, client):
        assert client.certificate is not None
        assert named.shown[client.certificate] == "first"
        assert server.server_name is None


@both_versions
def test_the_certificate_is_chosen_in_each_version(
    named: Named, house: House, version: ssl.TLSVersion
) -> None:
    with met(named.side, trusting(house, **only(version)), "two.example") as (server, client):
        assert client.certificate is not None
        assert named.shown[client.certificate] == "one"
        assert server.version == version.name.replace("v1_", "v1.")


def test_a_name_that_is_not_ascii_fails_the_handshake_of_this_client_alone(house: House) -> None:
    """The name of a server is in ASCII (RFC 6066 section 3)."""
    side = house.server()
    with linked() as (near, far):
        client = stream_of(trusting(house), far)
        client.shake()
        hello = near.recv(1 << 16)
        far.send(hello.replace(NAME.encode(), b"\xff" * len(NAME)))
        server = side.stream(near)
        with pytest.raises(ssl.SSLError, match="CALLBACK_FAILED"):
            server.shake()
    with met(side, house.client()) as (server, _):
        assert server.server_name == NAME


# -- versions --------------------------------------------------------------------------------


@both_versions
def test_versions_from_the_minimum_on_are_accepted(house: House, version: ssl.TLSVersion) -> None:
    side = house.server(minimum=V1_2)
    with met(side, trusting(house, **only(version))) as (server, _):
        assert server.version == version.name.replace("v1_", "v1.")


def test_a_client_below_the_minimum_is_refused(house: House) -> None:
    side = house.server(minimum=V1_3)
    with (
        pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"),
        met(side, trusting(house, **only(V1_2))),
    ):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("minimum", [V1_2, V1_3], ids=["1.2", "1.3"])
def test_a_client_of_version_1_1_is_always_refused(house: House, minimum: ssl.TLSVersion) -> None:
    context = trusting(house)
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # otherwise the client itself would refuse
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"),
        met(house.server(minimum=minimum), context),
    ):
        pass


# -- clients' certificates -------------------------------------------------------------------

NONE, OPTIONAL, REQUIRED = ClientCertificates


class Shown(NamedTuple):
    """What a client may show, and the server that asks for it."""

    house: House
    certificates: dict[str, Certified | None]
    revocations: Path

    def server(self, asking: ClientCertificates, *pairs: KeyPair) -> ServerSide:
        """Return a server that asks for certificates, and has a list of those revoked."""
        if asking is NONE:
            return self.house.server(*pairs)
        return self.house.server(
            *pairs,
            client_certificates=asking,
            authorities=self.house.authorities,
            revocations=(self.revocations,),
        )

    def client(self, what: str, **versions: ssl.TLSVersion) -> ssl.SSLContext:
        """Return a client that shows one of the certificates."""
        context = trusting(self.house, **versions)
        certified = self.certificates[what]
        if certified is not None:
            context.load_cert_chain(*certified.written(self.house.folder, "shown"))
        return context


@pytest.fixture
def shown(house: House) -> Shown:
    """Return certificates of all kinds."""
    of_client = Wanted(common="client")
    revoked = house.authority.issue(of_client)
    certificates = {
        "none": None,
        "signed": house.authority.issue(of_client),
        "other authority": CertificateAuthority("another").issue(of_client),
        "own authority": self_signed("client"),
        "revoked": revoked,
        "expired": house.authority.issue(Wanted(common="client", ends=-DAY)),
    }
    return Shown(house, certificates, house.write("revoked", house.authority.revoke(revoked)))


@both_versions
@pytest.mark.parametrize(
    ("asking", "what"),
    [
        *((NONE, it) for it in ("none", "signed", "other authority", "revoked", "expired")),
        (OPTIONAL, "none"),
        (OPTIONAL, "signed"),
        (REQUIRED, "signed"),
    ],
)
def test_a_client_is_let_in(
    shown: Shown, asking: ClientCertificates, what: str, version: ssl.TLSVersion
) -> None:
    client = shown.client(what, **only(version))
    with met(shown.server(asking), client) as (server, _):
        certified = shown.certificates[what]
        asked = certified is not None and asking is not NONE
        assert server.certificate == (der(certified.certificate) if certified and asked else None)


@both_versions
@pytest.mark.parametrize(
    ("asking", "what", "reason"),
    [
        (REQUIRED, "none", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        *(
            (asking, *case)
            for asking in (OPTIONAL, REQUIRED)
            for case in (
                ("other authority", "unable to get local issuer certificate"),
                ("own authority", "self-signed certificate"),
                ("revoked", "certificate revoked"),
                ("expired", "certificate has expired"),
            )
        ),
    ],
)
def test_a_client_is_refused(
    shown: Shown, asking: ClientCertificates, what: str, reason: str, version: ssl.TLSVersion
) -> None:
    client = shown.client(what, **only(version))
    with pytest.raises(ssl.SSLError, match=reason), met(shown.server(asking), client):
        pass


def test_a_refused_client_is_told_why(shown: Shown) -> None:
    with linked() as (near, far):
        client = stream_of(shown.client("revoked"), far)
        server = shown.server(REQUIRED).stream(near)
        with pytest.raises(ssl.SSLError, match="certificate revoked"):
            shake(client, server)
        with pytest.raises(ssl.SSLError, match="SSLV3_ALERT_CERTIFICATE_REVOKED"):
            client.recv(1)


@pytest.mark.parametrize("what", ["other authority", "revoked"])
def test_a_client_is_verified_whichever_certificate_it_asks_for(shown: Shown, what: str) -> None:
    """The choice by name changes the context in the middle of the handshake."""
    pairs = shown.house.pair("a.example", file="a"), shown.house.pair("b.example", file="b")
    side = shown.server(REQUIRED, *pairs)
    for name in ("a.example", "b.example"):
        with met(side, shown.client("signed"), name) as (server, _):
            assert server.certificate is not None
        with (
            pytest.raises(ssl.SSLError, match="VERIFY_FAILED"),
            met(side, shown.client(what), name),
        ):
            pass


def test_clients_of_an_authority_without_a_list_are_refused_if_there_are_lists(
    house: House,
) -> None:
    """OpenSSL lets nobody in whose authority has not said what it has revoked."""
    other = CertificateAuthority("another")
    house.authorities += (house.write("other.crt", other.certificate),)
    revoked = (house.write("revoked", house.authority.revoke()),)
    side = house.server(
        client_certificates=REQUIRED, authorities=house.authorities, revocations=revoked
    )
    context = trusting(house)
    context.load_cert_chain(*other.issue(Wanted()).written(house.folder, "shown"))
    with (
        pytest.raises(ssl.SSLError, match="unable to get certificate CRL"),
        met(side, context),
    ):
        pass


# -- the side of a client --------------------------------------------------------------------


def test_a_server_is_verified_by_its_authority_and_name(house: House) -> None:
    pair = house.pair()
    with met(house.server(pair), house.client()) as (server, client):
        assert client.certificate == der(pair.certificate)
        assert server.server_name == NAME


def test_a_dot_at_the_end_of_a_host_is_no_part_of_its_name(house: House) -> None:
    """With it the name is looked up as it is, without the domains that are searched."""
    with met(house.server(), house.client(), f"{NAME}.") as (server, _):
        assert server.server_name == NAME


def test_a_server_with_another_name_is_refused(house: House) -> None:
    with (
        pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"),
        met(house.server(), house.client(), "other.example"),
    ):
        pass


def test_a_server_may_have_another_name_if_names_are_not_verified(house: House) -> None:
    with met(house.server(), house.client(verify_host=False), "other.example") as (server, _):
        assert server.server_name == "other.example"


@pytest.mark.parametrize("verify_host", [True, False])
def test_a_server_of_an_unknown_authority_is_refused(house: House, verify_host: bool) -> None:
    trusted = (house.write("other", CertificateAuthority("another").certificate),)
    client = house.client(authorities=trusted, verify_host=verify_host)
    with (
        pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"),
        met(house.server(), client),
    ):
        pass


def test_a_client_without_authorities_trusts_those_of_the_machine(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = house.client(authorities=())
    monkeypatch.setenv("SSL_CERT_FILE", str(house.authorities[0]))
    known = house.client(authorities=())
    with met(house.server(), known):
        pass
    with pytest.raises(ssl.SSLCertVerificationError), met(house.server(), unknown):
        pass


def test_a_client_with_authorities_trusts_those_of_the_machine_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(house.authorities[0]))
    client = house.client(authorities=(house.write("other", CertificateAuthority().certificate),))
    with pytest.raises(ssl.SSLCertVerificationError), met(house.server(), client):
        pass


def test_an_expired_server_is_refused(house: House) -> None:
    with (
        pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"),
        met(house.server(house.pair(ends=-DAY)), house.client()),
    ):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_server_is_verified_by_its_address(house: House, address: str) -> None:
    side = house.server(house.pair(address))
    with met(side, house.client(), address) as (server, _):
        assert server.server_name is None, "an address is no name (RFC 6066 section 3)"
    with (
        pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"),
        met(side, house.client(), "127.0.0.2"),
    ):
        pass


def test_a_client_shows_its_certificate(house: House) -> None:
    pair = house.pair("client.example", file="client")
    side = house.server(client_certificates=REQUIRED, authorities=house.authorities)
    with met(side, house.client(pair=pair)) as (server, _):
        assert server.certificate == der(pair.certificate)


# -- keys of open connections ----------------------------------------------------------------


def test_a_client_cannot_have_keys_exchanged_again(house: House, tmp_path: Path) -> None:
    with linked() as (near, far):
        server = house.server().stream(near)
        forger = Forger(server, far, house.authority.certificate, NAME, tmp_path, V1_2)
        far.send(forger.record(forger.hello, HANDSHAKE) + forger.record(b"still here"))
        assert server.recv(100) == b"still here"
        with pytest.raises(ssl.SSLError, match="NO_RENEGOTIATION"):
            forger.hear()


def test_neither_side_has_keys_exchanged_again(house: House) -> None:
    """OpenSSL refuses clients from version 3.0 on even without this."""
    with met(house.server(), house.client()) as streams:
        for stream in streams:
            assert stream._tls.context.options & ssl.OP_NO_RENEGOTIATION


# -- sessions that are resumed ---------------------------------------------------------------


@contextmanager
def resumed(
    side: ServerSide, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Iterator[tuple[TlsStream, TlsStream]]:
    """Enter with streams, of which the client has begun with a session, and got its tickets."""
    with linked() as (near, far):
        server, client = side.stream(near), stream_of(context, far)
        if session is not None:
            client._tls.session = session
        shake(client, server)
        assert received(client) == b""
        yield server, client


def session_of(side: ServerSide, context: ssl.SSLContext) -> ssl.SSLSession:
    """Return the session of a connection that has ended."""
    with resumed(side, context) as (server, client):
        assert not client._tls.session_reused
        assert not server.resumed
        session = client._tls.session
        assert session is not None
        assert session.has_ticket
        return session


@both_versions
@pytest.mark.parametrize("asking", [NONE, OPTIONAL, REQUIRED])
def test_a_session_is_resumed(
    shown: Shown, asking: ClientCertificates, version: ssl.TLSVersion
) -> None:
    side, context = shown.server(asking), shown.client("signed", **only(version))
    with resumed(side, context, session_of(side, context)) as (server, client):
        assert client._tls.session_reused
        assert server.resumed
        assert server.server_name == NAME
        certified = shown.certificates["signed"]
        assert certified is not None
        assert server.certificate == (None if asking is NONE else der(certified.certificate))
        server.send(b"hello")
        assert received(client) == b"hello"


def test_a_client_of_version_1_3_gets_a_ticket_for_each_connection(house: House) -> None:
    side, context = house.server(), trusting(house, **only(V1_3))
    session = session_of(side, context)
    with resumed(side, context, session) as (_, client):
        assert client._tls.session is not None
        assert client._tls.session.id != session.id


@both_versions
def test_a_session_does_not_outlive_a_reload(shown: Shown, version: ssl.TLSVersion) -> None:
    """A client whose certificate has been revoked is not let in by a ticket."""
    side, context = shown.server(REQUIRED), shown.client("signed", **only(version))
    session = session_of(side, context)
    side.load()()
    with resumed(side, context, session) as (_, client):
        assert not client._tls.session_reused
    session = session_of(side, context)
    certified = shown.certificates["signed"]
    assert certified is not None
    shown.revocations.write_bytes(shown.house.authority.revoke(certified))
    side.load()()
    with (
        pytest.raises(ssl.SSLError, match="certificate revoked"),
        resumed(side, context, session),
    ):
        pass


@both_versions
def test_a_session_of_another_server_is_not_resumed(shown: Shown, version: ssl.TLSVersion) -> None:
    """A listener that lets all clients in gives no ticket for one that does not."""
    context = shown.client("none", **only(version))
    session = session_of(shown.server(NONE), context)
    with (
        pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        resumed(shown.server(REQUIRED), context, session),
    ):
        pass


# -- files that change -----------------------------------------------------------------------


def shown_by(side: ServerSide, client: ClientSide) -> bytes | None:
    """Return the certificate that a server shows."""
    with met(side, client) as (_, stream):
        return stream.certificate


def test_a_server_takes_new_files_for_new_streams_alone(house: House) -> None:
    pair = house.pair()
    side, client = house.server(pair), house.client()
    old = der(pair.certificate)
    with met(side, client) as (server, peer):
        house.pair()
        adopt = side.load()
        assert shown_by(side, client) == old, "it is loaded, and not in force"
        adopt()
        assert shown_by(side, client) == der(pair.certificate) != old
        server.send(b"to client")
        assert received(peer) == b"to client"
        peer.send(b"to server")
        assert received(server) == b"to server"
        assert peer.certificate == old


def test_a_handshake_under_way_ends_with_the_files_that_it_began_with(house: House) -> None:
    pair = house.pair()
    side = house.server(pair)
    old = der(pair.certificate)
    with linked() as (near, far):
        server, client = side.stream(near), house.client().stream(far, NAME)
        assert client.shake() is Shake.READS
        house.pair()
        side.load()()
        shake(server, client)
        assert client.certificate == old


def test_a_client_takes_new_files_for_new_streams_alone(house: House) -> None:
    server = house.server()
    client = house.client()
    with met(server, client) as (near, far):
        house.authorities[0].write_bytes(CertificateAuthority("another").certificate)
        client.load()()
        with pytest.raises(ssl.SSLCertVerificationError), met(server, client):
            pass
        near.send(b"hello")
        assert received(far) == b"hello"


def test_signs_and_expiries_are_those_of_the_files_in_force(house: House) -> None:
    pair = house.pair()
    revoked = house.write("revoked", house.authority.revoke())
    side = house.server(
        pair,
        client_certificates=REQUIRED,
        authorities=house.authorities,
        revocations=(revoked,),
    )
    assert side.files == (*pair, *house.authorities, revoked)
    kinds = [(expiry.kind, expiry.file) for expiry in side.expiries]
    assert kinds == [
        (Kind.CERTIFICATE, pair.certificate),
        (Kind.AUTHORITY, house.authorities[0]),
        (Kind.REVOCATIONS, revoked),
    ]
    assert side.expiries[0].ends == ends_of(pair.certificate)
    before = side.signs, side.expiries
    assert before[0] == signs_of(side.files)
    house.renew(pair, ends=5 * DAY)
    adopt = side.load()
    assert (side.signs, side.expiries) == before
    adopt()
    assert side.signs == signs_of(side.files) != before[0]
    assert side.expiries[0].ends == ends_of(pair.certificate)


def test_signs_are_of_the_files_before_they_were_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes in the meantime is loaded again."""

    def load(context: ssl.SSLContext, loaded: KeyPair) -> None:
        load_pair(context, loaded)
        house.renew(loaded)

    pair = house.pair()
    before = signs_of(pair)
    monkeypatch.setattr(sides, "load_pair", load)
    assert house.server(pair).signs == before != signs_of(pair)


def ends_of(certificate: Path) -> float:
    """Return when a certificate ends to be valid."""
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    return loaded.not_valid_after_utc.timestamp()


def test_a_client_knows_its_files(house: House) -> None:
    pair = house.pair("client.example", file="client")
    client = house.client(pair=pair)
    assert client.files == (*house.authorities, *pair)
    assert client.signs == signs_of(client.files)
    assert [it.file for it in client.expiries] == [pair.certificate, house.authorities[0]]
    assert house.client(authorities=()).expiries == ()


@pytest.mark.parametrize("broken", ["pair", "authority", "revocations"])
def test_a_wrong_file_leaves_a_server_as_it_was(house: House, broken: str) -> None:
    pair = house.pair()
    revoked = house.write("revoked", house.authority.revoke())
    side = house.server(
        pair,
        client_certificates=OPTIONAL,
        authorities=house.authorities,
        revocations=(revoked,),
    )
    client = house.client()
    before = side.signs, side.expiries, shown_by(side, client)
    wrong = {"pair": pair.key, "authority": house.authorities[0], "revocations": revoked}[broken]
    wrong.write_bytes(b"nothing")
    house.pair(file="other").certificate.replace(pair.certificate)
    with pytest.raises(ConfigurationError):
        side.load()
    assert (side.signs, side.expiries, shown_by(side, client)) == before


def test_a_wrong_file_leaves_a_client_as_it_was(house: House) -> None:
    server, client = house.server(), house.client()
    house.authorities[0].unlink()
    with pytest.raises(ConfigurationError):
        client.load()
    with met(server, client) as (_, stream):
        assert stream.certificate
