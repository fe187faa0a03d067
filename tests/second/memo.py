"""The frames of `memo`.

A frame consists of the length of the rest (4 bytes), a correlation id (4), a kind (1) and a body.
Each request has one answer, in the order of requests, of kind `request | ANSWER` or ERROR. A text
is its length (1 byte, in errors 2) and UTF-8. All numbers are big-endian.

| kind | request | answer |
|---|---|---|
| HELLO | principal, library, token | text |
| WHERE | number of topics (1), topics | number (1), for each its topic, host and port (2) |
| PUT | sections | nothing |
| GET | number of topics (1), topics | sections |
| ERROR | | code (1), text |

Sections consist of the length of their head (2), the head, and all payloads. The head has for each
topic its name, the number of messages (2), and the size of their payload (4).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.contract import Denial, Refusal

HEAD = Struct(">IIB")
SIZE = Struct(">H")
ENTRY = Struct(">HI")
PREFIX = 4
"""Bytes of the length field, which the length does not count."""

LONGEST_HEAD = 1024
"""Largest head of sections, in bytes: a cut head is kept up to this size."""

ANSWER = 0x80


class Kind(IntEnum):
    """The kinds of requests; their responses have `kind | ANSWER`."""

    HELLO = 1
    WHERE = 2
    PUT = 3
    GET = 4
    ERROR = 0xFF


class Section(NamedTuple):
    """The part of a frame for one topic. `size`: bytes of its payload."""

    topic: bytes
    messages: int
    size: int


class Body:
    """Reads a body from start to end. Raises `PeerError` if it ends too early."""

    def __init__(self, data: bytes | bytearray | memoryview, at: int = HEAD.size) -> None:
        self._data = bytes(data)
        self._at = at

    def number(self, size: int) -> int:
        """Return an unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size))

    def text(self, size: int = 1) -> str:
        """Return a text whose length field has `size` bytes."""
        return self.raw(size).decode(errors="replace")

    def raw(self, size: int = 1) -> bytes:
        """Return the bytes of a text."""
        return self.take(self.number(size))

    def take(self, size: int) -> bytes:
        """Return `size` bytes."""
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise PeerError("a body that is shorter than it says")
        self._at += size
        return taken

    def end(self) -> None:
        """Raise `PeerError` if bytes are left."""
        if self._at < len(self._data):
            raise PeerError("a body that is longer than it says")


# -- writing -----------------------------------------------------------------------------------


def frame(id: int, kind: int, body: bytes = b"") -> bytes:
    """Return one frame."""
    return HEAD.pack(HEAD.size - PREFIX + len(body), id, kind) + body


def text(value: str | bytes, size: int = 1) -> bytes:
    """Return a text behind its length."""
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(size) + data


def texts(values: Iterable[str]) -> bytes:
    """Return texts behind their number."""
    found = [text(value) for value in values]
    return bytes([len(found)]) + b"".join(found)


def sections(parts: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Return a body of sections; each part is a topic, a number of messages, and their payload."""
    found = list(parts)
    head = b"".join(text(topic) + ENTRY.pack(n, len(data)) for topic, n, data in found)
    return SIZE.pack(len(head)) + head + b"".join(data for _, _, data in found)


def places(brokers: Iterable[tuple[str, str, int]]) -> bytes:
    """Return the body of a response to WHERE; each broker is a topic, a host and a port."""
    found = [text(topic) + text(host) + SIZE.pack(port) for topic, host, port in brokers]
    return bytes([len(found)]) + b"".join(found)


def refusal(id: int, denial: Denial) -> bytes:
    """Return the ERROR that answers request `id`."""
    code = list(Refusal).index(denial.refusal)
    return frame(id, Kind.ERROR, bytes([code]) + text(denial.text[:1000], 2))


# -- reading -----------------------------------------------------------------------------------


def frame_length(head: bytes | bytearray) -> int:
    """Return the size of a frame from its first bytes; 0: more bytes are needed."""
    return int.from_bytes(head[:PREFIX]) + PREFIX if len(head) >= PREFIX else 0


def head_of(frame: bytes) -> tuple[int, int]:
    """Return correlation id and kind. Raises `PeerError` if the frame is too short."""
    if len(frame) < HEAD.size:
        raise PeerError("a frame without a kind")
    _, id, kind = HEAD.unpack_from(frame)
    return id, kind


def topics_of(frame: bytes) -> list[str]:
    """Return the topics of a WHERE or GET."""
    body = Body(frame)
    found = [body.text() for _ in range(body.number(1))]
    body.end()
    return found


def places_of(frame: bytes) -> list[tuple[str, str, int]]:
    """Return topic, host and port of each broker in a response to WHERE."""
    body = Body(frame)
    found = [(body.text(), body.text(), body.number(2)) for _ in range(body.number(1))]
    body.end()
    return found


def error_of(frame: bytes) -> Denial:
    """Return the denial that an ERROR carries."""
    body = Body(frame)
    code, said = body.number(1), body.text(2)
    body.end()
    known = list(Refusal)
    return Denial(known[code] if code < len(known) else Refusal.UNSUPPORTED, said)


def sections_of(frame: bytes) -> list[tuple[str, int, bytes]]:
    """Return topic, number and payload of each section of a whole frame."""
    found = read_sections(frame, 0, len(frame), len(frame))
    if found is None:
        raise PeerError("sections that are cut")
    at = len(frame) - sum(section.size for section in found)
    result = []
    for topic, messages, size in found:
        result.append((topic.decode(errors="replace"), messages, frame[at : at + size]))
        at += size
    return result


def read_sections(chunk: bytes | bytearray, pos: int, end: int, total: int) -> list[Section] | None:
    """Read the head of the sections in a frame of `total` bytes that begins at `pos`.

    None: the chunk's `end` cuts the head. Raises `PeerError` if its lengths do not add up.
    """
    at = pos + HEAD.size + SIZE.size
    if total < HEAD.size + SIZE.size:
        raise PeerError("sections without a head")
    if end < at:
        return None
    length: int = SIZE.unpack_from(chunk, at - SIZE.size)[0]
    behind = at + length
    if length > LONGEST_HEAD or behind - pos > total:
        raise PeerError("sections whose head is too long")
    if end < behind:
        return None
    found: list[Section] = []
    rest = total - (behind - pos)
    try:
        while at < behind:
            topic = bytes(chunk[at + 1 : at + 1 + chunk[at]])
            at += 1 + len(topic)
            found.append(Section(topic, *ENTRY.unpack_from(chunk, at)))
            at += ENTRY.size
    except (error, IndexError):
        raise PeerError("sections whose head is cut") from None
    if at != behind or sum(section.size for section in found) != rest:
        raise PeerError("sections that do not add up")
    if not all(section.messages for section in found):
        raise PeerError("a section without messages")
    return found
