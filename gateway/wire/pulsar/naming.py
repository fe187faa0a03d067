"""Refuses commands whose names brokers would read differently, or that are longer than any name."""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.contract import Denial, Direction, Drop, Effects, Inject, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import (
    lookup_failed,
    partitions_failed,
    refused,
    text,
)
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.topics import named
from gateway.wire.services import LookupOutcome, Services

_TOPIC = Denial(
    Refusal.NAME,
    "Invalid topic name: a topic is named <topic>, <tenant>/<namespace>/<topic> or "
    "<domain>://<tenant>/<namespace>/<topic>",
)
"""It does not repeat the name: whoever wrote it knows it."""


def improper(names: tuple[str, ...], longest: int) -> Denial | None:
    """Return why a client's command cannot go on with its names, the topic's first; None if it can.

    `longest`: characters of a name. Raises `PeerError` for a name that is not UTF-8, which brokers
    would read as another one.
    """
    for name in names:
        if len(text(name)) > longest:
            return Denial(Refusal.NAME, f"a name of {len(name)} characters, of {longest} at most")
    return _TOPIC if named(names[0]) is None else None


def unnamed(command: BaseCommand, kind: int, denial: Denial, services: Services) -> Effects:
    """Drop the command, and answer it as a broker answers one with an invalid topic name."""
    match kind:
        case Kind.PRODUCER:
            opening = command.producer
            return refused(Action.PRODUCE, opening.producer_id, opening.request_id, denial)
        case Kind.SUBSCRIBE:
            asked = command.subscribe
            return refused(Action.CONSUME, asked.consumer_id, asked.request_id, denial)
        case Kind.LOOKUP:
            services.looked_up(LookupOutcome.REFUSED)
            told = lookup_failed(command.lookupTopic.request_id, denial)
        case _:
            told = partitions_failed(command.partitionMetadata.request_id, denial)
    return (Drop(), Inject(Direction.TO_CLIENT, told))
