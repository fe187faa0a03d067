"""The producers and consumers of one pair: their incarnations, and their in-flight requests.

`states` explains incarnations and their states.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from gateway.wire.account import Account, Action
from gateway.wire.budget import Quota
from gateway.wire.pulsar.idtable import IdTable
from gateway.wire.pulsar.states import NEXT, Event, State
from gateway.wire.subject import Subject


class Purpose(Enum):
    """What a client's request asks of the broker about a producer or consumer."""

    OPEN = auto()
    UNSUBSCRIBE = auto()
    CLOSE = auto()


HANDLE = 1024
"""Estimate of the bytes that a producer or consumer takes beside its names: 500 for itself and its
table entries, and its part of the limits."""

NAMES = 3
"""Copies that are kept of the names of a producer or consumer."""


def bytes_kept(subject: Subject) -> int:
    """Return about how many bytes of memory a producer or consumer takes."""
    topic, subscription = _names(subject)
    wide = 1 if topic.isascii() and subscription.isascii() else 4
    return HANDLE + NAMES * wide * (len(topic) + len(subscription))


def _names(subject: Subject) -> tuple[str, str]:
    """Return the names of the topic and of the subscription."""
    return subject.topic.name if subject.topic else "", subject.subscription or ""


class Handle:
    """One incarnation of a producer (`Action.PRODUCE`) or consumer (`Action.CONSUME`): its id, as
    one request opened it.

    `requests`: the gateway's ids of its in-flight requests (see `Handles`). `confirmed`: the broker
    has accepted the opening request, and counts a consumer's permits since. `released`: its account
    was released. `close`: the client's CLOSE_PRODUCER while that waits behind queued frames; empty
    otherwise.
    """

    __slots__ = (
        "account",
        "action",
        "close",
        "confirmed",
        "id",
        "released",
        "requests",
        "state",
    )

    def __init__(self, action: Action, id: int, account: Account, state: State) -> None:
        self.action = action
        self.id = id
        self.account = account
        self.state = state
        self.requests: tuple[int, ...] = ()
        self.confirmed = False
        self.released = False
        self.close = b""

    def follow(self, event: Event) -> bool:
        """Move to the state that follows the current state after `event`, and return True. If no
        state follows, keep the current state, and return False."""
        following = NEXT[event].get(self.state)
        if following is None:
            return False
        self.state = following
        return True

    @property
    def names(self) -> int:
        """Return how many characters the names of the topic and the subscription have together."""
        return sum(map(len, _names(self.account.subject)))

    def is_for(self, subject: Subject) -> bool:
        """Return whether this producer or consumer has the topic and the subscription of a
        subject."""
        own = self.account.subject
        return own.topic == subject.topic and own.subscription == subject.subscription

    @property
    def unanswered(self) -> int:
        """Return how many frames of a producer have no receipt yet; 0 for a consumer."""
        return max(0, self.account.outstanding) if self.action is Action.PRODUCE else 0

    @property
    def awaits_opening(self) -> bool:
        """Return whether this incarnation is abandoned, but the broker may still open it. If so, a
        close by the broker means the previous incarnation with the same id."""
        return self.state is State.ABANDONED and bool(self.requests)


class Awaited(NamedTuple):
    """An in-flight request about a producer or consumer. `request_id`: the id that the client gave
    the request."""

    handle: Handle
    purpose: Purpose
    request_id: int


MOST_ORPHANS = 1000
"""In-flight requests whose incarnation is over, or that never had one. Brokers respond to nearly
all within milliseconds, to some never. Beyond this number the oldest get no response."""

_NOTHING: dict[int, Awaited] = {}
"""All pairs without a request share this dict, into which nothing is put: idle pairs are many."""


