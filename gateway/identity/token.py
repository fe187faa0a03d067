"""Verifies JSON Web Tokens as Pulsar's `AuthenticationProviderToken` does.

The algorithm that a token names must be one of the configured algorithms; the token does not choose
how it is verified. A client is told only that its token has expired, or that it is "not accepted",
because the name of the failed check would help only forgers; the log has the cause. This module
imports joserfc, so import it only if it is used.
"""

from __future__ import annotations

import json
import math
import warnings
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import OctKey

from gateway.config.model import PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS
from gateway.errors import ConfigurationError
from gateway.identity.keys import TokenKey
from gateway.identity.keysets import FixedKeys, KeySource
from gateway.identity.names import is_proper
from gateway.identity.verified import Verified
from gateway.wire.contract import Denial, Refusal

LARGEST_TOKEN = 16_384
"""Bytes. Tokens with many claims have about 2,000; HTTP servers refuse more than 8,000 or 16,000.
Verifying takes linear time, so this also bounds the cost of a stranger's first frame."""

LONGEST_CAUSE = 200
"""Characters of what a cause quotes from a token, which anybody may have written."""

NOT_ACCEPTED = Denial(Refusal.UNAUTHENTICATED, "token not accepted")
EXPIRED = Denial(Refusal.UNAUTHENTICATED, "token expired")
NO_KEYS = Denial(Refusal.NOT_READY, "the keys of the token's issuer cannot be had now")
"""Clients retry after this response; after a failed authentication they do not."""

# "EdDSA" is the usual name of what RFC 9864 calls "Ed25519", and issuers go on using it.
warnings.filterwarnings("ignore", "EdDSA is deprecated", SecurityWarning)

