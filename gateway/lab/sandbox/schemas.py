"""Schemas of topics: kept, numbered, and compared by equality alone.

A real broker also checks whether versions are compatible. The sandbox requires the same type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.lab.sandbox.answers import ErrorReply
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import Schema, ServerError

if TYPE_CHECKING:
    from gateway.lab.sandbox.names import FullTopicName

MOST_VERSIONS = 100
"""Per topic."""

MOST_BYTES = 16 * 1024 * 1024
"""All schemas together; a usual one has some hundred bytes."""

_UNTYPED = frozenset({Schema.Type.Value("None"), Schema.AutoConsume})
"""Types of clients that accept any schema."""

_VERSION_BYTES = 8


class Version(NamedTuple):
    """One version of a topic's schema. `number`: the version's number as eight bytes, as brokers
    write it."""

    number: bytes
    schema: Schema


class Schemas:
    """The schemas of all topics. The partitions of a topic share the topic's schemas."""

    def __init__(self) -> None:
        self._versions: dict[FullTopicName, list[Schema]] = {}
        self._bytes = 0

    def get(self, topic: FullTopicName, number: bytes = b"") -> Version | None:
        """Return the version of a topic's schema that has this number, by default the last version;
        None if there is no such version."""
        versions = self._versions.get(topic.base, [])
        index = int.from_bytes(number, "big") if number else len(versions) - 1
        return _version(versions, index) if 0 <= index < len(versions) else None

    def get_or_create(self, topic: FullTopicName, schema: Schema) -> Version | ErrorReply:
        """Return the version that a topic's schema has; a new schema gets a new version. Return the
        error to send if the schema is refused."""
        versions = self._versions.get(topic.base, [])
        for index, known in enumerate(versions):
            if known.type == schema.type and known.schema_data == schema.schema_data:
                return _version(versions, index)
        refusal = self._refusal(versions, schema)
        if refusal is not None:
            return refusal
        self._bytes += schema.ByteSize()
        versions = self._versions.setdefault(topic.base, versions)
        versions.append(schema)
        return _version(versions, len(versions) - 1)

    def _refusal(self, versions: list[Schema], schema: Schema) -> ErrorReply | None:
        if versions and versions[-1].type != schema.type:
            was, wanted = (Schema.Type.Name(version.type) for version in (versions[-1], schema))
            text = f"incompatible schema: the topic has {was}, not {wanted}"
            return ErrorReply(ServerError.IncompatibleSchema, text)
        if len(versions) >= MOST_VERSIONS or self._bytes + schema.ByteSize() > MOST_BYTES:
            return ErrorReply(ServerError.NotAllowedError, "the sandbox keeps no more schemas")
        return None


def is_typed(schema: Schema) -> bool:
    """Return whether a schema has a type. Only such a schema is stored."""
    return schema.type not in _UNTYPED


def _version(versions: list[Schema], index: int) -> Version:
    return Version(index.to_bytes(_VERSION_BYTES, "big"), versions[index])
