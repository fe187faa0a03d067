"""Handlers of the commands of producers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.errors import PeerError
from gateway.lab.sandbox import answers
from gateway.lab.sandbox.answers import ErrorReply
from gateway.lab.sandbox.consumer import Producer
from gateway.lab.sandbox.lookups import register_schema
from gateway.lab.sandbox.names import LONGEST
from gateway.lab.sandbox.record import read_record
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ProducerAccessMode, ServerError
from gateway.wire.pulsar.commands import text
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.sandbox.session import BrokerSession, Handler
    from gateway.lab.sandbox.topic import Topic
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
        CommandCloseProducer,
        CommandProducer,
        CommandSend,
    )

NO_SEQUENCE = -1
"""No last sequence id is known: the sandbox does not deduplicate."""


def open_producer(session: BrokerSession, request: CommandProducer, _: bytes) -> None:
    topic = session.served(request.topic, request.request_id)
    if topic is None:
        return
    version = _schema_version(session, topic, request)
    if isinstance(version, ErrorReply):
        session.send(answers.error(request.request_id, version))
        return
    name = text(request.producer_name)
    is_user_named = bool(name) and request.user_provided_producer_name
    name = name or session.cluster.producer_name()
    producer = Producer(session, request.producer_id, name, request.epoch, is_user_named)
    session.drop_producer(producer.id)
    if not topic.add_producer(producer):
        reason = f"a producer named {producer.name} is already connected"
        session.refuse(request.request_id, ServerError.ProducerBusy, reason)
        return
    session.producers[producer.id] = producer, topic
    session.closed.discard(producer.id)
    session.send(
        answers.frame(
            Kind.PRODUCER_SUCCESS,
            request_id=request.request_id,
            producer_name=producer.name,
            last_sequence_id=NO_SEQUENCE,
            schema_version=version,
            producer_ready=True,
        )
    )


def _schema_version(
    session: BrokerSession, topic: Topic, request: CommandProducer
) -> bytes | ErrorReply:
    if request.producer_access_mode != ProducerAccessMode.Shared or request.txn_enabled:
        reason = "the sandbox has neither exclusive producers nor transactions"
        return ErrorReply(ServerError.NotAllowedError, reason)
    if len(request.producer_name) > LONGEST:
        return ErrorReply(ServerError.NotAllowedError, f"a name has at most {LONGEST} characters")
    return register_schema(session, topic.name, request)


def send(session: BrokerSession, command: CommandSend, content: bytes) -> None:
    opened = session.producers.get(command.producer_id)
    if opened is None:
        if command.producer_id in session.closed:
            return
        raise PeerError(f"SEND of producer {command.producer_id}, which is not open")
    record = read_record(content)
    if record is None:
        session.send(
            answers.frame(
                Kind.SEND_ERROR,
                producer_id=command.producer_id,
                sequence_id=command.sequence_id,
                error=ServerError.ChecksumError,
                message="the checksum does not match the content",
            )
        )
        return
    position = session.cluster.publish(opened[1], record)
    session.send(
        answers.send_receipt(
            command.producer_id, command.sequence_id, command.highest_sequence_id, position
        )
    )


def close_producer(session: BrokerSession, request: CommandCloseProducer, _: bytes) -> None:
    session.drop_producer(request.producer_id)
    session.send(answers.success(request.request_id))


HANDLERS: Mapping[int, Handler] = {
    Kind.PRODUCER: open_producer,
    Kind.SEND: send,
    Kind.CLOSE_PRODUCER: close_producer,
}
