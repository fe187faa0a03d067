"""Synthetic responses to requests that the gateway refuses as a whole.

A synthetic response has the form of the response that the client waits for, with the error code in
each of its error fields. If the request has items, such as topics to create, the response has the
error for each item.
"""

from __future__ import annotations

from typing import Any

from gateway.wire.contract import DROP, Direction, Drop, Effects, Inject
from gateway.wire.kafka.codec import AT_ONCE, decoded, encoded
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import Head, response
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.schema import Api, Field, of
from gateway.wire.slices import Slices

ERROR = "ErrorCode"

ERRORS = frozenset({ERROR, "PartitionErrorCode"})
"""The names of fields with the error of a topic, a partition or a whole response."""

Struct = dict[str, Any]


def refused(known: Api, head: Head, frame: bytes, error: ErrorCode) -> Slices[bytes]:
    """Return the frame of the response that refuses a whole request. For an unknown fetch session
    the response lists no topic. Raises `PeerError` if the request is truncated."""
    if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
        body: Struct = {ERROR: error}
    else:
        request = yield from decoded(known.request, head.version, frame[head.body :])
        body = yield from _struct(known.response.fields, request, head.version, error)
    data = yield from encoded(known.response, head.version, body)
    return response(known, head.version, head.correlation, data)


def responded(in_flight: InFlight, data: bytes) -> Effects:
    """Return the effects that drop a request and send a synthetic response, in the order of
    responses."""
    at_once = in_flight.respond(data)
    return (Drop(), Inject(Direction.TO_CLIENT, at_once)) if at_once else DROP


def _struct(
    fields: tuple[Field, ...], request: Struct, version: int, error: ErrorCode
) -> Slices[Struct]:
    """Return a struct of the response, with the error, and with the values that the request has
    under the same names."""
    values: Struct = {}
    for field in of(fields, version):
        if field.name in ERRORS:
            values[field.name] = error
        elif field.kind == "[]{}":
            if field.tagged > version and _has_error(field, version):
                items = _requested(field, request)
                values[field.name] = yield from _elements(field, items, version, error)
            elif isinstance(listed := request.get(field.name), list):  # what the error is about
                values[field.name] = yield from _elements(field, listed, version, error)
        elif field.name in request and not field.kind.startswith("[]") and field.kind != "{}":
            values[field.name] = request[field.name]
    return values


def _elements(
    field: Field, items: list[Any], version: int, error: ErrorCode
) -> Slices[list[Struct]]:
    elements: list[Struct] = []
    for number, item in enumerate(items, 1):
        elements.append((yield from _element(field, item, version, error)))
        if number % AT_ONCE == 0:
            yield
    return elements


def _element(field: Field, item: Any, version: int, error: ErrorCode) -> Slices[Struct]:
    """Return the refusal of one item of the request, which is a struct or a name alone."""
    if isinstance(item, dict):
        values = yield from _struct(field.fields, item, version, error)
        if not values.keys() & item.keys():
            values |= _renamed(field, item, version)
        return values
    kind = "int32" if isinstance(item, int) else "string"
    names = [member.name for member in of(field.fields, version) if member.kind == kind]
    return (yield from _struct(field.fields, {names[0]: item} if names else {}, version, error))


def _requested(field: Field, request: Struct) -> list[Any]:
    """Return the items of the request's list with this name, or else of all its lists."""
    lists = {name: value for name, value in request.items() if isinstance(value, list)}
    if field.name in lists:
        return lists[field.name]
    return [item for value in lists.values() for item in value]


def _renamed(field: Field, item: Struct, version: int) -> Struct:
    """Return the name of an item, where the response has another name for the field."""
    names = [
        member.name
        for member in of(field.fields, version)
        if member.kind == "string" and member.nullable > version
    ]
    texts = [value for value in item.values() if isinstance(value, str)]
    return {names[0]: texts[0]} if names and texts else {}


def _has_error(field: Field, version: int) -> bool:
    return any(
        member.name in ERRORS or _has_error(member, version) for member in of(field.fields, version)
    )
