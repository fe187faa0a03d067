"""Translates between a client's request ids and the ids under which a session asks the broker.

Playbooks use a client's ids. The tests of the ids themselves are in
`tests/playbooks/test_requests.py`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from gateway.wire.contract import Direction, Effect, Forward, Inject, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.session import PulsarSession

T = TypeVar("T")

FIRST_OWN = 1 << 62
"""The first of a session's own ids."""

_ASKED = frozenset({"producer", "subscribe", "close_producer", "close_consumer", "unsubscribe"})
_ANSWERS = frozenset({"producer_success", "success", "error"})


def to_session(session: PulsarSession, frame: bytes) -> bytes:
    """Return a broker's answer, addressed to a client's id, with the latest of the session's ids
    for that request."""
    command, body = _read(frame, _ANSWERS)
    if body is None:
        return frame
    own = [own for own, plain in _asked(session).items() if plain == body.request_id]
    if not own:
        return frame
    body.request_id = own[-1]
    return encode(command)


def from_session(session: PulsarSession, effect: Effect, said: bytes) -> Effect:
    """Return an effect on the broker with the client's ids; `Forward` if the frame is unchanged."""
    match effect:
        case Replace(data):
            plain = _plain(session, data)
            return Forward() if plain == said else Replace(plain)
        case Inject(Direction.TO_BROKER, data):
            return Inject(Direction.TO_BROKER, _plain(session, data))
        case _:
            return effect


def _plain(session: PulsarSession, frame: bytes) -> bytes:
    command, body = _read(frame, _ASKED)
    plain = None if body is None else _asked(session).get(body.request_id)
    if plain is None:
        return frame
    body.request_id = plain
    return encode(command)


def _asked(session: PulsarSession) -> dict[int, int]:
    """Return the client's ids of all unanswered requests, by the session's own ids."""
    handles = session.incarnations.handles
    return {own: it.request_id for own, it in handles._awaited.items()} | (handles._orphans or {})


def _read(frame: bytes, kinds: frozenset[str]) -> tuple[BaseCommand, Any]:
    """Return the command of a frame, and its body if it is one of these kinds."""
    command = BaseCommand()
    try:
        command.ParseFromString(frame[8 : 8 + int.from_bytes(frame[4:8])])
    except DecodeError:
        return command, None
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(command.type)
    if field is None or field.name not in kinds or not command.HasField(field.name):  # type: ignore[arg-type]
        return command, None
    return command, getattr(command, field.name)
