"""Decides requests of Produce that stopped whole: counts what the client may send, and takes out
what it may not.

A denied topic gets a substitute, and no batches. If all topics are denied for one reason, the whole
request is refused, and the broker gets nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import SIZE, Head
from gateway.wire.kafka.records import counted
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.to_broker import BY_ID
from gateway.wire.kafka.walk import Place, Walk, plan, splice, text_at

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

    walk: Walk
    acks: int
    sent: list[Sent]
    error: ErrorCode | None

    @property
    def denied(self) -> list[Sent]:
        """Return what the client may not send."""
        return [sent for sent in self.sent if isinstance(sent.used, ErrorCode)]


def authorize(schema: Schema, head: Head, frame: bytes, book: Book) -> Request:
    """Authorize a request of Produce, and open the accounts of its topics in `book`. Raises
    `PeerError` if the request is malformed."""
    flexible = head.version >= schema.flexible
    walk = plan(schema, head.version, _WANTED, whole=True).walk(frame, head.body, len(frame))
    if walk.end != len(frame):
        raise PeerError("bytes behind a request of Produce")
    acks, error = 0, None
    sent: list[Sent] = []
    for place in walk.places:
        if place.name == _TRANSACTION:
            name = text_at(frame, place, flexible=flexible)
            error = None if name is None else book.refuses_transaction(name)
        elif place.name == _ACKS:
            acks = int.from_bytes(frame[place.start : place.end], signed=True)
        elif place.name == _RECORDS:
            size, messages = counted(frame, place, flexible=flexible, whole=True)
            last = sent[-1]
            last.records.append(place)
            sent[-1] = last._replace(messages=last.messages + messages, size=last.size + size)
        else:
            sent.append(_sent(head, frame, place, book, flexible=flexible))
    if len({topic.topic for topic in sent}) < len(sent):
        raise PeerError("a topic twice in a request of Produce")
    errors = {topic.used for topic in sent if isinstance(topic.used, ErrorCode)}
    if error is None and len(errors) == 1 and all(topic.used in errors for topic in sent):
        (error,) = errors
    return Request(walk, acks, sent, error)


def _sent(head: Head, frame: bytes, place: Place, book: Book, *, flexible: bool) -> Sent:
    by_id = head.version >= BY_ID
    topic = frame[place.start : place.end] if by_id else text_at(frame, place, flexible=flexible)
    if not topic:
        raise PeerError("a topic without a name")
    if len(topic) > LONGEST_NAME:
        raise PeerError(f"a topic with a name of {len(topic)} bytes")
    used = book.use(Action.PRODUCE, topic, by_id=by_id)
    return Sent(place, topic, ErrorCode.INVALID_TOPIC if used is STRAY else used, [], 0, 0)


def replaced(
    schema: Schema, version: int, frame: bytes, request: Request, substitutes: Substitutes
) -> bytes:
    """Return a request with substitutes in place of denied topics, and without their batches."""
    nothing = b"\0" if version >= schema.flexible else b"\xff" * 4
    other_of = substitutes.id if version >= BY_ID else substitutes.name
    changes: list[tuple[Place, bytes]] = []
    for place, topic, used, records, *_ in request.sent:
        if isinstance(used, ErrorCode):
            start = place.end - len(topic)
            changes.append((place._replace(start=start), other_of(topic, used)))
            changes += [(batches, nothing) for batches in records]
    data = splice(frame, request.walk, changes)
    return SIZE.pack(len(data) - SIZE.size) + data[SIZE.size :]
