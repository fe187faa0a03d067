"""Error codes that the gateway itself sends to clients, and those of servers whose texts show what
belongs to other clients.

Sources: TErrCodeConstants, TMaster, ConsumeGroupInfo and BrokerServiceServer of Apache InLong
TubeMQ. docs/protocols/tubemq.md describes how clients react to the codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ErrorCode(IntEnum):
    """The error code of a synthetic reply. Code 503 is never used, because producers in Java avoid
    a broker for 50 seconds after it."""

    SUCCESS = 200
    BAD_REQUEST = 400
    UNAUTHORIZED = 401
    NOT_REGISTERED = 411
    UNCERTIFIED = 415
    OVERFLOW = 419
    GROUP_FORBIDDEN = 450
    TOO_FAST = 452


_TAKEN = "another consumer of the group has the partition"
_DIFFERS = "the consumers of the group must have the same topics, filters and settings"

_OF_OTHERS: Mapping[int, str] = {
    410: _TAKEN,
    ErrorCode.NOT_REGISTERED: "the client is not registered",
    412: _TAKEN,
    **dict.fromkeys(range(424, 431), _DIFFERS),
}
"""By error code: the text in place of the server's, which names other clients, topics of the group
or its session. The text of 411 would show whether another group exists."""

_COMMITTED = "CommitOffsetResponseB2C"
"""The reply whose text names the client that has the partition, at code 401."""


def about_others(message: Any) -> str | None:
    """Return the text to put in place of that of a reply, because it may show what belongs to other
    clients; None if it shows nothing of the kind."""
    if message.errCode == ErrorCode.UNAUTHORIZED and message.DESCRIPTOR.name == _COMMITTED:
        return _TAKEN
    return _OF_OTHERS.get(message.errCode)
