"""Reauthentication on an open pair: the broker's challenges, and the client's newer credentials.

These are Pulsar's AUTH_CHALLENGE and AUTH_RESPONSE after CONNECTED (PIP-30). Each function returns
effects, as `contract.Session.decide` does.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar

from gateway.wire.admission import NO_ROOM
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
    Principal,
    Prolong,
    Refusal,
    Settle,
    Start,
    Step,
    StepResult,
    settled,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import auth_challenge, auth_response, end, text
from gateway.wire.pulsar.context import Client, ListenerContext

NOT_CHECKED = Denial(Refusal.UNAUTHENTICATED, "the credential could not be checked")
OTHER_PRINCIPAL = Denial(Refusal.UNAUTHENTICATED, "the principal may not change on a connection")


def challenged(listener: ListenerContext, client: Client) -> Effects:
    """Return what to do with the broker's AUTH_CHALLENGE, which asks for a newer credential.

    In mode *verify* the broker asks for the gateway's own credential, and the gateway responds. In
    the other modes it asks for the client's credential, and the challenge is forwarded to the
    client.
    """
    if listener.mode is not Mode.VERIFY:
        return FORWARD
    ours = client.proof(listener, opened=True)
    if isinstance(ours, Denial):
        return end(EndReason.AUTHENTICATION_FAILED, ours)
    return (Drop(), Inject(Direction.TO_BROKER, auth_response(ours, listener.version)))


def ask(listener: ListenerContext, client: Client) -> Effects:
    """Return the effects that send a client an AUTH_CHALLENGE, which asks for a newer credential
    than the verified one. There are no effects if the client does not support AUTH_CHALLENGE or has
    authenticated by its TLS certificate, or in modes other than *verify*."""
    can_answer = client.connect.feature_flags.supports_auth_refresh
    if listener.mode is not Mode.VERIFY or client.credential.method == "tls" or not can_answer:
        return ()
    client.challenged = True
    challenge = auth_challenge(client.credential.method, listener.version)
    return (Inject(Direction.TO_CLIENT, challenge),)


def responded(
    listener: ListenerContext, client: Client, command: BaseCommand, frame: bytes, now: float
) -> Effects:
    """Return what to do with the client's AUTH_RESPONSE. If its credential is denied, the pair
    ends. Where brokers get the client's credential, later broker connections for this client use
    the new one."""
    verifies = listener.mode is Mode.VERIFY
    if verifies and not client.challenged:
        return DROP
    data = command.authResponse.response
    method = text(data.auth_method_name) or client.credential.method
    credential = Credential(method, data.auth_data)
    # The credential of a client that a trusted proxy vouches for was checked by the proxy.
    if listener.mode is Mode.PASS_THROUGH or client.vouched:
        return _shown(client, credential, FORWARD)

    def checked(response: Principal | Denial, now: float, onwards: Effects) -> Effects:
        if isinstance(response, Denial):
            return end(EndReason.AUTHENTICATION_FAILED, response)
        if response.name != client.principal.name:
            return end(EndReason.AUTHENTICATION_FAILED, OTHER_PRINCIPAL)
        if not verifies:
            return _shown(client, credential, onwards)
        client.challenged = False
        client.principal = response
        return (Drop(), Prolong(now + listener.services.left(response)))

    response = listener.services.authenticate(credential, client.subject.host or "")
    if not isinstance(response, Settle):
        return checked(response, now, FORWARD)
    if client.checking:  # one at a time: each is kept until its outcome
        return end(EndReason.AUTHENTICATION_FAILED, NOT_CHECKED)
    check, client.checking = _Check(response), True

    def then(result: bytes | Denial, now: float) -> Effects:
        client.checking = False
        outcome = result if isinstance(result, Denial) else check.principal
        return checked(outcome, now, (Inject(Direction.TO_BROKER, frame),))

    return (Drop(), Start(check, then))


def _shown(client: Client, credential: Credential, onwards: Effects) -> Effects:
    if not client.show(credential):
        return end(EndReason.OUT_OF_MEMORY, NO_ROOM)
    return onwards


@dataclass(slots=True)
class _Check:
    """The job that waits until a credential is verified. `principal`: the credential's, once the
    job has an outcome other than a denial."""

    settle: Settle
    principal: Principal = field(init=False)

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = NOT_CHECKED
    late: ClassVar[Denial] = NOT_CHECKED

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `contract.Job`."""
        response = yield from settled(self.settle)
        if isinstance(response, Denial):
            return response
        self.principal = response
        return b""
