"""The schemas of Kafka's messages, by API key and version.

Source: the message definitions of Apache Kafka, from which proto/kafka.py makes `_messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gateway.wire.kafka._messages import APIS

BROKER = "broker"
"""The listener on which brokers serve clients. APIs that are offered on other listeners alone are
for brokers and controllers among themselves."""


REQUEST_STEPS = 20_000
"""The most steps of a walk over a request; 20,000 take up to 30 ms (AMD EPYC). Real requests have
some hundreds; the largest name thousands of partitions."""

ANSWER_STEPS = 400_000
"""The most steps of a walk over a response. Brokers are trusted, and describe all partitions of a
cluster at once, of which large clusters have 200,000. The bound on stop frames bounds a walk too.
"""


class Field(NamedTuple):
    """One field of a struct.

    `kind`: the field's type; `[]` before a type means an array of it, and `{}` is a struct of
    `fields`. `first`, `last`: the first and the last version that has the field. `nullable`: the
    first version in which the field may be null. `tagged`: the first version in which it is a
    tagged field, with the number `tag`. `entity`: what the value names, such as `topicName`; empty
    if it names nothing.
    """

    name: str
    kind: str
    first: int
    last: int
    nullable: int
    tagged: int
    tag: int
    entity: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The fields of a request or a response, in all its versions. `flexible`: the first version
    with tagged fields and compact lengths (KIP-482). `steps`: the most elements and tagged fields
    that a body may have. There is one object for each schema, so caches use the object's identity
    as a key."""

    first: int
    last: int
    flexible: int
    fields: tuple[Field, ...]
    steps: int

    def of(self, version: int) -> Iterator[Field]:
        """Yield the fields that a version has."""
        return of(self.fields, version)


class Api(NamedTuple):
    """One API: its key, its name, and the schemas of its requests and responses. `offered`: which
    servers serve it, `broker`, `controller`, or both."""

    key: int
    name: str
    offered: frozenset[str]
    request: Schema
    response: Schema

    @property
    def is_for_clients(self) -> bool:
        """Return whether brokers serve this API to clients."""
        return BROKER in self.offered


def of(fields: tuple[Field, ...], version: int) -> Iterator[Field]:
    """Yield those of a struct's fields that the given version has."""
    return (field for field in fields if field.first <= version <= field.last)


@cache
def api(key: int) -> Api | None:
    """Return the API with this key; None if the gateway does not know it."""
    if key not in APIS:
        return None
    name, offered, request, response = APIS[key]
    sides = _schema(request, REQUEST_STEPS), _schema(response, ANSWER_STEPS)
    return Api(key, name, frozenset(offered), *sides)


def apis() -> Iterator[Api]:
    """Yield all APIs, in the order of their keys."""
    return (known for key in APIS if (known := api(key)))


def _schema(definition: tuple[Any, ...], steps: int) -> Schema:
    first, last, flexible, fields = definition
    return Schema(first, last, flexible, _fields(fields), steps)


def _fields(definitions: tuple[Any, ...]) -> tuple[Field, ...]:
    return tuple(Field._make((*rest, _fields(inner))) for *rest, inner in definitions)
