"""Describes frames for traces."""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire.contract import Direction
from gateway.wire.tubemq.envelopes import read_request
from gateway.wire.tubemq.frames import HEAD, length, whole
from gateway.wire.tubemq.methods import name_of


def describe(direction: Direction, frame: bytes) -> str:
    """Return a description of a frame, which may be truncated: of a request its method and serial
    number, of a reply only its serial number. The description never has signatures or messages."""
    if len(frame) < HEAD.size:
        return "not decodable"
    _, serial, _ = HEAD.unpack_from(frame)
    if direction is Direction.TO_CLIENT:
        return f"reply {serial}"
    try:
        if length(frame) != len(frame):
            return f"a part of request {serial}"
        return f"{name_of(read_request(whole(frame).envelope).body.method)} {serial}"
    except PeerError:
        return "not decodable"
