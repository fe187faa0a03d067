"""Key and token files: readable, kept from others, and holding what they should.

A certificate, once the configuration can name one, is one more function here.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OctKey, RSAKey

from gateway.brokers.seal import SealKey
from gateway.config import model
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.errors import ConfigurationError
from gateway.identity.credential import TokenFile
from gateway.identity.keys import TokenKey, public_key, secret_key
from gateway.identity.token import TokenVerifier

DAY = 86_400.0

SOON = 7 * DAY
"""Seconds. A token that ends within a week is to be renewed now, not on its last night."""

_SECRET = stat.S_IRWXO
"""Rights of others that a secret must not have; groups are left to whoever set them up."""

_PUBLIC = stat.S_IWOTH
"""Whoever can replace a public key can make tokens; everybody may read it."""

_MALFORMED = (JoseError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def examine(configuration: model.Configuration, folder: Path, now: float) -> Iterator[Finding]:
    """Try every file that a configuration names. `now`: seconds since 1970.

    Names are shown relative to `folder`, the configuration's own, as they are written in it.
    """
    for listener in configuration.listeners:
        token = listener.identity.token
        if token is not None:
            yield from _verifying(token, listener.name, folder)
    for name, cluster in configuration.clusters.items():
        yield from _sealing(name, cluster.names.sealed, folder)
        if cluster.credential is not None:
            used = uses_credential(configuration, name)
            yield from _credential(cluster.credential.token_file, folder, now, used=used)
    if configuration.store is not None and configuration.store.password_file is not None:
        path = configuration.store.password_file
        yield _guarded(shown(path, folder), path, "the password of the store", _SECRET)


def uses_credential(configuration: model.Configuration, cluster: str) -> bool:
    """Whether a listener shows this cluster's brokers who the gateway is."""
    modes = {it.identity.mode for it in configuration.listeners if it.cluster == cluster}
    return bool(modes - {"pass-through"})


# -- keys that tokens are verified with ------------------------------------------------------


def _verifying(token: model.Token, listener: str, folder: Path) -> Iterator[Finding]:
    for path, read in ((token.secret_file, secret_key), (token.public_key_file, public_key)):
        if path is None:
            continue
        what = shown(path, folder)
        try:
            key = read(path)
            TokenVerifier([key], token.algorithms)
        except ConfigurationError as error:
            yield mistaken(what, error)
            continue
        used = f"{_described(key)}; verifies {', '.join(token.algorithms)} for {listener}"
        yield _guarded(what, path, used, _SECRET if isinstance(key, OctKey) else _PUBLIC)


def _described(key: TokenKey) -> str:
    if isinstance(key, OctKey):
        return f"a secret of {len(key.raw_value)} bytes"
    if isinstance(key, RSAKey):
        return f"an RSA public key of {key.raw_value.key_size} bits"
    return f"a public key of the curve {key.curve_name}"


# -- keys of sealed names --------------------------------------------------------------------


def _sealing(cluster: str, sealed: model.Sealed | None, folder: Path) -> Iterator[Finding]:
    if sealed is None:
        return
    if not sealed.keys:
        yield warn(
            f"sealing key of {cluster}",
            "none is named: each start makes its own",
            "Clients look up again after a restart, and several gateways would not open each "
            "other's names. For one gateway that is all right; otherwise make a key:",
            "head -c 32 /dev/urandom > seal.key && chmod 600 seal.key\n"
            "names: {sealed: {keys: [{file: seal.key}]}}",
        )
    for number, key in enumerate(sealed.keys):
        what = shown(key.file, folder)
        try:
            made = SealKey.from_file(key.file)
        except ConfigurationError as error:
            yield mistaken(what, error)
            continue
        does = "opens names" if number else "seals and opens names"
        yield _guarded(what, key.file, f"sealing key {made.key_id}; {does} of {cluster}", _SECRET)


# -- our own token ---------------------------------------------------------------------------


def _credential(path: Path, folder: Path, now: float, *, used: bool) -> Iterator[Finding]:
    what = shown(path, folder)
    try:
        data = TokenFile(path).current().data
    except ConfigurationError as error:
        yield mistaken(what, error)
        return
    yield _dated(what, path, claims(data), now)
    if not used:
        yield warn(
            what,
            "is not used: all listeners of its cluster are pass-through",
            "Take `credential` out, or choose identity.mode: verify.",
        )


def _dated(what: str, path: Path, held: Claims | None, now: float) -> Finding:
    if held is None:
        return warn(
            what,
            "does not hold a JSON Web Token",
            "Only brokers with a provider of their own take something else as a token.",
        )
    role = f'a token of the role "{held.role}"' if held.role else "a token without `sub`"
    if held.expires_at is not None and held.expires_at <= now:
        return fail(what, f"{role}, expired since {_date(held.expires_at)}", _RENEW)
    if held.begins_at is not None and held.begins_at > now:
        remedy = "Wait for it, or set this machine's clock right."
        return fail(what, f"{role}, not valid before {_date(held.begins_at)}", remedy)
    if held.expires_at is None:
        return _guarded(what, path, f"{role}, without an end", _SECRET)
    if held.expires_at - now < SOON:
        return warn(what, f"{role}, expires soon: {_date(held.expires_at)}", _RENEW)
    return _guarded(what, path, f"{role}, until {_date(held.expires_at)}", _SECRET)


_RENEW = "Put a newer token into the file; a running gateway reads it by itself."


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says of itself, believed by nobody. Seconds since 1970."""

    role: str | None
    begins_at: float | None
    expires_at: float | None


def claims(token: bytes) -> Claims | None:
    """Read a token without verifying it; None where it is no JSON Web Token."""
    try:
        held = json.loads(jws.extract_compact(token).payload or b"")
    except _MALFORMED:
        return None
    if not isinstance(held, dict):
        return None
    role = held.get("sub")
    return Claims(role if isinstance(role, str) else None, _time(held, "nbf"), _time(held, "exp"))


def _time(held: Mapping[str, Any], name: str) -> float | None:
    value = held.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and abs(value) < _FAR and isfinite(value) else None  # type: ignore[arg-type]


_FAR = 250_000_000_000
"""Seconds since 1970. Calendars end there; no token means it."""


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


# -- all files -------------------------------------------------------------------------------


def shown(path: Path, folder: Path) -> str:
    """A file as a person wrote it."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def mistaken(what: str, error: ConfigurationError) -> Finding:
    """The text of the error is "what is wrong. What would be right"."""
    wrong, _, right = str(error).partition(". ")
    return fail(what, wrong, right or "Name another file, or other algorithms.")


def _guarded(what: str, path: Path, detail: str, forbidden: int) -> Finding:
    """All is well, if others have none of these rights."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return fail(what, "is gone", "Name a file that stays.")
    if not mode & forbidden:
        return ok(what, detail)
    return warn(
        what,
        f"{detail}; everybody on this machine may {_rights(mode & forbidden)} it",
        "For a file (in Kubernetes, `defaultMode: 0400` of the secret's volume):",
        f"chmod o-rwx {path}" if forbidden == _SECRET else f"chmod o-w {path}",
    )


def _rights(mode: int) -> str:
    return "read" if mode & stat.S_IROTH else "write"
