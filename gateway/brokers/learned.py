"""Takes brokers' addresses out of texts that go to clients.

C++ clients decide on such texts ("is being unloaded"), and topic names are in them: only hosts that
were learned, or that may be dialled, are replaced, never what merely looks like an address.

One fixed pattern finds whatever has the shape of an address; a set says whether it is a broker's.
So the cost does not grow with the number of brokers (an alternation of all hosts would be tried in
full at each letter), and learning compiles nothing. The shapes, all of them seen in brokers' texts:

    pulsar://host:6650   http://host:8080   host:6650   host.example   10.0.0.1   [fd00::1]:6650
    host/10.0.0.1:6650   /10.0.0.1:6650   host/<unresolved>:6650   (Java's InetSocketAddress)

Topics are matched first, whole, and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address

MOST_HOSTS = 4096
"""Hosts and addresses remembered, the oldest forgotten first. The largest clusters have hundreds of
brokers, each with a name and an address or two; 4096 take about half a megabyte."""

REPLACEMENT = "broker"

_V4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_V6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}"  # Java writes address:port without brackets, too

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


class LearnedHosts:
    """A bounded set of brokers' host names and IP addresses.

    `is_target`: whether a host is a broker's by what is configured, before anything is learned.
    """

    def __init__(
        self, bound: int = MOST_HOSTS, is_target: Callable[[str], bool] = lambda _host: False
    ) -> None:
        self._bound = bound
        self._is_target = is_target
        self._hosts: dict[str, None] = {}  # in the order of learning

    def __len__(self) -> int:
        return len(self._hosts)

    def learn(self, *hosts: str) -> None:
        """Remember host names or IP literals (IPv6 without brackets)."""
        for host in map(_canonical, hosts):
            self._hosts.pop(host, None)
            self._hosts[host] = None
        while len(self._hosts) > self._bound:
            del self._hosts[next(iter(self._hosts))]

    def clean(self, text: str) -> str:
        """The text with `broker` in place of each learned host, its address and its port.

        A host without a dot could be any word: it is replaced only behind a scheme, or before
        a port or an address.
        """
        return _PATTERN.sub(self._replace, text) if self._hosts else text

    def _replace(self, found: re.Match[str]) -> str:
        if found["topic"] is not None or not self._known(found):
            return found[0]
        return f"{found['scheme'] or ''}{REPLACEMENT}"

    def _known(self, found: re.Match[str]) -> bool:
        if self._holds(found["ip"] or ""):
            return True
        host = found["host"]
        is_address = "." in host or ":" in host or found["scheme"] or found["ip"] or found["port"]
        return bool(is_address) and self._holds(host)

    def _holds(self, text: str) -> bool:
        host = _canonical(text)
        if host in self._hosts or self._is_target(host):
            return True
        without_port = host.rpartition(":")[0]
        return ":" in without_port and _canonical(without_port) in self._hosts


def _canonical(host: str) -> str:
    """One spelling for each host: Java writes fd00:0:0:0:0:0:0:1 where others write fd00::1."""
    plain = host.lower().strip("[]").rstrip(".")
    if ":" not in plain:
        return plain
    try:
        return str(IPv6Address(plain.partition("%")[0]))
    except ValueError:
        return plain
