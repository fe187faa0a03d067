"""What consumers and readers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.sandbox import answers
from gateway.sandbox.answers import Refusal
from gateway.sandbox.consumer import Consumer
from gateway.sandbox.lookups import declared_schema
from gateway.sandbox.names import LONGEST, parse
from gateway.sandbox.session import Seat
from gateway.sandbox.topic import close_consumers
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    CommandAck,
    CommandSubscribe,
    KeySharedMode,
    ServerError,
)
from gateway.wire.pulsar.commands import text
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.sandbox.session import Handler, Session
    from gateway.sandbox.topic import Topic
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
        CommandCloseConsumer,
        CommandFlow,
        CommandGetLastMessageId,
        CommandRedeliverUnacknowledgedMessages,
        CommandSeek,
        CommandUnsubscribe,
        MessageIdData,
    )

MOST_ACK_WORDS = 1024
"""Of 64 bits, a bit for each message of a batch: a real batch has 1000 messages."""

_SECOND = 1000
"""Milliseconds."""


# -- coming and going ----------------------------------------------------------------------------


def subscribe(session: Session, asked: CommandSubscribe, _: bytes) -> None:
    refusal = _refusal(session, asked)
    if refusal is not None:
        session.send(answers.error(asked.request_id, refusal))
        return
    topic = session.served(asked.topic, asked.request_id)
    if topic is None:
        return
    session.drop_consumer(asked.consumer_id)
    seat = _seat(session, topic, asked)
    if isinstance(seat, Refusal):
        session.send(answers.error(asked.request_id, seat))
        return
    session.consumers[asked.consumer_id] = seat
    # In this order: a client is told who is active when it knows that it is subscribed.
    session.send(answers.success(asked.request_id))
    seat.subscription.attach(seat.consumer, asked.subType)


def _refusal(session: Session, asked: CommandSubscribe) -> Refusal | None:
    if max(len(asked.subscription), len(asked.consumer_name)) > LONGEST or not asked.subscription:
        said = f"the name of a subscription has 1 to {LONGEST} characters"
        return Refusal(ServerError.NotAllowedError, said)
    # `read_compacted` is well: nothing is ever compacted, so all of it is read.
    if asked.keySharedMeta.keySharedMode == KeySharedMode.STICKY:
        said = "the sandbox has no sticky hash ranges"
        return Refusal(ServerError.NotAllowedError, said)
    name = parse(text(asked.topic))
    if name is not None and not (asked.force_topic_creation or session.cluster.has(name)):
        return Refusal(ServerError.TopicNotFound, f"there is no topic {name}")
    return None


def _seat(session: Session, topic: Topic, asked: CommandSubscribe) -> Seat | Refusal:
    version = declared_schema(session, topic.name, asked)
    if isinstance(version, Refusal):
        return version
    name = text(asked.subscription)
    start = _start(session, topic, asked)
    subscription = topic.subscribe(name, start, durable=asked.durable)
    if subscription is None:
        return Refusal(ServerError.NotAllowedError, "the topic has too many subscriptions")
    why = subscription.refusal(asked.subType)
    if why is not None:
        return Refusal(ServerError.ConsumerBusy, why)
    epoch = asked.consumer_epoch if asked.HasField("consumer_epoch") else None
    consumer = Consumer(
        session, asked.consumer_id, text(asked.consumer_name), asked.priority_level, epoch
    )
    return Seat(consumer, topic, name, subscription)


def _start(session: Session, topic: Topic, asked: CommandSubscribe) -> int:
    """Where a new subscription begins."""
    if asked.start_message_rollback_duration_sec:
        since = session.now - asked.start_message_rollback_duration_sec
        return topic.log.since(int(since * _SECOND))
    if asked.HasField("start_message_id") and not asked.durable:
        # With that entry, not behind it: clients leave out what they do not want of it.
        return topic.log.offset(answers.position(asked.start_message_id))
    earliest = asked.initialPosition == CommandSubscribe.Earliest
    return topic.log.first if earliest else topic.log.end


def close_consumer(session: Session, asked: CommandCloseConsumer, _: bytes) -> None:
    session.drop_consumer(asked.consumer_id)
    session.send(answers.success(asked.request_id))


def unsubscribe(session: Session, asked: CommandUnsubscribe, _: bytes) -> None:
    seat = _seated(session, asked)
    if seat is None:
        return
    if len(seat.subscription.consumers) > 1 and not asked.force:
        said = "the subscription has other consumers"
        session.refuse(asked.request_id, ServerError.MetadataError, said)
        return
    session.drop_consumer(asked.consumer_id)
    close_consumers(seat.subscription)
    seat.topic.subscriptions.pop(seat.name, None)
    session.send(answers.success(asked.request_id))


# -- messages ------------------------------------------------------------------------------------


def flow(session: Session, command: CommandFlow, _: bytes) -> None:
    seat = session.consumers.get(command.consumer_id)
    if seat is not None:
        seat.consumer.allow(command.messagePermits)
        seat.subscription.dispatch()


def acknowledge(session: Session, command: CommandAck, _: bytes) -> None:
    seat = session.consumers.get(command.consumer_id)
    fields: dict[str, object] = {}
    if command.txnid_least_bits or command.txnid_most_bits:
        fields["error"] = ServerError.NotAllowedError
        fields["message"] = "the sandbox has no transactions"
    elif seat is not None:
        for id in command.message_id:
            _acknowledge(seat, id, cumulative=command.ack_type == CommandAck.Cumulative)
    if command.HasField("request_id"):
        fields |= {"consumer_id": command.consumer_id, "request_id": command.request_id}
        session.send(answers.frame(Kind.ACK_RESPONSE, **fields))


def _acknowledge(seat: Seat, id: MessageIdData, *, cumulative: bool) -> None:
    """What is not there (any more) is none of ours."""
    offset = seat.topic.log.find(answers.position(id))
    if offset is None or len(id.ack_set) > MOST_ACK_WORDS:
        return
    left = answers.bits(id.ack_set) if id.ack_set else None
    if cumulative:
        seat.subscription.acknowledge_to(offset, left)
    else:
        seat.subscription.acknowledge(offset, left)


def redeliver(session: Session, command: CommandRedeliverUnacknowledgedMessages, _: bytes) -> None:
    seat = session.consumers.get(command.consumer_id)
    if seat is None:
        return
    if command.HasField("consumer_epoch"):
        seat.consumer.epoch = command.consumer_epoch
    positions = map(answers.position, command.message_ids)
    found = (seat.topic.log.find(position) for position in positions)
    offsets = [offset for offset in found if offset is not None]
    if offsets or not command.message_ids:
        seat.subscription.redeliver(seat.consumer, offsets)


# -- places --------------------------------------------------------------------------------------


def seek(session: Session, asked: CommandSeek, _: bytes) -> None:
    """All consumers of the subscription are closed, and come again."""
    seat = _seated(session, asked)
    if seat is None:
        return
    log = seat.topic.log
    if asked.HasField("message_publish_time"):
        offset = log.since(asked.message_publish_time)
    else:
        offset = log.offset(answers.position(asked.message_id))
    close_consumers(seat.subscription)
    seat.subscription.reset(offset)
    session.send(answers.success(asked.request_id))


def last_message_id(session: Session, asked: CommandGetLastMessageId, _: bytes) -> None:
    seat = _seated(session, asked)
    if seat is None:
        return
    log, mark = seat.topic.log, seat.subscription.cursor.mark
    last: dict[str, int] = dict(answers.position_fields(log.position(log.end - 1)))
    last["partition"] = seat.topic.partition
    if len(log) and log[log.end - 1].batched:
        last["batch_index"] = log[log.end - 1].messages - 1
    session.send(
        answers.frame(
            Kind.GET_LAST_MESSAGE_ID_RESPONSE,
            request_id=asked.request_id,
            last_message_id=last,
            consumer_mark_delete_position=answers.position_fields(log.position(mark - 1)),
        )
    )


def _seated(
    session: Session, asked: CommandSeek | CommandUnsubscribe | CommandGetLastMessageId
) -> Seat | None:
    """The consumer that a request is about; None where there is none, which was answered."""
    seat = session.consumers.get(asked.consumer_id)
    if seat is None:
        session.refuse(asked.request_id, ServerError.ConsumerNotFound, "no such consumer")
    return seat


HANDLERS: Mapping[int, Handler] = {
    Kind.SUBSCRIBE: subscribe,
    Kind.CLOSE_CONSUMER: close_consumer,
    Kind.UNSUBSCRIBE: unsubscribe,
    Kind.FLOW: flow,
    Kind.ACK: acknowledge,
    Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES: redeliver,
    Kind.SEEK: seek,
    Kind.GET_LAST_MESSAGE_ID: last_message_id,
}
