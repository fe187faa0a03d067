"""The conversation that opens a connection, from the client's CONNECT to the pair.

A client whose CONNECT names a broker (`proxy_to_broker_url`) gets that broker, if the gateway
advertised the name; any other client gets any healthy broker. The client gets the broker's own
response: CONNECTED with its size limit and flags, or ERROR with its text.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from sys import intern
from typing import Any

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.admission import SILENCES, admit, undialled
from gateway.wire.contract import (
    Credential,
    Denial,
    Dial,
    Dialled,
    EndReason,
    Opened,
    Opening,
    Origin,
    Peer,
    Principal,
    Receive,
    Refusal,
    Refused,
    Step,
    StepResult,
    Transmit,
    Wait,
    settled,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect, ServerError
from gateway.wire.pulsar.commands import (
    NO_REQUEST,
    as_read,
    auth_response,
    decode,
    encode,
    error,
    kind_of,
    text,
)
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import kind_name
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.subject import Caller, Subject

_LEGACY_METHODS = {1: "ycav1", 2: "athens"}
"""Names for `CommandConnect.auth_method`, which `auth_method_name` replaced."""

LONGEST_LIBRARY = 128
"""Characters of a client's library name and version. Real ones have up to 40."""

_UNNAMED = Principal("", verified=False)
"""The principal of a client that the gateway does not verify, or has refused."""

_OF_PROXIES = frozenset(
    {"original_principal", "original_auth_data", "original_auth_method", "proxy_version"}
)
"""Fields that a verified client may not send, since brokers would believe them from a proxy."""


def open_pair(listener: ListenerContext, origin: Origin) -> Opening:
    """Return a generator of the steps that open one client connection, from CONNECT to the pair."""
    frame = yield Receive(Peer.CLIENT)
    if not isinstance(frame, bytes):
        return _silent(frame)
    try:
        connect = _connect(frame, listener)
        client = yield from _identify(connect, listener, origin)
        if isinstance(client, Denial):
            delay = listener.services.setback(origin.host)
            if delay:
                yield Wait(delay, yields=True)
            refused = _refused(EndReason.AUTHENTICATION_FAILED, client)
            return replace(refused, caller=_subject(connect, listener, origin, _UNNAMED).caller)
        pair = _pair(listener, client, text(connect.proxy_to_broker_url))
        outcome = yield from admit(listener.services, client, client.size, pair, _refused)
        caller = client.subject.caller
        return replace(outcome, caller=caller) if isinstance(outcome, Refused) else outcome
    except PeerError as violation:
        denial = Denial(Refusal.UNSUPPORTED, str(violation))
        return _refused(EndReason.CLIENT_VIOLATION, denial)


def _connect(frame: bytes, listener: ListenerContext) -> CommandConnect:
    command = decode(frame, listener.bounds.fields)
    kind = kind_of(frame)
    if kind != BaseCommand.CONNECT or not command.HasField("connect"):
        raise PeerError(f"a connection begins with CONNECT, not with {kind_name(kind)}")
    connect = command.connect
    if not listener.unknown_pass:
        connect.DiscardUnknownFields()
    return connect


def _identify(
    connect: CommandConnect, listener: ListenerContext, origin: Origin
) -> Generator[Step, StepResult, Client | Denial]:
    method = _method_of(connect)
    credential = Credential(method, connect.auth_data)
    if listener.mode is Mode.PASS_THROUGH:
        subject = _subject(connect, listener, origin, _UNNAMED)
        return Client(connect, _UNNAMED, credential, subject, budget=listener.budget)
    response = listener.services.authenticate(credential, origin.host, origin.certificate)
    principal = yield from settled(response)
    if isinstance(principal, Denial):
        return principal
    if principal.name in listener.proxies:
        return _vouched(connect, listener, origin)
    claimed = {field.name for field, _ in connect.ListFields()} & _OF_PROXIES
    if claimed:
        return Denial(Refusal.UNAUTHENTICATED, f"{min(claimed)} is not accepted here")
    if listener.mode is Mode.VERIFY:
        credential = Credential(method, b"")  # not needed any more
    subject = _subject(connect, listener, origin, principal)
    return Client(connect, principal, credential, subject, budget=listener.budget)


def _method_of(connect: CommandConnect) -> str:
    return text(connect.auth_method_name) or _LEGACY_METHODS.get(connect.auth_method, "")


def _subject(
    connect: CommandConnect, listener: ListenerContext, origin: Origin, principal: Principal
) -> Subject:
    caller = Caller(
        protocol="pulsar",
        connection=origin.id,
        host=origin.host,
        principal=principal.name or None,
        library=intern(_readable(connect.client_version)[:LONGEST_LIBRARY]),  # few differ
        method=intern(_method_of(connect)[:LONGEST_LIBRARY]),
    )
    return Subject(listener.services.complete(caller))


