"""Address rewriting: the fields of responses with broker addresses, and what clients get instead.

Three tables, by API, say what happens to structs with a host and a port. `REWRITTEN`: the struct is
the address of a broker, and the gateway's own address takes its place. `EMPTIED`: the structs are
in a list that clients do not need, and the list is sent empty. `OTHERS`: the struct is the address
of something else, and is not changed. A test fails if a message has such a struct and its API is in
none of these tables, so that a new release of Kafka cannot leak addresses unnoticed.

Node ids are not changed, because responses name leaders, coordinators and replicas by them.

Sources: KIP-951 (leaders in Produce and Fetch), KIP-932 (share groups), KIP-853 (listeners in
DescribeQuorum), KIP-700 (DescribeCluster).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.address import LAST_PORT, Address
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import Place, as_text, plan, splice, text_at, unsigned

PRODUCE, FETCH, METADATA, FIND_COORDINATOR = 0, 1, 3, 10
DESCRIBE_QUORUM, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE = 55, 60, 78, 79

REWRITTEN = frozenset(
    {PRODUCE, FETCH, METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE}
)
EMPTIED = {DESCRIBE_QUORUM: "Listeners"}
"""By API key: the name of the list. Its addresses are controllers', which no client has to
reach."""

OTHERS = {
    29: "hosts of clients, in rights",
    31: "hosts of clients, in rights",
    88: "endpoints of applications, which they tell each other",
    89: "endpoints of applications, which they tell each other",
}

NODES = ("NodeId", "BrokerId")
_WANTED = frozenset({*NODES, "Host", "Port"})

LONGEST_HOST = 255
"""The most bytes of a host name (RFC 1035)."""


class Node(NamedTuple):
    """A broker in a response: its id, host and port."""

    id: int
    host: str
    port: int

    def address(self, *, tls: bool) -> Address:
        """Return the broker's address. `tls`: the gateway connects to brokers by TLS. Raises
        `PeerError` if the port is invalid."""
        if not 0 < self.port <= LAST_PORT:
            raise PeerError(f"a broker at port {self.port}")
        return Address(self.host, self.port, tls=tls)


Advertise = Callable[[Node], Address]
"""Returns the address at which clients reach a broker, one of the gateway's own."""


def rewritten(
    schema: Schema, version: int, frame: bytes, start: int, advertise: Advertise
) -> bytes:
    """Return a response, whose body begins at `start`, with the gateway's addresses in place of
    brokers'. `advertise`: returns the gateway's address for a broker.

    A node with an empty host is not changed: it means that no coordinator is available, or that the
    broker is not alive. Raises `PeerError` if the body is truncated, or an address is invalid.
    """
    walk = plan(schema, version, _WANTED).walk(frame, start, len(frame))
    flexible = version >= schema.flexible
    changes: list[tuple[Place, bytes]] = []
    id = -1
    host: Place | None = None
    for place in walk.places:
        if place.name in NODES:
            id = _number(frame, place)
        elif place.name == "Host":
            host = place
        elif host is not None:
            name = _host(frame, host, flexible=flexible)
            if name:
                own = advertise(Node(id, name, _number(frame, place)))
                changes.append((host, as_text(own.host.encode("ascii"), flexible=flexible)))
                changes.append((place, struct.pack(">i", own.port)))
            host = None
    return splice(frame, walk, changes) if changes else frame


def nodes(schema: Schema, version: int, frame: bytes, start: int) -> list[Node]:
    """Return the brokers in a response whose body begins at `start`. Raises `PeerError` if the body
    is truncated, or an address is invalid."""
    brokers: list[Node] = []

    def note(node: Node) -> Address:
        brokers.append(node)
        return Address(node.host, node.port)

    rewritten(schema, version, frame, start, note)
    return brokers


def emptied(schema: Schema, version: int, frame: bytes, start: int, name: str) -> bytes:
    """Return a response, whose body begins at `start`, with each list called `name` emptied. Raises
    `PeerError` if the response is truncated."""
    walk = plan(schema, version, frozenset({name})).walk(frame, start, len(frame))
    nothing = unsigned(1) if version >= schema.flexible else bytes(4)
    return splice(frame, walk, [(place, nothing) for place in walk.places])


def _number(frame: bytes, place: Place) -> int:
    return int.from_bytes(frame[place.start : place.end], signed=True)


def _host(frame: bytes, place: Place, *, flexible: bool) -> str:
    """Return the host name at a place; empty if there is none."""
    text = text_at(frame, place, flexible=flexible) or b""
    if len(text) > LONGEST_HOST:
        raise PeerError(f"a host of {len(text)} bytes")
    try:
        return text.decode("ascii")
    except UnicodeDecodeError as error:
        raise PeerError("a host that is no name") from error
