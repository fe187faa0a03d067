"""What came out, read without the gateway's own code: frames by size, commands by protobuf."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError, Message

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from tests.playbooks.services import BROKER_1, BROKER_2, OTHER_CLUSTER

HOSTS = tuple(broker.host for broker in (BROKER_1, BROKER_2, OTHER_CLUSTER))

_sizes = struct.Struct(">II").unpack_from

_FROM_CLIENTS = {BaseCommand.CONNECT}
"""No client heeds it: what it says of a broker is what the client said."""


@dataclass(frozen=True, slots=True)
class Said:
    """A frame that begins at `offset`. `total`: all of it, though some may not be here."""

    offset: int
    total: int
    size: int
    data: bytes

    @property
    def is_impossible(self) -> bool:
        """No command of two bytes has room in it."""
        return self.size < 2 or self.size + 8 > self.total

    @property
    def command(self) -> BaseCommand | None:
        """What protobuf reads, if all of it is here and it can."""
        if len(self.data) < 8 + self.size:
            return None
        try:
            return BaseCommand.FromString(self.data[8 : 8 + self.size])
        except DecodeError:
            return None

    @property
    def rest(self) -> bytes:
        """What follows the command."""
        return self.data[8 + self.size :]


def walk(stream: bytes) -> Iterator[Said]:
    """The frames of a stream by their total sizes, up to one without a header of ten bytes."""
    at = 0
    while at + 10 <= len(stream):
        total, size = _sizes(stream, at)
        yield Said(at, total + 4, size, stream[at : at + total + 4])
        at += total + 4


def whole(data: bytes) -> list[BaseCommand]:
    """The commands of what the gateway wrote itself: whole frames and nothing else."""
    commands, at = list[BaseCommand](), 0
    while at < len(data):
        total, size = _sizes(data, at)
        assert at + 4 + total <= len(data), "a frame of ours is cut"
        assert size + 4 == total, "a frame of ours has a payload, or lies"
        commands.append(BaseCommand.FromString(data[at + 8 : at + 8 + size]))
        at += 4 + total
    return commands


def is_in_place_of(data: bytes, frame: bytes) -> bool:
    """Return whether data is one whole frame, with the payload of the frame that it replaces."""
    total, size = _sizes(data, 0)
    _, replaced = _sizes(frame, 0)
    return total + 4 == len(data) and data[8 + size :] == frame[8 + replaced :]


def shown(command: BaseCommand) -> list[str]:
    """Brokers' hosts in the places of a command where clients look for them, or people read."""
    if command.type in _FROM_CLIENTS or not command.HasField("type"):
        return []
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(command.type)
    if field is None:
        return []
    texts = list(_texts(getattr(command, field.name)))
    return [text for text in texts if any(host in text for host in HOSTS)]


def _texts(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from _texts(inner)
        elif field.type == field.TYPE_STRING and _is_suspect(field.name.lower()):
            yield value if isinstance(value, str) else value.decode(errors="replace")


def _is_suspect(name: str) -> bool:
    return any(word in name for word in ("url", "address", "message"))
