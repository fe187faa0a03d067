"""Refresh credentials on an open pair: a broker asks for one again, a client sends a newer one.

These are Pulsar's AUTH_CHALLENGE and AUTH_RESPONSE after CONNECTED (PIP-30). Each function returns
effects, as `contract.Session.decide` does.
"""

from __future__ import annotations

from gateway.wire.contract import (
    DROP,
    FORWARD,
    Credential,
    Denial,
    Direction,
    Drop,
    Effects,
    EndReason,
    Inject,
    Refusal,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import NO_ROOM, auth_response, end, text
from gateway.wire.pulsar.context import Client, ListenerContext

OTHER_PRINCIPAL = Denial(Refusal.UNAUTHENTICATED, "the principal may not change on a connection")


def challenged(listener: ListenerContext, client: Client) -> Effects:
    """Decide the broker's AUTH_CHALLENGE, which asks again for the credential that it was shown.

    In *verify* this was the gateway's own; otherwise the client's, passed through or forwarded.
    """
    if listener.mode is not Mode.VERIFY:
        return FORWARD
    ours = client.proof(listener, opened=True)
    if isinstance(ours, Denial):
        return end(EndReason.AUTHENTICATION_FAILED, ours)
    return (Drop(), Inject(Direction.TO_BROKER, auth_response(ours, listener.version)))


def responded(listener: ListenerContext, client: Client, command: BaseCommand) -> Effects:
    """Decide the client's AUTH_RESPONSE. Later connections on its behalf use the new credential."""
    if listener.mode is Mode.VERIFY:
        return DROP  # the client was not asked
    data = command.authResponse.response
    method = text(data.auth_method_name) or client.credential.method
    credential = Credential(method, data.auth_data)
    denial = _changed(listener, client, credential)
    if denial is not None:
        return end(EndReason.AUTHENTICATION_FAILED, denial)
    if not client.show(credential):
        return end(EndReason.OUT_OF_MEMORY, NO_ROOM)
    return FORWARD


def _changed(listener: ListenerContext, client: Client, credential: Credential) -> Denial | None:
    """Return why the client may not go on with this credential; None: it may. The credential of a
    client that a trusted proxy vouches for was checked by the proxy."""
    if listener.mode is Mode.PASS_THROUGH or client.vouched:
        return None
    principal = listener.services.authenticate(credential)
    if isinstance(principal, Denial):
        return principal
    return None if principal.name == client.principal.name else OTHER_PRINCIPAL