# Everything that joserfc or json raise for bytes that are not a token, even for endless nesting.
_MALFORMED = (JoseError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Unsettled:
    """A token whose key is not known yet. `outcome` fetches keys, and verifies the token then."""

    hashes_for: ClassVar[None] = None  # all who wait share one fetch

    def __init__(self, verifier: TokenVerifier, data: bytes, now_wall: float) -> None:
        self._verifier = verifier
        self._data = data
        self._now_wall = now_wall

    async def outcome(self) -> Verified | Denial:
        """Fetch the keys; return the principal that the token proves, or a denial."""
        return await self._verifier.verify_by_new_keys(self._data, self._now_wall)


class Issuers:
    """Verifies the tokens of several issuers, each by the issuer's own keys and rules. `verifiers`:
    by the name of the issuer in tokens (the claim `iss`); the verifier under None verifies all
    other tokens."""

    def __init__(self, verifiers: Mapping[str | None, TokenVerifier]) -> None:
        self._verifiers = verifiers
        self._only = next(iter(verifiers.values())) if len(verifiers) == 1 else None

    def verify(
        self, data: bytes, now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial | Unsettled:
        """Return the principal that a token proves, a denial, or `Unsettled` if its key is not
        known yet. `now_wall`: seconds since 1970."""
        if self._only is not None:
            return self._only.verify(data, now_wall)
        if len(data) > LARGEST_TOKEN:
            return _not_accepted(_TOO_LARGE)
        named = _claimed_issuer(data)
        verifier = self._verifiers.get(named) or self._verifiers.get(None)
        if verifier is None:
            return _not_accepted("no issuer here has this name", iss=named)
        return verifier.verify(data, now_wall)


def _claimed_issuer(data: bytes) -> str | None:
    """Return the issuer that a token names, before anything proves it."""
    try:
        _, payload, _ = data.split(b".")
        named = json.loads(urlsafe_b64decode(payload + b"=="))["iss"]
    except _MALFORMED:
        return None
    return named if isinstance(named, str) else None


class TokenVerifier:
    """Verifies the tokens of one issuer by its `keys`, and only by these `algorithms`.

    The keys are either shared secrets or public keys, never both, so that no token can make the
    gateway use a public key as a shared secret. `clock_skew`: seconds by which the claims `exp` and
    `nbf` may be missed. `audience`, `issuer`: if given, the token must have the same.

    Raises `ConfigurationError` if keys and algorithms do not fit each other.
    """

    def __init__(
        self,
        keys: Sequence[TokenKey] | KeySource,
        algorithms: Collection[str],
        principal_claim: str = "sub",
        clock_skew: float = 0.0,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        _check_algorithms(algorithms)
        if isinstance(keys, Sequence):
            for key in keys:
                _check_key(key, algorithms)
            if not keys:
                raise ConfigurationError("Verifying tokens needs the keys of their issuer")
            keys = FixedKeys(keys)
        self._keys = keys
        self._algorithms = tuple(algorithms)
        self._registry = _registry(algorithms)
        self._principal_claim = principal_claim
        self._clock_skew = clock_skew
        self._audience = audience
        self._issuer = issuer

    def verify(
        self, data: bytes, now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial | Unsettled:
        """Return the principal that a token proves, a denial, or `Unsettled` if its key is not
        known yet. `now_wall`: seconds since 1970."""
        token = self._read(data)
        if isinstance(token, Denial):
            return token
        id = _key_id(token)
        keys = self._keys.of(id)
        if any(self._signed(token, key) for key in keys):
            return self._judge(token, now_wall)
        if self._keys.may_gain(id):
            return Unsettled(self, data, now_wall)
        cause = "no key fits the signature" if keys else "there is no key with this id"
        return _not_accepted(cause, kid=id, iss=_claimed_issuer(data))

    async def verify_by_new_keys(self, data: bytes, now_wall: float) -> Verified | Denial:
        """Fetch the keys again, and verify the token by them; return the principal that it proves,
        or a denial."""
        fetched = await self._keys.renew()
        answer = self.verify(data, now_wall)
        if not isinstance(answer, Unsettled):
            return answer
        if not fetched:
            return NO_KEYS
        return _not_accepted("no key of the issuer fits", iss=_claimed_issuer(data))

    def _read(self, data: bytes) -> jws.CompactSignature | Denial:
        if len(data) > LARGEST_TOKEN:
            return _not_accepted(_TOO_LARGE)
        try:
            token = jws.extract_compact(data, registry=self._registry)
            algorithm = token.headers()["alg"]
        except _MALFORMED:
            return _not_accepted("this is no JSON Web Token")
        if algorithm not in self._algorithms:
            return _not_accepted("the algorithm is not allowed", alg=algorithm)
        return token

    def _judge(self, token: jws.CompactSignature, now_wall: float) -> Verified | Denial:
        """Return what the claims of a token with a valid signature prove."""
        try:
            claims = json.loads((token.payload or b"").decode())
        except _MALFORMED:
            claims = None
        if not isinstance(claims, dict):
            return _not_accepted("the claims are no JSON object")
        name = _first(claims.get(self._principal_claim))
        if not name or not is_proper(name):
            return _not_accepted("this is no name of a principal", **{self._principal_claim: name})
        return self._misdirected(claims) or self._in_time(name, claims, now_wall)

    def _signed(self, token: jws.CompactSignature, key: TokenKey) -> bool:
        try:
            return jws.validate_compact(token, key, registry=self._registry)
        except _MALFORMED:  # for example, another kind of key
            return False

    def _misdirected(self, claims: dict[str, Any]) -> Denial | None:
        """Return the denial of a token for another audience, or of another issuer."""
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if self._audience is not None and self._audience not in audiences:
            return _not_accepted(f"the audience is not {self._audience}", aud=audience)
        if self._issuer is not None and claims.get("iss") != self._issuer:
            return _not_accepted(f"the issuer is not {self._issuer}", iss=claims.get("iss"))
        return None

    def _in_time(self, name: str, claims: dict[str, Any], now: float) -> Verified | Denial:
        """Check the validity (RFC 7519 sections 4.1.4 and 4.1.5): from `nbf` until before `exp`."""
        try:
            begins = _seconds(claims.get("nbf"), -math.inf)
            ends = _seconds(claims.get("exp"), math.inf) + self._clock_skew
        except (ValueError, OverflowError):
            return _not_accepted("these are no dates", nbf=claims.get("nbf"), exp=claims.get("exp"))
        if now >= ends:
            return replace(EXPIRED, cause=_quoted(exp=claims["exp"]))
        if now < begins - self._clock_skew:
            return _not_accepted("it is not valid yet", nbf=claims["nbf"])
        return Verified(name, ends if ends < math.inf else None)


def _not_accepted(cause: str, **stated: object) -> Denial:
    """Return the denial of a token. `stated`: the token's claims that show the cause; they are not
    verified."""
    return replace(NOT_ACCEPTED, cause=f"{cause} ({_quoted(**stated)})" if stated else cause)


def _quoted(**stated: object) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in stated.items())[:LONGEST_CAUSE]


_TOO_LARGE = f"it has more than {LARGEST_TOKEN} bytes"


def _key_id(token: jws.CompactSignature) -> str | None:
    try:
        id = token.headers().get("kid")
    except _MALFORMED:
        return None
    return id if isinstance(id, str) else None


def _first(claim: object) -> str | None:
    """Return a text claim; of a list the first entry, as Pulsar does."""
    entry = claim[0] if isinstance(claim, list) and claim else claim
    return entry if isinstance(entry, str) else None


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
