"""How many messages an entry holds: `MessageMetadata.num_messages_in_batch`, field 11.

Absent means one. The last occurrence counts, as in protobuf. Fields come in any order, so the
metadata is walked to its end.
"""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire.contract import Account

_NUM_MESSAGES = 11 << 3
_LAST_COUNT = (1 << 31) - 1

_LONGEST_ITEM = 20
"""A tag and a varint have at most ten bytes each: more of a cut field is never kept."""


def count_messages(chunk: bytes | bytearray, at: int, end: int) -> int:
    """Walk whole metadata at `chunk[at:end]`. Raises `PeerError` where it is not protobuf."""
    messages = 1
    while at < end:
        tag = chunk[at]
        at += 1
        if tag > 127:  # a field above 15: its number does not matter, its wire type does
            wire = tag & 7
            while tag > 127:
                if at >= end:
                    raise PeerError("the metadata of a message is cut")
                tag = chunk[at]
                at += 1
            tag = 0x78 | wire  # field 15, which is not the one we look for
        wire = tag & 7
        if wire == 5 or wire == 1:
            at += 4 if wire == 5 else 8
            continue
        if wire != 0 and wire != 2:
            raise PeerError(f"the metadata of a message has a field of wire type {wire}")
        value = shift = 0
        byte = 128
        while byte > 127:
            if at >= end or shift > 63:
                raise PeerError("the metadata of a message is cut")
            byte = chunk[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
        if wire == 2:
            at += value
        elif tag == _NUM_MESSAGES:
            messages = value
    if at != end:
        raise PeerError("a field of a message's metadata reaches beyond it")
    return messages if 0 < messages <= _LAST_COUNT else 1


class MetadataWalk:
    """Walks metadata of any length as its pieces pass, keeping at most a cut field's head.

    The message count is booked on the account when the last byte was seen.
    """

    __slots__ = ("_account", "_cut", "_left", "_messages", "_skip")

    def __init__(self, account: Account, size: int) -> None:
        self._account = account
        self._left = size
        self._skip = 0
        self._cut = b""
        self._messages = 1

    def feed(self, chunk: bytearray, start: int, end: int) -> MetadataWalk | None:
        """Walk on through `chunk[start:end]`. Answers itself, or None when the end was reached."""
        take = min(end - start, self._left)
        self._left -= take
        skipped = min(self._skip, take)
        self._skip -= skipped
        piece = self._cut + bytes(chunk[start + skipped : start + take])
        at = self._fields(piece)
        self._skip += max(0, at - len(piece))
        self._cut = piece[at:]
        if self._left:
            return self
        if self._skip or self._cut:
            raise PeerError("a field of a message's metadata reaches beyond it")
        self._account.messages += self._messages
        self._account.surplus += self._messages - 1
        return None

    def _fields(self, piece: bytes) -> int:
        """Walk whole fields. Answers the offset of a cut one, or one beyond the piece."""
        at = 0
        while at < len(piece):
            head = _item(piece, at)
            if head is None:
                if len(piece) - at > _LONGEST_ITEM:
                    raise PeerError("a field of a message's metadata has an endless head")
                return at
            tag, value, at = head
            if tag & 7 == 2:
                at += value
            elif tag == _NUM_MESSAGES:
                self._messages = value if 0 < value <= _LAST_COUNT else 1
        return at


def _item(piece: bytes, at: int) -> tuple[int, int, int] | None:
    """Tag, value (of a length-delimited field: its length) and next offset; None: it is cut."""
    tag = _varint(piece, at)
    if tag is None:
        return None
    number, at = tag
    wire = number & 7
    if wire == 1 or wire == 5:
        at += 8 if wire == 1 else 4
        return (number, 0, at) if at <= len(piece) else None
    if wire != 0 and wire != 2:
        raise PeerError(f"the metadata of a message has a field of wire type {wire}")
    value = _varint(piece, at)
    return None if value is None else (number, *value)


def _varint(piece: bytes, at: int) -> tuple[int, int] | None:
    value = shift = 0
    for index in range(at, min(len(piece), at + 10)):
        byte = piece[index]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, index + 1
        shift += 7
    return None
