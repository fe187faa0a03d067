"""Authenticates clients by their TLS certificates.

The TLS handshake has already verified the certificate by the listener's authorities. In CONNECT,
Pulsar's clients say that they authenticate this way by the method `tls`, whose data are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from gateway.config import model
from gateway.identity.names import is_proper
from gateway.identity.verified import Verified
from gateway.wire.contract import Denial, Refusal

NO_CERTIFICATE = Denial(Refusal.UNAUTHENTICATED, "a TLS certificate is needed")
EXPIRED = Denial(Refusal.UNAUTHENTICATED, "the TLS certificate has expired")
NO_NAME = Denial(Refusal.UNAUTHENTICATED, "the TLS certificate holds no name that is accepted here")

# Authorities may sign, and OpenSSL may accept, what this library cannot read.
_UNREADABLE = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)

_SPIFFE = "spiffe://"


def make_verifier(settings: model.Certificates, _needs: object) -> CertificateVerifier:
    """Return the verifier for these settings."""
    return CertificateVerifier(settings.names)


class CertificateVerifier:
    """Takes a client's principal from its certificate. The principal is the first name in the
    certificate of one of the `kinds`, which are tried in their order; see `NAMES`."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds

    def verify(
        self, _data: bytes, now_wall: float, certificate: bytes | None = None
    ) -> Verified | Denial:
        """Return the principal of a certificate (DER) that the TLS handshake has verified, and when
        the certificate expires. Return a denial if there is no certificate, if it has expired, or
        if it has no proper name of the configured kinds."""
        if certificate is None:
            return NO_CERTIFICATE
        try:
            read = x509.load_der_x509_certificate(certificate)
            ends = read.not_valid_after_utc.timestamp()
            if now_wall >= ends:  # a resumed session is not verified again
                return EXPIRED
            names = (name for kind in self._kinds for name in NAMES[kind](read))
            name = next(names, None)
        except _UNREADABLE:
            return NO_NAME
        if name is None or not is_proper(name):
            return NO_NAME
        return Verified(name, ends)


def _alternatives(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        names = certificate.extensions.get_extension_for_oid(
            ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        ).value
    except x509.ExtensionNotFound:
        return None
    assert isinstance(names, x509.SubjectAlternativeName)
    return names


def _uris(certificate: x509.Certificate) -> list[str]:
    names = _alternatives(certificate)
    return [] if names is None else names.get_values_for_type(x509.UniformResourceIdentifier)


def _spiffe(certificate: x509.Certificate) -> Iterator[str]:
    """Yield the SPIFFE ID. A certificate with several is none (X.509-SVID section 2)."""
    ids = [uri for uri in _uris(certificate) if uri.startswith(_SPIFFE)]
    if len(ids) == 1:
        yield ids[0]


def _dns(certificate: x509.Certificate) -> list[str]:
    names = _alternatives(certificate)
    return [] if names is None else names.get_values_for_type(x509.DNSName)


def _email(certificate: x509.Certificate) -> list[str]:
    names = _alternatives(certificate)
    return [] if names is None else names.get_values_for_type(x509.RFC822Name)


def _common_name(certificate: x509.Certificate) -> list[str]:
    """Return the last common name, which is the most specific one."""
    attributes = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(attribute.value) for attribute in attributes[-1:]]


def _subject(certificate: x509.Certificate) -> list[str]:
    written = certificate.subject.rfc4514_string()
    return [written] if written else []


NAMES: Mapping[str, Callable[[x509.Certificate], Iterator[str] | list[str]]] = {
    "spiffe": _spiffe,
    "uri": _uris,
    "dns": _dns,
    "email": _email,
    "common_name": _common_name,
    "subject": _subject,
}
"""The names of a certificate, by their kind."""
