"""The methods that clients call, and their messages.

Source: RpcConstants, MasterService.proto and BrokerService.proto of Apache InLong TubeMQ.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import Message

from gateway.wire.account import Right
from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq._proto import tubemq_master_pb2 as master

CLOSE_IN_CPP = 0
"""The method number by which producers in C++ close. No server knows it; these clients expect the
error."""

REGISTER_PRODUCER, BEAT_PRODUCER, END_PRODUCER = 1, 2, 3
REGISTER_CONSUMER, BEAT_CONSUMER, END_CONSUMER = 4, 5, 6
SEND_MESSAGE, REGISTER_PARTITION, BEAT_PARTITIONS, GET_MESSAGES, COMMIT = 13, 15, 16, 17, 18
REGISTER_BALANCED, BEAT_BALANCED, FIND_PARTITIONS = 20, 21, 22


UNREGISTER = 32
"""The operation of `REGISTER_PARTITION` by which a consumer leaves a partition."""


class Method(NamedTuple):
    """One method. `name`: TubeMQ's own name for it. `of_master`: clients call it at the master, not
    at brokers."""

    name: str
    request: type[Message]
    reply: type[Message]
    of_master: bool


METHODS = {
    REGISTER_PRODUCER: Method(
        "producerRegisterP2M", master.RegisterRequestP2M, master.RegisterResponseM2P, True
    ),
    BEAT_PRODUCER: Method(
        "producerHeartbeatP2M", master.HeartRequestP2M, master.HeartResponseM2P, True
    ),
    END_PRODUCER: Method(
        "producerCloseClientP2M", master.CloseRequestP2M, master.CloseResponseM2P, True
    ),
    REGISTER_CONSUMER: Method(
        "consumerRegisterC2M", master.RegisterRequestC2M, master.RegisterResponseM2C, True
    ),
    BEAT_CONSUMER: Method(
        "consumerHeartbeatC2M", master.HeartRequestC2M, master.HeartResponseM2C, True
    ),
    END_CONSUMER: Method(
        "consumerCloseClientC2M", master.CloseRequestC2M, master.CloseResponseM2C, True
    ),
    SEND_MESSAGE: Method(
        "sendMessageP2B", broker.SendMessageRequestP2B, broker.SendMessageResponseB2P, False
    ),
    REGISTER_PARTITION: Method(
        "consumerRegisterC2B", broker.RegisterRequestC2B, broker.RegisterResponseB2C, False
    ),
    BEAT_PARTITIONS: Method(
        "consumerHeartbeatC2B", broker.HeartBeatRequestC2B, broker.HeartBeatResponseB2C, False
    ),
    GET_MESSAGES: Method(
        "getMessagesC2B", broker.GetMessageRequestC2B, broker.GetMessageResponseB2C, False
    ),
    COMMIT: Method(
        "consumerCommitC2B", broker.CommitOffsetRequestC2B, broker.CommitOffsetResponseB2C, False
    ),
    REGISTER_BALANCED: Method(
        "consumerRegisterC2MV2", master.RegisterRequestC2MV2, master.RegisterResponseM2CV2, True
    ),
    BEAT_BALANCED: Method(
        "consumerHeartbeatC2MV2", master.HeartRequestC2MV2, master.HeartResponseM2CV2, True
    ),
    FIND_PARTITIONS: Method(
        "consumerGetPartMetaInfoC2M", master.GetPartMetaRequestC2M, master.GetPartMetaResponseM2C,
        True,
    ),
}  # fmt: skip
"""By number. Methods that brokers call at the master, and reserved numbers, are not among them."""


REGISTER = frozenset({REGISTER_CONSUMER, REGISTER_BALANCED})
"""The methods by which consumers register at a master."""

OF_PRODUCER = frozenset({REGISTER_PRODUCER, BEAT_PRODUCER, END_PRODUCER, SEND_MESSAGE})
"""The methods that need the right to produce on the topics which they name; the others need the
right to consume."""

HAVE_LISTS = frozenset(METHODS) - {SEND_MESSAGE, GET_MESSAGES, COMMIT, REGISTER_PARTITION}
"""The methods whose messages may be decided in slices. Requests of the others may pass the scanner,
which must not happen while one of them is decided."""

OF_BROKER = frozenset(number for number, method in METHODS.items() if not method.of_master)


def right_of(method: int) -> Right:
    """Return the right that a request of this method needs on the topics and for the group which it
    names."""
    return Right.PRODUCE if method in OF_PRODUCER else Right.CONSUME


def name_of(method: int) -> str:
    """Return the name of a method for logs and errors; `method 99` if no method has the number
    99."""
    known = METHODS.get(method)
    return f"method {method}" if known is None else known.name
