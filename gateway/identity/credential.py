"""The gateway's own credential towards brokers."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.errors import ConfigurationError
from gateway.wire.contract import Credential, Denial

LARGEST_TOKEN = 16_384
"""Bytes; a larger file is not a token."""

Stamp = tuple[int, int, int]


class OwnCredential(Protocol):
    """A source of the gateway's own credential. `current` returns a denial while there is no
    credential."""

    def current(self) -> Credential | Denial: ...


class StoredCredential(Protocol):
    """A source of the gateway's own credential that always has one."""

    def current(self) -> Credential: ...


class NoCredential:
    """The gateway's credential for brokers without authentication: the gateway sends what Pulsar's
    own clients send to such brokers."""

    def current(self) -> Credential:
        """Return a credential of the method `none`, without data."""
        return Credential("none", b"")


class OwnCertificate:
    """The gateway's credential for brokers that authenticate it by its TLS certificate."""

    def current(self) -> Credential:
        """Return a credential of the method `tls`, whose data are empty."""
        return Credential("tls", b"")


class TokenFile:
    """A token in a file, which is read again whenever the file changes.

    Each use checks whether the file has changed (one `stat`, 2 µs). The file is not watched,
    because Kubernetes swaps a symbolic link far above the file, which watchers of the file do not
    notice. If the file is missing, empty or too large, the last good token is still used,
    `log(event, **values)` is called, and `last_error` has the reason until the file is good again.

    Raises `ConfigurationError` if there is no token at the start.
    """

    what = "token file"
    content = "one JSON Web Token"

    def __init__(self, path: Path, log: Callable[..., object] = lambda *_, **__: None) -> None:
        self._path = path
        self._log = log
        self._stamp: Stamp | None = None
        self._credential = self._made(b"")
        self.last_error: str | None = None
        self.current()
        if self.last_error is not None:
            raise ConfigurationError(
                f"The {self.what} {path} for the connection to the brokers {self.last_error}. "
                f"It must hold {self.content}"
            )

    def current(self) -> Credential:
        """Return the token as a credential of the method `token`. The file is read again if it has
        changed."""
        before = self.last_error
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._read()
                self._stamp = stamp  # from before reading: the next use notices a later change
        except OSError as error:
            self._stamp = None
            self.last_error = f"cannot be read: {error.strerror}"
        if self.last_error is not None and self.last_error != before:
            self._log("token_file_unusable", file=str(self._path), error=self.last_error)
        return self._credential

    def _look(self) -> Stamp:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> None:
        with self._path.open("rb") as file:
            token = file.read(LARGEST_TOKEN + 1).strip()
        if not token:
            self.last_error = "is empty"
        elif len(token) > LARGEST_TOKEN:
            self.last_error = f"is larger than {LARGEST_TOKEN} bytes"
        else:
            self._credential = self._made(token)
            self.last_error = None

    def _made(self, secret: bytes) -> Credential:
        return Credential("token", secret, _expiry(secret))


def _expiry(token: bytes) -> float | None:
    """Return when a JSON Web Token expires, without verifying it; None: it does not say."""
    try:
        _, payload, _ = token.split(b".")
        ends = json.loads(urlsafe_b64decode(payload + b"=="))["exp"]
        # NaN would end what waits for that time.
        return float(ends) if isinstance(ends, int | float) and math.isfinite(ends) else None
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


class PasswordFile(TokenFile):
    """A user name, and a password in a file, which is read again whenever the file changes."""

    what = "password file"
    content = "the password, and nothing else"

    def __init__(
        self, username: str, path: Path, log: Callable[..., object] = lambda *_, **__: None
    ) -> None:
        self._username = username.encode()
        super().__init__(path, log)

    def _made(self, secret: bytes) -> Credential:
        return Credential("basic", self._username + b":" + secret)


def read_secret(path: Path, what: str) -> bytes:
    """Return the secret in a file. Raises `ConfigurationError`, whose text begins with `what`, the
    kind of the file."""
    try:
        with path.open("rb") as file:
            secret = file.read(LARGEST_TOKEN + 1).strip()
    except OSError as error:
        raise ConfigurationError(f"{what} {path} cannot be read: {error.strerror}") from None
    if not 0 < len(secret) <= LARGEST_TOKEN:
        raise ConfigurationError(f"{what} {path} must hold 1 to {LARGEST_TOKEN} bytes")
    return secret
