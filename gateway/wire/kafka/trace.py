"""Describes frames for traces."""

from __future__ import annotations

import struct

from gateway.wire.contract import Direction
from gateway.wire.kafka.schema import api

_REQUEST = struct.Struct(">ihhi")
_ANSWER = struct.Struct(">ii")


def describe(direction: Direction, frame: bytes) -> str:
    """Return a description of a frame, which may be cut: the API, version and correlation id of a
    request, only the correlation id of a response. Tokens and records are never shown."""
    if direction is Direction.TO_CLIENT:
        if len(frame) < _ANSWER.size:
            return "not decodable"
        return f"answer {_ANSWER.unpack_from(frame)[1]}"
    if len(frame) < _REQUEST.size:
        return "not decodable"
    _, key, version, correlation = _REQUEST.unpack_from(frame)
    known = api(key)
    return f"{known.name if known else f'API {key}'} {version} {correlation}"
