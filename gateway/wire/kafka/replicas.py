"""Refuses the requests that only brokers may send, as replicas.

A client could send such a request through the gateway, and the broker would authorize it as a
request of the gateway's own principal. The broker would respond with messages beyond the high
watermark, and move the watermark of a partition.
"""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import FETCH
from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan

LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 2, 23

OF_REPLICAS = frozenset({FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH})
"""APIs whose requests have a replica id. Consumers send a negative one."""

_WANTED = frozenset({"ReplicaId"})


def refuse_replica(schema: Schema, head: Head, frame: bytes) -> None:
    """Raise `PeerError` if a request of one of the APIs `OF_REPLICAS` has the id of a replica, or
    is truncated."""
    for place in plan(schema, head.version, _WANTED).walk(frame, head.body, len(frame)).places:
        if int.from_bytes(frame[place.start : place.end], signed=True) >= 0:
            raise PeerError("a request of a replica")
