"""The files that a configuration names, with contents that the gateway accepts, for tests that have
a configuration alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import chain

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import RSAKey

from gateway.identity.scram import line
from tests.support.certificates import CertificateAuthority, self_signed

_HELD = {
    "token_file": "token",
    "password_file": "password",
    "secret_file": "random",
    "file": "random",
    "ca_file": "CA",
    "client_ca_file": "CA",
    "certificate_file": "certificate",
    "key_file": "key",
    "crl_files": "CRL",
    "htpasswd_file": "htpasswd",
    "credentials_file": "scram",
    "users_file": "users",
    "passwords_file": "passwords",
    "jwks_file": "jwks",
    "client_secret_file": "password",
    "pseudonym_key_file": "random",
}
"""By setting: what its file holds."""


def contents() -> Mapping[str, bytes]:
    """Return what files hold: a public key by the family of the algorithm, `CA` and `CRL` the
    certificate of an authority and what it revoked, `certificate` and `key` those of a pair."""
    form = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    authority, pair = CertificateAuthority(), self_signed("gateway.example")
    rsa, curve = generate_rsa(65537, 2048), generate_private_key(SECP256R1())
    return {
        "R": rsa.public_key().public_bytes(*form),
        "E": curve.public_key().public_bytes(*form),
        "CA": authority.certificate,
        "certificate": pair.certificate,
        "key": pair.key,
        "token": b"a.longer.token.here\n",
        "password": b"a password\n",
        "random": os.urandom(64),
        "htpasswd": b"alice:$2y$10$" + 53 * b"a",
        "scram": line("alice", "secret").encode(),
        "users": b"alice:secret",
        "passwords": b"alice: {username: alice, password: secret}\n",
        "jwks": json.dumps({"keys": [RSAKey.import_key(rsa.public_key()).as_dict()]}).encode(),
        "CRL": authority.revoke(),
    }


def named(part: object, held: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each file that a configuration names, rules excepted, and something that
    may stand in it. `held`: from `contents`."""
    if isinstance(part, list):
        yield from chain.from_iterable(named(entry, held) for entry in part)
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key == "public_key_file":
            yield value, held[part.get("algorithms", ["RS256"])[0][0]]
        elif key in _HELD:
            content = held[_HELD[key]]
            yield from ((file, content) for file in ([value] if isinstance(value, str) else value))
        elif key != "rules":
            yield from named(value, held)
