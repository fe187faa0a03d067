"""The producers and consumers of one pair, and their states.

States: *opening* (PRODUCER or SUBSCRIBE forwarded), *queued* (a producer that waits for exclusive
access: PRODUCER_SUCCESS with `producer_ready` false), *open*, *closing* and *unsubscribing* (the
client's CLOSE or UNSUBSCRIBE forwarded). An id that the broker closed, or refused, is in no
state: it is not here.

An *incarnation* is one (id, request that opened it). A new request for an id, an error answer, or
a close by the broker ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from gateway.wire.contract import Account, Action


class State(Enum):
    OPENING = auto()
    QUEUED = auto()
    OPEN = auto()
    CLOSING = auto()
    UNSUBSCRIBING = auto()


class Handle:
    """One incarnation of a producer (`Action.PRODUCE`) or consumer (`Action.CONSUME`)."""

    __slots__ = ("account", "action", "id", "state")

    def __init__(self, action: Action, id: int, account: Account) -> None:  # noqa: A002
        self.action = action
        self.id = id
        self.account = account
        self.state = State.OPENING


class Handles:
    """The incarnations of one pair, by id and by the request whose answer is awaited."""

    __slots__ = ("_by_request", "consumers", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, Handle] = {}
        self.consumers: dict[int, Handle] = {}
        self._by_request: dict[int, Handle] = {}

    def __len__(self) -> int:
        return len(self.producers) + len(self.consumers)

    def __iter__(self) -> Iterator[Handle]:
        yield from self.producers.values()
        yield from self.consumers.values()

    def table(self, action: Action) -> dict[int, Handle]:
        return self.producers if action is Action.PRODUCE else self.consumers

    def add(self, handle: Handle, request_id: int) -> None:
        """A new incarnation, whose answer is awaited."""
        self.table(handle.action)[handle.id] = handle
        self._by_request[request_id] = handle

    def awaits(self, handle: Handle, request_id: int) -> None:
        """One more answer to come: of a close, or a second one to the request that opened it."""
        self._by_request[request_id] = handle

    def answered(self, request_id: int) -> Handle | None:
        """The incarnation that awaited this answer, if it is still the one of its id."""
        handle = self._by_request.pop(request_id, None)
        if handle is None or self.table(handle.action).get(handle.id) is not handle:
            return None
        return handle

    def remove(self, handle: Handle) -> None:
        table = self.table(handle.action)
        if table.get(handle.id) is handle:
            del table[handle.id]
