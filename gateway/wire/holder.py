"""Find the holder of an address, for memory that is divided among addresses.

The holder of one IPv6 address mostly has its whole network: providers hand out 2⁶⁴ addresses or
more at a time. If each address had a part of its own, one sender could take the parts of others.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network

PREFIX = 64
"""Bits of an IPv6 network's prefix: of the smallest network that providers hand out, and of one
link."""

_HOST_BITS = 128 - PREFIX


def holder(host: str) -> str:
    """Return the network of an IPv6 address; any other host as it is.

    Return an IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) as IPv4.
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
