"""Authentication during an opening: of the client at the gateway, and of the gateway at the broker.

A client must be authenticated before the gateway dials a broker for it, but clients send
ApiVersions first. So the gateway responds to ApiVersions from a broker's earlier response. If it
has none, it sends a broker an ApiVersions request of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator
from contextlib import suppress
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.admission import silent
from gateway.wire.contract import (
    Credential,
    Denial,
    Dial,
    Dialled,
    EndReason,
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
from gateway.wire.kafka import greeting
from gateway.wire.kafka.context import Listener
from gateway.wire.kafka.frames import (
    API_VERSIONS,
    Head,
    body_of_response,
    request,
    response,
    written,
)
from gateway.wire.kafka.greeting import Stated
from gateway.wire.kafka.sasl import handshake, mechanisms, plain
from gateway.wire.kafka.sasl.client import SHOWN_BY, chosen
from gateway.wire.kafka.sasl.client import client as proving
from gateway.wire.kafka.sasl.exchange import Accepted, Challenge, Verifier
from gateway.wire.kafka.sasl.handshake import SASL_AUTHENTICATE, SASL_HANDSHAKE, Answered
from gateway.wire.kafka.schema import api
from gateway.wire.kafka.versions import as_offered, offers_in, unsupported
from gateway.wire.plugin import Mode

MOST_ROUNDS = 8
"""The most requests of a client before it authenticates: ApiVersions in up to three versions, and
retries."""

MOST_TRIES = 2
"""The most connections that are made to learn a broker's mechanisms: a broker names them in
response to an unsupported one, and closes the connection."""

MECHANISMS = tuple(dict.fromkeys(name for names in SHOWN_BY.values() for name in names))

BARE = 0
"""The version of SaslHandshake after which tokens have no request around them."""

OURS = b"broker-gateway"
"""The client id in the gateway's own requests."""

HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 1
"""The versions of the gateway's own requests: brokers know them since Kafka 2.2."""

_CERTIFICATE, _NOTHING = "tls", ""
"""Methods that authenticate a client which sends no credential in the protocol."""


class Known(NamedTuple):
    """An authenticated client. `credential`: the client's own, if the gateway can forward it to a
    broker; else None. `stated`: the library and client id that the client states. `method`: the
    authentication method."""

    principal: Principal
    credential: Credential | None
    stated: Stated
    method: str


class Unknown(NamedTuple):
    """A client that failed to authenticate, and why. The gateway has already sent it a response, if
    the protocol has one for the failure."""

    denial: Denial


Identifying = Generator[Step, StepResult, Known | Unknown | Refused]


# -- clients -----------------------------------------------------------------------------------


def mechanisms_of(listener: Listener) -> tuple[str, ...]:
    """Return the SASL mechanisms that clients of a listener may choose. PLAIN, which sends the
    password itself, is among them only if the listener has TLS."""
    offered = mechanisms.offered(listener.settings.services.methods)
    return tuple(
        mechanism for mechanism in offered if listener.settings.tls or mechanism != plain.MECHANISM
    )


def identify(listener: Listener, origin: Origin) -> Identifying:
    """Return the generator that authenticates a client: it yields steps such as `Receive`. Its
    result is the authenticated client, or why it is refused. Raises `PeerError` if the client
    violates the protocol."""
    stated = Stated()
    for _ in range(MOST_ROUNDS):
        key = yield from greeting.begins()
        if isinstance(key, Denial):
            return silent(key)
        if key not in (API_VERSIONS, SASL_HANDSHAKE):
            return (yield from _by_connection(listener, origin, stated))
        frame = yield Receive(Peer.CLIENT)
        if not isinstance(frame, bytes):
            return silent(frame)
        head = request(frame)
        if key == SASL_HANDSHAKE:
            return (yield from _by_sasl(listener, origin, head, frame, stated))
        stated = greeting.stated(head, frame)
        refused = yield from _offer_versions(listener, head)
        if refused is not None:
            return refused
    raise PeerError("a client that does not say who it is")


def _by_connection(listener: Listener, origin: Origin, stated: Stated) -> Identifying:
    """Authenticate a client by its certificate, or as anonymous, where the listener has these
    methods."""
    services = listener.settings.services
    methods = services.methods
    if origin.certificate is not None and _CERTIFICATE in methods:
        method = _CERTIFICATE
    elif _NOTHING in methods:
        method = _NOTHING
    else:
        return Unknown(Denial(Refusal.UNAUTHENTICATED, "a client that says not who it is"))
    authenticated = services.authenticate(Credential(method, b""), origin.host, origin.certificate)
    outcome = yield from settled(authenticated)
    return Unknown(outcome) if isinstance(outcome, Denial) else Known(outcome, None, stated, method)


