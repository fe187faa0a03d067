"""Requests of one connection that wait for their answers.

A broker answers in the order of requests, and clients rely on that. So an answer of the gateway's
own, to a request that it refuses, waits until the broker has answered all earlier ones. Produce
with acks=0 is never answered, and has no place here.

Source: the protocol guide of Apache Kafka, "Network".
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.kafka.sasl.claims import Claim

MOST = 10_000
"""Requests of one connection without an answer. Java has 5, librdkafka up to a million, which wait
in its own memory while the connection is not read."""


class Asked(NamedTuple):
    """A request that the broker has to answer. Its answer has the form of this version.

    `accounts`: what it sent to. `is_own`: the gateway asks, and the client gets no answer. `claim`:
    whom the client says to be in it. `since`: when a lookup went on.
    """

    key: int
    version: int
    correlation: int
    accounts: tuple[Account, ...] = ()
    is_own: bool = False
    claim: Claim | None = None
    since: float = 0.0


class Pending:
    """Requests and own answers, in the order in which clients expect what belongs to them."""

    __slots__ = ("_line", "_open")

    def __init__(self) -> None:
        # A deque would take 700 bytes more, and connections are many; few lines are long.
        self._line: list[Asked | bytes] = []
        self._open = 0

    @property
    def open(self) -> int:
        """Return how many answers the broker owes."""
        return self._open

    @property
    def room(self) -> int:
        """Return how many requests may be added."""
        return MOST - len(self._line)

    @property
    def is_full(self) -> bool:
        """Return whether the client should not be read, as it has asked too much already."""
        return len(self._line) >= MOST

    def ask(self, asked: Asked) -> None:
        """Add a request that goes to the broker."""
        self._line.append(asked)
        self._open += 1

    def answer(self, own: bytes) -> bytes:
        """Queue an answer of the gateway behind the open requests. Return it if there are none, so
        that the client gets it now; else nothing."""
        if not self._line:
            return own
        self._line.append(own)
        return b""

    def next(self, correlation: int) -> Asked:
        """Return the oldest request that the broker has not answered, to which its next answer
        belongs. Raises `PeerError` if the correlation ids differ: nobody could tell whose it is."""
        first = self._line[0] if self._line else b""
        if isinstance(first, bytes):
            raise PeerError("an answer without a request")
        if first.correlation != correlation:
            raise PeerError(f"an answer to {correlation} in place of {first.correlation}")
        return first

    def take(self, correlation: int, like: Asked) -> bool:
        """Remove the request that the broker has answered, if it has this id and is like another
        one in all else, and no answer of the gateway follows it; return whether it was there."""
        line = self._line
        first = line[0] if line else b""
        if isinstance(first, bytes) or first.correlation != correlation:
            return False
        if first.accounts != like.accounts or (len(line) > 1 and isinstance(line[1], bytes)):
            return False
        if first.key != like.key or first.version != like.version:
            return False
        del line[0]
        self._open -= 1
        return True

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether an answer of the gateway follows the broker's next one."""
        return len(self._line) > 1 and isinstance(self._line[1], bytes)

    def answered(self) -> bytes:
        """Remove the request that the broker has answered; return the own answers behind it."""
        line = self._line
        del line[0]
        self._open -= 1
        if not line or not isinstance(line[0], bytes):
            return b""
        count = next((at for at, it in enumerate(line) if not isinstance(it, bytes)), len(line))
        own = b"".join(it for it in line[:count] if isinstance(it, bytes))
        del line[:count]
        return own

    def waits_only_for(self, keys: frozenset[int]) -> bool:
        """Return whether no answer is owed to other requests than of these APIs."""
        return all(isinstance(it, Asked) and it.key in keys for it in self._line)
