"""Takes brokers' addresses out of texts that go to clients.

C++ clients decide on such texts ("is being unloaded"), and topic names are in them: only hosts that
were learned, or that may be dialled, are replaced, never what merely looks like an address.

A text holds what clients choose, so its cost is bounded whatever it says. A few scans without a
loop of ours list every spelling in it that could be a host, and sets say which of them are brokers.
Mostly none is, and that is all. Otherwise one pattern, the same for all hosts, finds what has the
shape of an address. The shapes, all of them seen in brokers' texts:

    scheme://host:6650   http://host:8080   host:6650   host.example   10.0.0.1   [fd00::1]:6650
    host/10.0.0.1:6650   /10.0.0.1:6650   host/<unresolved>:6650   (Java's InetSocketAddress)

Topics are matched first, whole, and stay as they are. Hosts are compared without regard to the case
of ASCII letters.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Set
from functools import lru_cache
from socket import AF_INET6, inet_pton

from gateway.wire.plugin import Plugin

MOST_HOSTS = 4096
"""Hosts and addresses remembered of each origin, the oldest forgotten first. The largest clusters
have hundreds of brokers, each with a name and an address or two; 4096 take half a megabyte."""

REPLACEMENT = "broker"

_V4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_V6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}"  # Java writes address:port without brackets, too
_NAME = r"\w+(?:(?:\.|-+)\w+)*"  # IPv4 addresses have this shape, too


@lru_cache
def _pattern(url_schemes: str, topic_schemes: str) -> re.Pattern[str]:
    """Return the pattern of texts about brokers; both arguments are alternatives of schemes."""
    return re.compile(
        rf"""
        # Words that are followed by a space are no addresses, and many of them cost one match.
        (?P<other> (?: [\w-]++ [\s,;'"()]++ )++
          | (?: {topic_schemes} ) :// [^\s,;'"<>()\[\]{{}}]* )
        |
        (?P<scheme> (?: {url_schemes} ) :// )?
        (?P<host>
            \[ {_V6} (?: %\w{{1,16}} )? \]
          | (?<! [\w:.] ) {_V6} (?! \.?\w | : )
          | {_NAME}
        )
        (?: / (?P<ip> {_V4} | \[ {_V6} \] | {_V6} | <unresolved> ) (?! \.?\w ) )?
        (?P<port> \.? : [0-9]{{2,5}} (?! [.-]*\w ) )?
        """,
        re.VERBOSE,
    )


# Every `host` and `ip` that a pattern can find is among what these find.
_NAMES = re.compile(_NAME)
_NAMES_BEHIND_ADDRESSES = re.compile(rf"[0-9a-f:]-+({_NAME})")
_V4_BEHIND_NAMES = re.compile(rf"/({_V4})(?!\.?\w)")
_V6_ANYWHERE = re.compile(rf"(?<![\w:.]){_V6}(?!\.?\w)")

_V6_COLONS = 7  # where none of its groups is left out


Host = str | bytes | None
"""A name or IPv4 address in lower case, or the bytes of an IPv6 address; None: it is no address."""


class LearnedHosts:
    """A bounded set of the host names and IP addresses of brokers that speak `protocol`.

    `targets`: which of some hosts, in lower case, are brokers by what is configured.
    """

    def __init__(
        self,
        protocol: Plugin,
        bound: int = MOST_HOSTS,
        targets: Callable[[Collection[str]], Set[str]] = lambda _hosts: frozenset(),
    ) -> None:
        self._bound = bound
        self._targets = targets
        urls = (*protocol.schemes, "http", "https")
        self._pattern = _pattern(_alternatives(urls), _alternatives(protocol.topic_schemes))
        # Two sets, so that addresses which clients lead to never evict those that brokers named.
        # Both are in the order of learning.
        self._named: OrderedDict[Host, None] = OrderedDict()
        self._reached: OrderedDict[Host, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._named.keys() | self._reached.keys())

    def learn(self, *hosts: str) -> None:
        """Remember host names or IP literals (IPv6 without brackets) that the configuration, a
        name server or a broker named."""
        self._remember(self._named, hosts)

    def reached(self, *hosts: str) -> None:
        """Remember those to which a client led the gateway, once they were connected to."""
        self._remember(self._reached, hosts)

    def clean(self, text: str) -> str:
        """The text with `broker` in place of each learned host, its address and its port.

        A host without a dot could be any word: it is replaced only behind a scheme, or before
        a port or an address.
        """
        if not (self._named or self._reached):
            return text
        lower = _lower(text)
        brokers = self._brokers_in(lower)
        return "".join(self._cleaned(text, lower, brokers)) if brokers else text

    def _remember(self, known: OrderedDict[Host, None], hosts: Iterable[str]) -> None:
        for host in map(_key, hosts):
            known[host] = None
            known.move_to_end(host)
        while len(known) > self._bound:
            known.popitem(last=False)

    def _brokers_in(self, lower: str) -> Set[str]:
        """All spellings of brokers' hosts in a text."""
        names = {*_NAMES.findall(lower), *_NAMES_BEHIND_ADDRESSES.findall(lower)}
        names.update(_V4_BEHIND_NAMES.findall(lower))
        found = set(_V6_ANYWHERE.findall(lower))
        long = set(filter(_is_long, (*found, *map(_without_port, found))))
        brokers = {*self._targets(names | long)}
        brokers.update(it for it in long if self._holds(_packed(it)))
        for known in (self._named, self._reached):
            brokers.update(it for it in known.keys() & names if isinstance(it, str))
        return brokers

    def _cleaned(self, text: str, lower: str, brokers: Set[str]) -> Iterable[str]:
        """The parts of a text, those that are brokers replaced."""
        begin = 0
        for found in self._pattern.finditer(lower):
            other, scheme, host, ip, port = found.groups()
            if other is None and _is_broker(scheme, host, ip, port, brokers):
                at = found.start("host")
                yield text[begin:at]
                yield REPLACEMENT
                begin = found.end()
        yield text[begin:]

    def _holds(self, host: bytes | None) -> bool:
        return host in self._named or host in self._reached


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


def _is_broker(
    scheme: str | None, host: str, ip: str | None, port: str | None, brokers: Set[str]
) -> bool:
    if ip is not None and _is_in(ip, brokers):
        return True
    is_address = scheme or ip or port or "." in host or ":" in host
    return bool(is_address) and _is_in(host, brokers)


def _is_in(spelling: str, brokers: Set[str]) -> bool:
    """Whether one of these is spelled so, or in brackets, or before a port."""
    if ":" not in spelling:
        return spelling in brokers
    plain = spelling.strip("[]").partition("%")[0]
    return plain in brokers or _without_port(plain) in brokers


def _is_long(six: str) -> bool:
    """Return whether the text can be a whole IPv6 address. Times such as 10:30:00 cannot."""
    return "::" in six or six.count(":") == _V6_COLONS


def _without_port(six: str) -> str:
    return six.rpartition(":")[0]


def _lower(text: str) -> str:
    """A text in which everything is where it was: lower-case letters beyond ASCII may be two."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def _key(host: str) -> Host:
    """One for each host: Java writes fd00:0:0:0:0:0:0:1 where others write fd00::1."""
    plain = host.lower().strip("[]").rstrip(".")
    return _packed(plain.partition("%")[0]) or plain


def _packed(six: str) -> bytes | None:
    try:
        return inet_pton(AF_INET6, six) if ":" in six else None
    except (OSError, ValueError):
        return None
