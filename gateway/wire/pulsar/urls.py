"""Broker URLs: their schemes, parsing and writing."""

from __future__ import annotations

from gateway.wire.address import Address, Scheme, parse_url

# `brokerServicePort` and `brokerServicePortTls` of Pulsar's broker.conf.
_PLAIN, _TLS = "pulsar", "pulsar+ssl"
SCHEMES = {_PLAIN: Scheme(6650), _TLS: Scheme(6651, tls=True)}

LONGEST_URL = 512
"""Characters of a URL. A host name has at most 253, and hosts are remembered."""


def parse(url: str | bytes) -> Address | None:
    """Return the address in a broker's URL; None if the text is not a URL of exactly one broker."""
    if isinstance(url, bytes) or len(url) > LONGEST_URL:  # protobuf returns bytes for bad UTF-8
        return None
    try:
        return parse_url(url, SCHEMES)
    except ValueError:
        return None


def write(address: Address, *, tls: bool) -> str:
    """Return the URL of an address. `tls`: the URL has the scheme for TLS."""
    return f"{_TLS if tls else _PLAIN}://{address}"


def choose(plain: str | bytes, with_tls: str | bytes, *, tls: bool) -> str | bytes:
    """Return one of a broker's two URLs, without and with TLS: with `tls` the one with TLS,
    otherwise the one without. If the preferred URL is empty, return the other."""
    return (with_tls or plain) if tls else (plain or with_tls)
