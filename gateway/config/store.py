"""The URL of the store that replicas share, in the form that Redis clients use."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from gateway.config import units
from gateway.wire.address import Address

PORT = 6379
"""The default port of Redis and Valkey."""

_PLAIN = ("redis", "valkey")
_TLS = ("rediss", "valkeys")
_HELP = "redis://host:port, rediss://host:port with TLS, or unix:///path"
_DATABASE = re.compile(r"/?|/(\d{1,5})")
_PREFIX = re.compile(r"[A-Za-z0-9._:/-]{1,64}")


class StoreAddress(NamedTuple):
    """The address of a store: `host` and `port`, or the `path` of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""
    tls: bool = False
    database: int = 0

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}"
        database = f"/{self.database}" if self.database else ""
        return f"{_TLS[0] if self.tls else _PLAIN[0]}://{Address(self.host, self.port)}{database}"


def address(value: object) -> StoreAddress:
    """Return the address in the URL of a store. Raises `ValueError` if the URL is malformed; see
    `units`."""
    text = units.text(value)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError(f"is not a URL; {_HELP}") from None
    if parts.username or parts.password:
        raise ValueError("contains a user or password; use `username` and `password_file`")
    if parts.query or parts.fragment:
        raise ValueError(f"has options, which are not supported; {_HELP}")
    if parts.scheme == "unix":
        return _socket(parts)
    if parts.scheme not in (*_PLAIN, *_TLS):
        raise ValueError(f"has a scheme that is not known; {_HELP}")
    return _server(parts)


def _socket(parts: SplitResult) -> StoreAddress:
    if parts.netloc or not parts.path.startswith("/"):
        raise ValueError("has no absolute path; unix:///run/valkey/valkey.sock")
    return StoreAddress(path=parts.path)


def _server(parts: SplitResult) -> StoreAddress:
    database = _DATABASE.fullmatch(parts.path)
    if database is None:
        raise ValueError("has a path that is not a database number; redis://host:port/0")
    host, port = units.endpoint(parts.netloc, _HELP) if parts.netloc else ("", None)
    if not host or port == 0:
        raise ValueError(f"has no host, or port 0; {_HELP}")
    return StoreAddress(
        host=host,
        port=port or PORT,
        tls=parts.scheme in _TLS,
        database=int(database[1] or 0),
    )


def prefix(value: object) -> str:
    """Return the prefix of all keys in the store, checked. Raises `ValueError` if the prefix is
    malformed; see `units`."""
    if _PREFIX.fullmatch(units.text(value)):
        return units.text(value)
    raise ValueError("is not a prefix; letters, digits, and . _ : / - , 64 at most")
