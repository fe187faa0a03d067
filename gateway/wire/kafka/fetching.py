"""Judges requests of Fetch: each of their topics has an account, or another name towards the
broker, and their session is the connection's own."""

from __future__ import annotations

from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.kafka.addresses import FETCH
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.traffic import BY_ID
from gateway.wire.kafka.walk import Place, plan, text_at

_SESSION, _EPOCH = "SessionId", "SessionEpoch"
_WANTED = frozenset({"Topic", "TopicId", _SESSION, _EPOCH})

_WHOLE = (0, -1)
"""Epochs of requests that name all their topics. The broker closes the session that such a request
names, and begins a new one for epoch 0."""


class Refused(NamedTuple):
    """A topic that the client may not use: where it stands, as what, and why."""

    place: Place
    topic: bytes
    error: ErrorCode


class Judged(NamedTuple):
    """What must not stand in a request as it came. `session`: where it names a fetch session of
    another connection, which it would close; None: it does not."""

    session: Place | None
    topics: list[Refused]


def judged(schema: Schema, head: Head, frame: bytes, book: Book) -> Judged | ErrorCode:
    """Return what the broker must not get of a request of Fetch or ShareFetch, or the error that
    refuses all of it: it goes on with a fetch session of another connection. Raises `PeerError` if
    it is torn."""
    by_id, flexible = names_ids(head), head.version >= schema.flexible
    found = Judged(None, [])
    for place in (
        plan(schema, head.version, _WANTED, whole=True).walk(frame, head.body, len(frame)).places
    ):
        if place.name == _SESSION:
            if not book.sessions.may_fetch(_number(frame, place)):
                found = found._replace(session=place)
        elif place.name == _EPOCH:
            if found.session is not None and _number(frame, place) not in _WHOLE:
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        else:
            topic = _topic(frame, place, by_id=by_id, flexible=flexible)
            used = book.use(Action.CONSUME, topic, by_id=by_id)
            if isinstance(used, ErrorCode):
                found.topics.append(Refused(place, topic, used))
    return found


def names_ids(head: Head) -> bool:
    """Return whether a request of Fetch or ShareFetch names topics by their ids."""
    return head.key != FETCH or head.version >= BY_ID[FETCH]


def replaced(frame: bytes, found: Judged, substitutes: Substitutes, *, by_id: bool) -> bytes:
    """Return a request without another connection's session, and with substitutes for the topics
    that the client may not use; the same object if it has neither."""
    if found.session is None and not found.topics:
        return frame
    changed = bytearray(frame)
    if found.session is not None:
        changed[found.session.start : found.session.end] = bytes(4)
    for place, topic, error in found.topics:
        other = (substitutes.id if by_id else substitutes.name)(topic, error)
        changed[place.end - len(other) : place.end] = other
    return bytes(changed)


def _number(frame: bytes, place: Place) -> int:
    return int.from_bytes(frame[place.start : place.end], signed=True)


def _topic(frame: bytes, place: Place, *, by_id: bool, flexible: bool) -> bytes:
    if by_id:
        return frame[place.start : place.end]
    topic = text_at(frame, place, flexible=flexible)
    if topic is None:
        raise PeerError("a topic without a name")
    return topic
