"""Delays lookups, requests for lists of topics, and requests to open producers and consumers, where
they exceed a rate limit of a rule.

A client has to wait rather than being refused: a request beyond the limit is kept here, and later
decided as if it came only then. Until then no other module knows of it. Later requests about the
same producer or consumer wait behind it, so that no close overtakes the opening that it closes. All
other frames of the connection go on.

A refused client gets, where that is possible, a response after which it repeats the request on the
same connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from gateway.wire.contract import (
    DROP,
    Denial,
    Drop,
    Effect,
    Effects,
    Later,
    Refusal,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import decode, kind_of, text
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.requests import REQUESTS, ClientRequest, Party, read_request, refuse
from gateway.wire.pulsar.rights import LIST_REQUESTS
from gateway.wire.pulsar.waiting import WaitingFrames
from gateway.wire.services import Again

FULL = Denial(Refusal.TOO_OFTEN, "too many requests wait on this connection")

_REFUSED_BY_ERROR = ("Pulsar-Go-",)
"""Prefixes of client versions that repeat a lookup after an ERROR, but not after a LOOKUP_RESPONSE
that says Failed. Other clients do not expect an ERROR in response to a lookup."""


class _Waiting(NamedTuple):
    """A frame that waits until a time: to be decided, or, with `again`, to ask the limit again."""

    frame: bytes
    until: float
    again: Again | None = None


class Delays:
    """The requests of one pair that rate limits delay. `decide`: returns the effects of a request
    whose wait is over."""

    __slots__ = ("_client", "_decide", "_listener", "_queues", "_waiting")

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        decide: Callable[[bytes, float], Iterable[Effect]],
    ) -> None:
        self._listener = listener
        self._client = client
        self._decide = decide
        # `_due` will be called for the first frame of each queue.
        self._queues: dict[Party, deque[_Waiting]] = {}
        self._waiting = WaitingFrames(listener, client)

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, kind: int, command: BaseCommand, frame: bytes, now: float) -> Effects | None:
        """Return the effects that delay or refuse a client's frame; None if the frame need not
        wait."""
        if kind not in REQUESTS:
            return None
        request = read_request(kind, command)
        wait = self._wait(kind, request)
        if isinstance(wait, Denial):
            return self._refuse(kind, request, wait)
        if not wait and request.party not in self._queues:
            return None
        if not self._waiting.fits(frame):
            return self._refuse(kind, request, FULL)
        return self._put(request.party, _waiting(frame, wait, now))

    def _wait(
        self, kind: int, request: ClientRequest, again: Again | None = None
    ) -> float | Again | Denial:
        """Return how long a request has to wait; 0.0 where nothing limits it."""
        action, _ = request.party
        message, services = request.message, self._listener.services
        if action not in services.paced:
            return 0.0
        if kind in LIST_REQUESTS:
            return services.wait(action, self._client.subject, again)
        if not hasattr(message, "topic"):
            return 0.0
        subscription = text(message.subscription) if hasattr(message, "subscription") else None
        subject = self._client.about(text(message.topic), subscription)
        return services.wait(action, subject, again)

    def _refuse(self, kind: int, request: ClientRequest, denial: Denial) -> Effects:
        by_error = self._client.library.startswith(_REFUSED_BY_ERROR)
        return refuse(kind, request, denial, self._listener.services, by_error=by_error)

    def _put(self, party: Party, waiting: _Waiting) -> Effects:
        queue = self._queues.setdefault(party, deque())
        queue.append(waiting)
        self._waiting.take(waiting.frame)
        return DROP if len(queue) > 1 else (Drop(), self._later(party, waiting.until))

    def _later(self, party: Party, until: float) -> Later:
        return Later(until, partial(self._due, party))

    def _due(self, party: Party, now: float) -> Effects:
        """Decide or refuse the frames whose time has come, and await the time of the next one."""
        queue = self._queues.get(party)
        if queue is None:
            return ()  # the pair is over
        effects: list[Effect] = []
        frames: list[bytes] = []
        while queue and queue[0].until <= now:
            frame, _, again = queue.popleft()
            kind, request = self._read(frame)
            wait = 0.0 if again is None else self._wait(kind, request, again)
            if isinstance(wait, Denial):
                refused = self._refuse(kind, request, wait)  # the frame was dropped when it came
                effects += (effect for effect in refused if not isinstance(effect, Drop))
            elif wait:
                queue.appendleft(_waiting(frame, wait, now))
                break
            else:
                frames.append(frame)
            self._waiting.give_back(frame)
        if queue:
            effects.append(self._later(party, queue[0].until))
        else:
            del self._queues[party]
        decided = [effect for frame in frames for effect in self._decide(frame, now)]
        return (*decided, *effects)

    def _read(self, frame: bytes) -> tuple[int, ClientRequest]:
        kind = kind_of(frame)
        return kind, read_request(kind, decode(frame, self._listener.bounds.fields))

    def clear(self) -> None:
        """Forget all delayed requests, because the pair has ended. Their bytes still count in the
        memory budget until `Client.leave` gives back all bytes of the connection."""
        self._queues.clear()
        self._waiting.clear()


def _waiting(frame: bytes, wait: float | Again, now: float) -> _Waiting:
    if isinstance(wait, Again):
        return _Waiting(frame, now + wait.seconds, wait)
    return _Waiting(frame, now + wait)
