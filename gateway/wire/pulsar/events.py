"""The commands whose every meaning is for producers and consumers, and what they do to them."""

from __future__ import annotations

from collections.abc import Callable

from gateway.wire.contract import Direction, Effects
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.incarnations import Incarnations

Event = Callable[[Incarnations, BaseCommand, bytes, float], Effects]

EVENTS: dict[Direction, dict[int, Event]] = {
    Direction.TO_BROKER: {
        Kind.PRODUCER: Incarnations.producer,
        Kind.SUBSCRIBE: Incarnations.subscribe,
        Kind.SEND: Incarnations.send,
        Kind.CLOSE_PRODUCER: Incarnations.close_producer,
        Kind.CLOSE_CONSUMER: Incarnations.close_consumer,
        Kind.UNSUBSCRIBE: Incarnations.unsubscribe,
        Kind.FLOW: Incarnations.flow,
    },
    Direction.TO_CLIENT: {
        Kind.PRODUCER_SUCCESS: Incarnations.producer_success,
        Kind.SUCCESS: Incarnations.success,
        Kind.SEND_ERROR: Incarnations.send_error,
        Kind.CLOSE_PRODUCER: Incarnations.producer_closed,
        Kind.CLOSE_CONSUMER: Incarnations.consumer_closed,
    },
}
