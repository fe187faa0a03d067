"""Error codes that the gateway itself sends to clients.

Source: TErrCodeConstants of Apache InLong TubeMQ; docs/protocols/tubemq.md describes how clients
react to them.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """The error code of a synthetic reply. Code 503 is never used, because producers in Java avoid
    a broker for 50 seconds after it."""

    SUCCESS = 200
    UNAUTHORIZED = 401
    NOT_REGISTERED = 411
    UNCERTIFIED = 415
    OVERFLOW = 419
    GROUP_FORBIDDEN = 450
    TOO_FAST = 452
