"""Handlers of the commands of consumers and readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.sandbox import answers
from gateway.lab.sandbox.answers import ErrorReply
from gateway.lab.sandbox.consumer import Consumer
from gateway.lab.sandbox.lookups import register_schema
from gateway.lab.sandbox.names import LONGEST, parse_topic
from gateway.lab.sandbox.session import OpenConsumer
from gateway.lab.sandbox.topic import close_consumers
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

    from gateway.lab.sandbox.session import BrokerSession, Handler
    from gateway.lab.sandbox.topic import Topic
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
"""Most words of 64 bits in an ack set, a bit per message; a real batch has 1000 messages."""

_MS = 1000


# -- coming and going ----------------------------------------------------------------------------


def subscribe(session: BrokerSession, request: CommandSubscribe, _: bytes) -> None:
    refusal = _refusal(session, request)
    if refusal is not None:
        session.send(answers.error(request.request_id, refusal))
        return
    topic = session.served(request.topic, request.request_id)
    if topic is None:
        return
    session.drop_consumer(request.consumer_id)
    opened = _open(session, topic, request)
    if isinstance(opened, ErrorReply):
        session.send(answers.error(request.request_id, opened))
        return
    session.consumers[request.consumer_id] = opened
    # A client must know that it is subscribed before it is told who is active.
    session.send(answers.success(request.request_id))
    opened.subscription.attach(opened.consumer, request.subType)


def _refusal(session: BrokerSession, request: CommandSubscribe) -> ErrorReply | None:
    if (
        max(len(request.subscription), len(request.consumer_name)) > LONGEST
        or not request.subscription
    ):
        reason = f"the name of a subscription has 1 to {LONGEST} characters"
        return ErrorReply(ServerError.NotAllowedError, reason)
    # `read_compacted` is accepted: nothing is ever compacted, so all entries are read.
    if request.keySharedMeta.keySharedMode == KeySharedMode.STICKY:
        reason = "the sandbox has no sticky hash ranges"
        return ErrorReply(ServerError.NotAllowedError, reason)
    name = parse_topic(text(request.topic))
    if name is not None and not (request.force_topic_creation or session.cluster.has(name)):
        return ErrorReply(ServerError.TopicNotFound, f"there is no topic {name}")
    return None


def _open(
    session: BrokerSession, topic: Topic, request: CommandSubscribe
) -> OpenConsumer | ErrorReply:
    version = register_schema(session, topic.name, request)
    if isinstance(version, ErrorReply):
        return version
    name = text(request.subscription)
    start = _start_offset(session, topic, request)
    subscription = topic.subscribe(name, start, durable=request.durable)
    if subscription is None:
        return ErrorReply(ServerError.NotAllowedError, "the topic has too many subscriptions")
    why = subscription.refusal(request.subType)
    if why is not None:
        return ErrorReply(ServerError.ConsumerBusy, why)
    epoch = request.consumer_epoch if request.HasField("consumer_epoch") else None
    consumer = Consumer(
        session, request.consumer_id, text(request.consumer_name), request.priority_level, epoch
    )
    return OpenConsumer(consumer, topic, name, subscription)


def _start_offset(session: BrokerSession, topic: Topic, request: CommandSubscribe) -> int:
    """Return the offset at which a new subscription begins."""
    if request.start_message_rollback_duration_sec:
        since = session.now - request.start_message_rollback_duration_sec
        return topic.log.since(int(since * _MS))
    if request.HasField("start_message_id") and not request.durable:
        # Begin with that entry, not behind it: clients drop the messages of it that they do not
        # want.
        return topic.log.offset(answers.position(request.start_message_id))
    earliest = request.initialPosition == CommandSubscribe.Earliest
    return topic.log.first if earliest else topic.log.end


def close_consumer(session: BrokerSession, request: CommandCloseConsumer, _: bytes) -> None:
    session.drop_consumer(request.consumer_id)
    session.send(answers.success(request.request_id))


def unsubscribe(session: BrokerSession, request: CommandUnsubscribe, _: bytes) -> None:
    opened = _open_consumer(session, request)
    if opened is None:
        return
    if len(opened.subscription.consumers) > 1 and not request.force:
        reason = "the subscription has other consumers"
        session.refuse(request.request_id, ServerError.MetadataError, reason)
        return
    session.drop_consumer(request.consumer_id)
    close_consumers(opened.subscription)
    opened.topic.subscriptions.pop(opened.name, None)
    session.send(answers.success(request.request_id))


# -- messages ------------------------------------------------------------------------------------


def flow(session: BrokerSession, command: CommandFlow, _: bytes) -> None:
    opened = session.consumers.get(command.consumer_id)
    if opened is not None:
        opened.consumer.allow(command.messagePermits)
        opened.subscription.dispatch()


def acknowledge(session: BrokerSession, command: CommandAck, _: bytes) -> None:
    opened = session.consumers.get(command.consumer_id)
    fields: dict[str, object] = {}
    if command.txnid_least_bits or command.txnid_most_bits:
        fields["error"] = ServerError.NotAllowedError
        fields["message"] = "the sandbox has no transactions"
    elif opened is not None:
        for id in command.message_id:
            _acknowledge(opened, id, cumulative=command.ack_type == CommandAck.Cumulative)
    if command.HasField("request_id"):
        fields |= {"consumer_id": command.consumer_id, "request_id": command.request_id}
        session.send(answers.frame(Kind.ACK_RESPONSE, **fields))


def _acknowledge(opened: OpenConsumer, id: MessageIdData, *, cumulative: bool) -> None:
    """Acknowledge an entry; ignore a position that does not exist (any more)."""
    offset = opened.topic.log.find(answers.position(id))
    if offset is None or len(id.ack_set) > MOST_ACK_WORDS:
        return
    ack_set = answers.bits(id.ack_set) if id.ack_set else None
    if cumulative:
        opened.subscription.acknowledge_to(offset, ack_set)
    else:
        opened.subscription.acknowledge(offset, ack_set)


def redeliver(
    session: BrokerSession, command: CommandRedeliverUnacknowledgedMessages, _: bytes
) -> None:
    opened = session.consumers.get(command.consumer_id)
    if opened is None:
        return
    if command.HasField("consumer_epoch"):
        opened.consumer.epoch = command.consumer_epoch
    positions = map(answers.position, command.message_ids)
    candidates = (opened.topic.log.find(position) for position in positions)
    offsets = [offset for offset in candidates if offset is not None]
    if offsets or not command.message_ids:
        opened.subscription.redeliver(opened.consumer, offsets)


# -- positions -----------------------------------------------------------------------------------


def seek(session: BrokerSession, request: CommandSeek, _: bytes) -> None:
    """Move a subscription to another position, and close its consumers; their clients then open
    them again (SEEK)."""
    opened = _open_consumer(session, request)
    if opened is None:
        return
    log = opened.topic.log
    if request.HasField("message_publish_time"):
        offset = log.since(request.message_publish_time)
    else:
        offset = log.offset(answers.position(request.message_id))
    close_consumers(opened.subscription)
    opened.subscription.reset(offset)
    session.send(answers.success(request.request_id))


def last_message_id(session: BrokerSession, request: CommandGetLastMessageId, _: bytes) -> None:
    opened = _open_consumer(session, request)
    if opened is None:
        return
    log, mark_delete = opened.topic.log, opened.subscription.cursor.mark_delete
    last: dict[str, int] = dict(answers.position_fields(log.position(log.end - 1)))
    last["partition"] = opened.topic.partition
    if len(log) and log[log.end - 1].batched:
        last["batch_index"] = log[log.end - 1].messages - 1
    session.send(
        answers.frame(
            Kind.GET_LAST_MESSAGE_ID_RESPONSE,
            request_id=request.request_id,
            last_message_id=last,
            consumer_mark_delete_position=answers.position_fields(log.position(mark_delete - 1)),
        )
    )


def _open_consumer(
    session: BrokerSession, request: CommandSeek | CommandUnsubscribe | CommandGetLastMessageId
) -> OpenConsumer | None:
    """Return the consumer of a request; None if missing, after answering with an error."""
    opened = session.consumers.get(request.consumer_id)
    if opened is None:
        session.refuse(request.request_id, ServerError.ConsumerNotFound, "no such consumer")
    return opened


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
