"""Decodes and encodes whole commands, and makes those that the gateway sends by itself.

Protobuf reads an unknown enum value as absent and keeps it when it encodes. So encoding is partial:
a required field with a value of a later version must not stop the frame.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.contract import (
    Credential,
    Denial,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Inject,
    Refusal,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)
from gateway.wire.pulsar.field_counts import CHECKED_FROM, MOST_FIELDS, check_command, check_long
from gateway.wire.pulsar.frames import HEAD, LAST_TYPE_OF_ONE_BYTE, split
from gateway.wire.slices import Slices

NO_REQUEST = (1 << 64) - 1
"""The request id of an ERROR that responds to no request (-1 on the wire)."""

CODES = {
    Refusal.UNAUTHENTICATED: ServerError.AuthenticationError,
    Refusal.UNAUTHORIZED: ServerError.AuthorizationError,
    Refusal.TARGET: ServerError.NotAllowedError,
    Refusal.NOT_READY: ServerError.ServiceNotReady,
    Refusal.TIMEOUT: ServerError.ServiceNotReady,
    Refusal.CLOSED: ServerError.ServiceNotReady,
    Refusal.TOO_MANY: ServerError.TooManyRequests,
    Refusal.UNSUPPORTED: ServerError.UnsupportedVersionError,
    Refusal.FULL: ServerError.NotAllowedError,
    Refusal.TOO_OFTEN: ServerError.ServiceNotReady,
    Refusal.NAME: ServerError.InvalidTopicName,
}
"""Pulsar's error for each kind of refusal. See docs/protocols/pulsar.md for clients' reactions."""

LOOKUP_CODES = CODES | {Refusal.TOO_OFTEN: ServerError.MetadataError}
"""The same for a lookup: at ServiceNotReady a client would close its connection, and ask again on
another one."""


BROKERS_OWN = Denial(Refusal.UNAUTHORIZED, "topics of tenant pulsar are the brokers' own")

MIGRATED = Denial(Refusal.NOT_READY, "the topic has gone to a cluster that has no gateway here")
IN_USE = Denial(Refusal.NOT_READY, "this id is in use on this connection")
REFRESH = b"PulsarAuthRefresh"
"""The challenge by which Java's client knows that it must send a newer credential."""

BUSY = Denial(Refusal.TOO_MANY, "too many requests wait on this connection")
MANY_TOPICS = Denial(Refusal.TOO_MANY, "too many topics in one command")


_FIELDS = {field.number: field.name for field in BaseCommand.DESCRIPTOR.fields}
"""The field of each command type. In Pulsar's schema both have the same number."""


def message_of(kind: int, command: BaseCommand) -> Any:
    """Return the message of a command's type, such as a CommandProducer."""
    return getattr(command, _FIELDS[kind])


def text(value: str | bytes) -> str:
    """Return a text field of a client's command. Raises `PeerError` if protobuf has returned the
    field as bytes, because it is not UTF-8."""
    if isinstance(value, bytes):
        raise PeerError("a text that is not UTF-8")
    return value


def decode(frame: bytes, most_fields: int = MOST_FIELDS) -> BaseCommand:
    """Decode a whole frame, and return its command.

    Raises `PeerError` if the command is not canonical (see `frames`), or has more than
    `most_fields` fields.
    """
    kind, begin, end = split(frame)
    check_command(frame, begin, end, kind, most_fields)
    return _parsed(frame, end)


def decode_long(frame: bytes, most_fields: int) -> Slices[BaseCommand]:
    """Do the same as `decode` in slices. Protobuf decodes 50,000 names of topics in 1 ms."""
    kind, begin, end = split(frame)
    if end - begin > CHECKED_FROM:
        yield from check_long(frame, begin, end, kind, most_fields)
        yield
    return _parsed(frame, end)


def _parsed(frame: bytes, end: int) -> BaseCommand:
    try:
        return BaseCommand.FromString(frame[8:end])
    except (DecodeError, UnicodeDecodeError) as error:
        raise PeerError(f"a command that cannot be decoded: {error}") from None