def _by_sasl(
    listener: Listener, origin: Origin, head: Head, frame: bytes, stated: Stated
) -> Identifying:
    services = listener.settings.services
    offered = mechanisms_of(listener)
    mechanism = handshake.mechanism_of(head, frame)
    if mechanism not in offered:
        offer = handshake.offer(head, offered, handshake.UNSUPPORTED_SASL_MECHANISM)
        yield Transmit(Peer.CLIENT, offer)
        return Unknown(Denial(Refusal.UNAUTHENTICATED, "a mechanism that is not offered"))
    yield Transmit(Peer.CLIENT, handshake.offer(head, offered))
    talk = _Talk(head.version == BARE)
    token = yield from talk.token()
    if not isinstance(token, bytes):
        return silent(token)
    exchange = mechanisms.begin(
        mechanism, token, Verifier(services, origin.host, origin.certificate)
    )
    result: StepResult = None
    try:
        while True:
            step = exchange.send(result)
            if not isinstance(step, Challenge):
                result = yield step
                continue
            yield Transmit(Peer.CLIENT, talk.response(step.data))
            result = yield from talk.token()
            if not isinstance(result, bytes):
                return silent(result)
    except StopIteration as stop:
        outcome = stop.value
    if isinstance(outcome, Accepted):
        left = handshake.lifetime_ms(services.left(outcome.principal))
        yield Transmit(Peer.CLIENT, talk.response(outcome.data, left))
        return Known(outcome.principal, outcome.credential, stated, mechanism)
    delay = services.setback(origin.host)
    if delay:
        yield Wait(delay, yields=True)
    yield Transmit(Peer.CLIENT, talk.failed())
    return Unknown(outcome)


class _Talk:
    """Receives the SASL tokens of a client and makes the responses, in SaslAuthenticate requests,
    or without them (`bare`)."""

    def __init__(self, bare: bool) -> None:  # noqa: FBT001 - the one thing that it is made of
        self._bare = bare
        self._head = Head(SASL_AUTHENTICATE, 0, 0, None, -1)

    def token(self) -> Generator[Step, StepResult, bytes | Denial]:
        """Return the client's next SASL token. Raises `PeerError` if another request comes."""
        frame = yield Receive(Peer.CLIENT)
        if not isinstance(frame, bytes):
            assert isinstance(frame, Denial)
            return frame
        if self._bare:
            return handshake.read_bare(frame)
        self._head = request(frame)
        if self._head.key != SASL_AUTHENTICATE:
            raise PeerError("another request than SaslAuthenticate within SASL")
        return handshake.token_of(self._head, frame)

    def response(self, data: bytes, lifetime_ms: int = 0) -> bytes:
        """Return the response to the client's last SASL token."""
        if self._bare:
            return handshake.bare(data)
        return handshake.response(self._head, data, lifetime_ms)

    def failed(self) -> bytes:
        """Return the response that refuses the client; no bytes if it sends tokens without
        SaslAuthenticate requests."""
        return b"" if self._bare else handshake.failed(self._head)


def _offer_versions(listener: Listener, head: Head) -> Generator[Step, StepResult, Refused | None]:
    """Respond to ApiVersions."""
    known = api(API_VERSIONS)
    assert known is not None
    if head.body < 0:
        yield Transmit(Peer.CLIENT, response(known, 0, head.correlation, unsupported()))
        return None
    if not listener.offers:
        yield from ask_for_versions(listener)
    if not listener.offers:
        return Refused(EndReason.NO_BROKER, detail="no broker says which versions it knows")
    body = as_offered(head.version, listener.offers)
    yield Transmit(Peer.CLIENT, response(known, head.version, head.correlation, body))
    return None


def ask_for_versions(listener: Listener) -> Generator[Step, StepResult, None]:
    """Send an ApiVersions request to any broker, and keep the versions of its response in the
    listener's `offers`. If no broker responds, `offers` is not changed."""
    known = api(API_VERSIONS)
    assert known is not None
    dialled = yield Dial(None)
    if not isinstance(dialled, Dialled):
        return
    yield Transmit(Peer.BROKER, written(known, 0, 0, OURS, b""))
    frame = yield Receive(Peer.BROKER)
    if isinstance(frame, bytes):
        with suppress(PeerError):  # it is no broker of Kafka
            start = body_of_response(known, 0, frame)
            listener.offers = offers_in(known.response, 0, frame, start, listener.hidden)


# -- brokers -----------------------------------------------------------------------------------


