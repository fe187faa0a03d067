"""The gateway's own credential towards brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.errors import ConfigurationError
from gateway.wire.contract import Credential

LARGEST_TOKEN = 16_384
"""Bytes; a larger file is not a token."""

Stamp = tuple[int, int, int]


class OwnCredential(Protocol):
    """A source of the gateway's credential."""

    def current(self) -> Credential: ...


class NoCredential:
    """For brokers without authentication: sends what Pulsar's own clients send then."""

    def current(self) -> Credential:
        """Return the method `none` without data."""
        return Credential("none", b"")


class TokenFile:
    """A token in a file, which is read again whenever the file changes.

    Each use checks the file (one `stat`, 2 µs) rather than watching it: Kubernetes swaps a symbolic
    link far above the file, and watchers of the file do not notice. If the file is missing, empty
    or too large, the last good token stays in use; `log(event, **values)` is called, and
    `last_error` has the reason until the file is good again.

    Raises `ConfigurationError` if there is no token at the start.
    """

    def __init__(self, path: Path, log: Callable[..., object] = lambda *_, **__: None) -> None:
        self._path = path
        self._log = log
        self._stamp: Stamp | None = None
        self._credential = Credential("token", b"")
        self.last_error: str | None = None
        self.current()
        if self.last_error is not None:
            raise ConfigurationError(
                f"The token file {path} for the connection to the brokers {self.last_error}. "
                "It must hold one JSON Web Token"
            )

    def current(self) -> Credential:
        """Return the token, with the method `token`."""
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
            self._credential = Credential("token", token)
            self.last_error = None
