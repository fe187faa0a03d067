"""Handlers of lookups: owners and partitions of topics, topics of namespaces, schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.sandbox import answers
from gateway.lab.sandbox.answers import INVALID_NAME, ErrorReply
from gateway.lab.sandbox.names import parse_topic
from gateway.lab.sandbox.schemas import is_typed
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

    from gateway.lab.sandbox.names import FullTopicName
    from gateway.lab.sandbox.session import BrokerSession, Handler
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


def partitions(session: BrokerSession, request: CommandPartitionedTopicMetadata, _: bytes) -> None:
    """Send the number of a topic's partitions; 0 for a topic that is not partitioned. A topic that
    does not exist gets 0 too, or an error if the client forbids to create it."""
    cluster, name = session.cluster, _name_or_error(session, request.topic)
    is_known = isinstance(name, ErrorReply) or cluster.has(name)
    if not (is_known or request.metadata_auto_creation_enabled):
        name = ErrorReply(ServerError.TopicNotFound, f"there is no topic {name}")
    if isinstance(name, ErrorReply):
        fields = {"response": Partitions.Failed, "error": name.error, "message": name.text}
    else:
        fields = {"response": Partitions.Success, "partitions": cluster.partitions.get(name, 0)}
    kind = Kind.PARTITIONED_METADATA_RESPONSE
    session.send(answers.frame(kind, request_id=request.request_id, **fields))


def lookup(session: BrokerSession, request: CommandLookupTopic, _: bytes) -> None:
    """Send the response to a lookup: *connect* if this broker owns the topic, else a redirect to
    the owner."""
    name = _name_or_error(session, request.topic)
    if isinstance(name, ErrorReply):
        fields = {"response": Lookup.Failed, "error": name.error, "message": name.text}
    else:
        owner = session.cluster.owner(name)
        fields = {
            "response": Lookup.Connect if owner == session.context.broker else Lookup.Redirect,
            "brokerServiceUrl": session.cluster.urls[owner],
            "authoritative": True,
        }
    session.send(answers.frame(Kind.LOOKUP_RESPONSE, request_id=request.request_id, **fields))


def _name_or_error(session: BrokerSession, topic: str) -> FullTopicName | ErrorReply:
    if session.context.faults.is_refusing(session.now):
        return ErrorReply(ServerError.ServiceNotReady, "the sandbox was asked to refuse")
    return parse_topic(text(topic)) or INVALID_NAME


def topics(session: BrokerSession, request: CommandGetTopicsOfNamespace, _: bytes) -> None:
    """Send the names of a namespace's topics that fit the request's mode. Clients apply their
    pattern themselves."""
    domains = {
        CommandGetTopicsOfNamespace.PERSISTENT: {"persistent"},
        CommandGetTopicsOfNamespace.NON_PERSISTENT: {"non-persistent"},
    }.get(request.mode, {"persistent", "non-persistent"})
    candidates = session.cluster.names_in(text(request.namespace))
    names = [str(name) for name in candidates if name.domain in domains]
    kind = Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE
    session.send(answers.frame(kind, request_id=request.request_id, topics=names))


def schema(session: BrokerSession, request: CommandGetSchema, _: bytes) -> None:
    name = parse_topic(text(request.topic))
    version = name and session.cluster.schemas.get(name, request.schema_version)
    fields: dict[str, object]
    if version:
        fields = {"schema": version.schema, "schema_version": version.number}
    else:
        reason = "the topic has no such schema"
        fields = {"error_code": ServerError.TopicNotFound, "error_message": reason}
    session.send(answers.frame(Kind.GET_SCHEMA_RESPONSE, request_id=request.request_id, **fields))


def get_or_create_schema(
    session: BrokerSession, request: CommandGetOrCreateSchema, _: bytes
) -> None:
    name = parse_topic(text(request.topic))
    version = session.cluster.schemas.get_or_create(name, request.schema) if name else INVALID_NAME
    fields: dict[str, object]
    if isinstance(version, ErrorReply):
        fields = {"error_code": version.error, "error_message": version.text}
    else:
        fields = {"schema_version": version.number}
    kind = Kind.GET_OR_CREATE_SCHEMA_RESPONSE
    session.send(answers.frame(kind, request_id=request.request_id, **fields))


def register_schema(
    session: BrokerSession, name: FullTopicName, request: CommandProducer | CommandSubscribe
) -> bytes | ErrorReply:
    """Register the schema in a producer's or consumer's request. Return the schema's version, empty
    if there is no schema; return the error to send if the schema is refused."""
    if not request.HasField("schema") or not is_typed(request.schema):
        return b""
    version = session.cluster.schemas.get_or_create(name, request.schema)
    return version if isinstance(version, ErrorReply) else version.number


HANDLERS: Mapping[int, Handler] = {
    Kind.PARTITIONED_METADATA: partitions,
    Kind.LOOKUP: lookup,
    Kind.GET_TOPICS_OF_NAMESPACE: topics,
    Kind.GET_SCHEMA: schema,
    Kind.GET_OR_CREATE_SCHEMA: get_or_create_schema,
}
