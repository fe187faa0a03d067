"""Keys and tokens of an authority that both the brokers and the gateway trust."""

import base64
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

# A token that expired this long ago is expired under any allowed clock skew.
LONG_AGO_S = 3600


def _claims(role: str, lifetime: float | None) -> dict[str, str | int]:
    claims: dict[str, str | int] = {"sub": role}
    if lifetime is not None:
        claims["exp"] = ceil(time.time() + lifetime)
    return claims


@dataclass(frozen=True)
class Authority:
    """Signs HS256 tokens with a secret of its own."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def token(self, role: str, lifetime: float | None = None) -> str:
        """Return a token for `role`, valid for `lifetime` seconds (rounded up to whole ones) or for
        ever."""
        return jwt.encode({"alg": "HS256"}, _claims(role, lifetime), OctKey.import_key(self.secret))

    def expired(self, role: str) -> str:
        return self.token(role, -LONG_AGO_S)


def forged(role: str, secret: bytes) -> str:
    """Return an HS256 token signed by hand, with a secret that the library would refuse to use."""
    parts = [
        _base64(json.dumps(part).encode())
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": role})
    ]
    parts.append(_base64(hmac.digest(secret, ".".join(parts).encode(), "sha256")))
    return ".".join(parts)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class KeyPair:
    """Signs RS256 tokens: for a gateway that has only the public key."""

    def __init__(self) -> None:
        self._key = RSAKey.generate_key(2048)

    def token(self, role: str, lifetime: float | None = None) -> str:
        return jwt.encode({"alg": "RS256"}, _claims(role, lifetime), self._key)

    def write_public(self, path: Path) -> Path:
        path.write_bytes(self._key.as_pem(private=False))
        return path

    def write_private(self, path: Path) -> Path:
        path.write_bytes(self._key.as_pem(private=True))
        return path
