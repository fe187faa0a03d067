"""The messages of Kafka's protocol, by API key and version.

Source: the message definitions of Apache Kafka, from which proto/kafka.py makes `_messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gateway.wire.kafka._messages import APIS

BROKER = "broker"
"""Where clients are served. What is offered elsewhere alone is for brokers and controllers among
themselves."""


REQUEST_STEPS = 20_000
"""A walk over so many takes up to 30 ms (AMD EPYC). Real requests have some hundreds; the largest
name thousands of partitions."""

ANSWER_STEPS = 400_000
"""Brokers are believed, and tell of all partitions of a cluster at once, of which large ones have
200,000. How much is walked is bounded by how large a frame may be that is held whole, too."""


class Field(NamedTuple):
    """One field of a struct.

    `kind`: a type, with `[]` before it for an array of such; `{}` is a struct of `fields`. `first`,
    `last`: the versions that have it. `nullable`, `tagged`: the first versions in which it may be
    null, and in which it is a tagged field, of number `tag`. `entity`: what it names, such as
    `topicName`; empty: nothing of interest.
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
    """A request or a response. `flexible`: the first version with tagged fields and compact
    lengths (KIP-482). `steps`: elements and tagged fields that a body may have. There is one object
    for each, which is found in caches by its identity."""

    first: int
    last: int
    flexible: int
    fields: tuple[Field, ...]
    steps: int

    def of(self, version: int) -> Iterator[Field]:
        """Yield the fields of one version."""
        return of(self.fields, version)


class Api(NamedTuple):
    """One API. `offered`: `broker`, `controller`, or both."""

    key: int
    name: str
    offered: frozenset[str]
    request: Schema
    response: Schema

    @property
    def is_for_clients(self) -> bool:
        """Return whether clients ask brokers for it."""
        return BROKER in self.offered


def of(fields: tuple[Field, ...], version: int) -> Iterator[Field]:
    """Yield those fields of a struct that a version has."""
    return (it for it in fields if it.first <= version <= it.last)


@cache
def api(key: int) -> Api | None:
    """Return the API of a key; None if the gateway does not know it."""
    if key not in APIS:
        return None
    name, offered, request, response = APIS[key]
    sides = _schema(request, REQUEST_STEPS), _schema(response, ANSWER_STEPS)
    return Api(key, name, frozenset(offered), *sides)


def apis() -> Iterator[Api]:
    """Yield all APIs, by key."""
    return (found for key in APIS if (found := api(key)))


def _schema(told: tuple[Any, ...], steps: int) -> Schema:
    first, last, flexible, fields = told
    return Schema(first, last, flexible, _fields(fields), steps)


def _fields(told: tuple[Any, ...]) -> tuple[Field, ...]:
    return tuple(Field._make((*rest, _fields(inner))) for *rest, inner in told)
