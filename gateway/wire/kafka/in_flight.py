"""The in-flight requests of one connection, in order.

A broker responds in the order of requests, and clients rely on that. So a synthetic response, to a
request that the gateway refuses, waits until the broker has responded to all earlier requests.
Produce with acks=0 gets no response, and is not listed here.

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
"""The most in-flight requests of one connection. Java has 5, librdkafka up to a million, which wait
in its own memory while the connection is not read."""


class Asked(NamedTuple):
    """An in-flight request: sent to the broker, which has not responded yet.

    `version`: that of the request, and so of its response. `accounts`: those that the request
    produced to. `is_own`: the request is the gateway's, and the client gets no response. `claim`:
    the identity that the client claims in it. `since`: when a lookup was forwarded.
    """

    key: int
    version: int
    correlation: int
    accounts: tuple[Account, ...] = ()
    is_own: bool = False
    claim: Claim | None = None
    since: float = 0.0


class PureLine:
    """In-flight requests and waiting synthetic responses, in the order of responses. `open`: the
    number of requests. `compiled.kafka.Line` is its twin, which walkers add to and take from."""

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
        """Return how many more requests may be added."""
        return self._most - len(self._line)

    @property
    def is_full(self) -> bool:
        """Return whether the connection has so many in-flight requests that its client should not
        be read."""
        return len(self._line) >= self._most

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether a synthetic response waits directly behind the broker's next response."""
        return len(self._line) > 1 and isinstance(self._line[1], bytes)

    @property
    def first(self) -> Asked | bytes | None:
        """Return the first entry, a request or a synthetic response; None if there is none."""
        return self._line[0] if self._line else None

    def ask(self, request: Asked) -> None:
        """Append a request that goes to the broker."""
        self._line.append(request)
        self.open += 1

    def add(self, own: bytes) -> None:
        """Append a synthetic response."""
        self._line.append(own)

    def take(self, correlation: int, like: Asked) -> bool:
        """Remove the first request if it has this correlation id, equals the request `like` in all
        else, and is not followed by a synthetic response; return whether it was removed."""
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
        """Remove the first entry, and return it."""
        first = self._line.pop(0)
        if not isinstance(first, bytes):
            self.open -= 1
        return first


if COMPILED and not TYPE_CHECKING:
    from gateway.compiled.kafka import Line
else:
    Line = PureLine


class InFlight(Line):
    """The in-flight requests of one connection, and the synthetic responses that wait behind
    them."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Asked, MOST)

    def respond(self, own: bytes) -> bytes:
        """Queue a synthetic response behind the in-flight requests, and return no bytes. If no
        request is in flight, return the response instead, for the client to get now."""
        if not len(self):
            return own
        self.add(own)
        return b""

    def next(self, correlation: int) -> Asked:
        """Return the oldest in-flight request, to which the broker's next response belongs. Raises
        `PeerError` if there is none, or the correlation ids differ."""
        first = self.first
        if first is None or isinstance(first, bytes):
            raise PeerError("an answer without a request")
        if first.correlation != correlation:
            raise PeerError(f"an answer to {correlation} in place of {first.correlation}")
        return first

    def answered(self) -> bytes:
        """Remove the request to which the broker has responded; return the synthetic responses
        behind it, which the client gets now."""
        self.pop()
        own: list[bytes] = []
        while isinstance(first := self.first, bytes):
            own.append(first)
            self.pop()
        return b"".join(own)

    def waits_only_for(self, keys: frozenset[int]) -> bool:
        """Return whether all in-flight requests are of these APIs, and no synthetic response
        waits."""
        return all(isinstance(entry, Asked) and entry.key in keys for entry in self)
