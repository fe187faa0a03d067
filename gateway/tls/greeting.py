"""Reads from a ClientHello for which groups the client has sent key shares (RFC 8446 section
4.2.8).

The result is only a hint: a client whose ClientHello cannot be read here, or comes in pieces, needs
one more round trip, as if nothing had been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error

X25519 = 0x001D

_KEY_SHARE = 51
_FIRST = Struct(">B2xHB3x2x32x")  # record: type, length; ClientHello (1), version, random
_PAIR = Struct(">HH")
_HANDSHAKE, _CLIENT_HELLO = 22, 1

LONGEST = 4 * 1024
"""Bytes of the largest record that is read: real ones have 0.3 to 2 KB. One with more, full of
empty extensions, would take a millisecond of the loop."""


def groups_shared(greeting: bytes) -> frozenset[int]:
    """Return the numbers of the key exchange groups for which a ClientHello, the first of these
    bytes, has key shares; an empty set if the ClientHello is incomplete, malformed or too long."""
    try:
        kind, length, message = _FIRST.unpack_from(greeting)
        if kind != _HANDSHAKE or message != _CLIENT_HELLO or length > LONGEST:
            return frozenset()
        if len(greeting) < 5 + length:
            return frozenset()
        at = _FIRST.size
        at += 1 + greeting[at]  # the session's id
        at += 2 + int.from_bytes(greeting[at : at + 2])  # the cipher suites
        at += 1 + greeting[at]  # the compressions
        for extension, start, end in _entries(greeting, at):
            if extension == _KEY_SHARE:
                return frozenset(group for group, _, _ in _entries(greeting[:end], start))
    except (error, IndexError):
        pass
    return frozenset()


def _entries(greeting: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield the entries of the list at this offset: the number of each, and where its content
    begins and ends."""
    end = at + 2 + int.from_bytes(greeting[at : at + 2])
    at += 2
    while at < min(end, len(greeting)):
        number, length = _PAIR.unpack_from(greeting, at)
        at += _PAIR.size + length
        yield number, at - length, at
