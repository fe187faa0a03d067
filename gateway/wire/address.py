"""Addresses of brokers and listeners, and the one parser of texts that hold them.

Hosts are normalised (lower case, IPv6 compressed and without brackets), so that equal addresses
compare equal however they were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

LAST_PORT = 65535

# RFC 1123 labels, and the underscore that Docker and Compose put into names. No name server answers
# for more than 253 characters (RFC 1035 section 2.3.4).
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_HOST_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::([0-9]{1,5}))?", re.ASCII)


class Address(NamedTuple):
    """The address at which a broker, a gateway or a listener accepts connections.

    `tls`: connections begin with a TLS handshake. `str` leaves this out, because URLs state it by
    their scheme, which only the protocol knows.
    """

    host: str
    port: int
    tls: bool = False

    @property
    def pair(self) -> tuple[str, int]:
        """Return the host and the port, as the socket module takes them."""
        return self.host, self.port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Scheme(NamedTuple):
    """The meaning of a URL scheme: the default port, and whether connections use TLS."""

    port: int
    tls: bool = False


Schemes = Mapping[str, Scheme]
"""URL schemes by name, in lower case."""


def parse_url(text: str, schemes: Schemes) -> Address:
    """Return the address in a URL: `scheme://host[:port]` or `scheme://[IPv6 address][:port]`.

    Raises `ValueError` if the text is no such URL, or its scheme is not one of `schemes`. The
    error's text does not repeat the URL, which may contain a password.
    """
    name, mark, rest = text.partition("://")
    if not mark:
        raise ValueError("has no scheme")
    scheme = schemes.get(name.lower())
    if scheme is None:
        raise ValueError("has a scheme that is not known")
    return parse_address(rest.removesuffix("/"), scheme.port)._replace(tls=scheme.tls)


def parse_address(text: str, default_port: int | None = None) -> Address:
    """Return the address in `host:port` or `[IPv6 address]:port`.

    `default_port`: the port if the text has no port; None: the text must have a port. Raises
    `ValueError` if the text is not of this form; the error's text does not repeat it.
    """
    host, port = parse_host_port(text)
    port = default_port if port is None else port
    if not host or not port:
        raise ValueError("has no host, or no port" if port is None else "has no host, or port 0")
    return Address(host, port)


def parse_host_port(text: str) -> tuple[str, int | None]:
    """Return the host and the port in `host:port` or `[IPv6 address]:port`. The host may be empty.
    The port may be 0, and is None if the text has no port.

    Raises `ValueError` if the text is not of this form; the error's text does not repeat it.
    """
    parts = _HOST_PORT.fullmatch(text)
    if parts is None or int(parts[3] or 0) > LAST_PORT:
        raise ValueError("is not an address with a port")
    port = None if parts[3] is None else int(parts[3])
    return (_name(parts[2].lower()) if parts[1] is None else _ipv6(parts[1])), port


def split_urls(text: str) -> list[str]:
    """Split `scheme://a,b:1` into one URL for each host. A host with a scheme of its own keeps that
    scheme."""
    parts = [part.strip() for part in text.strip().split(",")]
    scheme, mark, _ = parts[0].partition("://")
    return [part if "://" in part else f"{scheme}{mark}{part}" for part in parts]


def _ipv6(text: str) -> str:
    # A zone ("%eth0") has a meaning on one machine only.
    if "%" in text:
        raise ValueError("has an invalid host")
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise ValueError("has an invalid host") from None


def _name(text: str) -> str:
    # A name that ends in a number must be an IPv4 address (WHATWG URL, "ends in a number").
    if text.rpartition(".")[2].isdecimal():
        try:
            return str(IPv4Address(text))
        except ValueError:
            raise ValueError("has an invalid host") from None
    if text and not _NAME.fullmatch(text):
        raise ValueError("has an invalid host")
    return text
