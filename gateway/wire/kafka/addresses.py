"""Broker addresses in responses, and the keys of the APIs that other modules name.

`rewriting` puts the gateway's addresses in place of brokers'. Node ids are not changed, because
responses name leaders, coordinators and replicas by them.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.address import LAST_PORT, Address
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import Place, plan, text_at
from gateway.wire.kafka.walker import Walker

PRODUCE, FETCH, METADATA, FIND_COORDINATOR = 0, 1, 3, 10
DESCRIBE_QUORUM, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE = 55, 60, 78, 79

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


def nodes(schema: Schema, version: int, frame: bytes, start: int) -> list[Node]:
    """Return the brokers in a response whose body begins at `start`; not those with an empty host,
    which are not alive. Raises `PeerError` if the body is truncated, or a host is invalid."""
    flexible = version >= schema.flexible
    brokers: list[Node] = []
    id, host = -1, ""
    for place in plan(schema, version, _WANTED).walk(frame, start, len(frame)).places:
        if place.name == "Host":
            host = host_at(frame, place, flexible=flexible)
        elif place.name == "Port":
            port = int.from_bytes(frame[place.start : place.end], signed=True)
            brokers += [Node(id, host, port)] if host else []
        else:
            id = int.from_bytes(frame[place.start : place.end], signed=True)
    return brokers


def host_at(frame: bytes, place: Place | Walker, *, flexible: bool) -> str:
    """Return the host name at a place; empty if there is none. Raises `PeerError` if it is no host
    name."""
    text = text_at(frame, place, flexible=flexible) or b""
    if len(text) > LONGEST_HOST:
        raise PeerError(f"a host of {len(text)} bytes")
    try:
        return text.decode("ascii")
    except UnicodeDecodeError as error:
        raise PeerError("a host that is no name") from error
