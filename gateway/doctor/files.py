"""Checks the files of keys, tokens and passwords: each must be readable, must be protected from
other users, and must have valid content.

The files of certificates and of their keys are checked by `tls_files`.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
from gateway.identity.credential import PasswordFile, TokenFile
from gateway.identity.each_principal import EachPrincipal
from gateway.identity.keys import TokenKey, public_key, secret_key
from gateway.identity.token import TokenVerifier
from gateway.protocols import PLUGINS

DAY = 86_400.0

SOON = 7 * DAY
"""Seconds. Renew a token in its last week, not in its last night."""

SECRET = stat.S_IRWXO
"""Rights of other users that a secret must not have; groups are the administrator's choice."""

_PUBLIC = stat.S_IWOTH
"""Other users may read a public key, but must not replace it: they could make tokens then."""

_MALFORMED = (JoseError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def examine(configuration: model.Configuration, folder: Path, now: float) -> Iterator[Finding]:
    """Check each file of keys, tokens and passwords that a configuration names. `now`: seconds
    since 1970.

    `folder`: the folder of the configuration file. Findings show paths relative to it, as the
    configuration has them.
    """
    for listener in configuration.listeners:
        token = listener.identity.token
        if token is not None:
            yield from _check_keys(token, listener.name, folder)
        yield from _check_users(listener, folder)
    for name, cluster in configuration.clusters.items():
        if not PLUGINS[configuration.protocol_of(name)].numbers_brokers:  # they have no names
            yield from _check_seals(name, cluster.names.sealed, folder)
        if cluster.credential is None:
            continue
        if cluster.credential.token_file is not None:
            used = uses_credential(configuration, name)
            yield from _check_credential(cluster.credential.token_file, folder, now, used=used)
        yield from _check_passwords(cluster.credential, name, folder)
    if configuration.store is not None and configuration.store.password_file is not None:
        path = configuration.store.password_file
        yield check_rights(display_path(path, folder), path, "the password of the store", SECRET)


def uses_credential(configuration: model.Configuration, cluster: str) -> bool:
    """Return whether a listener presents the gateway's own credential to the brokers of this
    cluster."""
    modes = {
        listener.identity.mode
        for listener in configuration.listeners
        if listener.cluster == cluster
    }
    return bool(modes - {"pass-through"})


# -- keys that verify tokens -----------------------------------------------------------------


def _check_keys(token: model.Token, listener: str, folder: Path) -> Iterator[Finding]:
    for path, read in ((token.secret_file, secret_key), (token.public_key_file, public_key)):
        if path is None:
            continue
        check = display_path(path, folder)
        try:
            key = read(path)
            TokenVerifier([key], token.algorithms)
        except ConfigurationError as error:
            yield file_error(check, error)
            continue
        used = f"{_describe_key(key)}; verifies {', '.join(token.algorithms)} for {listener}"
        yield check_rights(check, path, used, SECRET if isinstance(key, OctKey) else _PUBLIC)


def _describe_key(key: TokenKey) -> str:
    if isinstance(key, OctKey):
        return f"a secret of {len(key.raw_value)} bytes"
    if isinstance(key, RSAKey):
        return f"an RSA public key of {key.raw_value.key_size} bits"
    return f"a public key of the curve {key.curve_name}"


# -- keys of sealed names --------------------------------------------------------------------


def _check_seals(cluster: str, sealed: model.Sealed | None, folder: Path) -> Iterator[Finding]:
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
        check = display_path(key.file, folder)
        try:
            made = SealKey.from_file(key.file)
        except ConfigurationError as error:
            yield file_error(check, error)
            continue
        does = "opens names" if number else "seals and opens names"
        yield check_rights(
            check, key.file, f"sealing key {made.key_id}; {does} of {cluster}", SECRET
        )


# -- the gateway's token ---------------------------------------------------------------------


def _check_credential(path: Path, folder: Path, now: float, *, used: bool) -> Iterator[Finding]:
    check = display_path(path, folder)
    try:
        data = TokenFile(path).current().data
    except ConfigurationError as error:
        yield file_error(check, error)
        return
    yield _check_dates(check, path, read_claims(data), now)
    if not used:
        yield warn(
            check,
            "is not used: all listeners of its cluster are pass-through",
            "Take `credential` out, or choose identity.mode: verify.",
        )


def _check_dates(check: str, path: Path, claims: Claims | None, now: float) -> Finding:
    if claims is None:
        return warn(
            check,
            "does not hold a JSON Web Token",
            "Only brokers with a provider of their own take something else as a token.",
        )
    role = f'a token of the role "{claims.role}"' if claims.role else "a token without `sub`"
    if claims.expires_at is not None and claims.expires_at <= now:
        return fail(check, f"{role}, expired since {format_date(claims.expires_at)}", _RENEW)
    if claims.begins_at is not None and claims.begins_at > now:
        remedy = "Wait for it, or set this machine's clock right."
        return fail(check, f"{role}, not valid before {format_date(claims.begins_at)}", remedy)
    if claims.expires_at is None:
        return check_rights(check, path, f"{role}, without an end", SECRET)
    if claims.expires_at - now < SOON:
        return warn(check, f"{role}, expires soon: {format_date(claims.expires_at)}", _RENEW)
    return check_rights(check, path, f"{role}, until {format_date(claims.expires_at)}", SECRET)


_RENEW = "Put a newer token into the file; a running gateway reads it by itself."


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token, which are not verified. `role`: the claim `sub`. Times are seconds
    since 1970."""

    role: str | None
    begins_at: float | None
    expires_at: float | None


def read_claims(token: bytes) -> Claims | None:
    """Return the claims of a token without verifying the token; None if it is not a JSON Web
    Token."""
    try:
        claims = json.loads(jws.extract_compact(token).payload or b"")
    except _MALFORMED:
        return None
    if not isinstance(claims, dict):
        return None
    role = claims.get("sub")
    return Claims(
        role if isinstance(role, str) else None, _time(claims, "nbf"), _time(claims, "exp")
    )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and abs(value) < _FAR and isfinite(value) else None  # type: ignore[arg-type]


_FAR = 250_000_000_000
"""Seconds since 1970. Calendars end there, and no token means such a time."""


def format_date(seconds: float) -> str:
    """Return a time (seconds since 1970) as text, such as `2026-01-31 12:00 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


# -- passwords -------------------------------------------------------------------------------


def _check_users(listener: model.Listener, folder: Path) -> Iterator[Finding]:
    """Check the access rights of the files that verify passwords. The start of the gateway checks
    their content."""
    identity = listener.identity
    files = [
        None if identity.basic is None else identity.basic.htpasswd_file,
        None if identity.scram is None else identity.scram.credentials_file,
        None if identity.signature is None else identity.signature.users_file,
    ]
    for path in files:
        if path is not None:
            used = f"users and what verifies their passwords; of {listener.name}"
            yield check_rights(display_path(path, folder), path, used, SECRET)


def _check_passwords(credential: model.Credential, cluster: str, folder: Path) -> Iterator[Finding]:
    """Check the files of the passwords that the gateway shows to brokers."""
    files: list[tuple[Path, Callable[[Path], object], str]] = []
    if credential.basic is not None:
        user = credential.basic.username
        path = credential.basic.password_file
        files.append((path, partial(PasswordFile, user), f"the password of {user}"))
    if credential.each_principal is not None:
        path = credential.each_principal.passwords_file
        files.append((path, EachPrincipal, "a name and a password for each client"))
    for path, read, does in files:
        check = display_path(path, folder)
        try:
            read(path)
        except ConfigurationError as error:
            yield file_error(check, error)
            continue
        yield check_rights(check, path, f"{does}; shown to brokers of {cluster}", SECRET)


# -- all files -------------------------------------------------------------------------------


def display_path(path: Path, folder: Path) -> str:
    """Return a path as text. A path inside `folder`, the folder of the configuration file, is
    written relative to it."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def file_error(check: str, error: ConfigurationError) -> Finding:
    """Return the finding for an error about a file. The text of the error has the form "problem.
    Remedy"."""
    wrong, _, right = str(error).partition(". ")
    return fail(check, wrong, right or "Name another file, or other algorithms.")


def check_rights(check: str, path: Path, detail: str, forbidden: int) -> Finding:
    """Return a warning if the file's mode has any of the bits `forbidden`, the rights that other
    users must not have; `fail` if the file is gone; otherwise a finding `ok` with `detail`."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return fail(check, "is gone", "Name a file that stays.")
    if not mode & forbidden:
        return ok(check, detail)
    right = "read" if mode & forbidden & stat.S_IROTH else "write"
    return warn(
        check,
        f"{detail}; everybody on this machine may {right} it",
        "For a file (in Kubernetes, `defaultMode: 0400` of the secret's volume):",
        f"chmod o-rwx {path}" if forbidden == SECRET else f"chmod o-w {path}",
    )
