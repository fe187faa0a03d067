"""Mistakes in the settings of TLS, and in the files that they name."""

from __future__ import annotations

import ssl

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.support.certificates import self_signed
from tests.unit.errors.case import Case, config

PAIR, OTHER = self_signed("gateway.example"), self_signed("other.example")
LOCKED = load_pem_private_key(PAIR.key, None).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)
_BEFORE, _, _BEHIND = ssl.PEM_cert_to_DER_cert(PAIR.certificate.decode()).rpartition(b"gateway.e")
NAMELESS = ssl.DER_cert_to_PEM_cert(_BEFORE + b"\xffateway.e" + _BEHIND).encode()
BEGIN, END = b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n"

SHOWN = "certificates: [{certificate_file: crt, key_file: key}]"
FILES = {"crt": PAIR.certificate, "key": PAIR.key}
ASKING = "client_certificates: required, client_ca_file: crt"


def listener(more: str = "", shown: str = SHOWN) -> str:
    """Return a file whose listener has TLS."""
    return config(listener=f"tls: {{{shown}{more and f', {more}'}}}")


def cluster(tls: str, brokers: str = "pulsar+ssl://a:6651") -> str:
    """Return a file whose cluster has TLS."""
    return config(brokers=brokers, cluster=f"tls: {{{tls}}}")


CASES = [
    Case(
        "no certificate",
        listener(shown="certificates: []"),
        "gateway.yaml:2: listeners[0].tls.certificates: is empty; at least one",
    ),
    Case(
        "an old version of TLS",
        listener("minimum: '1.1'"),
        "gateway.yaml:2: listeners[0].tls.minimum: is not understood; one of '1.2' or '1.3'",
        files=FILES,
    ),
    Case(
        "client certificates without an authority",
        listener("client_certificates: optional"),
        (
            "gateway.yaml:2: listeners[0].tls.client_ca_file: is missing; the file of the "
            "authorities that sign clients' certificates"
        ),
        files=FILES,
    ),
    Case(
        "an authority without client certificates",
        listener("client_ca_file: crt"),
        (
            "gateway.yaml:2: listeners[0].tls.client_ca_file: has no effect: clients show no "
            "certificate; set client_certificates"
        ),
        files=FILES,
    ),
    Case(
        "TLS to brokers without TLS",
        cluster("verify_host: true", brokers="pulsar://a:6650"),
        (
            "gateway.yaml:3: clusters.main.tls: has no effect: no broker's URL says TLS; "
            "pulsar+ssl://host:port or kafka+ssl://host:port or tubemq+ssl://host:port"
        ),
    ),
    Case(
        "a flag that is neither true nor false",
        cluster("verify_host: maybe"),
        (
            "gateway.yaml:3: clusters.main.tls.verify_host: is neither true nor false; one of "
            "them, without quotes"
        ),
    ),
    Case(
        "a certificate that is none",
        listener(),
        "The certificate file crt holds no certificate in PEM form (BEGIN CERTIFICATE)",
        files=FILES | {"crt": PAIR.key},
    ),
    Case(
        "a certificate that is too large",
        listener(),
        "The certificate file crt is larger than 1048576 bytes: is it the right one?",
        files=FILES | {"crt": b"x" * (1024 * 1024 + 1)},
    ),
    Case(
        "a certificate for a name that is none",
        listener(),
        ("The names in the certificate file crt cannot be read: issue the certificate again"),
        files=FILES | {"crt": NAMELESS},
    ),
    Case(
        "a key that is none",
        listener(),
        (
            "The key file key holds no private key in PEM form. It must hold the key of the "
            "certificate, and no password may protect it"
        ),
        files=FILES | {"key": PAIR.certificate},
    ),
    Case(
        "a key behind a password",
        listener(),
        (
            "The key file key is protected by a password. Remove it with: openssl pkey -in <key "
            "file> -out <new file>"
        ),
        files=FILES | {"key": LOCKED},
    ),
    Case(
        "a key of another certificate",
        listener(),
        "The key in key is not the key of the certificate in crt. Both must be of one pair",
        files=FILES | {"key": OTHER.key},
    ),
    Case(
        "a key that cannot be read",
        listener(),
        (
            "OpenSSL cannot use the certificate in crt with the key in key. Both must be complete, "
            "and of one pair"
        ),
        files=FILES | {"key": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
    ),
    Case(
        "a list of revoked certificates that is none",
        listener(f"{ASKING}, crl_files: [crt]"),
        "The file of revoked certificates crt holds no list in PEM form (BEGIN X509 CRL)",
        files=FILES,
    ),
    Case(
        "a broker's authority that is none",
        cluster("ca_file: key"),
        "The certificate file key holds no certificate in PEM form (BEGIN CERTIFICATE)",
        files=FILES,
    ),
]
