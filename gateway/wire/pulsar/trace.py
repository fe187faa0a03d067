"""Describes frames for the trace of a connection, with secrets masked."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import HEAD, HEADER, kind_name

LONGEST = 600
"""Characters of a frame's description; schemas and topic lists are cut."""

_MASK = b"***"


def describe(frame: bytes | bytearray | memoryview) -> str:
    """Return the command in a frame as text: its name and its fields, with secrets masked. `frame`
    may be truncated."""
    if len(frame) < HEADER:
        return "cut"
    _, size = HEAD.unpack_from(frame)
    name = kind_name(frame[9])
    if len(frame) < 8 + size:
        return name
    try:
        command = BaseCommand.FromString(bytes(frame[8 : 8 + size]))
    except (DecodeError, UnicodeDecodeError):
        return f"{name} (not decodable)"
    return f"{name} {_fields(command)}".strip()[:LONGEST]


def _fields(command: BaseCommand) -> str:
    _mask(command)
    command.ClearField("type")
    command.DiscardUnknownFields()  # they could hold secrets
    # Imported only for traces: it would take 20 ms at the start of every process.
    from google.protobuf.text_format import MessageToString

    for _, message in command.ListFields():
        return MessageToString(message, as_one_line=True)
    return ""


def _mask(command: BaseCommand) -> None:
    """Mask credentials, and the challenges and responses that prove them."""
    if command.connect.auth_data:
        command.connect.auth_data = _MASK
    if command.connect.original_auth_data:
        command.connect.original_auth_data = _MASK.decode()
    for exchanged in (command.authResponse.response, command.authChallenge.challenge):
        if exchanged.auth_data:
            exchanged.auth_data = _MASK
    for request in (command.lookupTopic, command.partitionMetadata):
        if request.original_auth_data:
            request.original_auth_data = _MASK.decode()