def as_read(command: BaseCommand, frame: bytes) -> bytes:
    """Return a frame with its decoded command encoded anew, and with its payload. The returned
    frame is forwarded in place of the peer's frame.

    Two decoders may read the peer's encoding differently (repeated fields, nested lengths that run
    out, numbers that are too long), but not the new encoding. If the new encoding equals the
    peer's, as with nearly all peers, `frame` itself is returned.
    """
    total, size = HEAD.unpack_from(frame)
    body = command.SerializePartialToString()
    if frame[8 : 8 + size] == body:
        return frame
    return b"".join((HEAD.pack(total - size + len(body), len(body)), body, frame[8 + size :]))


def encode(command: BaseCommand) -> bytes:
    """Return the frame of a command without payload."""
    body = command.SerializePartialToString()
    return HEAD.pack(len(body) + 4, len(body)) + body


def kind_of(frame: bytes) -> int:
    """Return the command type of a frame with a canonical command. The type may be unknown."""
    return frame[9] if frame[9] <= LAST_TYPE_OF_ONE_BYTE else split(frame)[0]


def error(request_id: int, denial: Denial) -> bytes:
    """Return an ERROR that refuses a request. `request_id`: `NO_REQUEST` if no request is
    refused."""
    command = BaseCommand(type=BaseCommand.ERROR)
    command.error.request_id = request_id
    command.error.error = CODES[denial.refusal]
    command.error.message = denial.text
    return encode(command)


def refused(action: Action, id: int, request_id: int, denial: Denial) -> Effects:
    """Return the effects that refuse a PRODUCER or SUBSCRIBE with an ERROR. For a SUBSCRIBE the
    client gets a CLOSE_CONSUMER too. `id`: the id of the producer or consumer.

    After an ERROR alone the Python client takes a consumer for connected: it never tries again, and
    a consumer that was open before is lost without an error.
    """
    effects: Effects = (Drop(), Inject(Direction.TO_CLIENT, error(request_id, denial)))
    if action is not Action.CONSUME:
        return effects
    return (*effects, Inject(Direction.TO_CLIENT, encode(close_command(action, id))))


def close_command(action: Action, id: int, request_id: int = NO_REQUEST) -> BaseCommand:
    """Return a CLOSE_PRODUCER or CLOSE_CONSUMER. `id`: the id of the producer or consumer.
    `request_id`: needed if the broker has to respond to the close."""
    if action is Action.PRODUCE:
        command = BaseCommand(type=BaseCommand.CLOSE_PRODUCER)
        command.close_producer.producer_id = id
        command.close_producer.request_id = request_id
        return command
    command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = id
    command.close_consumer.request_id = request_id
    return command


def end(reason: EndReason, denial: Denial) -> Effects:
    """Return the effects that drop a frame, send the client an ERROR, and end the pair."""
    return (Drop(), End(reason, error(NO_REQUEST, denial), denial.detail))


def lookup_failed(request_id: int, denial: Denial) -> bytes:
    """Return a LOOKUP_RESPONSE of the type Failed, which refuses a lookup."""
    command = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    response = command.lookupTopicResponse
    response.request_id = request_id
    response.response = CommandLookupTopicResponse.Failed
    response.error = LOOKUP_CODES[denial.refusal]
    response.message = denial.text
    return encode(command)


def partitions_failed(request_id: int, denial: Denial) -> bytes:
    """Return a PARTITIONED_METADATA_RESPONSE of the type Failed, which refuses the request."""
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE)
    response = command.partitionMetadataResponse
    response.request_id = request_id
    response.response = CommandPartitionedTopicMetadataResponse.Failed
    response.error = LOOKUP_CODES[denial.refusal]
    response.message = denial.text
    return encode(command)


def auth_challenge(method: str, version: str) -> bytes:
    """Return an AUTH_CHALLENGE that asks a client for a newer credential (PIP-30)."""
    command = BaseCommand(type=BaseCommand.AUTH_CHALLENGE)
    command.authChallenge.server_version = version
    command.authChallenge.challenge.auth_method_name = method
    command.authChallenge.challenge.auth_data = REFRESH
    return encode(command)


def auth_response(credential: Credential, version: str) -> bytes:
    """Return an AUTH_RESPONSE that sends this credential to a broker."""
    command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    command.authResponse.client_version = version
    command.authResponse.response.auth_method_name = credential.method
    command.authResponse.response.auth_data = credential.data
    return encode(command)
