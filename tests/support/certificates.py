"""Certificates for tests: of an authority, and self-signed ones, which are their own authority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

from gateway.tls.files import KeyPair

DAY = timedelta(days=1)

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Certified(NamedTuple):
    """Certificate and key in PEM form."""

    certificate: bytes
    key: bytes

    def written(self, folder: Path, name: str = "tls") -> KeyPair:
        """Write both to files of a folder."""
        pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
        pair.certificate.write_bytes(self.certificate)
        pair.key.write_bytes(self.key)
        return pair


@dataclass(frozen=True)
class Wanted:
    """The content of a certificate. `names`: host names and addresses. `uris`: such as SPIFFE ids.
    `common`: the common name of the subject, if any. `ends`: when its validity ends. `lives`: for
    how long it is valid by then. `for_clients`: for TLS clients alone. `issuer_at`: where its
    issuer's certificate is, if it says so."""

    names: Sequence[str] = ()
    uris: Sequence[str] = ()
    common: str = "test"
    ends: timedelta = DAY
    lives: timedelta = 30 * DAY
    for_clients: bool = False
    issuer_at: str = ""

    @property
    def alternatives(self) -> list[x509.GeneralName]:
        uris = [x509.UniformResourceIdentifier(uri) for uri in self.uris]
        return [*map(_alternative, self.names), *uris]


@dataclass
class CertificateAuthority:
    """Signs certificates, and lists those that it has revoked."""

    name: str = "test authority"
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        wanted = Wanted(common=self.name)
        self._subject = _subject(self.name)
        self._certificate = _sign(wanted, self.key, self._subject, self.key, authority=True)
        self._revoked: list[int] = []

    @property
    def certificate(self) -> bytes:
        """Return its own certificate in PEM form."""
        return self._certificate.public_bytes(Encoding.PEM)

    def issue(self, wanted: Wanted, key: PrivateKey | None = None) -> Certified:
        """Return a certificate with its key, P-256 unless given."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        return _certified(_sign(wanted, key, self._subject, self.key, authority=False), key)

    def intermediate(self, name: str) -> CertificateAuthority:
        """Return another authority, whose certificate this one signs."""
        other = CertificateAuthority(name)
        wanted = Wanted(common=name)
        other._certificate = _sign(wanted, other.key, self._subject, self.key, authority=True)
        return other

    def revoke(self, *issued: Certified, due: timedelta = DAY) -> bytes:
        """Revoke certificates, and return the list of all that are revoked (CRL), in PEM form.
        `due`: when the next list is."""
        now = datetime.now(UTC)
        for each in issued:
            certificate = x509.load_pem_x509_certificate(each.certificate)
            self._revoked.append(certificate.serial_number)
        builder = x509.CertificateRevocationListBuilder(self._subject, now - 30 * DAY, now + due)
        for serial in self._revoked:
            revoked = x509.RevokedCertificateBuilder(serial, now - DAY).build()
            builder = builder.add_revoked_certificate(revoked)
        return builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM)


def self_signed(host: str) -> Certified:
    """Return a certificate for a host name or an address, valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    wanted = Wanted([host], common=host)
    return _certified(_sign(wanted, key, _subject(host), key, authority=True), key)


def _certified(certificate: x509.Certificate, key: PrivateKey) -> Certified:
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certified(certificate.public_bytes(Encoding.PEM), key.private_bytes(*form))


# Contexts of Python 3.13 want an authority to say what its key is for. The signature is for a
# certificate that a server signed itself.
_AUTHORITY = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _sign(
    wanted: Wanted,
    key: PrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    ends = datetime.now(UTC) + wanted.ends
    number = x509.random_serial_number()
    builder = (
        x509.CertificateBuilder(issuer, _subject(wanted.common), key.public_key(), number)
        .not_valid_before(ends - wanted.lives)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if wanted.alternatives:
        names = x509.SubjectAlternativeName(wanted.alternatives)
        builder = builder.add_extension(names, critical=False)
    if authority:
        builder = builder.add_extension(_AUTHORITY, critical=True)
    if wanted.for_clients:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
    if wanted.issuer_at:
        place = x509.UniformResourceIdentifier(wanted.issuer_at)
        access = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, place)
        builder = builder.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
    return builder.sign(issuer_key, SHA256())


def _subject(common: str) -> x509.Name:
    named = [x509.NameAttribute(x509.NameOID.COMMON_NAME, common)] if common else []
    return x509.Name(named)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
