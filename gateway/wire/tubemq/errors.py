"""Error codes that the gateway answers by itself.

Source: TErrCodeConstants of Apache InLong TubeMQ; docs/protocols/tubemq.md says how clients take
them.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Never 503: producers in Java use no broker that answers it, for 50 seconds."""

    SUCCESS = 200
    UNAUTHORIZED = 401
    NOT_REGISTERED = 411
    UNCERTIFIED = 415
    OVERFLOW = 419
    GROUP_FORBIDDEN = 450
    TOO_FAST = 452
