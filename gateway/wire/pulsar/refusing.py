"""SENDs that are refused rather than held, where a rule says so and the client can bear it.

Of a SEND_ERROR NotAllowedError the Java client fails one message alone. It must be the one that is
first without a receipt: any other order has it close the connection. Go breaks its producer by it,
and Python closes the connection, so theirs are held and reset.
"""

from __future__ import annotations

from gateway.wire.account import Account
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.commands import encode

CLIENTS = ("Pulsar-Java",)
"""How the versions of clients begin that go on after a refusal."""

_TEXT = "more is sent than the limit of this gateway allows, and too much waits already"


def is_refused(account: Account, messages: int, size: int) -> bool:
    """So much more may not wait. `size`: of the frame, in bytes."""
    patience = account.patience
    if patience is None or not account.queued:
        return False
    # What waits has about the size of what passed before.
    each = account.bytes / account.messages if account.messages else size / messages
    waiting = account.queued / each
    return waiting + messages > patience.messages or account.queued + size > patience.bytes


def refusal(command: BaseCommand) -> bytes:
    """Return the SEND_ERROR for a SEND beyond a limit."""
    return _send_error(command, ServerError.NotAllowedError, _TEXT)


def damaged(command: BaseCommand) -> bytes:
    """Return the SEND_ERROR for a SEND whose checksum is wrong, as brokers answer it.

    Clients look at their own copy: they send it again if that one is right, and fail it if not.
    """
    return _send_error(command, ServerError.ChecksumError, "Checksum failed at the gateway")


def _send_error(command: BaseCommand, code: ServerError.ValueType, text: str) -> bytes:
    """Return the SEND_ERROR for a SEND; of a batch it names the last message, as receipts do."""
    send = command.send
    answer = BaseCommand(type=BaseCommand.SEND_ERROR)
    answer.send_error.producer_id = send.producer_id
    answer.send_error.sequence_id = max(send.sequence_id, send.highest_sequence_id)
    answer.send_error.error = code
    answer.send_error.message = text
    return encode(answer)
