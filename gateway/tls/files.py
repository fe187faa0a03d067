"""Reads certificates and keys from PEM files into contexts of OpenSSL.

OpenSSL says little about a file that it refuses, so each error here names the file, what is wrong
with it, and what it must hold.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from gateway.errors import ConfigurationError

_LARGEST_FILE = 1024 * 1024
"""Bytes. All authorities of an operating system together take 250 KB: a larger file is a wrong
path."""

_UNREADABLE = (
    ValueError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` raises for certificates that it does not understand, though OpenSSL may."""

_MISMATCH = "KEY_VALUES_MISMATCH"


class Kind(StrEnum):
    """What a file contains."""

    CERTIFICATE = "certificate"
    AUTHORITY = "authority"
    REVOCATIONS = "revocations"


class Expiry(NamedTuple):
    """When the content of a file expires. `ends`: seconds since 1970; for certificates when the
    first of them expires, for a list of revoked certificates when the next list is due."""

    kind: Kind
    file: Path
    ends: float


class KeyPair(NamedTuple):
    """Two files: a certificate, followed by the certificates of its chain, and the certificate's
    key."""

    certificate: Path
    key: Path


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a certificate and its key into a context. Raises `ConfigurationError` if a file cannot
    be used, or the key is not the certificate's."""
    certificates_of(pair.certificate)
    key = _content(pair.key, f"The key file {pair.key}")
    if b"PRIVATE KEY-----" not in key:
        raise ConfigurationError(
            f"The key file {pair.key} holds no private key in PEM form. "
            "It must hold the key of the certificate, and no password may protect it"
        )

    def refuse() -> str:
        raise ConfigurationError(
            f"The key file {pair.key} is protected by a password. Remove it with: "
            "openssl pkey -in <key file> -out <new file>"
        )

    try:
        context.load_cert_chain(pair.certificate, pair.key, refuse)
    except OSError as error:
        if isinstance(error, ssl.SSLError) and error.reason == _MISMATCH:
            text = f"The key in {pair.key} is not the key of the certificate in {pair.certificate}"
            raise ConfigurationError(f"{text}. Both must be of one pair") from None
        raise ConfigurationError(
            f"OpenSSL cannot use the certificate in {pair.certificate} with the key in {pair.key}. "
            "Both must be complete, and of one pair"
        ) from None


def load_authorities(context: ssl.SSLContext, path: Path) -> None:
    """Make a context trust the authorities whose certificates are in a file. Raises
    `ConfigurationError` if the file cannot be used."""
    certificates_of(path)
    _trust(context, path)


def load_revocations(context: ssl.SSLContext, path: Path) -> None:
    """Make a context refuse the certificates that are in a file's list of revoked certificates
    (CRL). Raises `ConfigurationError` if the file cannot be used."""
    revocations_of(path)
    _trust(context, path)
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _trust(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(path)
    except OSError as error:  # the file was replaced after it had been looked at
        raise ConfigurationError(f"OpenSSL cannot load {path}: {error}") from None


def revocations_of(path: Path) -> x509.CertificateRevocationList:
    """Return the list of revoked certificates that is in a file. Raises `ConfigurationError` if the
    file cannot be read or has no such list."""
    what = f"The file of revoked certificates {path}"
    try:
        return x509.load_pem_x509_crl(_content(path, what))
    except _UNREADABLE:
        raise ConfigurationError(f"{what} holds no list in PEM form (BEGIN X509 CRL)") from None


def expiries_of(
    certificates: Iterable[Path], authorities: Iterable[Path], revocations: Iterable[Path]
) -> Iterator[Expiry]:
    """Yield when the content of each file expires. Raises `ConfigurationError` if a file cannot be
    read."""
    kinds = (Kind.CERTIFICATE, certificates), (Kind.AUTHORITY, authorities)
    for kind, paths in kinds:
        for path in paths:
            ends = min(
                certificate.not_valid_after_utc.timestamp() for certificate in certificates_of(path)
            )
            yield Expiry(kind, path, ends)
    for path in revocations:
        due = revocations_of(path).next_update_utc
        yield Expiry(Kind.REVOCATIONS, path, math.inf if due is None else due.timestamp())


def certificates_of(path: Path) -> list[x509.Certificate]:
    """Return all certificates in a file. Raises `ConfigurationError` if the file cannot be read or
    has no certificate."""
    what = f"The certificate file {path}"
    try:
        return x509.load_pem_x509_certificates(_content(path, what))
    except _UNREADABLE:
        raise ConfigurationError(
            f"{what} holds no certificate in PEM form (BEGIN CERTIFICATE)"
        ) from None


def names_of(path: Path) -> tuple[str, ...]:
    """Return the host names for which the first certificate in a file is valid, in lower case (RFC
    6125 section 6.4): its alternative names, or its common name if it has no alternative names.
    Raises `ConfigurationError` if the file or the names cannot be read."""
    certificate = certificates_of(path)[0]
    try:
        return names_in(certificate)
    except _UNREADABLE:
        raise ConfigurationError(
            f"The names in the certificate file {path} cannot be read: issue the certificate again"
        ) from None


def common_name_of(certificate: bytes) -> str | None:
    """Return the common name in a certificate (DER); of several, the most specific. Return None if
    there is no common name, or if the certificate cannot be read."""
    try:
        subject = x509.load_der_x509_certificate(certificate).subject
    except _UNREADABLE:
        return None
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else None


def names_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the host names for which a certificate is valid; see `names_of`. Raises `ValueError`
    or another error of `cryptography` if the names break the standard."""
    try:
        extension = certificate.extensions.get_extension_for_oid(
            ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        ).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return tuple(str(name.value).lower() for name in common)
    assert isinstance(extension, x509.SubjectAlternativeName)
    return tuple(name.lower() for name in extension.get_values_for_type(x509.DNSName))


def _content(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{what} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise ConfigurationError(
            f"{what} is larger than {_LARGEST_FILE} bytes: is it the right one?"
        )
    return content
