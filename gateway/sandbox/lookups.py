"""What clients ask before they produce or consume: who has a topic, which topics and schemas there
are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.sandbox import answers
from gateway.sandbox.answers import NO_NAME, Refusal
from gateway.sandbox.names import parse
from gateway.sandbox.schemas import is_typed
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)
from gateway.wire.pulsar.commands import text
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.sandbox.names import TopicName
    from gateway.sandbox.session import Handler, Session
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
        CommandGetOrCreateSchema,
        CommandGetSchema,
        CommandLookupTopic,
        CommandPartitionedTopicMetadata,
        CommandProducer,
        CommandSubscribe,
    )

Partitions = CommandPartitionedTopicMetadataResponse
Lookup = CommandLookupTopicResponse

REFUSING = Refusal(ServerError.ServiceNotReady, "the sandbox was asked to refuse")


def partitions(session: Session, asked: CommandPartitionedTopicMetadata, _: bytes) -> None:
    """0 for a topic without partitions, and for one that nobody has made."""
    cluster = session.cluster
    name = parse(text(asked.topic))
    refusal = _refusal(session, name)
    if not (refusal or asked.metadata_auto_creation_enabled or (name and cluster.has(name))):
        refusal = Refusal(ServerError.TopicNotFound, f"there is no topic {name}")
    if refusal or name is None:
        why = refusal or NO_NAME
        fields = {"response": Partitions.Failed, "error": why.error, "message": why.text}
    else:
        fields = {"response": Partitions.Success, "partitions": cluster.partitions.get(name, 0)}
    kind = Kind.PARTITIONED_METADATA_RESPONSE
    session.send(answers.frame(kind, request_id=asked.request_id, **fields))


def lookup(session: Session, asked: CommandLookupTopic, _: bytes) -> None:
    """The owner says *connect*, everybody else redirects to it."""
    name = parse(text(asked.topic))
    refusal = _refusal(session, name)
    if refusal or name is None:
        why = refusal or NO_NAME
        fields = {"response": Lookup.Failed, "error": why.error, "message": why.text}
    else:
        owner = session.cluster.owner(name)
        here = owner == session.place.broker
        fields = {
            "response": Lookup.Connect if here else Lookup.Redirect,
            "brokerServiceUrl": session.cluster.urls[owner],
            "authoritative": True,
        }
    session.send(answers.frame(Kind.LOOKUP_RESPONSE, request_id=asked.request_id, **fields))


def _refusal(session: Session, name: TopicName | None) -> Refusal | None:
    if session.place.faults.is_refusing(session.now):
        return REFUSING
    return NO_NAME if name is None else None


def topics(session: Session, asked: CommandGetTopicsOfNamespace, _: bytes) -> None:
    """All topics of a namespace; clients apply their pattern themselves."""
    domains = {
        CommandGetTopicsOfNamespace.PERSISTENT: {"persistent"},
        CommandGetTopicsOfNamespace.NON_PERSISTENT: {"non-persistent"},
    }.get(asked.mode, {"persistent", "non-persistent"})
    found = session.cluster.names_in(text(asked.namespace))
    names = [str(name) for name in found if name.domain in domains]
    kind = Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE
    session.send(answers.frame(kind, request_id=asked.request_id, topics=names))


def schema(session: Session, asked: CommandGetSchema, _: bytes) -> None:
    name = parse(text(asked.topic))
    found = name and session.cluster.schemas.get(name, asked.schema_version)
    answer = Kind.GET_SCHEMA_RESPONSE
    if not found:
        why = ServerError.TopicNotFound
        failed = {"error_code": why, "error_message": "the topic has no such schema"}
        session.send(answers.frame(answer, request_id=asked.request_id, **failed))
        return
    fields = {"schema": found.schema, "schema_version": found.number}
    session.send(answers.frame(answer, request_id=asked.request_id, **fields))


def get_or_create_schema(session: Session, asked: CommandGetOrCreateSchema, _: bytes) -> None:
    name = parse(text(asked.topic))
    found = session.cluster.schemas.get_or_create(name, asked.schema) if name else NO_NAME
    answer = Kind.GET_OR_CREATE_SCHEMA_RESPONSE
    if isinstance(found, Refusal):
        failed = {"error_code": found.error, "error_message": found.text}
        session.send(answers.frame(answer, request_id=asked.request_id, **failed))
        return
    session.send(answers.frame(answer, request_id=asked.request_id, schema_version=found.number))


def declared_schema(
    session: Session, name: TopicName, asked: CommandProducer | CommandSubscribe
) -> bytes | Refusal:
    """The version of the schema that a producer or consumer comes with; empty: of none."""
    if not asked.HasField("schema") or not is_typed(asked.schema):
        return b""
    found = session.cluster.schemas.get_or_create(name, asked.schema)
    return found if isinstance(found, Refusal) else found.number


HANDLERS: Mapping[int, Handler] = {
    Kind.PARTITIONED_METADATA: partitions,
    Kind.LOOKUP: lookup,
    Kind.GET_TOPICS_OF_NAMESPACE: topics,
    Kind.GET_SCHEMA: schema,
    Kind.GET_OR_CREATE_SCHEMA: get_or_create_schema,
}
