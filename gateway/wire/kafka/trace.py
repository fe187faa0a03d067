"""Describes frames for traces."""

from __future__ import annotations

import struct

from gateway.wire.kafka.schema import api

_REQUEST = struct.Struct(">ihhi")


def describe(frame: bytes) -> str:
    """Return a description of a frame, which may be cut. Tokens and records are never shown, and
    an answer cannot be told from a request by itself."""
    if len(frame) < _REQUEST.size:
        return "not decodable"
    size, key, version, correlation = _REQUEST.unpack_from(frame)
    known = api(key)
    if known is not None and known.request.first <= version <= known.request.last:
        return f"{known.name} v{version} #{correlation} ({size} bytes)"
    (correlation,) = struct.unpack_from(">i", frame, 4)
    return f"answer #{correlation} ({size} bytes)"
