"""What stands towards brokers in place of topics that a client may not use.

A frame may name allowed and denied topics, and is passed on while it comes. So a denied name is
not taken out of it: it becomes a name of the same length that no broker accepts, and an id becomes
a random one. No client foresees it, so none can ask for an id whose substitute is a topic's. The
broker answers with an error for this topic alone, and the response gets
the name back, with the error that says why. Nothing has to be held, and nothing of the other topics
changes.

A topic may be denied for one reason in one request, and for another in the next one, while neither
is answered. So it has a substitute for each error.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from gateway.errors import PeerError
from gateway.wire.kafka.topics import ID, NONE, TopicIds
from gateway.wire.kafka.traffic import Original
from gateway.wire.kafka.watch import Watch

MOST = 10_000
"""Topics of a connection that are denied, of some 300 bytes each, until it is swept: as many as one
frame may have."""

_NO_NAMES = b"/:;,+=*?!#$%&@~^"
"""Bytes that no topic's name has. Which ones come first tells names apart that differ there."""

_NONE: Mapping[Any, Any] = MappingProxyType({})
"""What connections have that no topic is denied to: they are many."""


class Substitutes:
    """The substitutes of one connection, by what they stand for, and the other way round."""

    __slots__ = ("_draw", "_ids", "_originals", "_others", "_watch")

    def __init__(
        self, watch: Watch, ids: TopicIds, draw: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        """`ids`: those that are known, of which none is a substitute. `draw`: returns as many
        random bytes."""
        self._watch = watch
        self._ids = ids
        self._draw = draw
        self._others: Mapping[tuple[bytes, int], bytes] = _NONE
        self._originals: Mapping[bytes, Original] = _NONE

    def __len__(self) -> int:
        return len(self._others)

    def name(self, topic: bytes, error: int) -> bytes:
        """Return what stands for a name. `error`: what the client is told. Raises `PeerError` if
        there are too many."""
        return self._other(topic, error, by_id=False)

    def id(self, topic: bytes, error: int) -> bytes:
        """Return what stands for an id."""
        return self._other(topic, error, by_id=True)

    def original(self, other: bytes) -> Original | None:
        """Return the topic that a substitute stands for, with its error; None: this is none."""
        return self._originals.get(other)

    def clear(self) -> None:
        """Forget all substitutes: no response is owed that may have one."""
        self._others = self._originals = _NONE

    def _other(self, topic: bytes, error: int, *, by_id: bool) -> bytes:
        other = self._others.get((topic, error))
        if other is None:
            if len(self._others) >= MOST:
                raise PeerError(f"more than {MOST} topics without a right to them")
            choices = self._other_ids() if by_id else _other_names(topic)
            other = next((it for it in choices if it not in self._originals), None)
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
        self._watch.edition += 1
        self._others[topic, error] = other
        self._originals[other] = Original(topic, error)


def _other_names(topic: bytes) -> Iterator[bytes]:
    yield from (bytes([first]) + topic[1:] for first in _NO_NAMES)
    if len(topic) > 1:
        yield from (bytes(two) + topic[2:] for two in product(_NO_NAMES, repeat=2))
