"""Makes the store that a configuration names. Only this module imports coredis, and only if it is
needed."""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gateway.config import model
    from gateway.fleet.valkey import ValkeyStore

LARGEST_PASSWORD = 4096
"""Bytes of a password file. The tokens that clouds issue as passwords fit."""

_INSTALL = (
    "The store needs the package coredis, which is not installed. "
    "Install it with: pip install 'broker-gateway[valkey]'"
)


def store_of(configured: model.Store) -> ValkeyStore:
    """Return the store that is configured. It is not connected yet; `Store.run` connects it.

    Raises `ConfigurationError` if a configured file is wrong, or the package `coredis` is missing.
    """
    try:
        from gateway.fleet.link import Access
        from gateway.fleet.valkey import ValkeyStore
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("gateway"):
            raise
        raise ConfigurationError(_INSTALL) from None
    access = Access(
        address=configured.url,
        username=configured.username,
        password=_password_of(configured.password_file),
        tls=_trust(configured.ca_file) if configured.url.tls else None,
    )
    return ValkeyStore(access, prefix=configured.prefix, timeout=configured.timeout)


def _password_of(path: Path | None) -> Callable[[], str | None]:
    """Return a function that reads the file anew. It is read here too, to find mistakes early."""
    if path is None:
        return lambda: None
    _password(path)
    return partial(_password, path)


def _password(path: Path) -> str:
    """Return the content of a password file without its line end."""
    what = f"The password file {path} of the store"
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_PASSWORD + 1)
        password = content.decode().rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{what} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{what} is not UTF-8 text. It must hold the password") from None
    if not password or len(content) > LARGEST_PASSWORD:
        wrong = "is empty" if not password else f"is larger than {LARGEST_PASSWORD} bytes"
        raise ConfigurationError(f"{what} {wrong}. It must hold the password, and nothing else")
    return password


def _trust(path: Path | None) -> ssl.SSLContext:
    """Return a context that verifies the server's certificate and host name."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError:  # includes ssl.SSLError
        raise ConfigurationError(
            f"The file {path} of the store's authorities holds no certificate in PEM form. "
            "It must hold those that signed the store's own"
        ) from None
