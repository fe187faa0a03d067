"""From a client's CONNECT to a pair: the conversation that opens a connection.

A CONNECT that names a broker (`proxy_to_broker_url`) is paired with that broker, if the name is one
of ours; any other is paired with any healthy broker. The broker's own answer reaches
the client, CONNECTED with its size limit and flags as well as ERROR with its text.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.address import Address
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
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect, ServerError
from gateway.wire.pulsar.commands import (
    NO_REQUEST,
    NO_ROOM,
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
from gateway.wire.services import Again
from gateway.wire.subject import Caller, Subject

_DIAL_REASONS = {
    Refusal.TARGET: EndReason.TARGET_REFUSED,
    Refusal.TIMEOUT: EndReason.DIAL_TIMEOUT,
}

_LEGACY_METHODS = {1: "ycav1", 2: "athens"}
"""`CommandConnect.auth_method`, which the method's name replaced."""

LONGEST_LIBRARY = 128
"""Characters of what a client says of its library. Real ones have up to 40."""

_OF_PROXIES = frozenset(
    {"original_principal", "original_auth_data", "original_auth_method", "proxy_version"}
)
"""What a client may not say where we verify it: from us, a trusted proxy, it would be believed."""


def open_pair(listener: ListenerContext, origin: Origin) -> Opening:
    """The conversation of one client connection."""
    frame = yield Receive(Peer.CLIENT)
    if not isinstance(frame, bytes):
        return _silent(frame)
    try:
        connect = _connect(frame, listener)
        client = _identify(connect, listener, origin)
        if isinstance(client, Denial):
            return _refused(EndReason.AUTHENTICATION_FAILED, client)
        return (yield from _let_in(listener, client, text(connect.proxy_to_broker_url)))
    except PeerError as violation:
        denial = Denial(Refusal.UNSUPPORTED, str(violation))
        return _refused(EndReason.CLIENT_VIOLATION, denial)


def _let_in(listener: ListenerContext, client: Client, to: str) -> Opening:
    """The conversation from CONNECT on, for which there must be room. `to`: the URL of the broker
    that the client names, if any."""
    if not client.take_room():
        return _refused(EndReason.OUT_OF_MEMORY, NO_ROOM)
    outcome: Opened | Refused | None = None
    try:
        outcome = (yield from _pace(listener, client)) or (yield from _pair(listener, client, to))
        return outcome
    finally:
        if not isinstance(outcome, Opened):  # the session of a pair gives it back at its end
            client.allotment.close()


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
) -> Client | Denial:
    method = text(connect.auth_method_name) or _LEGACY_METHODS.get(connect.auth_method, "")
    credential = Credential(method, connect.auth_data)
    if listener.mode is Mode.PASS_THROUGH:
        nobody = Principal("", verified=False)
        subject = _subject(connect, listener, origin, nobody)
        return Client(connect, nobody, credential, subject, budget=listener.budget)
    principal = listener.services.authenticate(credential)
    if isinstance(principal, Denial):
        return principal
    if principal.name in listener.proxies:
        return _vouched(connect, listener, origin)
    claimed = {field.name for field, _ in connect.ListFields()} & _OF_PROXIES
    if claimed:
        return Denial(Refusal.UNAUTHENTICATED, f"{min(claimed)} is not accepted here")
    if listener.mode is Mode.VERIFY:
        credential = Credential(method, b"")  # it is of no use any more
    subject = _subject(connect, listener, origin, principal)
    return Client(connect, principal, credential, subject, budget=listener.budget)


def _subject(
    connect: CommandConnect, listener: ListenerContext, origin: Origin, principal: Principal
) -> Subject:
    caller = Caller(
        protocol="pulsar",
        connection=origin.id,
        host=origin.host,
        principal=principal.name or None,
        library=_readable(connect.client_version)[:LONGEST_LIBRARY],
    )
    return Subject(listener.services.complete(caller))


def _readable(value: str | bytes) -> str:
    """Return a text that need not be UTF-8: brokers, too, read it with replacement characters."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _vouched(connect: CommandConnect, listener: ListenerContext, origin: Origin) -> Client | Denial:
    """A trusted proxy speaks for a client, as we do towards brokers, by whose rules it goes.

    The client lasts as long as its connection: the proxy's own credential may be renewed
    meanwhile, and all its clients would fall with the old one.
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


def _pace(listener: ListenerContext, client: Client) -> Generator[Step, StepResult, Refused | None]:
    """Where rules limit how often clients connect, this one may have to wait. No broker knows of
    it until then."""
    if Action.CONNECT not in listener.services.paced:
        return None
    answer = listener.services.wait(Action.CONNECT, client.subject)
    while isinstance(answer, Again):
        yield Wait(answer.seconds)
        answer = listener.services.wait(Action.CONNECT, client.subject, answer)
    if isinstance(answer, Denial):
        return _refused(EndReason.TOO_MANY_CONNECTS, answer)
    if answer:
        yield Wait(answer)
    return None