class Handles:
    """The incarnations of one pair, by id, by account, and by their in-flight requests.

    Requests go to the broker under ids of the gateway's own, from `first_request` on, which no
    client can guess. Under the client's ids, the response to another command, which passes unread,
    could be taken for the response to PRODUCER, SUBSCRIBE or a close: the gateway would lose track
    of producers and consumers that the broker has, and count them for no account. The response to a
    request whose incarnation is over still reaches the client, under the client's id.

    `names`: characters of the names of all topics and subscriptions.
    """

    __slots__ = (
        "_awaited",
        "_drawn",
        "_first",
        "_orphans",
        "_quota",
        "consumers",
        "names",
        "producers",
    )

    def __init__(self, first_request: int, quota: Quota) -> None:
        self._quota = quota
        self._first = first_request
        self._drawn = 0  # number of ids drawn
        self._orphans: OrderedDict[int, int] | None = None  # the client's ids by the gateway's
        self.producers: IdTable[Handle] = IdTable()
        self.consumers: IdTable[Handle] = IdTable()
        self._awaited = _NOTHING
        self.names = 0

    def __len__(self) -> int:
        return len(self.producers) + len(self.consumers)

    def __iter__(self) -> Iterator[Handle]:
        yield from self.producers
        yield from self.consumers

    @property
    def are_left(self) -> bool:
        """Return whether this pair has no producers and consumers, or only abandoned ones."""
        return all(handle.state is State.ABANDONED for handle in self)

    def table(self, action: Action) -> IdTable[Handle]:
        """Return the pair's producers (`Action.PRODUCE`) or consumers, by id."""
        return self.producers if action is Action.PRODUCE else self.consumers

    def of(self, account: Account) -> Handle | None:
        """Return the producer or consumer that has this account; None if it no longer exists."""
        handle = self.table(account.action).get(account.id)
        return handle if handle is not None and handle.account is account else None

    def put(self, handle: Handle) -> None:
        """Add a producer or consumer. Its id must be free."""
        self.table(handle.action).put(handle.id, handle)
        handle.account.id = handle.id
        self.names += handle.names
        self._quota.take(bytes_kept(handle.account.subject))

    def draw(self) -> int:
        """Return a new id for a request to the broker."""
        own = self._first + self._drawn
        self._drawn += 1
        return own

    def is_own(self, request_id: int) -> bool:
        """Return whether `draw` has returned this request id."""
        return self._first <= request_id < self._first + self._drawn

    def awaits(self, handle: Handle, request_id: int, purpose: Purpose) -> int:
        """Begin to wait for the response to a client's request about a producer or consumer. Return
        the id under which the request is sent to the broker."""
        own = self.draw()
        self._await(own, Awaited(handle, purpose, request_id))
        return own

    def _await(self, own: int, awaited: Awaited) -> None:
        if self._awaited is _NOTHING:
            self._awaited = {}
        self._awaited[own] = awaited
        awaited.handle.requests += (own,)

    def openings(self, handle: Handle) -> list[int]:
        """Return the ids, at the broker, of in-flight requests that may still open this producer or
        consumer."""
        return [own for own in handle.requests if self._awaited[own].purpose is Purpose.OPEN]

    def client_ids(self, handle: Handle) -> list[int]:
        """Return the ids that the client gave the in-flight requests about this producer or
        consumer."""
        return [self._awaited[own].request_id for own in handle.requests]

    def answered(self, own: int, *, more: bool = False) -> Awaited | None:
        """Return the in-flight request to which the broker has responded, and forget the request;
        None if no request with this id is in flight.

        `own`: the request's id at the broker. `more`: another response will follow, so keep the
        request.
        """
        awaited = self._awaited.get(own)
        if awaited is not None and not more:
            del self._awaited[own]
            handle = awaited.handle
            if handle.requests == (own,):
                handle.requests = ()
            else:
                handle.requests = tuple(request for request in handle.requests if request != own)
            if not self._awaited:
                self._awaited = _NOTHING  # an empty dict would keep the memory of its entries
        return awaited

    def passes(self, request_id: int) -> int:
        """Begin to wait for the response to a client's request about a producer or consumer that
        the gateway does not know. Return the id under which the request is sent to the broker."""
        own = self.draw()
        self._orphan(own, request_id)
        return own

    def orphan(self, own: int) -> int | None:
        """Forget a request whose response changes no producer or consumer, and return the id that
        the client gave it; None if no such request is in flight. `own`: the request's id at the
        broker."""
        return None if self._orphans is None else self._orphans.pop(own, None)

    def _orphan(self, own: int, request_id: int) -> None:
        if self._orphans is None:
            self._orphans = OrderedDict()
        self._orphans[own] = request_id
        if len(self._orphans) > MOST_ORPHANS:
            self._orphans.popitem(last=False)

    def keep(self, handle: Handle, requests: Iterable[int]) -> None:
        """Of this producer's or consumer's in-flight requests, keep only `requests` (ids at the
        broker). Responses to the others are still forwarded to the client, and change nothing
        else."""
        kept = {own: self._awaited.pop(own) for own in requests}
        handle.requests = tuple(own for own in handle.requests if own not in kept)
        self._forget(handle)
        for own, awaited in kept.items():
            self._await(own, awaited)

    def _forget(self, handle: Handle) -> None:
        for own in handle.requests:
            self._orphan(own, self._awaited.pop(own).request_id)
        handle.requests = ()

    def remove(self, handle: Handle) -> None:
        """Forget a producer or consumer that no longer exists. Responses to its requests are still
        forwarded to the client."""
        self.table(handle.action).pop(handle.id)
        self.names -= handle.names
        self._quota.give_back(bytes_kept(handle.account.subject))
        self._forget(handle)
