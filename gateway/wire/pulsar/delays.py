"""Frames that wait for their time, where rules say how often lookups are made and things opened.

A client is let wait rather than refused: what it asks for too often is kept here, and then decided
as if it came only then. Until that moment nothing else knows of it. What it says of the same
producer or consumer meanwhile waits behind, so that no close overtakes what it closes; all else of
the connection goes on.

Who is refused is told so that it asks again on the same connection, if it can be told so at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from gateway.wire.account import Action
from gateway.wire.contract import (
    DROP,
    Denial,
    Direction,
    Drop,
    Effect,
    Effects,
    Inject,
    Later,
    Refusal,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import (
    decode,
    error,
    kind_of,
    lookup_failed,
    partitions_failed,
    refused,
    text,
)
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import Kind
from gateway.wire.services import Again, LookupOutcome

Party = tuple[Action, int]
"""A producer or consumer by its id; a lookup by that of its request."""


ENTRY = 1024
"""Bytes that a frame which waits takes beside its own, most of them for the queue of its party."""


class _About(NamedTuple):
    """What a frame is about. `topic`: empty where nothing is asked that comes too often."""

    party: Party
    request_id: int
    topic: str = ""
    subscription: str | None = None


class _Waiting(NamedTuple):
    """`again`: it is asked for again then; None: it may be decided then."""

    frame: bytes
    until: float
    again: Again | None = None


class Delays:
    """All of one pair. `decide` decides a frame whose time has come, as if it came only then."""

    __slots__ = ("_client", "_decide", "_kept", "_listener", "_number", "_queues")

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        decide: Callable[[bytes, float], Iterable[Effect]],
    ) -> None:
        self._listener = listener
        self._client = client
        self._decide = decide
        self._queues: dict[Party, deque[_Waiting]] = {}  # a look is due at the first of each
        self._number = 0
        self._kept = 0  # bytes of frames

    def __len__(self) -> int:
        return self._number

    def ask(self, kind: int, command: BaseCommand, frame: bytes, now: float) -> Effects | None:
        """What becomes of a frame of the client that may not be decided now; None: it may."""
        read = _ABOUT.get(kind)
        if read is None:
            return None
        about = read(command)
        wait = self._wait(about)
        if isinstance(wait, Denial):
            return self._refused(kind, about, wait)
        if not wait and about.party not in self._queues:
            return None
        if self._is_full(frame):
            return self._refused(kind, about, _FULL)
        return self._put(about.party, _waiting(frame, wait, now))

    def _wait(self, about: _About, again: Again | None = None) -> float | Again | Denial:
        action, _ = about.party
        services = self._listener.services
        if not about.topic or action not in services.paced:
            return 0.0
        return services.wait(action, self._client.about(about.topic, about.subscription), again)

    def _is_full(self, frame: bytes) -> bool:
        """A frame of any size may wait where no other does."""
        bounds = self._listener.bounds
        much = self._kept + len(frame) > bounds.delayed_bytes
        if self._number >= bounds.delayed or (self._number > 0 and much):
            return True
        return not self._client.allotment.fits(ENTRY + len(frame))

    def _refused(self, kind: int, about: _About, denial: Denial) -> Effects:
        if kind == Kind.LOOKUP:
            self._listener.services.looked_up(LookupOutcome.REFUSED)
        if kind in (Kind.PRODUCER, Kind.SUBSCRIBE):
            return refused(*about.party, about.request_id, denial)
        no = error if self._client.library.startswith(_BY_ERROR) else _REFUSALS.get(kind, error)
        return (Drop(), Inject(Direction.TO_CLIENT, no(about.request_id, denial)))

    def _put(self, party: Party, waiting: _Waiting) -> Effects:
        queue = self._queues.setdefault(party, deque())
        queue.append(waiting)
        self._number += 1
        self._kept += len(waiting.frame)
        self._client.allotment.take(ENTRY + len(waiting.frame))
        return DROP if len(queue) > 1 else (Drop(), self._later(party, waiting.until))

    def _later(self, party: Party, until: float) -> Later:
        return Later(until, partial(self._due, party))

    def _due(self, party: Party, now: float) -> Effects:
        """Decide the frames whose time has come, refuse others, and ask for the next look."""
        queue = self._queues.get(party)
        if queue is None:
            return ()  # the pair is over
        effects: list[Effect] = []
        frames: list[bytes] = []
        while queue and queue[0].until <= now:
            frame, _, again = queue.popleft()
            answer = 0.0 if again is None else self._asked_again(frame, again)
            if isinstance(answer, Denial):
                effects += self._told(frame, answer)
            elif answer:
                queue.appendleft(_waiting(frame, answer, now))
                break
            else:
                frames.append(frame)
            self._number -= 1
            self._kept -= len(frame)
            self._client.allotment.give_back(ENTRY + len(frame))
        if queue:
            effects.append(self._later(party, queue[0].until))
        else:
            del self._queues[party]
        decided = [effect for frame in frames for effect in self._decide(frame, now)]
        return (*decided, *effects)

    def _asked_again(self, frame: bytes, again: Again) -> float | Again | Denial:
        command = decode(frame, self._listener.bounds.fields)
        return self._wait(_ABOUT[kind_of(frame)](command), again)

    def _told(self, frame: bytes, denial: Denial) -> Iterator[Effect]:
        """What tells the client no; the frame itself was dropped when it came."""
        command = decode(frame, self._listener.bounds.fields)
        kind = kind_of(frame)
        effects = self._refused(kind, _ABOUT[kind](command), denial)
        return (effect for effect in effects if not isinstance(effect, Drop))

    def clear(self) -> None:
        """Nothing of it is decided any more: the pair is over, and so is its allotment."""
        self._queues.clear()
        self._number = self._kept = 0


def _waiting(frame: bytes, wait: float | Again, now: float) -> _Waiting:
    if isinstance(wait, Again):
        return _Waiting(frame, now + wait.seconds, wait)
    return _Waiting(frame, now + wait)


_FULL = Denial(Refusal.TOO_OFTEN, "too many requests wait on this connection")

_REFUSALS: dict[int, Callable[[int, Denial], bytes]] = {
    Kind.LOOKUP: lookup_failed,
    Kind.PARTITIONED_METADATA: partitions_failed,
}
"""How these are refused; all others by ERROR."""

_BY_ERROR = ("Pulsar-Go-",)
"""How the versions of clients begin that try a lookup again after an ERROR, and not after the no of
its own answer. The others do not know an ERROR in answer to a lookup."""


def _producer(command: BaseCommand) -> _About:
    asked = command.producer
    return _About((Action.PRODUCE, asked.producer_id), asked.request_id, text(asked.topic))


def _subscribe(command: BaseCommand) -> _About:
    asked = command.subscribe
    party = (Action.CONSUME, asked.consumer_id)
    return _About(party, asked.request_id, text(asked.topic), text(asked.subscription))


def _lookup(command: BaseCommand) -> _About:
    asked = command.lookupTopic
    return _About((Action.LOOKUP, asked.request_id), asked.request_id, text(asked.topic))


def _partitions(command: BaseCommand) -> _About:
    asked = command.partitionMetadata
    return _About((Action.LOOKUP, asked.request_id), asked.request_id, text(asked.topic))


def _close_producer(command: BaseCommand) -> _About:
    asked = command.close_producer
    return _About((Action.PRODUCE, asked.producer_id), asked.request_id)


def _close_consumer(command: BaseCommand) -> _About:
    asked = command.close_consumer
    return _About((Action.CONSUME, asked.consumer_id), asked.request_id)


def _unsubscribe(command: BaseCommand) -> _About:
    asked = command.unsubscribe
    return _About((Action.CONSUME, asked.consumer_id), asked.request_id)


_ABOUT: dict[int, Callable[[BaseCommand], _About]] = {
    Kind.PRODUCER: _producer,
    Kind.SUBSCRIBE: _subscribe,
    Kind.LOOKUP: _lookup,
    Kind.PARTITIONED_METADATA: _partitions,
    Kind.CLOSE_PRODUCER: _close_producer,
    Kind.CLOSE_CONSUMER: _close_consumer,
    Kind.UNSUBSCRIBE: _unsubscribe,
}
