"""Requests of one connection that wait for their responses.

A broker answers in the order of requests, and clients rely on that. So a response of the gateway's
own, to a request that it refuses, waits until the broker has answered all earlier ones. Produce
with acks=0 is never answered, and has no place here.

Source: the protocol guide of Apache Kafka, "Network".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gateway.compiled import COMPILED
from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.kafka.sasl.claims import Claim

MOST = 10_000
"""Requests of one connection without a response. Java has 5, librdkafka up to a million, which wait
in its own memory while the connection is not read."""


class Asked(NamedTuple):
    """A request that the broker has to answer. Its response has the form of this version.

    `accounts`: what it sent to. `is_own`: the gateway asks, and the client gets no response.
    `claim`: whom the client says to be in it. `since`: when a lookup went on.
    """

    key: int
    version: int
    correlation: int
    accounts: tuple[Account, ...] = ()
    is_own: bool = False
    claim: Claim | None = None
    since: float = 0.0


class PureLine:
    """Requests and own responses in the order of their responses; `compiled.kafka.Line` is its
    twin, to which walkers add, and from which they take. `open`: how many answers the broker
    owes."""

    __slots__ = ("_line", "_most", "open")

    def __init__(self, _make: type[Asked], most: int) -> None:
        # A deque would take 700 bytes more, and connections are many; few lines are long.
        self._line: list[Asked | bytes] = []
        self._most = most
        self.open = 0

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Asked | bytes]:
        return iter(self._line)

    @property
    def room(self) -> int:
        """Return how many requests may be added."""
        return self._most - len(self._line)

    @property
    def is_full(self) -> bool:
        """Return whether the client should not be read, as it has asked too much already."""
        return len(self._line) >= self._most

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether a response of the gateway follows the broker's next one."""
        return len(self._line) > 1 and isinstance(self._line[1], bytes)

    @property
    def first(self) -> Asked | bytes | None:
        """Return what is first in the line."""
        return self._line[0] if self._line else None

    def ask(self, asked: Asked) -> None:
        """Add a request that goes to the broker."""
        self._line.append(asked)
        self.open += 1

    def add(self, own: bytes) -> None:
        """Add a response of the gateway."""
        self._line.append(own)

    def take(self, correlation: int, like: Asked) -> bool:
        """Remove the request that the broker has answered, if it has this id and is like another
        one in all else, and no response of the gateway follows it; return whether it was there."""
        line = self._line
        first = line[0] if line else b""
        if isinstance(first, bytes) or first.correlation != correlation:
            return False
        if first.accounts != like.accounts or (len(line) > 1 and isinstance(line[1], bytes)):
            return False
        if first.key != like.key or first.version != like.version:
            return False
        del line[0]
        self.open -= 1
        return True

    def pop(self) -> Asked | bytes:
        """Remove what is first in the line, and return it."""
        first = self._line.pop(0)
        if not isinstance(first, bytes):
            self.open -= 1
        return first


if COMPILED and not TYPE_CHECKING:
    from gateway.compiled.kafka import Line
else:
    Line = PureLine


class InFlight(Line):
    """Requests and own responses, in the order in which clients expect what belongs to them."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Asked, MOST)

    def response(self, own: bytes) -> bytes:
        """Queue a response of the gateway behind the open requests. Return it if there are none, so
        that the client gets it now; else nothing."""
        if not len(self):
            return own
        self.add(own)
        return b""

    def next(self, correlation: int) -> Asked:
        """Return the oldest request that the broker has not answered, to which its next response
        belongs. Raises `PeerError` if the correlation ids differ: nobody could tell whose it is."""
        first = self.first
        if first is None or isinstance(first, bytes):
            raise PeerError("an answer without a request")
        if first.correlation != correlation:
            raise PeerError(f"an answer to {correlation} in place of {first.correlation}")
        return first

    def answered(self) -> bytes:
        """Remove the request that the broker has answered; return the own responses behind it."""
        self.pop()
        own: list[bytes] = []
        while isinstance(first := self.first, bytes):
            own.append(first)
            self.pop()
        return b"".join(own)

    def waits_only_for(self, keys: frozenset[int]) -> bool:
        """Return whether no response is owed to other requests than of these APIs."""
        return all(isinstance(it, Asked) and it.key in keys for it in self)