def _readable(value: str | bytes) -> str:
    """Return a text, with replacement characters if it is not UTF-8, as brokers read it."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _vouched(connect: CommandConnect, listener: ListenerContext, origin: Origin) -> Client | Denial:
    """Return the client that a trusted proxy states, by the rules that brokers apply to proxies.

    The client does not expire with the proxy's own credential: the proxy may renew that meanwhile,
    and all its clients would lose their connections with the old one.
    """
    name = text(connect.original_principal)
    if not name or name in listener.proxies:
        return _NOBODY
    if len(name) > listener.bounds.names:
        return Denial(Refusal.UNAUTHENTICATED, "the name in original_principal is too long")
    method, data = text(connect.original_auth_method), text(connect.original_auth_data)
    forwarded = data.encode() if listener.mode is Mode.VERIFY_AND_FORWARD else b""
    principal, credential = Principal(name, verified=True), Credential(method, forwarded)
    subject = _subject(connect, listener, origin, principal)
    return Client(connect, principal, credential, subject, vouched=True, budget=listener.budget)


_NOBODY = Denial(
    Refusal.UNAUTHENTICATED, "a proxy has to say who its client is, in original_principal"
)


def _pair(listener: ListenerContext, client: Client, to: str) -> Opening:
    """Open the pair of an admitted client. `to`: the broker's URL in its CONNECT; may be empty."""
    target = listener.services.open(to) if to else None
    if isinstance(target, Denial):
        return _refused(EndReason.TARGET_REFUSED, Denial(Refusal.NOT_READY, target.text))
    through = target if listener.chained else None
    greeting = client.greeting(listener, through=through)
    if isinstance(greeting, Denial):
        return _refused(EndReason.NO_BROKER, greeting)
    caller = client.subject.caller
    dialled = yield Dial(None if listener.chained else target, caller.principal)
    if isinstance(dialled, Denial):
        return undialled(dialled, _refused)
    assert isinstance(dialled, Dialled)
    yield Transmit(Peer.BROKER, greeting)
    broker = through if listener.chained else dialled.address
    return (yield from _await_connected(listener, client, broker))


def _await_connected(listener: ListenerContext, client: Client, broker: Address | None) -> Opening:
    """Await the broker's response to CONNECT; it may send challenges before."""
    for _ in range(listener.bounds.rounds):
        frame = yield Receive(Peer.BROKER)
        if not isinstance(frame, bytes):
            return _broker_gone(frame)
        try:
            command = decode(frame, listener.bounds.fields)
        except PeerError as violation:
            return _refused(EndReason.BROKER_VIOLATION, _NOT_READY, str(violation))
        if kind_of(frame) == BaseCommand.CONNECTED:
            most = command.connected.max_message_size
            yield Transmit(Peer.CLIENT, _connected(command, frame, listener))
            return Opened(PulsarSession(listener, client, broker, most))
        outcome = yield from _answered(listener, client, command, frame)
        if outcome is not None:
            return outcome
    return _refused(EndReason.AUTHENTICATION_FAILED, _ENDLESS)


def _answered(
    listener: ListenerContext, client: Client, command: BaseCommand, frame: bytes
) -> Generator[Step, StepResult, Refused | None]:
    """Handle another response to CONNECT than CONNECTED; None: more responses will follow."""
    kind = kind_of(frame)
    if kind == BaseCommand.AUTH_CHALLENGE:
        return (yield from _challenged(listener, client, command, frame))
    if kind == BaseCommand.ERROR:
        return _broker_no(command, listener)
    detail = f"the broker answered CONNECT by {kind_name(kind)}"
    return _refused(EndReason.BROKER_VIOLATION, _NOT_READY, detail)


def _challenged(
    listener: ListenerContext, client: Client, command: BaseCommand, frame: bytes
) -> Generator[Step, StepResult, Refused | None]:
    """Pass one challenge through, or respond to it with the gateway's own credential."""
    if listener.mode is not Mode.PASS_THROUGH:
        ours = client.proof(listener, opened=False)
        if isinstance(ours, Denial):
            return _refused(EndReason.NO_BROKER, ours)
        yield Transmit(Peer.BROKER, auth_response(ours, listener.version))
        return None
    yield Transmit(Peer.CLIENT, as_read(command, frame))
    received = yield Receive(Peer.CLIENT)
    if not isinstance(received, bytes):
        return _silent(received)
    response = decode(received, listener.bounds.fields)
    if kind_of(received) != BaseCommand.AUTH_RESPONSE:
        raise PeerError("an AUTH_CHALLENGE is answered by AUTH_RESPONSE")
    yield Transmit(Peer.BROKER, as_read(response, received))
    return None


def _connected(command: BaseCommand, frame: bytes, listener: ListenerContext) -> bytes:
    """Return the broker's CONNECTED; under `unknown: mask` without flags unknown to the gateway."""
    if not listener.unknown_pass:
        command.DiscardUnknownFields()
    return as_read(command, frame)


def _broker_no(command: BaseCommand, listener: ListenerContext) -> Refused:
    code: Any = command.error.error
    detail = str(command.error.message)  # bytes where it is not UTF-8
    listener.rewriter.rewrite(command, BaseCommand.ERROR)
    passed_through = listener.mode is Mode.PASS_THROUGH
    if passed_through and code == ServerError.AuthenticationError:
        return Refused(EndReason.AUTHENTICATION_FAILED, encode(command), detail)
    return Refused(EndReason.BROKER_REFUSED, encode(command), detail)


def _broker_gone(denial: StepResult) -> Refused:
    refusal = denial.refusal if isinstance(denial, Denial) else Refusal.CLOSED
    return _refused(SILENCES.get(refusal, EndReason.BROKER_LOST), _NOT_READY)


def _silent(denial: StepResult) -> Refused:
    """Return the refusal of a client that did not send the awaited frame."""
    if not isinstance(denial, Denial) or denial.refusal not in SILENCES:
        return Refused(EndReason.CLIENT_CLOSED)
    too_large = denial.refusal is Refusal.TOO_MANY
    response = Denial(Refusal.UNSUPPORTED, denial.text) if too_large else denial
    return _refused(SILENCES[denial.refusal], response)


def _refused(reason: EndReason, denial: Denial, detail: str = "") -> Refused:
    return Refused(reason, error(NO_REQUEST, denial), detail or denial.detail)


_NOT_READY = Denial(Refusal.NOT_READY, "the broker did not answer")
_ENDLESS = Denial(Refusal.UNAUTHENTICATED, "the broker asked for too many rounds")
