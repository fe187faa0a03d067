"""Keys that verify tokens, and the sets (RFC 7517) in which issuers publish them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

from gateway.errors import ConfigurationError
from gateway.identity.keys import SMALLEST_RSA, TokenKey, read_key_file

MOST_KEYS = 64
"""Keys of one set. Issuers have two to five; a token without a key's id is tried with all."""

_CURVES = frozenset({"P-256", "P-384", "P-521"})


class KeySource(Protocol):
    """A source of the keys of one issuer."""

    def of(self, id: str | None) -> Sequence[TokenKey]:
        """Return the keys that may verify a token. `id`: the key id that the token names; None: it
        names none."""
        ...

    def may_gain(self, id: str | None) -> bool:
        """Return whether a key with this id might be found by `renew`."""
        ...

    async def renew(self) -> bool:
        """Have the keys fetched again, and wait until that is done; return whether it succeeded."""
        ...


class FixedKeys:
    """A source of keys that have no ids and never change."""

    def __init__(self, keys: Sequence[TokenKey]) -> None:
        self._keys = tuple(keys)

    def of(self, _id: str | None) -> Sequence[TokenKey]:
        """Return all keys, because any of them may have signed the token."""
        return self._keys

    def may_gain(self, _id: str | None) -> bool:
        """Return False: the keys never change."""
        return False

    async def renew(self) -> bool:
        """Fetch nothing, because the keys never change. Return True, as after a fetch that
        succeeded."""
        return True


KeySet = tuple[tuple[str | None, TokenKey], ...]
"""Keys with their ids; None: the key has no id."""


def read_key_set(content: bytes, what: str) -> KeySet:
    """Return the keys of a JSON Web Key Set that may verify signatures, at least one key.

    Other keys of the set are skipped: symmetric keys, weak keys, keys for encryption, and keys of
    an unknown kind. Raises `ConfigurationError`, whose text begins with `what`, a description of
    the file.
    """
    try:
        listed = json.loads(content)["keys"]
        keys = [(_id_of(jwk), key) for jwk in listed if (key := _key(jwk)) is not None]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ConfigurationError(f"{what} holds no JSON Web Key Set") from None
    if not keys:
        raise ConfigurationError(f"{what} holds no key that verifies signatures")
    return tuple(keys[:MOST_KEYS])


def key_set(path: Path) -> KeySet:
    """Return the keys of a JSON Web Key Set in a file. Raises `ConfigurationError`."""
    what = f"The key set file {path}"
    return read_key_set(read_key_file(path, what), what)


def _id_of(written: dict[str, Any]) -> str | None:
    id = written.get("kid")
    return id if isinstance(id, str) else None


def _key(written: object) -> TokenKey | None:
    if not isinstance(written, dict) or written.get("use", "sig") != "sig":
        return None
    if written.get("kty") == "oct":  # joserfc would look at the secret, and warn of a short one
        return None
    try:
        key = import_key({name: value for name, value in written.items() if name != "d"})
    except (JoseError, ValueError, TypeError, LookupError):
        return None
    if isinstance(key, RSAKey) and key.raw_value.key_size >= SMALLEST_RSA:
        return key
    if isinstance(key, ECKey) and key.curve_name in _CURVES:
        return key
    return key if isinstance(key, OKPKey) and key.curve_name == "Ed25519" else None
