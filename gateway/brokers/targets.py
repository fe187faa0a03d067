"""The list of addresses that may be dialled. It is checked for the IP address that is really
dialled.

A sealed name cannot be forged. But the gateway seals the addresses in brokers' responses
(redirects, lookups) without a check, and a host name resolves to whatever its DNS says. This list
bounds both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import Protocol

from gateway.errors import ConfigurationError
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal

REFUSED = Denial(Refusal.TARGET, "the gateway may not connect to this broker")
"""The text has no address: a client must not learn one from a refusal."""

Network = IPv4Network | IPv6Network

_MAPPED_PREFIX = 96  # ::ffff:0:0/96, RFC 4291 section 2.5.5.2
_MAPPED = b"\0" * 10 + b"\xff\xff"  # the bytes of that prefix
_V6_SIZE = 16  # bytes

_LONGEST_HOST = 253  # characters of a DNS name, RFC 1035 section 2.3.4

_V4 = re.compile(r"^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$", re.MULTILINE)
_V4_OR_V6 = re.compile(rf"{_V4.pattern}|^[0-9a-f:]+$", re.MULTILINE)

# '*' matches any run of characters, including dots, as in the Pulsar proxy's
# `brokerProxyAllowedHostNames`.
_HOST_PATTERN = re.compile(r"[a-z0-9_.:*-]{1,253}", re.ASCII)


class Listed(Protocol):
    """The targets that the configuration lists in addition to the brokers; see `TargetList`."""

    @property
    def hosts(self) -> Sequence[str]: ...

    @property
    def networks(self) -> Sequence[Network]: ...

    @property
    def ports(self) -> Sequence[int]: ...


class TargetList:
    """Which addresses may be dialled: those whose port is listed, and whose host name matches a
    listed pattern or whose IP address is in a listed network.

    `hosts`: names, in which `*` stands for any characters (`*.pulsar.svc`). `networks`: networks
    such as `10.0.0.0/8`, or single addresses. `ports`: numbers from 1 to 65535. `always`: pairs of
    host name and port that are allowed even if the other arguments do not list them. Raises
    `ConfigurationError`.
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
        self._prefixes = _prefixes(self._networks)
        self._literals = frozenset(filter(None, map(_packed, self._hosts)))
        sizes = {size for size, _ in self._prefixes} | set(map(len, self._literals))
        self._addresses = (_V4_OR_V6 if _V6_SIZE in sizes else _V4) if sizes else None
        self._ports = frozenset(_port(port) for port in ports)
        self._pattern = re.compile(_any_of(self._hosts), re.ASCII)
        specific = _any_of(host for host in self._hosts if not host.endswith("*"))
        short = rf"(?=.{{1,{_LONGEST_HOST}}}$)"
        self._lines = re.compile(rf"^{short}(?:{specific})$", re.ASCII | re.MULTILINE)

    @classmethod
    def of(cls, brokers: Sequence[Address], listed: Listed | None = None) -> TargetList:
        """Return the list that allows the configured brokers and the listed targets. If `listed` is
        None, any host of a broker is allowed with any port of a broker."""
        if listed is None:
            return cls([broker.host for broker in brokers], (), [broker.port for broker in brokers])
        networks = [str(network) for network in listed.networks]
        return cls(listed.hosts, networks, listed.ports, always=brokers)

    def check(self, host: str, ip: str, port: int) -> Denial | None:
        """Return None if `ip`, to which `host` has resolved, may be dialled at `port`; otherwise
        `REFUSED`."""
        if (_plain(host), port) in self._always:
            return None
        if port not in self._ports:
            return REFUSED
        if self._pattern.fullmatch(_plain(host)) or self._contains(ip):
            return None
        return REFUSED

    def check_name(self, host: str, port: int) -> Denial | None:
        """Return `REFUSED` if `check` would refuse the host whatever it resolves to, so that the
        caller need not look it up; otherwise None."""
        plain = _plain(host)
        if (plain, port) in self._always:
            return None
        possible = port in self._ports and (self._networks or self._pattern.fullmatch(plain))
        return None if possible else REFUSED

    def filter_listed(self, hosts: Collection[str]) -> set[str]:
        """Return the words in `hosts` that are hosts on the allow-list, whatever their port.
        `hosts`: words of a text, in lower case, each of which may be a host.

        Patterns that end with `*` are not considered, because they would match ordinary words.
        """
        lines = "\n".join(hosts)
        listed = set(self._lines.findall(lines))
        if self._addresses is not None:
            listed.update(
                address for address in self._addresses.findall(lines) if self._lists(address)
            )
        return listed

    def describe(self) -> str:
        """Return the list as a text for the log. Clients must not see it."""
        hosts = ", ".join(self._hosts) or "none"
        networks = ", ".join(str(network) for network in self._networks) or "none"
        ports = ", ".join(str(port) for port in sorted(self._ports)) or "none"
        always = "; and the configured brokers" if self._always else ""
        return f"hosts: {hosts}; networks: {networks}; ports: {ports}{always}"

    def _lists(self, ip: str) -> bool:
        return self._contains(ip) or _packed(ip) in self._literals

    def _contains(self, ip: str) -> bool:
        address = _packed(ip)
        if address is None:
            return False
        number, size = int.from_bytes(address), len(address)
        return any(
            number >> shift in values
            for (length, shift), values in self._prefixes.items()
            if length == size
        )


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _packed(text: str) -> bytes | None:
    """Return the bytes of an address without its scope, or None if the text is no address. An
    IPv4-mapped IPv6 address counts as IPv4."""
    try:
        address = inet_pton(AF_INET6 if ":" in text else AF_INET, text.partition("%")[0])
    except (OSError, ValueError):
        return None
    return address.removeprefix(_MAPPED)


def _prefixes(networks: Iterable[Network]) -> dict[tuple[int, int], set[int]]:
    """Return the networks' prefixes by address size in bytes and number of host bits, so that a
    check of a thousand networks costs no more than a check of one."""
    prefixes: dict[tuple[int, int], set[int]] = {}
    for network in networks:
        shift = network.max_prefixlen - network.prefixlen
        values = prefixes.setdefault((network.max_prefixlen // 8, shift), set())
        values.add(int(network.network_address) >> shift)
    return prefixes


def _host_pattern(text: str) -> str:
    pattern = _plain(text.strip())
    if not _HOST_PATTERN.fullmatch(pattern):
        raise ConfigurationError(
            f"The allowed target host {text!r} is no host name and no pattern (*.pulsar.svc)"
        )
    return pattern


def _any_of(patterns: Iterable[str]) -> str:
    """Return a regular expression for any of these patterns. Each part between two `*` is searched
    for once, from the left: the time is linear for any text."""
    return "|".join(map(_expression, patterns)) or r"(?!)"


def _expression(pattern: str) -> str:
    first, *parts = (re.escape(part) for part in pattern.split("*"))
    if not parts:
        return first
    *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle) + ".*" + last


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
