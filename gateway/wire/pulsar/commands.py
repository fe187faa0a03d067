"""Whole commands: decoded for those who decide them, encoded for the wire.

Unknown enum values read as absent and survive encoding, which is why encoding is partial:
a required field that a later version gave a new value must not stop the frame.
"""

from __future__ import annotations

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
from gateway.wire.pulsar.fields import MOST_FIELDS, check_command
from gateway.wire.pulsar.frames import HEAD, LAST_TYPE_OF_ONE_BYTE, split

NO_REQUEST = (1 << 64) - 1
"""The request id of an ERROR that answers no request (-1 on the wire)."""

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
"""Pulsar's error for each kind of refusal. What clients make of them: docs/protocols/pulsar.md."""

LOOKUP_CODES = CODES | {Refusal.TOO_OFTEN: ServerError.MetadataError}
"""The same for a lookup: by ServiceNotReady a client would close its connection, and ask again on
another one."""


BROKERS_OWN = Denial(Refusal.UNAUTHORIZED, "topics of tenant pulsar are the brokers' own")

MIGRATED = Denial(Refusal.NOT_READY, "the topic has gone to a cluster that has no gateway here")
IN_USE = Denial(Refusal.NOT_READY, "this id is in use on this connection")
BUSY = Denial(Refusal.TOO_MANY, "too many requests wait on this connection")
NO_ROOM = Denial(Refusal.TOO_MANY, "this gateway has no memory left for more")


def text(value: str | bytes) -> str:
    """A client's text. What is not UTF-8 comes out of protobuf as bytes: raises `PeerError`."""
    if isinstance(value, bytes):
        raise PeerError("a text that is not UTF-8")
    return value


def decode(frame: bytes, most_fields: int = MOST_FIELDS) -> BaseCommand:
    """Return the command of a whole frame, which is canonical, as `frames.split` demands.

    Raises `PeerError` where it is none, or has more than `most_fields` fields.
    """
    kind, begin, end = split(frame)
    check_command(frame, begin, end, kind, most_fields)
    try:
        return BaseCommand.FromString(frame[8:end])
    except DecodeError as error:
        raise PeerError(f"a command that cannot be decoded: {error}") from None


def as_read(command: BaseCommand, frame: bytes) -> bytes:
    """Return the frame as the gateway read it: its decoded command, encoded, and its payload.

    This is what goes on in place of the frame. Two decoders may read one encoding differently
    (repeated fields, nested lengths that run out, numbers that are too long), but not this one.
    It is the same object where peers wrote it so, as nearly all do.
    """
    _, size = HEAD.unpack_from(frame)
    body = command.SerializePartialToString()
    if frame[8 : 8 + size] == body:
        return frame
    payload = frame[8 + size :]
    return b"".join((HEAD.pack(len(body) + len(payload) + 4, len(body)), body, payload))


def encode(command: BaseCommand) -> bytes:
    """A whole frame of a command without payload."""
    body = command.SerializePartialToString()
    return HEAD.pack(len(body) + 4, len(body)) + body


def kind_of(frame: bytes) -> int:
    """Return the type of a canonical command, known or not."""
    return frame[9] if frame[9] <= LAST_TYPE_OF_ONE_BYTE else split(frame)[0]


def error(request_id: int, denial: Denial) -> bytes:
    """An ERROR in answer to a request."""
    command = BaseCommand(type=BaseCommand.ERROR)
    command.error.request_id = request_id
    command.error.error = CODES[denial.refusal]
    command.error.message = denial.text
    return encode(command)


def refused(action: Action, id: int, request_id: int, denial: Denial) -> Effects:
    """A PRODUCER or SUBSCRIBE goes nowhere, and is answered by ERROR; a consumer is closed, too.

    By an ERROR alone the Python client takes a consumer for connected: where it means to try again
    it never does, and one that was open before is lost without a word.
    """
    told: Effects = (Drop(), Inject(Direction.TO_CLIENT, error(request_id, denial)))
    if action is not Action.CONSUME:
        return told
    command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = id
    command.close_consumer.request_id = NO_REQUEST
    return (*told, Inject(Direction.TO_CLIENT, encode(command)))


def end(reason: EndReason, denial: Denial) -> Effects:
    """The pair ends in place of a frame, and the client is told why."""
    return (Drop(), End(reason, error(NO_REQUEST, denial), denial.text))


def lookup_failed(request_id: int, denial: Denial) -> bytes:
    """A LOOKUP_RESPONSE that says no."""
    command = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    answer = command.lookupTopicResponse
    answer.request_id = request_id
    answer.response = CommandLookupTopicResponse.Failed
    answer.error = LOOKUP_CODES[denial.refusal]
    answer.message = denial.text
    return encode(command)


def partitions_failed(request_id: int, denial: Denial) -> bytes:
    """A PARTITIONED_METADATA_RESPONSE that says no."""
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE)
    answer = command.partitionMetadataResponse
    answer.request_id = request_id
    answer.response = CommandPartitionedTopicMetadataResponse.Failed
    answer.error = LOOKUP_CODES[denial.refusal]
    answer.message = denial.text
    return encode(command)


def auth_response(credential: Credential, version: str) -> bytes:
    """An AUTH_RESPONSE of our own."""
    command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    command.authResponse.client_version = version
    command.authResponse.response.auth_method_name = credential.method
    command.authResponse.response.auth_data = credential.data
    return encode(command)
