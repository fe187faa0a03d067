"""Scanners whose usual frames a compiled walker passes: those that are like the last one. The pure
scanners, which they are otherwise, judge all other frames, and learn from them.

A scan that ends without a stop arms the walker; whatever may change what passes disarms it (see
`watch`), until the next frame has been judged here.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

from gateway.compiled.kafka import (
    AcceptedForm,
    AnswerWalker,
    FetchForm,
    GivenForm,
    LikeWalker,
    ProduceForm,
    RequestWalker,
)
from gateway.wire.kafka import quick, responses
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.alike import (
    FORMS,
    NOT_ACCEPTED,
    NOT_ASKING,
    NOT_GIVING,
    NOT_PRODUCING,
    Accepted,
    Asking,
    Giving,
    Producing,
    kind,
)
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.requests import Requests
from gateway.wire.kafka.responses import Responses
from gateway.wire.kafka.scanning import FrameScanner
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.watch import Watch
from gateway.wire.services import Services


@lru_cache(FORMS)
def _produce_form(like: Producing) -> ProduceForm:
    return ProduceForm(like.lead, like.kind, like.acks, like.layout.digits)


@lru_cache(FORMS)
def _fetch_form(like: Asking) -> FetchForm:
    return FetchForm(like.size, like.kind, like.lead, like.topic, like.rest)


@lru_cache(FORMS)
def _accepted_form(like: Accepted) -> AcceptedForm:
    return AcceptedForm(like.size, kind(PRODUCE, like.version), like.lead, like.rest)


@lru_cache(FORMS)
def _given_form(like: Giving) -> GivenForm:
    return GivenForm(kind(FETCH, like.version), like.lead, like.middle, like.digits)


class _Walked(FrameScanner):
    """The part that both directions share."""

    __slots__ = ()

    walker: LikeWalker

    # Where the walker finds it too.
    @property
    def _rest(self) -> int:
        return self.walker.owed

    @_rest.setter
    def _rest(self, rest: int) -> None:
        self.walker.owed = rest

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        cleared = super().scan(chunk, start, end)
        self.walker.arm(not self.stop and self._stream is None and self._learned())
        return cleared

    @abstractmethod
    def _learned(self) -> bool:
        """Tell the walker what passes now; return whether anything does."""


class CompiledRequests(_Walked, Requests):
    """See `Requests`."""

    __slots__ = ("walker",)

    walker: RequestWalker

    def __init__(
        self,
        book: Book,
        in_flight: InFlight,
        substitutes: Substitutes,
        throttle: Throttle,
        watch: Watch,
    ) -> None:
        self.walker = RequestWalker(in_flight, watch)
        super().__init__(book, in_flight, substitutes, throttle)

    def _learned(self) -> bool:
        if self.stops or self.raw:
            return False
        return self._may_fetch(self._asking) | self._may_produce(self._producing)

    def _may_fetch(self, like: Asking) -> bool:
        walker = self.walker
        walker.asking = None
        if like is NOT_ASKING or self._throttle.consumed or self._book.has_questions:
            return False
        if like.name and like.name not in self._book.consumed[like.version >= quick.BY_ID]:
            return False
        walker.asking = _fetch_form(like)
        return True

    def _may_produce(self, like: Producing) -> bool:
        walker = self.walker
        walker.producing = None
        if like is NOT_PRODUCING:
            return False
        account = self._book.produced[like.version >= quick.BY_ID].get(like.topic)
        if account is None:
            return False
        walker.produced = account
        walker.producing = _produce_form(like)
        return True

    def _run_fetches(self, like: Asking, chunk: bytearray, pos: int, end: int) -> int:
        passed = self.walker.run_fetches(chunk, pos, end) if self._may_fetch(like) else pos
        return passed if passed > pos else super()._run_fetches(like, chunk, pos, end)

    def _run_produces(self, like: Producing, chunk: bytearray, pos: int, end: int) -> int:
        passed = self.walker.run_produces(chunk, pos, end) if self._may_produce(like) else pos
        return passed if passed > pos else super()._run_produces(like, chunk, pos, end)


class CompiledResponses(_Walked, Responses):
    """See `Responses`."""

    __slots__ = ("walker",)

    walker: AnswerWalker

    def __init__(
        self,
        services: Services,
        book: Book,
        in_flight: InFlight,
        substitutes: Substitutes,
        throttle: Throttle,
        watch: Watch,
    ) -> None:
        self.walker = AnswerWalker(in_flight, watch, responses.MOST_ENDS)
        super().__init__(services, book, in_flight, substitutes, throttle)

    def _learned(self) -> bool:
        if self.raw:
            return False
        return self._may_give(self._giving) | self._may_accept(self._accepted)

    def _may_give(self, like: Giving) -> bool:
        walker = self.walker
        walker.giving = None
        if like is NOT_GIVING or self._throttle.consumed or not self._is_plain:
            return False
        account = self._book.consumed[like.version >= quick.BY_ID].get(like.topic)
        if account is None:
            return False
        walker.consumed = account
        walker.giving = _given_form(like)
        return True

    def _may_accept(self, like: Accepted) -> bool:
        walker = self.walker
        walker.accepted = None
        accounts = self._book.produced[like.version >= quick.BY_ID]
        if like is NOT_ACCEPTED or len(accounts) != 1 or not self._is_plain:
            return False
        (walker.produced,) = accounts.values()
        walker.accepted = _accepted_form(like)
        return True

    @property
    def _is_plain(self) -> bool:
        """Return whether nothing has to be changed in answers, or opened because of them."""
        return not (self._book.has_new or len(self._substitutes))

    def _give(self, like: Giving, chunk: bytearray, pos: int, end: int) -> int:
        passed = self.walker.run_given(chunk, pos, end) if self._may_give(like) else pos
        return passed if passed > pos else super()._give(like, chunk, pos, end)

    def _accept(self, like: Accepted, chunk: bytearray, pos: int, end: int) -> int:
        passed = self.walker.run_accepted(chunk, pos, end) if self._may_accept(like) else pos
        return passed if passed > pos else super()._accept(like, chunk, pos, end)
