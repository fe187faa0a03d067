"""What producers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.errors import PeerError
from gateway.sandbox import answers
from gateway.sandbox.answers import Refusal
from gateway.sandbox.consumer import Producer
from gateway.sandbox.lookups import declared_schema
from gateway.sandbox.names import LONGEST
from gateway.sandbox.record import read_record
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ProducerAccessMode, ServerError
from gateway.wire.pulsar.commands import text
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.sandbox.session import Handler, Session
    from gateway.sandbox.topic import Topic
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
        CommandCloseProducer,
        CommandProducer,
        CommandSend,
    )

NO_SEQUENCE = -1
"""Nothing is known of what a producer sent before: the sandbox does not deduplicate."""


def open_producer(session: Session, asked: CommandProducer, _: bytes) -> None:
    topic = session.served(asked.topic, asked.request_id)
    if topic is None:
        return
    version = _schema_version(session, topic, asked)
    if isinstance(version, Refusal):
        session.send(answers.error(asked.request_id, version))
        return
    producer = _producer(session, asked)
    session.drop_producer(producer.id)
    if not topic.add_producer(producer):
        said = f"a producer of the name {producer.name} is already connected"
        session.refuse(asked.request_id, ServerError.ProducerBusy, said)
        return
    session.producers[producer.id] = producer, topic
    session.closed.discard(producer.id)
    session.send(
        answers.frame(
            Kind.PRODUCER_SUCCESS,
            request_id=asked.request_id,
            producer_name=producer.name,
            last_sequence_id=NO_SEQUENCE,
            schema_version=version,
            producer_ready=True,
        )
    )


def _schema_version(session: Session, topic: Topic, asked: CommandProducer) -> bytes | Refusal:
    if asked.producer_access_mode != ProducerAccessMode.Shared or asked.txn_enabled:
        said = "the sandbox has neither exclusive producers nor transactions"
        return Refusal(ServerError.NotAllowedError, said)
    if len(asked.producer_name) > LONGEST:
        return Refusal(ServerError.NotAllowedError, f"a name has at most {LONGEST} characters")
    return declared_schema(session, topic.name, asked)


def _producer(session: Session, asked: CommandProducer) -> Producer:
    name = text(asked.producer_name)
    named = bool(name) and asked.user_provided_producer_name
    name = name or session.cluster.producer_name()
    return Producer(session, asked.producer_id, name, asked.epoch, named)


def send(session: Session, command: CommandSend, content: bytes) -> None:
    found = session.producers.get(command.producer_id)
    if found is None:
        if command.producer_id in session.closed:
            return
        raise PeerError(f"a SEND of producer {command.producer_id}, which is not open")
    record = read_record(content)
    if record is None:
        session.send(_checksum_error(command))
        return
    position = session.cluster.publish(found[1], record)
    session.send(
        answers.receipt(
            command.producer_id, command.sequence_id, command.highest_sequence_id, position
        )
    )


def _checksum_error(command: CommandSend) -> bytes:
    return answers.frame(
        Kind.SEND_ERROR,
        producer_id=command.producer_id,
        sequence_id=command.sequence_id,
        error=ServerError.ChecksumError,
        message="the checksum is not that of the content",
    )


def close_producer(session: Session, asked: CommandCloseProducer, _: bytes) -> None:
    session.drop_producer(asked.producer_id)
    session.send(answers.success(asked.request_id))


HANDLERS: Mapping[int, Handler] = {
    Kind.PRODUCER: open_producer,
    Kind.SEND: send,
    Kind.CLOSE_PRODUCER: close_producer,
}
