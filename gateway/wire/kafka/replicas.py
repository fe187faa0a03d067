"""Refuses requests of replicas, which only brokers are.

A broker would judge such a request by the principal of its connection, the gateway's: it answers
with messages beyond the high watermark, and moves that of a partition.
"""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import FETCH
from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan

LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 2, 23

OF_REPLICAS = frozenset({FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH})
"""APIs whose requests say which replica asks. Consumers have a negative id."""

_WANTED = frozenset({"ReplicaId"})


def refuse_replica(schema: Schema, head: Head, frame: bytes) -> None:
    """Raise `PeerError` if a request of `OF_REPLICAS` says that it is a replica's, or is torn."""
    for place in plan(schema, head.version, _WANTED).walk(frame, head.body, len(frame)).places:
        if int.from_bytes(frame[place.start : place.end], signed=True) >= 0:
            raise PeerError("a request of a replica")
