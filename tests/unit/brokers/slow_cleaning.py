"""A reference implementation of the removal of addresses: one pattern, and a check of each word.

The gateway's own implementation is faster, and returns the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv6Address

_V4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_V6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}"  # also Java's address:port without brackets

_PATTERN = re.compile(
    rf"""
    (?P<topic> (?: (?:non-)?persistent | topic | segment ) :// [^\s,;'"<>()\[\]{{}}]* )
    |
    (?P<scheme> (?: pulsar(?:\+ssl)? | https? ) :// )?
    (?P<host>
        \[ {_V6} (?: %\w{{1,16}} )? \]
      | (?<! [\w:.] ) {_V6} (?! \.?\w | : )
      | \w+ (?: (?: \. | -+ ) \w+ )*
    )
    (?: / (?P<ip> {_V4} | \[ {_V6} \] | {_V6} | <unresolved> ) (?! \.?\w ) )?
    (?P<port> \.? : [0-9]{{2,5}} (?! [.-]*\w ) )?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def clean(text: str, hosts: Collection[str]) -> str:
    """Return the text with `broker` in place of each of these hosts (IPv6 without brackets)."""
    known = frozenset(map(_canonical, hosts))

    def replace(found: re.Match[str]) -> str:
        if found["topic"] is not None or not _is_known(found, known):
            return found[0]
        return f"{found['scheme'] or ''}broker"

    return _PATTERN.sub(replace, text)


def _is_known(found: re.Match[str], known: Collection[str]) -> bool:
    if _holds(known, found["ip"] or ""):
        return True
    host = found["host"]
    is_address = "." in host or ":" in host or found["scheme"] or found["ip"] or found["port"]
    return bool(is_address) and _holds(known, host)


def _holds(known: Collection[str], text: str) -> bool:
    without_port = _canonical(text).rpartition(":")[0]
    if _canonical(text) in known:
        return True
    return ":" in without_port and _canonical(without_port) in known


def _canonical(host: str) -> str:
    plain = host.lower().strip("[]").rstrip(".")
    try:
        return str(IPv6Address(plain.partition("%")[0])) if ":" in plain else plain
    except ValueError:
        return plain
