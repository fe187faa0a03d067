"""Where addresses of brokers stand in messages, and how they become the gateway's and come back.

Each of these texts says which broker it is about, by its id, before it says where that broker is.
So the id alone decides, and what stood in the place of the address does not matter.

Source: BrokerInfo, SubscribeInfo, Partition and ClusterConfigHolder of Apache InLong TubeMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.errors import PeerError
from gateway.wire.address import Address

PLAIN_PORT, TLS_PORT = 8123, 8124
"""Where a broker is whose port is not said."""

LONGEST_ID, LONGEST_PORT = 10, 5
"""The most digits that an id of a broker and a port may have."""

Towards = Callable[[int, str], Address | None]
"""Returns the address of the broker with this id that a peer is told; None: what stands there,
`host:port`, which is passed on."""


def brokers(infos: Iterator[str] | list[str], *, tls: bool) -> Iterator[tuple[int, Address]]:
    """Yield the id and the address of each broker that a master names: `id:host:port`. Raises
    `PeerError`. `tls`: where a blank port is."""
    for info in infos:
        id, _, rest = info.partition(":")
        yield _id(id), address_of(rest, tls=tls)


def address_of(place: str, *, tls: bool) -> Address:
    """Return the address that `host:port` says. `tls`: where a blank port is. Raises `PeerError` if
    it says none."""
    host, _, port = place.rpartition(":")
    port = port.strip() or str(TLS_PORT if tls else PLAIN_PORT)
    if not host or not port.isdecimal() or len(port) > LONGEST_PORT:
        raise PeerError("a broker without an address")
    return Address(host, int(port), tls)


def broker_text(id: int, address: Address) -> str:
    """Return how a client is told of a broker: with its port, as clients have other ports in mind
    if there is none."""
    return f"{id}:{address.host}:{address.port}"


def subscribed(text: str, towards: Towards) -> str:
    """Return `consumer@group#id:host:port#topic:partition` with the address that `towards` gives.
    Raises `PeerError` if the text is not of this form."""
    who, _, rest = text.partition("#")
    place, mark, partition = rest.partition("#")
    if not mark:
        raise PeerError("a subscription without a partition")
    return f"{who}#{_placed(place, towards)}#{partition}"


def partition(text: str, towards: Towards) -> str:
    """Return `id:host:port#topic:partition` with the address that `towards` gives. Raises
    `PeerError` if the text is not of this form."""
    place, mark, rest = text.partition("#")
    if not mark:
        raise PeerError("a partition without a topic")
    return f"{_placed(place, towards)}#{rest}"


def topic_of(text: str) -> tuple[str, int]:
    """Return the topic and the number of the partition that `id:host:port#topic:partition` names.
    Raises `PeerError` if the text is not of this form, or if others could read it otherwise."""
    _, _, partition = text.partition("#")
    topic, _, number = partition.partition(":")
    if "#" in partition:
        raise PeerError("a partition with two topics")
    return topic, _id(number)


def failure(text: str, towards: Towards) -> str:
    """Return `error:id:host:port#topic:partition` with the address that `towards` gives. Raises
    `PeerError` if the text is not of this form."""
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
