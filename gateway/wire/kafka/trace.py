"""Describes frames for traces."""

from __future__ import annotations

import struct

from gateway.wire.contract import Direction
from gateway.wire.kafka.schema import api

_REQUEST = struct.Struct(">ihhi")
_ANSWER = struct.Struct(">ii")


def describe(direction: Direction, frame: bytes) -> str:
    """Return a description of a frame, which may be truncated: of a request its API, version and
    correlation id, of a response only its correlation id. The description never has tokens or
    records."""
    if direction is Direction.TO_CLIENT:
        if len(frame) < _ANSWER.size:
            return "not decodable"
        return f"answer {_ANSWER.unpack_from(frame)[1]}"
    if len(frame) < _REQUEST.size:
        return "not decodable"
    _, key, version, correlation = _REQUEST.unpack_from(frame)
    known = api(key)
    return f"{known.name if known else f'API {key}'} {version} {correlation}"
