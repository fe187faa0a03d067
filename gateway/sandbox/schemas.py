"""Schemas of topics: kept, numbered, and told apart by equality alone.

A real broker also judges whether a new version is compatible with those before. Here only its type
must be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.sandbox.answers import Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import Schema, ServerError

if TYPE_CHECKING:
    from gateway.sandbox.names import TopicName

MOST_VERSIONS = 100
"""Of one topic."""

MOST_BYTES = 16 * 1024 * 1024
"""Of all schemas together; a usual one has some hundred."""

_UNTYPED = frozenset({Schema.Type.Value("None"), Schema.AutoConsume})
"""What clients send that takes whatever there is."""

_VERSION_BYTES = 8


class Version(NamedTuple):
    """`number`: as brokers write it, eight bytes."""

    number: bytes
    schema: Schema


class Schemas:
    """By topic; the partitions of one share theirs."""

    def __init__(self) -> None:
        self._versions: dict[TopicName, list[Schema]] = {}
        self._bytes = 0

    def get(self, topic: TopicName, number: bytes = b"") -> Version | None:
        """A version, or the last one."""
        versions = self._versions.get(topic.base, [])
        index = int.from_bytes(number, "big") if number else len(versions) - 1
        return _version(versions, index) if 0 <= index < len(versions) else None

    def get_or_create(self, topic: TopicName, schema: Schema) -> Version | Refusal:
        """The version that this schema is, or becomes."""
        versions = self._versions.get(topic.base, [])
        for index, known in enumerate(versions):
            if _same(known, schema):
                return _version(versions, index)
        refusal = self._refusal(versions, schema)
        if refusal is not None:
            return refusal
        self._bytes += schema.ByteSize()
        versions = self._versions.setdefault(topic.base, versions)
        versions.append(schema)
        return _version(versions, len(versions) - 1)

    def _refusal(self, versions: list[Schema], schema: Schema) -> Refusal | None:
        if versions and versions[-1].type != schema.type:
            was, wanted = (Schema.Type.Name(it.type) for it in (versions[-1], schema))
            text = f"incompatible schema: the topic has {was}, not {wanted}"
            return Refusal(ServerError.IncompatibleSchema, text)
        if len(versions) >= MOST_VERSIONS or self._bytes + schema.ByteSize() > MOST_BYTES:
            return Refusal(ServerError.NotAllowedError, "the sandbox keeps no more schemas")
        return None


def is_typed(schema: Schema) -> bool:
    """Whether there is anything to be kept."""
    return schema.type not in _UNTYPED


def _version(versions: list[Schema], index: int) -> Version:
    return Version(index.to_bytes(_VERSION_BYTES, "big"), versions[index])


def _same(one: Schema, other: Schema) -> bool:
    return one.type == other.type and one.schema_data == other.schema_data
