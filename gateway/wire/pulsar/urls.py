"""URLs of brokers, as brokers and people write them."""

from __future__ import annotations

from gateway.wire.address import Address, Scheme, parse_url

# `brokerServicePort` and `brokerServicePortTls` of Pulsar's broker.conf.
SCHEMES = {"pulsar": Scheme(6650), "pulsar+ssl": Scheme(6651, tls=True)}

LONGEST_URL = 512
"""Characters. A host's name has 253 at most, and hosts are remembered."""


def parse(url: str | bytes) -> Address | None:
    """Return where a broker's URL leads; None where it is not the URL of one broker."""
    if isinstance(url, bytes) or len(url) > LONGEST_URL:  # not UTF-8, for one
        return None
    try:
        return parse_url(url, SCHEMES)
    except ValueError:
        return None
