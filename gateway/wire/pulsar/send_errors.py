"""The gateway's own SEND_ERRORs: for SENDs beyond a limit, if a rule rejects these, and for damaged
SENDs.

At a SEND_ERROR NotAllowedError the Java client fails only that message. The message must be the
first one without a receipt, or the client closes the connection. The Go client gives its producer
up, and Python closes the connection, so SENDs of these clients are held and their producers reset.
"""

from __future__ import annotations

from gateway.wire.account import Account
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.commands import encode

CLIENTS = ("Pulsar-Java",)
"""Prefixes of the versions of clients that go on after a refused SEND."""

_TEXT = "more is sent than the limit of this gateway allows, and too much waits already"


def is_refused(account: Account, messages: int, size: int) -> bool:
    """Return whether a SEND must be refused: with this SEND, the waiting frames of its account
    would exceed their bounds. `messages`: number of messages in the SEND; `size`: bytes of its
    frame."""
    patience = account.patience
    if patience is None or not account.queued:
        return False
    # Waiting messages are taken to have the average size of those that passed.
    each = account.bytes / account.messages if account.messages else size / messages
    waiting = account.queued / each
    return waiting + messages > patience.messages or account.queued + size > patience.bytes


def refusal(command: BaseCommand) -> bytes:
    """Return the SEND_ERROR that refuses a SEND because it is beyond a limit."""
    return _send_error(command, ServerError.NotAllowedError, _TEXT)


def damaged(command: BaseCommand) -> bytes:
    """Return the SEND_ERROR that refuses a SEND because its checksum is wrong, as brokers send it.

    The client then checks its own copy of the message: it sends an intact copy again, and fails the
    message if the copy is damaged.
    """
    return _send_error(command, ServerError.ChecksumError, "Checksum failed at the gateway")


def _send_error(command: BaseCommand, code: ServerError.ValueType, text: str) -> bytes:
    """Return a SEND_ERROR for a SEND. For a batch it names the last message, as receipts do."""
    send = command.send
    response = BaseCommand(type=BaseCommand.SEND_ERROR)
    response.send_error.producer_id = send.producer_id
    response.send_error.sequence_id = max(send.sequence_id, send.highest_sequence_id)
    response.send_error.error = code
    response.send_error.message = text
    return encode(response)
