"""Reads and writes the broker addresses in texts of messages.

Each of these texts has the broker's id before its address. So the address that is written in its
place depends on the id alone, not on the address that the text had.

Source: BrokerInfo, SubscribeInfo, Partition and ClusterConfigHolder of Apache InLong TubeMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.errors import PeerError
from gateway.wire.address import Address

PLAIN_PORT, TLS_PORT = 8123, 8124
"""The ports that a blank port stands for."""

LONGEST_ID, LONGEST_PORT = 10, 5
"""The most digits of a broker's id, and of a port."""

Towards = Callable[[int, str], Address | None]
"""Returns the address to put for the broker with this id; None to leave the one that stands there,
`host:port`, which is the second argument."""


def brokers(infos: Iterator[str] | list[str], *, tls: bool) -> Iterator[tuple[int, Address]]:
    """Yield the id and the address of each broker in a master's list of `id:host:port`. `tls`: an
    entry with a blank port means the TLS port, not the plain one. Raises `PeerError` if an entry is
    malformed."""
    for info in infos:
        id, _, rest = info.partition(":")
        yield _id(id), address_of(rest, tls=tls)


def address_of(place: str, *, tls: bool) -> Address:
    """Return the address in a text `host:port`. `tls`: a blank port means the TLS port, not the
    plain one. Raises `PeerError` if the text is malformed."""
    host, _, port = place.rpartition(":")
    port = port.strip() or str(TLS_PORT if tls else PLAIN_PORT)
    if not host or not port.isdecimal() or len(port) > LONGEST_PORT:
        raise PeerError("a broker without an address")
    return Address(host, int(port), tls)


def broker_text(id: int, address: Address) -> str:
    """Return the entry of a broker in a list that clients are sent: `id:host:port`. The port is
    never left blank, because clients would then assume a default port in place of the gateway's."""
    return f"{id}:{address.host}:{address.port}"


def partition(text: str, towards: Towards) -> str:
    """Return the text `id:host:port#topic:partition` with another address in place of `host:port`.
    `towards`: returns the other address; None: `host:port` stays. Raises `PeerError` if the text is
    not of this form."""
    place, mark, rest = text.partition("#")
    if not mark:
        raise PeerError("a partition without a topic")
    return f"{_placed(place, towards)}#{rest}"


def topic_of(text: str) -> tuple[str, int]:
    """Return the topic and the partition number in a text `id:host:port#topic:partition`. Raises
    `PeerError` if the text is not of this form, or if a server could read it differently."""
    _, _, partition = text.partition("#")
    topic, _, number = partition.partition(":")
    if "#" in partition:
        raise PeerError("a partition with two topics")
    return topic, _id(number)


def failure(text: str, towards: Towards) -> str:
    """Return the text `error:id:host:port#topic:partition` with another address in place of
    `host:port`. `towards`: returns the other address; None: `host:port` stays. Raises `PeerError`
    if the text is not of this form."""
    error, _, rest = text.partition(":")
    return f"{error}:{partition(rest, towards)}"


def _placed(place: str, towards: Towards) -> str:
    id, _, rest = place.partition(":")
    address = towards(_id(id), rest)
    return place if address is None else f"{id}:{address.host}:{address.port}"


def _id(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > LONGEST_ID:
        raise PeerError("a broker or a partition without its number")
    return int(text)
