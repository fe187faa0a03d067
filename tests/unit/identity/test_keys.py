from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.errors import ConfigurationError
from gateway.identity.keys import public_key, secret_key

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def encoded(private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, form: Encoding) -> bytes:
    return private.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "key"


def test_a_secret_is_raw_bytes(path: Path) -> None:
    secret = b"\n" + bytes(range(40)) + b"\n"
    path.write_bytes(secret)
    assert secret_key(path).raw_value == secret


def test_a_secret_may_be_base64_as_in_pulsar_s_settings(path: Path) -> None:
    secret = os.urandom(32)
    path.write_bytes(b"data:;base64," + base64.b64encode(secret) + b"\n")
    assert secret_key(path).raw_value == secret


@pytest.mark.parametrize("form", [Encoding.DER, Encoding.PEM])
def test_a_public_key_is_der_or_pem(path: Path, form: Encoding) -> None:
    path.write_bytes(encoded(RSA, form))
    assert isinstance(public_key(path), RSAKey)
    path.write_bytes(encoded(EC, form))
    assert isinstance(public_key(path), ECKey)
    path.write_bytes(b"data:;base64," + base64.b64encode(encoded(EC, form)))
    assert isinstance(public_key(path), ECKey)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_the_three_curves_for_tokens_are_accepted(path: Path, curve: ec.EllipticCurve) -> None:
    path.write_bytes(encoded(ec.generate_private_key(curve), Encoding.DER))
    assert isinstance(public_key(path), ECKey)


@pytest.mark.parametrize("form", [Encoding.DER, Encoding.PEM])
def test_an_ed25519_key_is_accepted(path: Path, form: Encoding) -> None:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    path.write_bytes(key.public_bytes(form, PublicFormat.SubjectPublicKeyInfo))
    assert isinstance(public_key(path), OKPKey)


def _reasons_alone(value: bytes | str) -> str:
    """Name a test by its reason: keys are different bytes in each process."""
    return value if isinstance(value, str) else "file"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds 0 bytes, at least 32"),
        (b"hunter2", "holds 7 bytes, at least 32"),
        (b"data:;base64,aHVudGVyMg==", "holds 7 bytes, at least 32"),
        (b"data:;base64,hunter2!", "what follows is not base64"),
        (encoded(RSA, Encoding.PEM), "where a shared secret belongs"),
        (encoded(RSA, Encoding.DER), "where a shared secret belongs"),
        (encoded(EC, Encoding.DER), "where a shared secret belongs"),
        (bytes(70_000), "larger than 65536 bytes"),
    ],
    ids=_reasons_alone,
)
def test_a_file_that_is_no_secret_is_explained(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason) as failure:
        secret_key(path)
    assert str(path) in str(failure.value)
    assert "hunter2" not in str(failure.value)


def private(form: Encoding) -> bytes:
    return RSA.private_bytes(form, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no public key in PEM or DER form"),
        (bytes(range(64)), "no public key in PEM or DER form"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key in PEM"),
        (private(Encoding.PEM), "holds a private key. Get it with: openssl pkey"),
        (private(Encoding.DER), "openssl pkey"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n", "holds a certificate.* openssl x509"),
        (
            rsa.generate_private_key(65537, 1024)
            .public_key()
            .public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            "RSA of at least 2048 bits",
        ),
        (encoded(ec.generate_private_key(ec.SECP256K1()), Encoding.DER), "P-256, P-384 or P-521"),
        (
            ed448.Ed448PrivateKey.generate()
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "cannot be used",
        ),
    ],
    ids=_reasons_alone,
)
def test_a_file_that_is_no_public_key_is_explained(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason):
        public_key(path)


def test_a_missing_file_is_explained(path: Path) -> None:
    for load in (secret_key, public_key):
        with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
            load(path)


def test_the_type_of_a_secret(path: Path) -> None:
    path.write_bytes(os.urandom(32))
    assert type(secret_key(path)) is OctKey
