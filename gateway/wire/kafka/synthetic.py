"""Answers of the gateway's own to requests that it refuses as a whole.

Each has the form of the response that the client waits for, with the error wherever it has one.
What a client asked for one by one, such as topics to create, is refused one by one.
"""

from __future__ import annotations

from typing import Any

from gateway.wire.kafka.codec import decode, encode
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import Head, response
from gateway.wire.kafka.schema import Api, Field, of

ERROR = "ErrorCode"

Struct = dict[str, Any]


def refused(known: Api, head: Head, frame: bytes, error: ErrorCode) -> bytes:
    """Return the response that refuses a request. Raises `PeerError` if the request is torn."""
    asked = decode(known.request, head.version, frame[head.body :])
    fields = list(known.response.of(head.version))
    body = _struct(tuple(fields), asked, head.version, error)
    return response(
        known, head.version, head.correlation, encode(known.response, head.version, body)
    )


def no_session(known: Api, head: Head) -> bytes:
    """Return the response to a request of Fetch whose session the broker would not know: the error
    is that of the whole, and no topic has one."""
    body = {ERROR: ErrorCode.FETCH_SESSION_ID_NOT_FOUND}
    return response(
        known, head.version, head.correlation, encode(known.response, head.version, body)
    )


def _struct(fields: tuple[Field, ...], asked: Struct, version: int, error: ErrorCode) -> Struct:
    """Return a struct with the error, and with what it has in common with what was asked."""
    found: Struct = {}
    for it in of(fields, version):
        if it.name == ERROR:
            found[ERROR] = error
        elif it.kind == "[]{}":
            if it.tagged > version and _has_error(it, version):
                elements = _asked_for(it, asked)
                found[it.name] = [_element(it, one, version, error) for one in elements]
            elif isinstance(told := asked.get(it.name), list):  # what the error is about
                found[it.name] = [_struct(it.fields, one, version, error) for one in told]
        elif it.name in asked and not it.kind.startswith("[]") and it.kind != "{}":
            found[it.name] = asked[it.name]
    return found


def _element(it: Field, one: Any, version: int, error: ErrorCode) -> Struct:
    """Return the refusal of one thing that was asked for, by its struct or its name alone."""
    if isinstance(one, dict):
        found = _struct(it.fields, one, version, error)
        if not found.keys() & one.keys():
            found |= _renamed(it, one, version)
        return found
    kind = "int32" if isinstance(one, int) else "string"
    names = [field.name for field in of(it.fields, version) if field.kind == kind]
    return _struct(it.fields, {names[0]: one} if names else {}, version, error)


def _asked_for(it: Field, asked: Struct) -> list[Any]:
    """Return what was asked for in a list of this name, or else in all lists."""
    lists = {name: value for name, value in asked.items() if isinstance(value, list)}
    if it.name in lists:
        return lists[it.name]
    return [one for value in lists.values() for one in value]


def _renamed(it: Field, one: Struct, version: int) -> Struct:
    """Return the name of one thing, where a response calls the field in another way."""
    names = [
        field.name
        for field in of(it.fields, version)
        if field.kind == "string" and field.nullable > version
    ]
    told = [value for value in one.values() if isinstance(value, str)]
    return {names[0]: told[0]} if names and told else {}


def _has_error(it: Field, version: int) -> bool:
    return any(
        field.name == ERROR or _has_error(field, version) for field in of(it.fields, version)
    )
