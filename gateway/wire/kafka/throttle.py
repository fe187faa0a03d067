"""Tells clients for how long they are held, in the place that answers have for it.

Well-behaved clients wait by themselves then, and show the time (KIP-219); all others are held by
not being read. Answers keep their size, so a frame that passes can be changed where it is.
"""

from __future__ import annotations

from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan

_NAME = "ThrottleTimeMs"
_WANTED = frozenset({_NAME})

LONGEST_MS = 2**31 - 1


def has_throttle(schema: Schema, version: int) -> bool:
    """Return whether answers of this version say how long a client is held."""
    return any(it.name == _NAME for it in schema.of(version))


def throttled(schema: Schema, version: int, frame: bytes, start: int, milliseconds: int) -> bytes:
    """Return an answer whose body begins at `start` and says at least so many milliseconds: what a
    broker says stays if it is more. Raises `PeerError` if the body is torn."""
    changed = bytearray(frame)
    for place in plan(schema, version, _WANTED).walk(frame, start, len(frame)).places:
        told = int.from_bytes(frame[place.start : place.end], signed=True)
        own = min(LONGEST_MS, max(told, milliseconds))
        changed[place.start : place.end] = own.to_bytes(4, signed=True)
    return bytes(changed)
