"""The holder of a client's address, for memory that is divided among addresses.

The holder of an IPv6 address mostly has its whole network, because providers hand out 2⁶⁴
addresses or more at a time. If each address had its own part, one sender could take many parts.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network

PREFIX = 64
"""Prefix length of the smallest IPv6 network that providers hand out, and of one link."""


def holder(host: str) -> str:
    """Return the host or network whose part of the memory an address uses: for an IPv6 address its
    network, for an IPv4-mapped one (`::ffff:10.0.0.1`) the IPv4 address, and for any other host the
    host itself."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), PREFIX), strict=False))
