"""Verifies JSON Web Tokens as Pulsar's `AuthenticationProviderToken` does.

A token's own algorithm is compared with the configuration and never followed. A client learns only
that its token has expired or is "not accepted": naming the failed check would help only forgers.
This module loads joserfc: import it only where it is used.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from gateway.config import model
from gateway.config.model import PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS
from gateway.errors import ConfigurationError
from gateway.identity.keys import TokenKey, public_key, secret_key
from gateway.wire.contract import Denial, Refusal

LARGEST_TOKEN = 16_384
"""Bytes. Tokens with many claims have about 2,000; HTTP servers refuse more than 8,000 or 16,000.
Verifying takes linear time, so this also bounds the cost of a stranger's first frame."""

LONGEST_NAME = 2048
"""Characters of a principal. SPIFFE IDs have at most so many, other names fewer. A principal is
kept as long as its connection, and in each limit per principal."""

NOT_ACCEPTED = Denial(Refusal.UNAUTHENTICATED, "token not accepted")
EXPIRED = Denial(Refusal.UNAUTHENTICATED, "token expired")

# Everything that joserfc or json raise for bytes that are not a token, even for endless nesting.
_MALFORMED = (JoseError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Verified:
    """The principal of a token, and the wall time (seconds) of its expiry, or None for never."""

    name: str
    expires_at: float | None


def make_verifier(settings: model.Token) -> TokenVerifier:
    """Return the verifier of a configured method. Raises `ConfigurationError`."""
    secrets = [secret_key(path) for path in [settings.secret_file] if path]
    keys = [public_key(path) for path in [settings.public_key_file] if path]
    return TokenVerifier(
        [*secrets, *keys],
        settings.algorithms,
        principal_claim=settings.principal_claim,
        clock_skew=settings.clock_skew,
        audience=settings.audience,
        issuer=settings.issuer,
    )


class TokenVerifier:
    """Verifies tokens by any of `keys` and only by `algorithms`.

    Shared secrets and public keys are never used together: a token must not be able to have a
    public key taken for a shared secret. `clock_skew`: seconds of grace for `exp` and `nbf`.
    `audience` and `issuer`, if given, must match the token's.

    Raises `ConfigurationError` if keys and algorithms do not fit each other.
    """

    def __init__(
        self,
        keys: Sequence[TokenKey],
        algorithms: Collection[str],
        principal_claim: str = "sub",
        clock_skew: float = 0.0,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        _check_algorithms(algorithms)
        for key in keys:
            _check_key(key, algorithms)
        if not keys:
            raise ConfigurationError("Verifying tokens needs a secret_file or a public_key_file")
        self._keys = tuple(keys)
        self._registry = _registry(algorithms)
        self._principal_claim = principal_claim
        self._clock_skew = clock_skew
        self._audience = audience
        self._issuer = issuer

    def verify(self, data: bytes, now_wall: float) -> Verified | Denial:
        """Return the principal that a token proves, at a wall time in seconds since 1970."""
        claims = self._claims(data) if len(data) <= LARGEST_TOKEN else None
        if claims is None:
            return NOT_ACCEPTED
        name = _first(claims.get(self._principal_claim))
        if not name or not _is_proper(name) or not self._is_for_us(claims):
            return NOT_ACCEPTED
        return self._in_time(name, claims, now_wall)

    def _claims(self, data: bytes) -> dict[str, Any] | None:
        """Return the claims, if one of the keys signed them."""
        try:
            token = jws.extract_compact(data, registry=self._registry)
            if not any(self._signed(token, key) for key in self._keys):
                return None
            claims = json.loads((token.payload or b"").decode())
        except _MALFORMED:
            return None
        return claims if isinstance(claims, dict) else None

    def _signed(self, token: jws.CompactSignature, key: TokenKey) -> bool:
        try:
            return jws.validate_compact(token, key, registry=self._registry)
        except _MALFORMED:  # for example, another kind of key
            return False

    def _is_for_us(self, claims: dict[str, Any]) -> bool:
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        return (self._audience is None or self._audience in audiences) and (
            self._issuer is None or claims.get("iss") == self._issuer
        )

    def _in_time(self, name: str, claims: dict[str, Any], now: float) -> Verified | Denial:
        """Check the validity (RFC 7519 sections 4.1.4 and 4.1.5): from `nbf` until before `exp`."""
        try:
            begins = _seconds(claims.get("nbf"), -math.inf)
            ends = _seconds(claims.get("exp"), math.inf) + self._clock_skew
        except (ValueError, OverflowError):
            return NOT_ACCEPTED
        if now >= ends:
            return EXPIRED
        if now < begins - self._clock_skew:
            return NOT_ACCEPTED
        return Verified(name, ends if ends < math.inf else None)


def _first(claim: object) -> str | None:
    """Return a text claim; of a list the first entry, as Pulsar does."""
    entry = claim[0] if isinstance(claim, list) and claim else claim
    return entry if isinstance(entry, str) else None


def _is_proper(name: str) -> bool:
    """Return true if a name can be a principal.

    Principals are sent to brokers as UTF-8, which cannot encode half of a surrogate pair. A name
    with control characters could look like another one in a list, and no issuer means to give one.
    """
    if len(name) > LONGEST_NAME:
        return False
    return not any(unicodedata.category(it) in ("Cc", "Cs") for it in name)


def _seconds(claim: object, absent: float) -> float:
    """Read a NumericDate. NaN is refused: no comparison with it is true."""
    if claim is None:
        return absent
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not math.isfinite(claim):
        raise ValueError("not a NumericDate")
    return float(claim)


def _registry(algorithms: Collection[str]) -> jws.JWSRegistry:
    """Return a registry that ignores unknown header fields (except `crit`) and bounds all sizes."""
    registry = jws.JWSRegistry(algorithms=list(algorithms), strict_check_header=False)
    registry.max_header_length = registry.max_payload_length = LARGEST_TOKEN
    return registry


def _check_algorithms(algorithms: Collection[str]) -> None:
    known = (*SECRET_ALGORITHMS, *PUBLIC_KEY_ALGORITHMS)
    unknown = [name for name in algorithms if name not in known]
    if unknown or not algorithms:
        raise ConfigurationError(
            f"Token algorithms {', '.join(unknown) or '(none)'} cannot be used; "
            f"name one or more of {', '.join(known)}"
        )
    if len({name in SECRET_ALGORITHMS for name in algorithms}) > 1:
        raise ConfigurationError(
            f"Token algorithms {', '.join(algorithms)} mix shared secrets (HS...) with public "
            "keys; name either kind"
        )


def _check_key(key: TokenKey, algorithms: Collection[str]) -> None:
    if not any(_fits(key, name) for name in algorithms):
        raise ConfigurationError(
            f"A token key ({_describe(key)}) fits none of the algorithms {', '.join(algorithms)}. "
            "Name one that it fits in algorithms, or another key"
        )


def _fits(key: TokenKey, algorithm: str) -> bool:
    try:
        jws.JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    # RFC 7518 section 3.2: a secret is at least as large as the hash.
    return not isinstance(key, OctKey) or len(key.raw_value) * 8 >= int(algorithm[2:])


def _describe(key: TokenKey) -> str:
    if isinstance(key, OctKey):
        return f"a secret of {len(key.raw_value)} bytes"
    return f"a public key of type {key.key_type}"
