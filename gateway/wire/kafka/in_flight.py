# cython: annotation_typing=False
"""The in-flight requests of one connection, in order.

A broker responds in the order of requests, and clients rely on that. So if the gateway refuses a
request, its synthetic response waits until the broker has responded to all earlier requests. A
Produce request with acks=0 has no response, and is not listed here.

Source: the protocol guide of Apache Kafka, "Network".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.frames import API_VERSIONS
from gateway.wire.kafka.sasl.claims import Claim
from gateway.wire.kafka.sasl.handshake import SASL_AUTHENTICATE, SASL_HANDSHAKE

MOST = 10_000
"""The most in-flight requests of one connection. Java has 5, librdkafka up to a million, which wait
in its own memory while the connection is not read."""

MOST_KEPT = 64 * 1024
"""Bytes of synthetic responses that wait, above which nothing is read from the client. It could
have requests refused without end behind one that the broker holds."""

_FOR_STRANGERS = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})
"""The APIs by which a broker responds to clients that have not authenticated (KIP-43, KIP-152)."""

_MOST = MOST
_MOST_KEPT = MOST_KEPT
_LOW_16 = (1 << 16) - 1
_LOW_32 = (1 << 32) - 1


class Asked(NamedTuple):
    """An in-flight request: the gateway has sent it to the broker, and the broker has not responded
    yet.

    `version`: the version of the request, which its response has too. `is_own`: the request is the
    gateway's own, and the client is not sent the response. `claim`: the identity that the client
    claims in this request. `since`: when the gateway forwarded the request, if it is a lookup.
    """

    key: int
    version: int
    correlation: int
    is_own: bool = False
    claim: Claim | None = None
    since: float = 0.0


class InFlight:
    """The in-flight requests of one connection, and the synthetic responses that wait behind
    them, in the order in which the client is sent the responses. `open`: the number of requests.
    `has_served`: the broker has responded to a request to which it responds only once it has
    accepted the client.

    A request that passed a scanner is a number, of its key, version and correlation id.
    """

    __slots__ = ("_kept", "_line", "has_served", "open")

    _kept: int
    _line: list[int | Asked | bytes]
    has_served: bool
    open: int

    def __init__(self) -> None:
        # A deque would take 700 bytes more, and connections are many; few lines are long.
        self._line = []
        self._kept = 0  # bytes of synthetic responses
        self.open = 0
        self.has_served = False

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Asked | bytes]:
        return map(_unpacked, self._line)

    def is_full(self) -> bool:
        """Return whether no more requests may be added, so that nothing should be read from the
        client."""
        return len(self._line) >= _MOST or self._kept > _MOST_KEPT

    def passes(self, key: int, version: int, correlation: int) -> None:
        """Append a request that passes a scanner to the broker."""
        self._line.append(key << 48 | version << 32 | correlation & _LOW_32)
        self.open += 1

    def ask(self, request: Asked) -> None:
        """Append a request that the session sends to the broker."""
        self._line.append(request)
        self.open += 1

    def respond(self, own: bytes) -> bytes:
        """Queue a synthetic response behind the in-flight requests, and return no bytes. If no
        request is in flight, return the response, which the caller sends to the client now."""
        if not self._line:
            return own
        self._line.append(own)
        self._kept += len(own)
        return b""

    def oldest(self, correlation: int) -> int:
        """Return the API key and the version (in the lower 16 bits) of the oldest request, to which
        the broker responds next. `correlation`: of that response. Raises `PeerError` if no
        request is in flight, or if the request has another correlation id."""
        first = self._line[0] if self._line else None
        if isinstance(first, int):
            packed = first
            if (packed ^ correlation) & _LOW_32 == 0:
                return packed >> 32
        asked = self.next(correlation)
        return asked.key << 16 | asked.version

    def first(self) -> Asked | None:
        """Return the oldest request; None if no request is in flight."""
        first = _unpacked(self._line[0]) if self._line else None
        assert not isinstance(first, bytes), "a synthetic response waits for no request"
        return first

    def next(self, correlation: int) -> Asked:
        """Return the oldest request; see `oldest`."""
        first = self.first()
        if first is None:
            raise PeerError("a response without a request")
        if first.correlation != correlation:
            raise PeerError(f"a response to {correlation} in place of {first.correlation}")
        return first

    def precedes_own(self) -> bool:
        """Return whether a synthetic response must be sent directly behind the broker's next
        response."""
        return len(self._line) > 1 and isinstance(self._line[1], bytes)

    def answered(self) -> bytes:
        """Remove the oldest request, to which the broker has responded. Return the synthetic
        responses directly behind it, which the caller sends to the client now."""
        line = self._line
        if not self.has_served:
            self.has_served = _is_served(line[0])
        del line[0]
        self.open -= 1
        if not line or not isinstance(line[0], bytes):
            return b""
        own: list[bytes] = []
        for entry in line:
            if not isinstance(entry, bytes):
                break
            own.append(entry)
        del line[: len(own)]
        joined = b"".join(own)
        self._kept -= len(joined)
        return joined

    def waits_only_for(self, keys: frozenset[int]) -> bool:
        """Return whether each entry is a request of one of the APIs `keys`, and no synthetic
        response waits."""
        return all(isinstance(entry, Asked) and entry.key in keys for entry in self._line)


def _is_served(entry: int | Asked | bytes) -> bool:
    return not isinstance(entry, Asked) or entry.key not in _FOR_STRANGERS


def _unpacked(entry: int | Asked | bytes) -> Asked | bytes:
    """Return an entry of the line as a request or a synthetic response."""
    if not isinstance(entry, int):
        return entry
    number = (entry & _LOW_32) - ((entry & 1 << 31) << 1)
    return Asked(entry >> 48, entry >> 32 & _LOW_16, number)
