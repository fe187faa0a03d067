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

_SESSION = "SessionId"
_WANTED = frozenset({"Topic", "TopicId", _SESSION})


class Refused(NamedTuple):
    """A topic that the client may not use: where it stands, as what, and why."""

    place: Place
    topic: bytes
    error: ErrorCode


def refused_in(schema: Schema, head: Head, frame: bytes, book: Book) -> list[Refused] | ErrorCode:
    """Return the topics of a request of Fetch or ShareFetch that the client may not use, or the
    error that refuses all of it: it names a fetch session of another connection. Raises `PeerError`
    if it is torn."""
    by_id, flexible = names_ids(head), head.version >= schema.flexible
    found: list[Refused] = []
    for place in (
        plan(schema, head.version, _WANTED, whole=True).walk(frame, head.body, len(frame)).places
    ):
        if place.name == _SESSION:
            session = int.from_bytes(frame[place.start : place.end], signed=True)
            if not book.sessions.may_fetch(session):
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            continue
        topic = _topic(frame, place, by_id=by_id, flexible=flexible)
        used = book.use(Action.CONSUME, topic, by_id=by_id)
        if isinstance(used, ErrorCode):
            found.append(Refused(place, topic, used))
    return found


def names_ids(head: Head) -> bool:
    """Return whether a request of Fetch or ShareFetch names topics by their ids."""
    return head.key != FETCH or head.version >= BY_ID[FETCH]


def without(
    frame: bytes, refused: list[Refused], substitutes: Substitutes, *, by_id: bool
) -> bytes:
    """Return a request with substitutes for the topics that the client may not use."""
    changed = bytearray(frame)
    for place, topic, error in refused:
        other = (substitutes.id if by_id else substitutes.name)(topic, error)
        changed[place.end - len(other) : place.end] = other
    return bytes(changed) if refused else frame


def _topic(frame: bytes, place: Place, *, by_id: bool, flexible: bool) -> bytes:
    if by_id:
        return frame[place.start : place.end]
    topic = text_at(frame, place, flexible=flexible)
    if topic is None:
        raise PeerError("a topic without a name")
    return topic
