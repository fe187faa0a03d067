"""The producers and consumers of one pair, and their states.

An *incarnation* is one (id, request that opened it). Its states:

- *opening*: PRODUCER or SUBSCRIBE was forwarded.
- *reopening*: the same, in place of an incarnation that the broker had not closed yet. So the next
  close by the broker may be meant for that one, and does not end this one.
- *queued*: a producer waits for exclusive access (PRODUCER_SUCCESS with `producer_ready` false).
- *open*.
- *unsubscribing*, *closing*: the client's UNSUBSCRIBE or CLOSE was forwarded.
- *closed*: the broker closed it, and its client, which is not told yet, still gets receipts.
- *abandoned*: its client knows that it is gone, and the broker may still have it. No account.
- *resetting*: the client is to open it again, for the gateway's sake; its receipts are awaited.
- *leaving*: the gateway stops; a producer's receipts are awaited.
- *moving*: the gateway has closed it at the broker, and awaits the answer.

An id that is in no state is not here: never opened, refused, or closed by either side. What leads
from state to state stands in docs/protocols/pulsar.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from gateway.wire.budget import Allotment
from gateway.wire.contract import Account, Action


class State(Enum):
    OPENING = auto()
    REOPENING = auto()
    QUEUED = auto()
    OPEN = auto()
    UNSUBSCRIBING = auto()
    CLOSING = auto()
    CLOSED = auto()
    ABANDONED = auto()
    RESETTING = auto()
    LEAVING = auto()
    MOVING = auto()


class Asked(Enum):
    """What a request wants of an incarnation."""

    OPEN = auto()
    UNSUBSCRIBE = auto()
    CLOSE = auto()


About = tuple[str, str | None]
"""A topic and a subscription."""

HANDLE = 1024
"""Bytes that a producer or consumer takes beside its names, as a fixed estimate: 700 by itself and
in the tables, and its part of what limits it."""

NAMES = 3
"""How often the names of a producer or consumer are kept."""


def kept(about: About) -> int:
    """Estimate the bytes that are kept of a producer or consumer."""
    return HANDLE + NAMES * sum(len(it) * (1 if it.isascii() else 4) for it in about if it)


class Handle:
    """One incarnation of a producer (`Action.PRODUCE`) or consumer (`Action.CONSUME`).

    `about`: its topic and, of a consumer, its subscription, as the client wrote them.
    `requests`: those that the broker has not answered.
    `confirmed`: the broker has said yes to the request that opened it: it counts a consumer's
    permits from then on.
    `released`: its account was given back.
    `close`: the client's CLOSE_PRODUCER while it waits behind held frames; empty otherwise.
    """

    __slots__ = (
        "about",
        "account",
        "action",
        "close",
        "confirmed",
        "id",
        "released",
        "requests",
        "state",
    )

    def __init__(
        self, action: Action, id: int, account: Account, state: State, about: About = ("", None)
    ) -> None:
        self.about = about
        self.action = action
        self.id = id
        self.account = account
        self.state = state
        self.requests: list[int] = []
        self.confirmed = False
        self.released = False
        self.close = b""

    @property
    def names(self) -> int:
        """Characters of the names of its topic and subscription."""
        topic, subscription = self.about
        return len(topic) + len(subscription or "")

    @property
    def unanswered(self) -> int:
        """A producer's frames at the broker without a receipt; of a consumer nothing is awaited."""
        return max(0, self.account.outstanding) if self.action is Action.PRODUCE else 0

    @property
    def awaits_opening(self) -> bool:
        """It is abandoned, and the broker may open it yet: what it closes is the one before."""
        return self.state is State.ABANDONED and bool(self.requests)


class Awaited(NamedTuple):
    """What the answer to a request is about."""

    handle: Handle
    asked: Asked


class Handles:
    """The incarnations of one pair, by id and by the requests whose answers are awaited.

    `names`: characters of the names of their topics and subscriptions.
    """

    __slots__ = ("_allotment", "_awaited", "_by_account", "consumers", "names", "producers")

    def __init__(self, allotment: Allotment) -> None:
        self._allotment = allotment
        self.producers: dict[int, Handle] = {}
        self.consumers: dict[int, Handle] = {}
        self._awaited: dict[int, Awaited] = {}
        self.names = 0
        self._by_account: dict[Account, Handle] = {}

    def __len__(self) -> int:
        return len(self.producers) + len(self.consumers)

    def __iter__(self) -> Iterator[Handle]:
        yield from self.producers.values()
        yield from self.consumers.values()

    @property
    def are_left(self) -> bool:
        """Whether nobody is here any more, but those whom a broker may still have."""
        return all(handle.state is State.ABANDONED for handle in self)

    def table(self, action: Action) -> dict[int, Handle]:
        return self.producers if action is Action.PRODUCE else self.consumers

    def of(self, account: Account) -> Handle | None:
        """Return the incarnation that has this account."""
        return self._by_account.get(account)

    def add(self, handle: Handle, request_id: int) -> None:
        """A new incarnation, whose answer is awaited."""
        self.put(handle)
        self.awaits(handle, request_id, Asked.OPEN)

    def put(self, handle: Handle) -> None:
        """Keep an incarnation. None of this id is here."""
        self.table(handle.action)[handle.id] = handle
        self._by_account[handle.account] = handle
        self.names += handle.names
        self._allotment.take(kept(handle.about))

    def awaits(self, handle: Handle, request_id: int, asked: Asked) -> None:
        """One more answer to come."""
        self._awaited[request_id] = Awaited(handle, asked)
        handle.requests.append(request_id)

    def openings(self, handle: Handle) -> list[int]:
        """The requests that may open it yet."""
        wanted = Awaited(handle, Asked.OPEN)
        return [it for it in handle.requests if self._awaited.get(it) == wanted]

    def answered(self, request_id: int) -> Awaited | None:
        """What this answer is about, if its incarnation is not over."""
        awaited = self._awaited.pop(request_id, None)
        if awaited is not None:
            awaited.handle.requests.remove(request_id)
        return awaited

    def remove(self, handle: Handle) -> None:
        """An incarnation is over. Some of its requests never get an answer."""
        del self.table(handle.action)[handle.id]
        self.names -= handle.names
        self._allotment.give_back(kept(handle.about))
        self._by_account.pop(handle.account, None)
        for request_id in handle.requests:
            awaited = self._awaited.get(request_id)
            # A client that uses an id twice has taken it from this incarnation.
            if awaited is not None and awaited.handle is handle:
                del self._awaited[request_id]
