"""The framing of Pulsar: sizes, command types, canonical commands, and scanners' actions.

A frame is `[total size][command size][BaseCommand]`, followed for SEND and MESSAGE by
`[0x0e01][CRC32C]` (both optional), `[metadata size][metadata][payload]`. Sizes are 4 bytes,
big-endian; the total size does not count itself. A broker may put
`[0x0e02][size][broker entry metadata]` in front of the checksum of a MESSAGE.
Source: Pulsar binary protocol specification, sections "Framing" and PIP-70.

A BaseCommand is *canonical* when its type comes first and the field of that type fills the rest.
In Pulsar's schema the number of a command's field equals the number of its type, so one check
serves all. Every known client and broker writes its commands so.

The gateway accepts no other commands, from either side, because decoders disagree about them: if
there are two types, one decoder takes the last, and another one ignores a type that it does not
know and takes the first. A canonical command has one reading in every decoder: its type is the
first field, and a decoder that has read the body, whatever it holds, is at the command's end.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from gateway.errors import PeerError
from gateway.wire.pulsar.canonical import find_body

HEAD = Struct(">II")
"""Total size, command size."""

HEADER = 10
"""Bytes that are needed to scan a frame: both sizes and the command's type."""

CHECKSUM_MAGIC = 0x0E01
BROKER_ENTRY_MAGIC = 0x0E02

COMMAND_BOUND = 64 * 1024
"""Bytes of the largest command of a MESSAGE or SEND_RECEIPT. Most have 20 to 40; acknowledgement
sets of huge batches have some kilobytes. This bounds the memory for a truncated header."""

LAST_TYPE_OF_ONE_BYTE = 127

_HEAD_OF_COMMAND = 32
"""Bytes of a frame in which its command's fields begin, if the command is canonical: two sizes, the
type, a tag of two bytes, and a length of five."""

_TYPE_TAG = 0x08
"""The tag of `BaseCommand.type`: field 1, a varint."""


class Kind(IntEnum):
    """The numbers of `BaseCommand.Type`, for scanners, which must not need protobuf."""

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

LISTS = frozenset(
    {
        Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        Kind.WATCH_TOPIC_LIST_SUCCESS,
        Kind.WATCH_TOPIC_UPDATE,
        Kind.WATCH_SCALABLE_TOPICS_UPDATE,
    }
)
"""The responses of brokers that list topics, as many as there are: only their frame has a bound."""

WITH_PAYLOAD = frozenset({Kind.SEND, Kind.MESSAGE})
"""The known commands with bytes behind them. Others must have none: if a nested field reached
beyond the command, a decoder that does not check would read on there."""


def kind_name(kind: int) -> str:
    """Return the name that the specification gives a command type; the number of an unknown
    type."""
    return Kind(kind).name if kind in KNOWN else f"command {kind}"


def varint(value: int) -> bytes:
    """Return a non-negative number as a varint of as few bytes as possible."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag_of(kind: int) -> bytes:
    """Return the protobuf tag of the message field in a canonical command of this type."""
    return varint(kind << 3 | 2)


def split(frame: bytes) -> tuple[int, int, int]:
    """Return the command type of a whole frame, and the offsets at which the fields of its command
    begin and end.

    Raises `PeerError` if the sizes are wrong, the command is not canonical, or bytes follow a
    command that has no payload.
    """
    if len(frame) < HEADER:
        raise PeerError(f"a frame of {len(frame)} bytes holds no command")
    total, size = HEAD.unpack_from(frame)
    end = 8 + size
    if total + 4 < max(len(frame), end) or size < 2 or end > len(frame):
        raise PeerError(f"a frame of {len(frame)} bytes cannot hold a command of {size}")
    kind = frame[9]
    if frame[8] != _TYPE_TAG:
        begin = 0
    elif kind <= LAST_TYPE_OF_ONE_BYTE:
        begin = find_body(bytearray(frame[:_HEAD_OF_COMMAND]), 8, _HEAD_OF_COMMAND, end)
    else:
        kind, begin = _split_far(frame, end)
    if not begin:
        raise PeerError("a command that is not its type and the field of that type alone")
    if total + 4 > len(frame) and kind != Kind.SEND:
        raise PeerError(f"the begin of a {kind_name(kind)} of {total + 4} bytes")
    if end < len(frame) and kind in KNOWN and kind not in WITH_PAYLOAD:
        raise PeerError(f"a {kind_name(kind)} with {len(frame) - end} bytes behind it")
    return kind, begin, end


def _split_far(frame: bytes, end: int) -> tuple[int, int]:
    """Return type and fields of a command with a type of several bytes; no version has one yet."""
    kind, at = _shortest_varint(frame, 9, end)
    tag = tag_of(kind)
    if not at or frame[at : at + len(tag)] != tag:
        return kind, 0
    length, at = _shortest_varint(frame, at + len(tag), end)
    return kind, at if at and at + length == end else 0


def _shortest_varint(frame: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number of at most 32 bits and the offset behind it; 0 if truncated or too long."""
    value = 0
    for index in range(at, min(at + 5, end)):
        value |= (frame[index] & 127) << 7 * (index - at)
        if frame[index] < 128:
            shortest = value < 1 << 32 and (index == at or frame[index] > 0)
            return value, index + 1 if shortest else 0
    return 0, 0


PASS, COUNT, STOP = range(3)
"""A scanner's action for a command type: let it pass, walk and count it, or halt."""


def actions(count: frozenset[Kind], stop: frozenset[Kind], *, unknown_pass: bool) -> bytes:
    """Return the scanner's action (`PASS`, `COUNT`, `STOP`) for each command type from 0 to 127. A
    type in both sets gets `COUNT`. Unknown types get `STOP`, or `PASS` with `unknown_pass`."""
    stopped = stop if unknown_pass else stop | (frozenset(range(128)) - KNOWN)
    return bytes(COUNT if n in count else STOP if n in stopped else PASS for n in range(128))
