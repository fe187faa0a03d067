"""The names and ids that stand for denied topics in requests to brokers.

A frame may name both allowed and denied topics, and the gateway forwards it while it arrives. So
the gateway does not remove a denied name, but overwrites it with a name of the same length that no
broker accepts. A denied id is overwritten with a random id; as no client can foresee it, no client
can make it the id of another topic. The broker responds with an error for the substitute alone. In
the response, the gateway writes the denied name or id back, with the error of the denial. So no
frame has to be held, and the other topics of the frame are not affected.

A topic may be denied for one reason in a request, and for another reason in the next request, while
both requests are in flight. So a denied topic has one substitute for each error.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.topics import ID, NONE, TopicIds

MOST = 10_000
"""The most denied topics of a connection between two sweeps, of some 300 bytes each: as many as one
frame may have."""

_NO_NAMES = b"/:;,+=*?!#$%&@~^"
"""Bytes that no topic name has. Names that differ only in their first bytes get different ones."""

_NONE: Mapping[Any, Any] = MappingProxyType({})
"""Stands for no substitutes. Most connections have none, so they share it."""


class Original(NamedTuple):
    """A topic as its client names it, of which the client gets no messages, and the error that says
    why."""

    topic: bytes
    error: int


class Substitutes:
    """The substitutes of one connection: which substitute each denied topic has, and which topic
    each substitute stands for."""

    __slots__ = ("_draw", "_ids", "_originals", "_others")

    def __init__(self, ids: TopicIds, draw: Callable[[int], bytes] = secrets.token_bytes) -> None:
        """`ids`: known topic ids, which are never used as a substitute. `draw`: returns random
        bytes, as many as its argument says."""
        self._ids = ids
        self._draw = draw
        self._others: Mapping[tuple[bytes, int], bytes] = _NONE
        self._originals: Mapping[bytes, Original] = _NONE

    def __len__(self) -> int:
        return len(self._others)

    def name(self, topic: bytes, error: int) -> bytes:
        """Return the name that stands for a denied topic's name in requests to brokers. `error`:
        the error code that the gateway will put into the response for the topic. Raises `PeerError`
        if the connection has too many substitutes."""
        return self._other(topic, error, by_id=False)

    def id(self, topic: bytes, error: int) -> bytes:
        """Return the id that stands for a denied topic's id in requests to brokers. `error`: the
        error code that the gateway will put into the response for the topic. Raises `PeerError` if
        the connection has too many substitutes."""
        return self._other(topic, error, by_id=True)

    def original(self, other: bytes) -> Original | None:
        """Return the denied topic's name or id for which `other` stands, with the error of the
        denial; None if `other` is not a substitute."""
        return self._originals.get(other)

    def clear(self) -> None:
        """Forget all substitutes. Call this when no in-flight response may have one."""
        self._others = self._originals = _NONE

    def _other(self, topic: bytes, error: int, *, by_id: bool) -> bytes:
        other = self._others.get((topic, error))
        if other is None:
            if len(self._others) >= MOST:
                raise PeerError(f"more than {MOST} topics without a right to them")
            choices = self._other_ids() if by_id else _other_names(topic)
            other = next((choice for choice in choices if choice not in self._originals), None)
            if other is None:
                raise PeerError("too many topics of like names without a right to them")
            self._keep(topic, error, other)
        return other

    def _other_ids(self) -> Iterator[bytes]:
        while True:
            other = self._draw(ID)
            if other != NONE and other not in self._ids:
                yield other

    def _keep(self, topic: bytes, error: int, other: bytes) -> None:
        if not (isinstance(self._others, dict) and isinstance(self._originals, dict)):
            self._others, self._originals = {}, {}
        self._others[topic, error] = other
        self._originals[other] = Original(topic, error)


def _other_names(topic: bytes) -> Iterator[bytes]:
    yield from (bytes([first]) + topic[1:] for first in _NO_NAMES)
    if len(topic) > 1:
        yield from (bytes(two) + topic[2:] for two in product(_NO_NAMES, repeat=2))
