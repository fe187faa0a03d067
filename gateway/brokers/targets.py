"""Which addresses may be dialled, checked on the address that is actually dialled.

A sealed name cannot be forged, but what a broker answers (a redirect, a lookup) is sealed by us
unseen, and a host name resolves to whatever its DNS says. This list is what bounds both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Protocol

from gateway.errors import ConfigurationError
from gateway.wire.contract import Address, Denial, Refusal

REFUSED = Denial(Refusal.TARGET, "the gateway may not connect to this broker")
"""No address in it: the client must not learn one from asking for it."""

Network = IPv4Network | IPv6Network

_MAPPED_PREFIX = 96  # ::ffff:0:0/96, RFC 4291 section 2.5.5.2

_LONGEST_HOST = 253  # characters of a DNS name, RFC 1035 section 2.3.4

# A name that is made of these matches patterns made of these; '*' is for any run of characters,
# dots included, as in the Pulsar proxy's `brokerProxyAllowedHostNames`.
_HOST_PATTERN = re.compile(r"[a-z0-9_.:*-]{1,253}", re.ASCII)


class Listed(Protocol):
    """What is configured beside the brokers; see `TargetList`."""

    @property
    def hosts(self) -> Sequence[str]: ...

    @property
    def networks(self) -> Sequence[Network]: ...

    @property
    def ports(self) -> Sequence[int]: ...


class TargetList:
    """An address may be dialled if its port is listed, and its host name matches a listed pattern
    or its IP address lies in a listed network.

    `hosts`: names, `*` for any characters (`*.pulsar.svc`). `networks`: `10.0.0.0/8`, or one
    address. `ports`: 1 to 65535. `always`: addresses that are allowed as they are, by name.
    Raises `ConfigurationError`.
    """

    def __init__(
        self,
        hosts: Sequence[str] = (),
        networks: Sequence[str] = (),
        ports: Iterable[int] = (),
        always: Iterable[Address] = (),
    ) -> None:
        self._always = frozenset((_plain(address.host), address.port) for address in always)
        self._hosts = tuple(_host_pattern(host) for host in hosts)
        self._networks = tuple(_network(text) for text in networks)
        self._ports = frozenset(_port(port) for port in ports)
        self._pattern = _matcher(self._hosts)
        self._named = _matcher(host for host in self._hosts if not host.endswith("*"))

    @classmethod
    def of(cls, brokers: Sequence[Address], listed: Listed | None = None) -> TargetList:
        """The configured brokers, and what is listed besides; else any of their hosts and ports."""
        if listed is None:
            return cls([broker.host for broker in brokers], (), [broker.port for broker in brokers])
        networks = [str(network) for network in listed.networks]
        return cls(listed.hosts, networks, listed.ports, always=brokers)

    def check(self, host: str, ip: str, port: int) -> Denial | None:
        """`REFUSED`, or None where `ip` (to which `host` resolved) and `port` may be dialled."""
        if (_plain(host), port) in self._always:
            return None
        if port not in self._ports:
            return REFUSED
        if self._pattern.fullmatch(_plain(host)) or self._contains(ip):
            return None
        return REFUSED

    def names(self, host: str) -> bool:
        """Whether a host in some text is one of those that are listed, whatever its port.

        A pattern that ends with `*` says nothing: words of any text could match it.
        """
        if len(host) > _LONGEST_HOST:
            return False  # nor worth the time
        return bool(self._named.fullmatch(_plain(host))) or self._contains(host)

    def describe(self) -> str:
        """What is listed, for a log: nothing that a client may see."""
        hosts = ", ".join(self._hosts) or "none"
        networks = ", ".join(str(network) for network in self._networks) or "none"
        ports = ", ".join(str(port) for port in sorted(self._ports)) or "none"
        beside = "; and the brokers that are configured" if self._always else ""
        return f"hosts: {hosts}; networks: {networks}; ports: {ports}{beside}"

    def _contains(self, ip: str) -> bool:
        if not self._networks:
            return False
        address = _unmapped(ip)
        return address is not None and any(address in network for network in self._networks)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _unmapped(text: str) -> IPv4Address | IPv6Address | None:
    """The address without its scope; IPv4 where it is IPv4 dressed as IPv6."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.version == 6 and address.ipv4_mapped) or address


def _host_pattern(text: str) -> str:
    pattern = _plain(text.strip())
    if not _HOST_PATTERN.fullmatch(pattern):
        raise ConfigurationError(
            f"The allowed target host {text!r} is no host name, and no pattern like *.pulsar.svc"
        )
    return pattern


def _matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    parts = (".*".join(re.escape(part) for part in pattern.split("*")) for pattern in patterns)
    return re.compile("|".join(parts) or r"(?!)", re.ASCII)


def _network(text: str) -> Network:
    try:
        network = ip_network(text.strip())
    except ValueError as why:
        raise ConfigurationError(
            f"The allowed target network {text!r} is wrong: {why}. Write for example 10.0.0.0/8"
        ) from None
    mapped = network.version == 6 and network.network_address.ipv4_mapped
    if mapped and network.prefixlen >= _MAPPED_PREFIX:
        return ip_network((mapped, network.prefixlen - _MAPPED_PREFIX))
    return network


def _port(port: int) -> int:
    if not 1 <= port <= 65535:
        raise ConfigurationError(f"The allowed target port {port} is not between 1 and 65535")
    return port
