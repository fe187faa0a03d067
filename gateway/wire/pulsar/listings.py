"""Lets one request for a list of topics of a connection be under way at a time.

A broker collects the topics of a namespace anew for each request, and works on all requests that
one connection sends at once; the request is short, the work is not. So a request waits here until
the broker has responded to the one before. Other frames of the connection overtake it.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from gateway.wire.contract import DROP, FORWARD, Direction, Drop, Effects, Inject, Later
from gateway.wire.pulsar.waiting import WaitingFrames

if TYPE_CHECKING:
    from gateway.wire.pulsar.context import Client, ListenerContext

LONGEST = 30.0
"""Seconds after which a request is taken for answered: clients give up on it by then."""

Id = tuple[str, int]
"""The field that a request shares with its response, and its value."""


def id_of(message: Any) -> Id:
    """Return the id of a request for a list, or of its response."""
    field = "request_id" if "request_id" in message.DESCRIPTOR.fields_by_name else "watch_id"
    return field, getattr(message, field)


class Listings:
    """The requests for lists of one pair."""

    __slots__ = ("_queue", "_under_way", "_waiting")

    def __init__(self, listener: ListenerContext, client: Client) -> None:
        self._queue: deque[tuple[Id, bytes]] = deque()
        self._under_way: Id | None = None
        self._waiting = WaitingFrames(listener, client)

    def __len__(self) -> int:
        return len(self._queue)

    def ask(self, id: Id, frame: bytes, now: float) -> Effects | None:
        """Return the effects that forward a request or make it wait; None if there is no room for
        one more to wait."""
        if self._under_way is None:
            self._under_way = id
            return FORWARD
        if not self._waiting.fits(frame):
            return None
        self._waiting.take(frame)
        self._queue.append((id, frame))
        return DROP if len(self._queue) > 1 else (Drop(), self._patience(now))

    def answered(self, id: Id, now: float) -> Effects:
        """Return the effects that forward the next request, because the broker has responded to
        one. There are none if it is not the one under way."""
        if self._under_way != id:
            return ()
        self._under_way = None
        if not self._queue:
            return ()
        self._under_way, frame = self._queue.popleft()
        self._waiting.give_back(frame)
        next_one = Inject(Direction.TO_BROKER, frame)
        return (next_one, self._patience(now)) if self._queue else (next_one,)

    def _patience(self, now: float) -> Later:
        assert self._under_way is not None
        return Later(now + LONGEST, partial(self.answered, self._under_way))

    def clear(self) -> None:
        """Forget all requests, because the pair has ended. Their bytes still count in the memory
        budget until `Client.leave` gives back all bytes of the connection."""
        self._queue.clear()
        self._waiting.clear()
