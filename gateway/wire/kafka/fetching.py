"""Authorizes Fetch and ShareFetch requests. For each topic, an account is opened or a substitute
takes the topic's place. A request may use only a fetch session of its own connection."""

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
from gateway.wire.kafka.to_broker import BY_ID
from gateway.wire.kafka.walk import Place, plan, text_at

_SESSION, _EPOCH = "SessionId", "SessionEpoch"
_WANTED = frozenset({"Topic", "TopicId", _SESSION, _EPOCH})

_WHOLE = (0, -1)
"""Epochs of requests that name all their topics. The broker closes the session that such a request
names, and begins a new one for epoch 0."""


class Refused(NamedTuple):
    """A topic that the client may not use: its place in the frame, its name or id, and the
    error."""

    place: Place
    topic: bytes
    error: ErrorCode


class Denied(NamedTuple):
    """The denied parts of a request. `session`: the place of a fetch session that belongs to
    another connection, and that the request would close; None if there is none. `topics`: the
    topics that the client may not use."""

    session: Place | None
    topics: list[Refused]


def authorize(schema: Schema, head: Head, frame: bytes, book: Book) -> Denied | ErrorCode:
    """Authorize a Fetch or ShareFetch request, and open the accounts of its topics in `book`.
    Return the denied parts of the request; or an error that refuses the whole request, because it
    continues a fetch session of another connection. Raises `PeerError` if the request is
    truncated."""
    by_id, flexible = names_ids(head), head.version >= schema.flexible
    denied = Denied(None, [])
    for place in (
        plan(schema, head.version, _WANTED, whole=True).walk(frame, head.body, len(frame)).places
    ):
        if place.name == _SESSION:
            if not book.sessions.may_fetch(_number(frame, place)):
                denied = denied._replace(session=place)
        elif place.name == _EPOCH:
            if denied.session is not None and _number(frame, place) not in _WHOLE:
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        else:
            topic = _topic(frame, place, by_id=by_id, flexible=flexible)
            used = book.use(Action.CONSUME, topic, by_id=by_id)
            if isinstance(used, ErrorCode):
                denied.topics.append(Refused(place, topic, used))
    return denied


def names_ids(head: Head) -> bool:
    """Return whether a Fetch or ShareFetch request with this head names topics by id."""
    return head.key != FETCH or head.version >= BY_ID


def replaced(frame: bytes, denied: Denied, substitutes: Substitutes, *, by_id: bool) -> bytes:
    """Return a request with substitutes in place of denied topics, and without the session id if
    `denied` has a session; `frame` itself if nothing is denied. `by_id`: topics are named by id."""
    if denied.session is None and not denied.topics:
        return frame
    changed = bytearray(frame)
    if denied.session is not None:
        changed[denied.session.start : denied.session.end] = bytes(4)
    for place, topic, error in denied.topics:
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
