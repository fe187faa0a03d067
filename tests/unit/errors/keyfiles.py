"""Mistakes in the names and contents of files that a configuration names."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.unit.errors.case import Case, config, kafka, verify

_PEM = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
P256 = generate_private_key(SECP256R1()).public_key().public_bytes(*_PEM)
ED448 = Ed448PrivateKey.generate().public_key().public_bytes(*_PEM)


FILES = [
    Case(
        "a missing file",
        verify("secret_file: secret"),
        (
            "gateway.yaml:2: listeners[0].identity.token.secret_file: cannot be read: no "
            "such file or directory; a path, relative to the configuration's folder"
        ),
    ),
    Case(
        "a file that is a folder",
        verify("secret_file: ."),
        ("gateway.yaml:2: listeners[0].identity.token.secret_file: is not a file; name a file"),
    ),
    Case(
        "an empty key file",
        verify("secret_file: secret"),
        (
            "gateway.yaml:2: listeners[0].identity.token.secret_file: is an empty file; name "
            "one with a key or token"
        ),
        files={"secret": b""},
    ),
    Case(
        "an impossible path",
        verify('secret_file: "a\\0b"'),
        (
            "gateway.yaml:2: listeners[0].identity.token.secret_file: is not a path; remove "
            "null characters"
        ),
    ),
    Case(
        "a short secret",
        verify("secret_file: secret"),
        (
            "The token secret file secret holds 5 bytes, at least 32 are needed. Make one "
            "with: bin/pulsar tokens create-secret-key --output <file>"
        ),
        files={"secret": b"12345"},
    ),
    Case(
        "a public key as a secret",
        verify("secret_file: secret"),
        (
            "The token secret file secret holds a public or private key, where a shared "
            "secret belongs. Name a public key as public_key_file instead"
        ),
        files={"secret": P256},
    ),
    Case(
        "a secret that is not base64",
        verify("secret_file: secret"),
        (
            "The token secret file secret begins with data:;base64, but what follows is "
            "not base64. Encode the key again, or put its raw bytes there"
        ),
        files={"secret": b"data:;base64,???"},
    ),
    Case(
        "a secret that is too large",
        verify("secret_file: secret"),
        "The token secret file secret is larger than 65536 bytes: is it the right one?",
        files={"secret": b"x" * 65_537},
    ),
    Case(
        "a private key as a public one",
        verify("public_key_file: key.pem"),
        (
            "The token public key file key.pem holds a private key. Get it with: openssl "
            "pkey -in <private key file> -pubout -out <file>"
        ),
        files={"key.pem": b"-----BEGIN PRIVATE KEY-----"},
    ),
    Case(
        "a certificate as a public key",
        verify("public_key_file: key.pem"),
        (
            "The token public key file key.pem holds a certificate. Get its key with: "
            "openssl x509 -in <certificate> -pubkey -noout"
        ),
        files={"key.pem": b"-----BEGIN CERTIFICATE-----"},
    ),
    Case(
        "an invalid public key",
        verify("public_key_file: key.pem"),
        (
            "The token public key file key.pem holds no public key in PEM or DER form. Get "
            "it with: openssl pkey -in <private key file> -pubout -out <file>"
        ),
        files={"key.pem": b"key"},
    ),
    Case(
        "a public key of an unsupported type",
        verify("public_key_file: key.pem"),
        (
            "The token public key file key.pem holds a key that cannot be used. It must be "
            "RSA of at least 2048 bits, of the curve P-256, P-384 or P-521, or Ed25519"
        ),
        files={"key.pem": ED448},
    ),
    Case(
        "a public key for other algorithms",
        verify("public_key_file: key.pem"),
        (
            "A token key (a public key of type EC) fits none of the algorithms RS256. Name "
            "one that it fits in algorithms, or another key"
        ),
        files={"key.pem": P256},
    ),
    Case(
        "a short sealing key",
        config(cluster="names: {sealed: {keys: [{file: seal.key}]}}"),
        (
            "The key file seal.key for sealed broker names must hold 32 to 4096 bytes. "
            "Make one with: head -c 32 /dev/urandom > seal.key"
        ),
        files={"seal.key": b"12345"},
    ),
    Case(
        "a sealing key of zeros",
        config(cluster="names: {sealed: {keys: [{file: seal.key}]}}"),
        (
            "The key file seal.key for sealed broker names holds one byte over and over, "
            "which everybody can guess. Make one with: head -c 32 /dev/urandom > seal.key"
        ),
        files={"seal.key": bytes(32)},
    ),
    Case(
        "a credential of white space",
        config(cluster="credential: {token_file: token}"),
        (
            "The token file token for the connection to the brokers is empty. It must hold "
            "one JSON Web Token"
        ),
        files={"token": b"\n"},
    ),
    Case(
        "a credential that is too large",
        config(cluster="credential: {token_file: token}"),
        (
            "The token file token for the connection to the brokers is larger than 16384 "
            "bytes. It must hold one JSON Web Token"
        ),
        files={"token": b"x" * 16_385},
    ),
]


def passwords(name: str, content: bytes, wrong: str) -> Case:
    """Return the case of a file of passwords by principal."""
    begins = "The passwords file passwords for the connection to the brokers"
    return Case(
        name,
        kafka(cluster="credential: {each_principal: {passwords_file: passwords}}"),
        f"{begins} {wrong}. It must hold a username and a password for each principal",
        files={"passwords": content},
    )


PASSWORDS = [
    passwords("no principals", b"# nobody", "names nobody"),
    passwords("principals that are not YAML", b"alice: {", "is not YAML, line 1"),
    passwords(
        "a principal that is there twice",
        b"alice: {username: a, password: b}\nalice: {username: c, password: d}\n",
        "has in line 2 a name again",
    ),
    passwords("too many principals", b"#" * (4 << 20 | 1), "has more than 4194304 bytes"),
    passwords(
        "a principal that is a number",
        b"7: {username: a, password: b}",
        "has a name, number 1, that is no text; put it in quotes",
    ),
    passwords(
        "a principal without a password",
        b"alice: {username: a}",
        "has under name 1 no username and password alone",
    ),
    passwords(
        "a password that is a number",
        b"alice: {username: a, password: 7}",
        "has under name 1 what is no text; put it in quotes",
    ),
    passwords(
        "a username with a colon",
        b'alice: {username: "a:b", password: b}',
        "has under name 1 a username with a colon",
    ),
]

CASES = [*FILES, *PASSWORDS]
