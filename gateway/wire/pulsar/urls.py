"""Broker URLs: their schemes, and how they are read."""

from __future__ import annotations

from gateway.wire.address import Address, Scheme, parse_url

# `brokerServicePort` and `brokerServicePortTls` of Pulsar's broker.conf.
SCHEMES = {"pulsar": Scheme(6650), "pulsar+ssl": Scheme(6651, tls=True)}

LONGEST_URL = 512
"""Characters of a URL. A host name has at most 253, and hosts are remembered."""


def parse(url: str | bytes) -> Address | None:
    """Return the address in a broker's URL; None if the text is not the URL of one broker."""
    if isinstance(url, bytes) or len(url) > LONGEST_URL:  # protobuf returns bytes for bad UTF-8
        return None
    try:
        return parse_url(url, SCHEMES)
    except ValueError:
        return None
