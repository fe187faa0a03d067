"""Judges requests of Fetch: each of their topics has an account, or another name towards the
broker, and their session is the connection's own."""

from __future__ import annotations

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


def fetch_of(
    schema: Schema, head: Head, frame: bytes, book: Book, substitutes: Substitutes
) -> bytes | ErrorCode:
    """Return a request of Fetch or ShareFetch as the broker gets it: the same, if the client may
    use all its topics. Return the error that refuses it if it names a fetch session of another
    connection. Raises `PeerError` if it is torn."""
    by_id = head.key != FETCH or head.version >= BY_ID[FETCH]
    flexible = head.version >= schema.flexible
    changed: bytearray | None = None
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
            other = (substitutes.id if by_id else substitutes.name)(topic, used)
            changed = bytearray(frame) if changed is None else changed
            changed[place.end - len(other) : place.end] = other
    return frame if changed is None else bytes(changed)


def _topic(frame: bytes, place: Place, *, by_id: bool, flexible: bool) -> bytes:
    if by_id:
        return frame[place.start : place.end]
    topic = text_at(frame, place, flexible=flexible)
    if topic is None:
        raise PeerError("a topic without a name")
    return topic