def _pair(listener: ListenerContext, client: Client, to: str) -> Opening:
    target = _target(listener, to)
    if isinstance(target, Denial):
        return _refused(EndReason.TARGET_REFUSED, Denial(Refusal.NOT_READY, target.text))
    through = target if listener.chained else None
    greeting = client.greeting(listener, through=through)
    if isinstance(greeting, Denial):
        return _refused(EndReason.NO_BROKER, greeting)
    dialled = yield Dial(None if listener.chained else target)
    if not isinstance(dialled, Dialled):
        return _undialled(dialled)
    yield Transmit(Peer.BROKER, greeting)
    broker = through if listener.chained else dialled.address
    return (yield from _await_connected(listener, client, broker))


def _target(listener: ListenerContext, url: str) -> Address | Denial | None:
    return listener.services.open(url) if url else None


def _undialled(denial: StepResult) -> Refused:
    if not isinstance(denial, Denial):
        denial = Denial(Refusal.NOT_READY, "no broker")
    return _refused(_DIAL_REASONS.get(denial.refusal, EndReason.NO_BROKER), denial)


def _await_connected(listener: ListenerContext, client: Client, broker: Address | None) -> Opening:
    """The broker may ask for more before it says yes or no."""
    for _ in range(listener.bounds.rounds):
        frame = yield Receive(Peer.BROKER)
        if not isinstance(frame, bytes):
            return _broker_gone(frame)
        try:
            command = decode(frame, listener.bounds.fields)
        except PeerError as violation:
            return _refused(EndReason.BROKER_VIOLATION, _NOT_READY, str(violation))
        if kind_of(frame) == BaseCommand.CONNECTED:
            yield Transmit(Peer.CLIENT, _connected(command, frame, listener))
            most = command.connected.max_message_size
            return Opened(PulsarSession(listener, client, broker, most))
        outcome = yield from _answered(listener, client, command, frame)
        if outcome is not None:
            return outcome
    return _refused(EndReason.AUTHENTICATION_FAILED, _ENDLESS)


def _answered(
    listener: ListenerContext, client: Client, command: BaseCommand, frame: bytes
) -> Generator[Step, StepResult, Refused | None]:
    """Another answer of the broker to our CONNECT; None: it goes on."""
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
    """One round: passed through, or answered with our own credential."""
    if listener.mode is not Mode.PASS_THROUGH:
        ours = client.proof(listener, opened=False)
        if isinstance(ours, Denial):
            return _refused(EndReason.NO_BROKER, ours)
        yield Transmit(Peer.BROKER, auth_response(ours, listener.version))
        return None
    yield Transmit(Peer.CLIENT, as_read(command, frame))
    answer = yield Receive(Peer.CLIENT)
    if not isinstance(answer, bytes):
        return _silent(answer)
    response = decode(answer, listener.bounds.fields)
    if kind_of(answer) != BaseCommand.AUTH_RESPONSE:
        raise PeerError("an AUTH_CHALLENGE is answered by AUTH_RESPONSE")
    yield Transmit(Peer.BROKER, as_read(response, answer))
    return None


def _connected(command: BaseCommand, frame: bytes, listener: ListenerContext) -> bytes:
    """The broker's own word; under `unknown: mask` without flags that we do not know."""
    if not listener.unknown_pass:
        command.DiscardUnknownFields()
    return as_read(command, frame)


def _broker_no(command: BaseCommand, listener: ListenerContext) -> Refused:
    code: Any = command.error.error
    detail = str(command.error.message)  # bytes where it is not UTF-8
    listener.veil.hide(command, BaseCommand.ERROR)
    passed_through = listener.mode is Mode.PASS_THROUGH
    if passed_through and code == ServerError.AuthenticationError:
        return Refused(EndReason.AUTHENTICATION_FAILED, encode(command), detail)
    return Refused(EndReason.BROKER_REFUSED, encode(command), detail)


def _broker_gone(denial: StepResult) -> Refused:
    refusal = denial.refusal if isinstance(denial, Denial) else Refusal.CLOSED
    return _refused(_SILENCES.get(refusal, EndReason.BROKER_LOST), _NOT_READY)


def _silent(denial: StepResult) -> Refused:
    """The client did not say what it had to."""
    if not isinstance(denial, Denial) or denial.refusal not in _SILENCES:
        return Refused(EndReason.CLIENT_CLOSED)
    too_large = denial.refusal is Refusal.TOO_MANY
    told = Denial(Refusal.UNSUPPORTED, denial.text) if too_large else denial
    return _refused(_SILENCES[denial.refusal], told)


_SILENCES = {
    Refusal.TIMEOUT: EndReason.HANDSHAKE_TIMEOUT,
    Refusal.TOO_MANY: EndReason.FRAME_TOO_LARGE,
}
"""What it means that there is no frame, if not that the peer is gone."""


def _refused(reason: EndReason, denial: Denial, detail: str = "") -> Refused:
    return Refused(reason, error(NO_REQUEST, denial), detail or denial.text)


_NOT_READY = Denial(Refusal.NOT_READY, "the broker did not answer")
_ENDLESS = Denial(Refusal.UNAUTHENTICATED, "the broker asked for too many rounds")
