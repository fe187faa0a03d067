"""Removes brokers' addresses from texts that go to clients.

C++ clients base decisions on such texts (for example on "is being unloaded"), and the texts contain
topic names. So only hosts that were learned, or that may be dialled, are replaced; other words are
not, even if they look like an address.

Clients choose parts of a text, so the time to clean it must be bounded whatever the text contains.
A few regular expressions list every spelling in the text that could be a host, without a Python
loop. Set operations then select the brokers among these spellings. Usually there is no broker among
them, and the text is not changed. Otherwise one pattern, which is the same for all hosts, finds
everything that has the shape of an address. These are the shapes, all of which brokers write:

    scheme://host:6650   http://host:8080   host:6650   host.example   10.0.0.1   [fd00::1]:6650
    host/10.0.0.1:6650   /10.0.0.1:6650   host/<unresolved>:6650   (Java's InetSocketAddress)

The pattern matches topic names first, each as a whole, and they are not changed. Hosts are compared
without regard to the case of ASCII letters.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Set
from functools import lru_cache
from socket import AF_INET6, inet_pton

from gateway.wire.plugin import Plugin

MOST_HOSTS = 4096
"""Hosts kept from each of the two sources; the oldest is forgotten first. The largest clusters have
hundreds of brokers, each with a name and an address or two; 4096 entries take half a megabyte."""

REPLACEMENT = "broker"

_V4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_V6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}"  # also Java's address:port without brackets
_NAME = r"\w+(?:(?:\.|-+)\w+)*"  # also matches IPv4 addresses


@lru_cache
def _pattern(url_schemes: str, topic_schemes: str) -> re.Pattern[str]:
    """Return the pattern that finds addresses and topics; both arguments are regex alternatives."""
    return re.compile(
        rf"""
        # Words followed by a space are no addresses, and one match skips many of them.
        (?P<other> (?> (?: [\w-]++ [\s,;'"()]++ )+ )
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


# Together these find every `host` and `ip` that the pattern above can find.
_NAMES = re.compile(_NAME)
_NAMES_BEHIND_ADDRESSES = re.compile(rf"[0-9a-f:]-+({_NAME})")
_V4_BEHIND_NAMES = re.compile(rf"/({_V4})(?!\.?\w)")
_V6_ANYWHERE = re.compile(rf"(?<![\w:.]){_V6}(?!\.?\w)")

_NEVER = r"(?!)"

_V6_COLONS = 7  # in an IPv6 address that omits no group

Host = str | bytes | None
"""A name or IPv4 address in lower case, or the bytes of an IPv6 address; None: no address."""


class LearnedHosts:
    """A bounded set of host names and IP addresses of brokers, which `clean` removes from texts.
    `protocol`: the protocol of these brokers.

    `targets`: a function that returns which of the given hosts, in lower case, the configuration
    allows to be dialled.
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
        # Two sets, so that hosts which clients ask for never evict hosts that brokers named.
        # Both are in the order of learning.
        self._named: OrderedDict[Host, None] = OrderedDict()
        self._dialled: OrderedDict[Host, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._named.keys() | self._dialled.keys())

    def learn(self, *hosts: str) -> None:
        """Remember hosts that the configuration, a name server or a broker has named. They are
        names or IP literals (IPv6 without brackets)."""
        self._remember(self._named, hosts)

    def learn_dialled(self, *hosts: str) -> None:
        """Remember hosts that a client has asked for, after a connection to them has succeeded."""
        self._remember(self._dialled, hosts)

    def clean(self, text: str) -> str:
        """Return the text with the word `broker` in place of each learned host, and of the address
        and port that follow it, as in `host/10.0.0.1:6650`.

        A host without a dot could be any word, so it is replaced only if a URL scheme precedes it,
        or a port or an address follows it.
        """
        if not (self._named or self._dialled):
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
        """Return all spellings of brokers' hosts in a text."""
        names = {*_NAMES.findall(lower), *_NAMES_BEHIND_ADDRESSES.findall(lower)}
        names.update(_V4_BEHIND_NAMES.findall(lower))
        parts = set(_V6_ANYWHERE.findall(lower))
        whole = set(filter(_may_be_whole_v6, (*parts, *map(_without_port, parts))))
        brokers = {*self._targets(names | whole)}
        packed = {text: _packed_v6(text) for text in whole}
        for known in (self._named, self._dialled):
            brokers.update(text for text, address in packed.items() if address in known)
            brokers.update(host for host in known.keys() & names if isinstance(host, str))
        return brokers

    def _cleaned(self, text: str, lower: str, brokers: Set[str]) -> Iterable[str]:
        """Return the parts of a text, with brokers replaced."""
        begin = 0
        for match in self._pattern.finditer(lower):
            other, scheme, host, ip, port = match.groups()
            if other is None and _is_broker(scheme, host, ip, port, brokers):
                at = match.start("host")
                yield text[begin:at]
                yield REPLACEMENT
                begin = match.end()
        yield text[begin:]


def _alternatives(words: Iterable[str]) -> str:
    """Return the regex of any of these words. Of no word it is one that matches nothing: an empty
    alternative would match everywhere."""
    return "|".join(map(re.escape, words)) or _NEVER


def _is_broker(
    scheme: str | None, host: str, ip: str | None, port: str | None, brokers: Set[str]
) -> bool:
    if ip is not None and _is_in(ip, brokers):
        return True
    is_address = scheme or ip or port or "." in host or ":" in host
    return bool(is_address) and _is_in(host, brokers)


def _is_in(spelling: str, brokers: Set[str]) -> bool:
    """Return True if the spelling, without brackets, scope and port, is one of these."""
    if ":" not in spelling:
        return spelling in brokers
    plain = spelling.strip("[]").partition("%")[0]
    return plain in brokers or _without_port(plain) in brokers


def _may_be_whole_v6(text: str) -> bool:
    """Return whether the text can be a whole IPv6 address. Times such as 10:30:00 cannot."""
    return "::" in text or text.count(":") == _V6_COLONS


def _without_port(address: str) -> str:
    return address.rpartition(":")[0]


def _lower(text: str) -> str:
    """Lower ASCII letters only, which keeps offsets: others may become two characters."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def _key(host: str) -> Host:
    """Return the same key for all spellings: Java writes fd00:0:0:0:0:0:0:1 for fd00::1."""
    plain = host.lower().strip("[]").rstrip(".")
    return _packed_v6(plain.partition("%")[0]) or plain


def _packed_v6(address: str) -> bytes | None:
    try:
        return inet_pton(AF_INET6, address) if ":" in address else None
    except (OSError, ValueError):
        return None
