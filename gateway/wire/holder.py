"""Tells whose an address is, where memory is divided among addresses.

Whoever has one address of IPv6 mostly has all of its network: providers hand out 2⁶⁴ addresses or
more at a time. If each had a part of its own, one sender could take the parts of all others.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network

PREFIX = 64
"""Bits that all IPv6 addresses of a network begin with: the smallest network that providers hand
out, and that of one link."""

_HOST_BITS = 128 - PREFIX


def holder(host: str) -> str:
    """Return the network of an IPv6 address, and any other host as it is.

    An IPv4 address that came as IPv6 (`::ffff:10.0.0.1`) is returned as IPv4.
    """
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address) >> _HOST_BITS << _HOST_BITS, PREFIX)))
