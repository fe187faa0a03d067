"""The outer shape of Pulsar frames: sizes, command kinds, and what to do with each kind.

A frame is `[total size][command size][BaseCommand]`, followed for SEND and MESSAGE by
`[0x0e01][CRC32C]` (both optional), `[metadata size][metadata][payload]`. Sizes are 4 bytes,
big-endian; the total size does not count itself. A broker may put
`[0x0e02][size][broker entry metadata]` in front of the checksum of a MESSAGE.
Source: Pulsar binary protocol specification, sections "Framing" and PIP-70.

A BaseCommand is *canonical* when its type comes first and the field of that type fills the rest.
In Pulsar's schema the number of a command's field equals the number of its type, so one check
serves all. Every known client and broker writes it so. What is not canonical is handed to the
session, which decodes it whole: otherwise a command could be smuggled past the scanner behind
the type of another.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

HEAD = Struct(">II")
"""Total size, command size."""

HEADER = 10
"""Bytes needed before a frame can be judged: both sizes and the command's type."""

CHECKSUM_MAGIC = 0x0E01
BROKER_ENTRY_MAGIC = 0x0E02

COMMAND_BOUND = 64 * 1024
"""Largest command part of a MESSAGE or SEND_RECEIPT, in bytes. Real ones have 20 to 40; the largest
are the acknowledgement sets of huge batches, some kilobytes. It bounds what is kept of a cut
header."""

LAST_TYPE_OF_ONE_BYTE = 127


class Kind(IntEnum):
    """`BaseCommand.Type`, for the scanner, which must not need protobuf."""

    CONNECT = 2
    CONNECTED = 3
    SUBSCRIBE = 4
    PRODUCER = 5
    SEND = 6
    SEND_RECEIPT = 7
    SEND_ERROR = 8
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    UNSUBSCRIBE = 12
    SUCCESS = 13
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PRODUCER_SUCCESS = 17
    PING = 18
    PONG = 19
    REDELIVER_UNACKNOWLEDGED_MESSAGES = 20
    PARTITIONED_METADATA = 21
    PARTITIONED_METADATA_RESPONSE = 22
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    CONSUMER_STATS = 25
    CONSUMER_STATS_RESPONSE = 26
    REACHED_END_OF_TOPIC = 27
    SEEK = 28
    GET_LAST_MESSAGE_ID = 29
    GET_LAST_MESSAGE_ID_RESPONSE = 30
    ACTIVE_CONSUMER_CHANGE = 31
    GET_TOPICS_OF_NAMESPACE = 32
    GET_TOPICS_OF_NAMESPACE_RESPONSE = 33
    GET_SCHEMA = 34
    GET_SCHEMA_RESPONSE = 35
    AUTH_CHALLENGE = 36
    AUTH_RESPONSE = 37
    ACK_RESPONSE = 38
    GET_OR_CREATE_SCHEMA = 39
    GET_OR_CREATE_SCHEMA_RESPONSE = 40
    NEW_TXN = 50
    NEW_TXN_RESPONSE = 51
    ADD_PARTITION_TO_TXN = 52
    ADD_PARTITION_TO_TXN_RESPONSE = 53
    ADD_SUBSCRIPTION_TO_TXN = 54
    ADD_SUBSCRIPTION_TO_TXN_RESPONSE = 55
    END_TXN = 56
    END_TXN_RESPONSE = 57
    END_TXN_ON_PARTITION = 58
    END_TXN_ON_PARTITION_RESPONSE = 59
    END_TXN_ON_SUBSCRIPTION = 60
    END_TXN_ON_SUBSCRIPTION_RESPONSE = 61
    TC_CLIENT_CONNECT_REQUEST = 62
    TC_CLIENT_CONNECT_RESPONSE = 63
    WATCH_TOPIC_LIST = 64
    WATCH_TOPIC_LIST_SUCCESS = 65
    WATCH_TOPIC_UPDATE = 66
    WATCH_TOPIC_LIST_CLOSE = 67
    TOPIC_MIGRATED = 68
    SCALABLE_TOPIC_LOOKUP = 70
    SCALABLE_TOPIC_UPDATE = 71
    SCALABLE_TOPIC_CLOSE = 72
    SCALABLE_TOPIC_SUBSCRIBE = 73
    SCALABLE_TOPIC_SUBSCRIBE_RESPONSE = 74
    SCALABLE_TOPIC_ASSIGNMENT_UPDATE = 75
    WATCH_SCALABLE_TOPICS = 76
    WATCH_SCALABLE_TOPICS_UPDATE = 77
    WATCH_SCALABLE_TOPICS_CLOSE = 78
    WATCH_TC_ASSIGNMENTS = 79
    WATCH_TC_ASSIGNMENTS_UPDATE = 80
    WATCH_TC_ASSIGNMENTS_CLOSE = 81


KNOWN = frozenset(Kind)


def kind_name(kind: int) -> str:
    """The command's name in the specification, or its number."""
    return Kind(kind).name if kind in KNOWN else f"command {kind}"


PASS, COUNT, STOP = range(3)
"""What a scanner does with a kind: let it go, walk and count it, halt."""


def actions(
    count: frozenset[Kind], stop: frozenset[Kind], *, unknown_pass: bool
) -> tuple[int, ...]:
    """One action for each command type of one byte (0 to 127)."""
    stopped = stop if unknown_pass else stop | (frozenset(range(128)) - KNOWN)
    return tuple(COUNT if n in count else STOP if n in stopped else PASS for n in range(128))
