"""Service URLs, as people and brokers write them: `pulsar://host:port[,host:port]`,
`pulsar+ssl://`.

Hosts are answered in one spelling (lower case, IPv6 compressed and without brackets), so that an
address is equal to itself however it was written.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from gateway.errors import ConfigurationError
from gateway.wire.contract import Address

DEFAULT_PORT = 6650
"""Pulsar's `brokerServicePort`; clients assume it where a URL names no port."""

DEFAULT_TLS_PORT = 6651
"""Pulsar's `brokerServicePortTls`."""

_SCHEMES = {"pulsar": (False, DEFAULT_PORT), "pulsar+ssl": (True, DEFAULT_TLS_PORT)}

_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(?::([0-9]{1,5}))?", re.ASCII)

# RFC 1123 labels, and the underscore that Docker and Compose put into names.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)


class ServiceUrl(NamedTuple):
    """Whether to speak TLS, and with whom: at least one address, none twice."""

    tls: bool
    addresses: tuple[Address, ...]


def parse_service_url(text: str) -> ServiceUrl:
    """Read a URL of the configuration. Raises `ConfigurationError`."""
    try:
        return _parse(text.strip())
    except ValueError as why:
        # A password in the text must not reach a terminal or a log.
        shown = "The service URL" if "@" in text else f"The service URL {text!r}"
        raise ConfigurationError(
            f"{shown} is wrong: {why}. "
            "Write for example pulsar://broker.example:6650 or pulsar+ssl://a.example,b.example:6651"
        ) from None


def parse_url(text: str) -> tuple[bool, Address] | None:
    """Read the URL of one broker in an answer: (tls, address), or None where it is not such."""
    try:
        tls, addresses = _parse(text)
    except ValueError:
        return None
    return (tls, addresses[0]) if len(addresses) == 1 else None


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Read `host`, `host:port` or `[IPv6]:port`. Raises `ValueError` with the reason."""
    parts = _HOST_PORT.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not host, host:port or [IPv6 address]:port")
    port = int(parts[2] or default_port)
    if not 1 <= port <= 65535:
        raise ValueError(f"port {port} is not between 1 and 65535")
    return Address(_host(parts[1].lower()), port)


def _parse(text: str) -> ServiceUrl:
    scheme, separator, hosts = text.partition("://")
    if not separator or scheme.lower() not in _SCHEMES:
        raise ValueError("it must begin with pulsar:// or pulsar+ssl://")
    if "@" in hosts:
        raise ValueError("user names and passwords do not belong here")
    tls, port = _SCHEMES[scheme.lower()]
    parts = hosts.removesuffix("/").split(",")
    return ServiceUrl(tls, tuple(dict.fromkeys(parse_address(part, port) for part in parts)))


def _host(text: str) -> str:
    if text.startswith("["):
        return str(IPv6Address(text[1:-1]))
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a host name" if text else "a host name is missing")
    # A name that ends in a number is an IPv4 address or a mistake (WHATWG URL, "ends in a number").
    return str(IPv4Address(text)) if text.rpartition(".")[2].isdigit() else text
