"""Makes the verifier of tokens from the configuration, with the keys of all issuers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from gateway.config import model
from gateway.identity.keys import TokenKey, public_key, read_key_file, secret_key
from gateway.identity.keysets import KeySource, key_set
from gateway.identity.token import Issuers, TokenVerifier
from gateway.telemetry.figures import IssuerFigures
from gateway.verifiers import Needs
from gateway.verifiers.changing import PAUSE, ChangingKeys, Fetch

FILE_PAUSE = 10.0
"""Seconds after which a key set in a file is read again."""


def make_verifier(settings: model.Token, needs: Needs) -> Issuers:
    """Return the verifier for these settings. Tasks that fetch keys are added to `needs`. Raises
    `ConfigurationError`."""
    verifiers = {
        issuer.issuer: TokenVerifier(
            _source(issuer, needs),
            issuer.algorithms,
            principal_claim=issuer.principal_claim,
            clock_skew=issuer.clock_skew,
            audience=issuer.audience,
            issuer=issuer.issuer,
        )
        for issuer in settings.all_issuers()
    }
    return Issuers(verifiers)


def _source(issuer: model.Issuer, needs: Needs) -> KeySource | list[TokenKey]:
    if issuer.secret_file is not None:
        return [secret_key(issuer.secret_file)]
    if issuer.public_key_file is not None:
        return [public_key(issuer.public_key_file)]
    if issuer.jwks_file is not None:
        return _set_in_file(issuer.jwks_file, needs)
    name, fetch = keys_of(issuer)
    return _changing(name, fetch, needs, PAUSE)


def keys_of(issuer: model.Issuer) -> tuple[str, Fetch]:
    """Return an issuer's name for logs and metrics, and a function that fetches the issuer's keys
    from its server. Raises `ConfigurationError`."""
    from gateway.remote.fetching import Fetcher  # only if needed, as its HTTP takes 60 ms

    fetcher = Fetcher(issuer.ca_file)
    if issuer.jwks_url is not None:
        return issuer.jwks_url, partial(fetcher.key_set, issuer.jwks_url)
    assert issuer.issuer is not None  # `discovery` needs it, as the configuration was checked
    return issuer.issuer, partial(fetcher.discovered, issuer.issuer)


def _set_in_file(path: Path, needs: Needs) -> ChangingKeys:
    async def fetch() -> bytes:
        return await trio.to_thread.run_sync(read_key_file, path, f"The key set file {path}")

    keys = _changing(str(path), fetch, needs, FILE_PAUSE)
    keys.adopt(key_set(path))
    return keys


def _changing(name: str, fetch: Fetch, needs: Needs, pause: float) -> ChangingKeys:
    figures = needs.issuers.setdefault(name, IssuerFigures())
    keys = ChangingKeys(name, fetch, figures, needs.log, pause)
    needs.tasks.append(keys.run)
    return keys
