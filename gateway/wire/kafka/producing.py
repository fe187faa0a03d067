"""Decides requests of Produce: at their heads, if accounts have no allowance; whole, if a topic may
be denied; and at a topic within, if the begin has passed.

A denied topic gets a substitute, and no batches. If all topics are denied for one reason, the whole
request is refused, and the broker gets nothing. The client is charged for denied batches as for
others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import FORWARD, Effects, End, EndReason, Postpone, Replace, decided
from gateway.wire.kafka.addresses import PRODUCE
from gateway.wire.kafka.asking import LONGEST_QUESTION, MOST_QUESTIONS, Asking
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import REQUEST, SIZE, Head
from gateway.wire.kafka.in_flight import Asked, InFlight
from gateway.wire.kafka.records import counted
from gateway.wire.kafka.schema import Api, Schema
from gateway.wire.kafka.slicing import CHEAP, DRAWN, OPENED
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.synthetic import refused, responded
from gateway.wire.kafka.throttle import OVERDUE, Throttle
from gateway.wire.kafka.to_broker import BY_ID, ToBrokerScanner
from gateway.wire.kafka.walk import Change, Place, plan, spliced, text_at
from gateway.wire.kafka.walker import END
from gateway.wire.slices import UNITS, Slices

_TRANSACTION, _ACKS = "TransactionalId", "Acks"
_NAME, _ID, _RECORDS = "TopicData/Name", "TopicData/TopicId", "TopicData/PartitionData/Records"

LONGEST_NAME = 249
"""Bytes of the longest name that a topic may have."""

_WANTED = frozenset({_TRANSACTION, _ACKS, _NAME, _ID, _RECORDS})


class Sent(NamedTuple):
    """What a request has of one topic: the topic's place, its account or the error that denies it,
    and the places of its batches, with how many messages and bytes they have."""

    place: Place
    topic: bytes
    used: Account | ErrorCode
    records: list[Place]
    messages: int
    size: int


class Request(NamedTuple):
    """A request of Produce. `acks`: replicas that must have it; with 0 the broker sends no
    response. `error`: refuses the whole request."""

    acks: int
    sent: list[Sent]
    error: ErrorCode | None

    @property
    def denied(self) -> list[Sent]:
        """Return what the client may not send."""
        return [sent for sent in self.sent if isinstance(sent.used, ErrorCode)]

    @property
    def refused(self) -> list[Sent]:
        """Return what the broker does not get."""
        return self.denied if self.error is None else self.sent


def authorize(schema: Schema, head: Head, frame: bytes, book: Book) -> Slices[Request]:
    """Authorize a request of Produce, and open the accounts of its topics in `book`. Raises
    `PeerError` if the request is malformed."""
    flexible = head.version >= schema.flexible
    made = plan(schema, head.version, _WANTED, whole=True)
    steps = made.walker(frame, head.body, len(frame))
    acks = units = 0
    error: ErrorCode | None = None
    sent: list[Sent] = []
    while (label := steps.advance()) != END:
        place = Place(made.labels[max(0, label)], steps.start, steps.end)
        units += 1
        if label < 0 or units >= UNITS:
            units = 0
            yield
        if label < 0:
            continue
        if place.name == _TRANSACTION:
            name = text_at(frame, place, flexible=flexible)
            error = None if name is None else book.refuses_transaction(name)
        elif place.name == _ACKS:
            acks = int.from_bytes(frame[place.start : place.end], signed=True)
        elif place.name == _RECORDS:
            size, messages = yield from counted(frame, place, flexible=flexible, whole=True)
            last = sent[-1]
            last.records.append(place)
            sent[-1] = last._replace(messages=last.messages + messages, size=last.size + size)
        else:
            sent.append(_sent(head, frame, place, book, flexible=flexible))
            units += OPENED
    if steps.at != len(frame):
        raise PeerError("bytes behind a request of Produce")
    return _request(acks, sent, error)


def _request(acks: int, sent: list[Sent], error: ErrorCode | None) -> Request:
    if len({topic.topic for topic in sent}) < len(sent):
        raise PeerError("a topic twice in a request of Produce")
    errors = {topic.used for topic in sent if isinstance(topic.used, ErrorCode)}
    if error is None and len(errors) == 1 and all(topic.used in errors for topic in sent):
        (error,) = errors
    return Request(acks, sent, error)


def _sent(head: Head, frame: bytes, place: Place, book: Book, *, flexible: bool) -> Sent:
    by_id = head.version >= BY_ID
    topic = frame[place.start : place.end] if by_id else text_at(frame, place, flexible=flexible)
    if not topic:
        raise PeerError("a topic without a name")
    if len(topic) > LONGEST_NAME:
        raise PeerError(f"a topic with a name of {len(topic)} bytes")
    used = book.use(Action.PRODUCE, topic, by_id=by_id)
    return Sent(place, topic, ErrorCode.INVALID_TOPIC if used is STRAY else used, [], 0, 0)


def _replaced(
    schema: Schema, version: int, frame: bytes, request: Request, substitutes: Substitutes
) -> Slices[bytes]:
    """Return a request with substitutes in place of denied topics, and without their batches."""
    nothing = b"\0" if version >= schema.flexible else b"\xff" * 4
    other_of = substitutes.id if version >= BY_ID else substitutes.name
    changes: list[Change] = []
    for number, (place, topic, used, records, *_) in enumerate(request.denied, 1):
        assert isinstance(used, ErrorCode)
        changes.append((place.end - len(topic), place.end, other_of(topic, used)))
        changes += [(batches.start, batches.end, nothing) for batches in records]
        if number % DRAWN == 0:
            yield
    data = yield from spliced(frame, [], changes)
    return SIZE.pack(len(data) - SIZE.size) + data[SIZE.size :]


def is_head(frame: bytes) -> bool:
    """Return whether a stop frame is the head of a longer request of Produce."""
    if len(frame) != REQUEST.size:
        return False
    size, key, *_ = REQUEST.unpack(frame)
    return bool(key == PRODUCE and size + SIZE.size > len(frame))


_OVER_LIMIT: Effects = (
    End(EndReason.OVER_LIMIT, detail="a request of Produce that waited too long for a limit"),
)


class Producing:
    """Decides the requests of Produce of one connection."""

    __slots__ = (
        "_asking",
        "_book",
        "_in_flight",
        "_requests",
        "_substitutes",
        "_throttle",
        "_within_until",
    )

    def __init__(
        self,
        book: Book,
        in_flight: InFlight,
        requests: ToBrokerScanner,
        throttle: Throttle,
        asking: Asking,
        substitutes: Substitutes,
    ) -> None:
        self._book = book
        self._in_flight = in_flight
        self._requests = requests
        self._throttle = throttle
        self._asking = asking
        self._substitutes = substitutes
        self._within_until = 0.0  # when a topic within the request that passes is refused

    def begin(self, now: float, *, stops: bool) -> Effects:
        """Return the effects for the head of a request. `stops`: the heads of the next ones stop as
        well."""
        waits = self._wait(now)
        if waits is not None:
            return waits
        self._requests.stops = stops
        self._requests.passes = True
        return (Postpone(now),)

    def _wait(self, now: float) -> Effects | None:
        """Return the effects that make a request wait until its accounts have had their turn; None
        if it may go on. Clients try again after the connection's end, but not all of them after
        an error."""
        waits = self._throttle.wait(self._throttle.produced, now)
        if waits == OVERDUE:
            return _OVER_LIMIT
        return waits

    def decide(self, known: Api, head: Head, frame: bytes, now: float) -> Effects:
        """Return the effects for a whole request, some topic of which may be denied. Raises
        `PeerError` if it is malformed."""
        under_way = self._asking.under_way(now)
        if under_way is not None:
            return under_way
        return decided(self._decide(known, head, frame, now))

    def _decide(self, known: Api, head: Head, frame: bytes, now: float) -> Slices[Effects]:
        request = yield from authorize(known.request, head, frame, self._book)
        waits = self._asking.wait(now)
        if waits is not None:
            return waits
        waits = self._take_turn(request, now)
        if waits is not None:
            return waits
        self._requests.passes = self._requests.overdrawn = False
        self._requests.collects |= bool(request.denied)
        self._charge_refused(request)
        if request.error is not None and not request.acks:  # as brokers do
            detail = "a refused request of Produce that awaits no response"
            return (End(EndReason.OPERATOR_CLOSED, detail=detail),)
        if request.error is not None:
            response = yield from refused(known, head, frame, request.error)
            return responded(self._in_flight, response)
        data = frame
        if request.denied:
            version, others = head.version, self._substitutes
            data = yield from _replaced(known.request, version, frame, request, others)
        if len(request.sent) > CHEAP:
            yield
        if self._asking.is_renewing:  # since meanwhile
            return (Postpone(math.inf),)
        for sent in request.sent:
            if isinstance(sent.used, Account) and sent.records:
                self._requests.count(sent.used, sent.messages, sent.size, request.acks)
        if request.acks:
            self._in_flight.ask(Asked(PRODUCE, head.version, head.correlation))
        return FORWARD if data is frame else (Replace(data),)

    def _take_turn(self, request: Request, now: float) -> Effects | None:
        """Return the effects that make a whole request wait until its accounts have had their turn;
        None if it may go on."""
        if not self._requests.overdrawn:
            self._requests.overdrawn = True
            needs = [] if request.error else [(sent.used, sent.size) for sent in request.sent]
            if request.refused and (refused := self._book.refused(Action.PRODUCE)) is not None:
                needs.append((refused, sum(sent.size for sent in request.refused)))
            for used, size in needs:
                if isinstance(used, Account) and used.lacks(size):
                    self._throttle.lacks(used, size)
                    self._requests.collects = True
        return self._wait(now)

    def _charge_refused(self, request: Request) -> None:
        """Charge the client for what the broker does not get of a request."""
        account = self._book.refused(Action.PRODUCE) if request.refused else None
        if account is not None:
            messages = sum(sent.messages for sent in request.refused)
            size = sum(sent.size for sent in request.refused)
            self._requests.count(account, messages, size, 0)

    def within(self, now: float) -> Effects:
        """Return the effects for a topic without an account, or without allowance, within a request
        whose begin has passed. The pair ends if the client may not use the topic."""
        account = self._requests.account
        if account is not None:
            return (Postpone(now),) if self._throttle.wants(account) else _OVER_LIMIT
        asking = self._asking
        if self._requests.halts == 1:
            self._within_until = now + MOST_QUESTIONS * LONGEST_QUESTION
        if self._book.undecided and not asking.unanswered and now < self._within_until:
            return (*asking.ask(), Postpone(self._within_until))
        if asking.unanswered and now < self._within_until:  # resumed by something else
            return (Postpone(self._within_until),)
        detail = "a topic that the client may not use, within a request of other topics"
        return (End(EndReason.OPERATOR_CLOSED, detail=detail),)
