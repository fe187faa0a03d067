"""Handlers of lookups: owners and partitions of topics, topics of namespaces, schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.sandbox import answers
from gateway.sandbox.answers import INVALID_NAME, ErrorReply
from gateway.sandbox.names import parse_topic
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

    from gateway.sandbox.names import FullTopicName
    from gateway.sandbox.session import BrokerSession, Handler
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

REFUSED_ON_REQUEST = ErrorReply(ServerError.ServiceNotReady, "the sandbox was asked to refuse")


def partitions(session: BrokerSession, request: CommandPartitionedTopicMetadata, _: bytes) -> None:
    """Answer 0 for a topic without partitions, and for a topic that does not exist."""
    cluster = session.cluster
    name = parse_topic(text(request.topic))
    refusal = _refusal(session, name)
    if not (refusal or request.metadata_auto_creation_enabled or (name and cluster.has(name))):
        refusal = ErrorReply(ServerError.TopicNotFound, f"there is no topic {name}")
    if refusal or name is None:
        why = refusal or INVALID_NAME
        fields = {"response": Partitions.Failed, "error": why.error, "message": why.text}
    else:
        fields = {"response": Partitions.Success, "partitions": cluster.partitions.get(name, 0)}
    kind = Kind.PARTITIONED_METADATA_RESPONSE
    session.send(answers.frame(kind, request_id=request.request_id, **fields))


def lookup(session: BrokerSession, request: CommandLookupTopic, _: bytes) -> None:
    """Answer *connect* as the owner, and a redirect to the owner otherwise."""
    name = parse_topic(text(request.topic))
    refusal = _refusal(session, name)
    if refusal or name is None:
        why = refusal or INVALID_NAME
        fields = {"response": Lookup.Failed, "error": why.error, "message": why.text}
    else:
        owner = session.cluster.owner(name)
        here = owner == session.context.broker
        fields = {
            "response": Lookup.Connect if here else Lookup.Redirect,
            "brokerServiceUrl": session.cluster.urls[owner],
            "authoritative": True,
        }
    session.send(answers.frame(Kind.LOOKUP_RESPONSE, request_id=request.request_id, **fields))


def _refusal(session: BrokerSession, name: FullTopicName | None) -> ErrorReply | None:
    if session.context.faults.is_refusing(session.now):
        return REFUSED_ON_REQUEST
    return INVALID_NAME if name is None else None


def topics(session: BrokerSession, request: CommandGetTopicsOfNamespace, _: bytes) -> None:
    """Answer all topics of a namespace; clients apply their pattern themselves."""
    domains = {
        CommandGetTopicsOfNamespace.PERSISTENT: {"persistent"},
        CommandGetTopicsOfNamespace.NON_PERSISTENT: {"non-persistent"},
    }.get(request.mode, {"persistent", "non-persistent"})
    found = session.cluster.names_in(text(request.namespace))
    names = [str(name) for name in found if name.domain in domains]
    kind = Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE
    session.send(answers.frame(kind, request_id=request.request_id, topics=names))


def schema(session: BrokerSession, request: CommandGetSchema, _: bytes) -> None:
    name = parse_topic(text(request.topic))
    found = name and session.cluster.schemas.get(name, request.schema_version)
    answer = Kind.GET_SCHEMA_RESPONSE
    if not found:
        why = ServerError.TopicNotFound
        failed = {"error_code": why, "error_message": "the topic has no such schema"}
        session.send(answers.frame(answer, request_id=request.request_id, **failed))
        return
    fields = {"schema": found.schema, "schema_version": found.number}
    session.send(answers.frame(answer, request_id=request.request_id, **fields))


def get_or_create_schema(
    session: BrokerSession, request: CommandGetOrCreateSchema, _: bytes
) -> None:
    name = parse_topic(text(request.topic))
    found = session.cluster.schemas.get_or_create(name, request.schema) if name else INVALID_NAME
    answer = Kind.GET_OR_CREATE_SCHEMA_RESPONSE
    if isinstance(found, ErrorReply):
        failed = {"error_code": found.error, "error_message": found.text}
        session.send(answers.frame(answer, request_id=request.request_id, **failed))
        return
    session.send(answers.frame(answer, request_id=request.request_id, schema_version=found.number))


def register_schema(
    session: BrokerSession, name: FullTopicName, request: CommandProducer | CommandSubscribe
) -> bytes | ErrorReply:
    """Return the version of a producer's or consumer's schema; empty without a schema."""
    if not request.HasField("schema") or not is_typed(request.schema):
        return b""
    found = session.cluster.schemas.get_or_create(name, request.schema)
    return found if isinstance(found, ErrorReply) else found.number


HANDLERS: Mapping[int, Handler] = {
    Kind.PARTITIONED_METADATA: partitions,
    Kind.LOOKUP: lookup,
    Kind.GET_TOPICS_OF_NAMESPACE: topics,
    Kind.GET_SCHEMA: schema,
    Kind.GET_OR_CREATE_SCHEMA: get_or_create_schema,
}
