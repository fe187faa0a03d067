"""The in-flight requests of one connection, in order.

A broker responds in the order of requests, and clients rely on that. So if the gateway refuses a
request, its synthetic response waits until the broker has responded to all earlier requests. A
Produce request with acks=0 has no response, and is not listed here.

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
    """An in-flight request: the gateway has sent it to the broker, and the broker has not responded
    yet.

    `version`: the version of the request, which its response has too. `accounts`: the accounts of
    the topics to which the request produces. `is_own`: the request is the gateway's own, and the
    client is not sent the response. `claim`: the identity that the client claims in this request.
    `since`: when the gateway forwarded the request, if it is a lookup.
    """

    key: int
    version: int
    correlation: int
    accounts: tuple[Account, ...] = ()
    is_own: bool = False
    claim: Claim | None = None
    since: float = 0.0


class PureLine:
    """In-flight requests, and synthetic responses that wait among them, in the order in which the
    client is sent the responses. `open`: the number of requests. `compiled.kafka.Line` is the
    compiled version of this class."""

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
        """Return whether no more requests may be added, so that nothing should be read from the
        client."""
        return len(self._line) >= self._most

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether the entry after the first one is a synthetic response, which must be sent
        directly after the broker's next response."""
        return len(self._line) > 1 and isinstance(self._line[1], bytes)

    @property
    def first(self) -> Asked | bytes | None:
        """Return the first entry, a request or a synthetic response; None if there is none."""
        return self._line[0] if self._line else None

    def ask(self, request: Asked) -> None:
        """Append a request that is forwarded to the broker."""
        self._line.append(request)
        self.open += 1

    def add(self, own: bytes) -> None:
        """Append a synthetic response."""
        self._line.append(own)

    def take(self, correlation: int, like: Asked) -> bool:
        """Remove the first entry, and return True, if three things hold: it is a request with this
        correlation id, the request has the key, version and accounts of `like`, and no synthetic
        response follows it. Otherwise remove nothing, and return False."""
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
        request is in flight, return the response, which the caller sends to the client now."""
        if not len(self):
            return own
        self.add(own)
        return b""

    def next(self, correlation: int) -> Asked:
        """Return the oldest in-flight request, which is the one that the broker's next response
        belongs to. `correlation`: the correlation id of that response. Raises `PeerError` if no
        request is in flight, or if the request has another correlation id."""
        first = self.first
        if first is None or isinstance(first, bytes):
            raise PeerError("an answer without a request")
        if first.correlation != correlation:
            raise PeerError(f"an answer to {correlation} in place of {first.correlation}")
        return first

    def answered(self) -> bytes:
        """Remove the oldest request, to which the broker has responded. Return the synthetic
        responses directly behind it, which the caller sends to the client now."""
        self.pop()
        own: list[bytes] = []
        while isinstance(first := self.first, bytes):
            own.append(first)
            self.pop()
        return b"".join(own)

    def waits_only_for(self, keys: frozenset[int]) -> bool:
        """Return whether each entry is a request of one of the APIs `keys`, and no synthetic
        response waits."""
        return all(isinstance(entry, Asked) and entry.key in keys for entry in self)