def reach(
    listener: Listener,
    target: Address | None,
    principal: str | None,
    shown: Credential | None = None,
) -> Generator[Step, StepResult, Reached | Denial]:
    """Dial the broker at `target` (None: any broker), and authenticate there by SASL. Return the
    broker, or a denial if none is reached or the broker refuses. The broker gets the credential
    that `credential_of` returns. `principal`: the client's name. `shown`: the client's own
    credential. Raises `PeerError` if the broker violates the protocol."""
    credential = credential_of(listener, principal, shown)
    if isinstance(credential, Denial):
        return credential
    refused = NO_MECHANISM
    for _ in range(MOST_TRIES):
        dialled = yield Dial(target, principal)
        if not isinstance(dialled, Dialled):
            assert isinstance(dialled, Denial)
            return dialled
        if credential.method in SHOWN_BY_NOTHING:
            return Reached(dialled.address)
        mechanism = listener.mechanism or _best(listener, credential, MECHANISMS)
        outcome = yield from show(credential, mechanism) if mechanism else _nothing()
        if not isinstance(outcome, Rejected):
            listener.mechanism = mechanism
            return Reached(dialled.address, outcome)
        refused = outcome.denial
        listener.mechanism = _best(listener, credential, outcome.offered)
        if listener.mechanism in (None, mechanism):
            break
    return refused


def credential_of(
    listener: Listener, principal: str | None, shown: Credential | None
) -> Credential | Denial:
    """Return the credential for a broker: in pass-through none, in verify-and-forward the client's
    own (`shown`), otherwise the gateway's or the one configured for `principal`, the client's name.
    Return a denial if it is missing."""
    match listener.settings.mode:
        case Mode.PASS_THROUGH:
            return _NO_CREDENTIAL
        case Mode.VERIFY_AND_FORWARD:
            return _NOT_FORWARDED if shown is None else shown
    return listener.settings.services.credential(principal)


class Reached(NamedTuple):
    """A broker at which a connection is authenticated. `lifetime`: seconds after which the broker
    ends the connection, unless it is authenticated again."""

    address: Address
    lifetime: float = math.inf


class Rejected(NamedTuple):
    """A broker that has not accepted the gateway. `offered`: the mechanisms that it supports."""

    denial: Denial
    offered: tuple[str, ...] = ()


def _best(listener: Listener, credential: Credential, offered: Collection[str]) -> str | None:
    plainly = listener.settings.brokers_tls or listener.settings.shows_passwords
    return chosen(credential, offered, plainly=plainly)


def _nothing() -> Generator[Step, StepResult, Rejected]:
    yield from ()
    return Rejected(NO_MECHANISM)


def show(credential: Credential, mechanism: str) -> Generator[Step, StepResult, Rejected | float]:
    """Authenticate at a broker by a mechanism; return the seconds for which the broker accepts the
    credential, or why it does not."""
    yield Transmit(Peer.BROKER, handshake.ask_for(mechanism, HANDSHAKE_VERSION, 0, OURS))
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        return Rejected(_SILENT)
    offered = handshake.read_offer(HANDSHAKE_VERSION, frame)
    if offered.error:
        return Rejected(NO_MECHANISM, offered.mechanisms)
    proves = proving(mechanism, credential)
    try:
        token = next(proves)
        while True:
            yield Transmit(Peer.BROKER, handshake.show(token, AUTHENTICATE_VERSION, 0, OURS))
            frame = yield Receive(Peer.BROKER)
            if not isinstance(frame, bytes):
                return Rejected(_SILENT)
            outcome = handshake.read_answer(AUTHENTICATE_VERSION, frame)
            if outcome.error:
                return Rejected(NOT_ACCEPTED)
            token = proves.send(outcome.data)
    except StopIteration:
        return lifetime_of(outcome)


def lifetime_of(accepted: Answered) -> float:
    """Return the seconds for which a broker accepts a credential, as the broker's response states
    them; `math.inf` if the credential does not expire."""
    return accepted.lifetime_ms / 1000 if accepted.lifetime_ms else math.inf


SHOWN_BY_NOTHING = ("none", "", "tls")
"""Methods of credentials that are not sent in the protocol."""

_NO_CREDENTIAL = Credential("none", b"")
_NOT_FORWARDED = Denial(
    Refusal.UNAUTHENTICATED, "the client has proven who it is, and shown nothing to forward"
)
_SILENT = Denial(Refusal.NOT_READY, "the broker did not answer")
NO_MECHANISM = Denial(
    Refusal.NOT_READY, "the broker has no mechanism by which the gateway may show its credential"
)
NOT_ACCEPTED = Denial(Refusal.NOT_READY, "the broker does not accept the gateway's credential")
