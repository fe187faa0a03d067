"""What one connection asks before a request goes on: the broker for the names of topic ids, and the
policy agent for rights."""

from __future__ import annotations

from gateway.wire.contract import (
    Denial,
    Direction,
    Effect,
    Effects,
    Inject,
    Postpone,
    Resume,
    Start,
)
from gateway.wire.kafka.addresses import METADATA
from gateway.wire.kafka.answering import metadata_of
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.in_flight import Asked, InFlight
from gateway.wire.kafka.to_broker import ToBrokerScanner
from gateway.wire.questions import Questions

LONGEST_QUESTION = 5.0
"""Seconds for which a request waits at most for the names of its topics' ids and the client's
rights."""

MOST_QUESTIONS = 2
"""How often a request waits: once for names, and once for the rights to them."""

OWN = -1
"""The correlation id of the gateway's own requests."""


class Asking:
    """The questions of one connection. `unanswered`: how many are under way. `is_renewing`: the
    gateway reauthenticates at the broker."""

    __slots__ = (
        "_book",
        "_in_flight",
        "_requests",
        "_rounds",
        "_until",
        "is_renewing",
        "unanswered",
    )

    def __init__(self, book: Book, in_flight: InFlight, requests: ToBrokerScanner) -> None:
        self._book = book
        self._in_flight = in_flight
        self._requests = requests
        self._rounds = 0  # for which the next request has waited
        self._until = 0.0  # when that request goes on, whatever is known
        self.unanswered = 0
        self.is_renewing = False

    def under_way(self, now: float) -> Effects | None:
        """Return the effects that have the next request wait on, if it waits for questions and was
        offered again for another reason; else None."""
        if self._rounds and self.unanswered and now < self._until:
            return (Postpone(self._until),)
        return None

    def wait(self, now: float) -> Effects | None:
        """Return the effects that have a request wait for topic names or rights that are not known:
        once for names, and once more for the rights to the named topics. Return None if it goes
        on, whatever is known."""
        has_questions = bool(self._book.undecided or (self._book.wanted and not self._rounds))
        if has_questions and self._rounds < MOST_QUESTIONS:
            if not self._rounds:
                self._until = now + LONGEST_QUESTION
            if now < self._until:
                self._rounds += 1
                return (*self.ask(), Postpone(self._until))
        self._rounds = 0
        return None

    def ask(self) -> Effects:
        """Request the names of unknown topic ids from the broker, and have unknown rights looked
        up.

        Nothing is sent to the broker while a request passes, which gets its place among the
        in-flight requests only at its end: its response comes first, and is an occasion to ask. Nor
        is anything sent during a reauthentication.
        """
        effects: list[Effect] = []
        wanted, undecided = self._book.wanted, self._book.undecided
        if wanted and not self._requests.owed and not self.is_renewing:
            version, data = metadata_of(wanted, OWN)
            self._in_flight.ask(Asked(METADATA, version, OWN, is_own=True))
            effects.append(Inject(Direction.TO_BROKER, data))
            self.unanswered += 1
            self._book.wanted = ()
        if undecided:
            effects.append(Start(Questions(tuple(undecided)), self._decided))
            self.unanswered += 1
            self._book.undecided = ()
        return tuple(effects)

    def _decided(self, _result: bytes | Denial, _now: float) -> Effects:
        """Offer the waiting request again once rights were looked up; if they are still unknown, it
        is refused."""
        self.unanswered -= 1
        return (Resume(Direction.TO_BROKER),)
