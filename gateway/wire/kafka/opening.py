"""The conversation that opens a connection, from the client's first request to the pair.

Clients mostly ask for ApiVersions first, and say who they are in it. A client that begins with
another request gets its pair at once, whose session decides that request. The address at which a
client has connected says which broker it wants (`Services.reached`). A gateway that has just
started may not know yet where that one is, and asks any broker for it.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import replace
from sys import intern
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.address import Address
from gateway.wire.budget import Allotment
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    EndReason,
    Opened,
    Opening,
    Origin,
    Peek,
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
from gateway.wire.kafka.addresses import METADATA, nodes
from gateway.wire.kafka.context import CLIENT_SIZE, Client, Listener
from gateway.wire.kafka.frames import (
    API_VERSIONS,
    SIZE,
    Head,
    answer,
    body_of_answer,
    correlation,
    request,
)
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.session import KafkaSession
from gateway.wire.kafka.versions import is_offered, library_of, offered, unsupported
from gateway.wire.services import Again
from gateway.wire.subject import Caller, Subject

HEAD = struct.Struct(">ihhi")
"""Of a request: size, API, version, correlation id."""

MOST_TRIES = 3
"""Versions of ApiVersions that a client may try; real ones take the one that they are told."""

_NODES_VERSION = 1
"""Of Metadata: the first in which a client can ask for no topic. Every broker knows it."""

_TLS = b"\x16\x03"
_DIAL_REASONS = {
    Refusal.TARGET: EndReason.TARGET_REFUSED,
    Refusal.TIMEOUT: EndReason.DIAL_TIMEOUT,
}
_SILENCES = {
    Refusal.TIMEOUT: EndReason.HANDSHAKE_TIMEOUT,
    Refusal.TOO_MANY: EndReason.FRAME_TOO_LARGE,
}


class Greeting(NamedTuple):
    """The request for ApiVersions with which a client begins. `frame`: empty if it does not."""

    frame: bytes = b""
    head: Head = Head(API_VERSIONS, 0, 0, None, -1)
    library: str = ""


def open_pair(listener: Listener, origin: Origin) -> Opening:
    """Return the opening conversation of one client connection."""
    try:
        greeting = yield from _greeting()
        if isinstance(greeting, Refused):
            return greeting
        caller = Caller("kafka", None, None, origin.id, origin.host, library=greeting.library)
        services = listener.settings.services
        subject = Subject(services.complete(caller))
        allotment = Allotment(listener.settings.budget, origin.host)
        client = Client(subject, Principal("", verified=False), allotment)
        client.node = services.reached(origin)
        outcome = yield from _let_in(listener, client, greeting)
    except PeerError as violation:
        return Refused(EndReason.CLIENT_VIOLATION, detail=str(violation))
    caller = client.subject.caller
    return replace(outcome, caller=caller) if isinstance(outcome, Refused) else outcome


# -- the client --------------------------------------------------------------------------------


def _greeting() -> Generator[Step, StepResult, Greeting | Refused]:
    """Receive the client's first request, unless it is another one than ApiVersions."""
    known = api(API_VERSIONS)
    assert known is not None
    for _ in range(MOST_TRIES):
        seen = yield Peek(Peer.CLIENT, HEAD.size)
        if not isinstance(seen, bytes):
            return _silent(seen)
        if _begins(seen) != API_VERSIONS:
            return Greeting()
        frame = yield Receive(Peer.CLIENT)
        if not isinstance(frame, bytes):
            return _silent(frame)
        head = request(frame)
        if head.body >= 0:
            return Greeting(frame, head, intern(library_of(known.request, head, frame)))
        yield Transmit(Peer.CLIENT, answer(known, 0, head.correlation, unsupported()))
    raise PeerError("a client that takes no version of ApiVersions")


def _begins(seen: bytes) -> int:
    """Return the API of a connection's first request. Raises `PeerError` if it is none."""
    size, key, version, _ = HEAD.unpack(seen)
    if seen.startswith(_TLS):
        raise PeerError("TLS, on a listener without TLS")
    if size < HEAD.size - SIZE.size or version < 0 or not is_offered(key):
        raise PeerError("a connection does not begin with a request of Kafka")
    return int(key)


def _let_in(listener: Listener, client: Client, greeting: Greeting) -> Opening:
    """Go on with a client that may be let in."""
    services = listener.settings.services
    if not client.allotment.fits(CLIENT_SIZE):
        return Refused(EndReason.OUT_OF_MEMORY, detail="no room for another connection")
    client.allotment.take(CLIENT_SIZE)
    seat = services.seat(client.subject)
    if isinstance(seat, Denial):
        client.leave()
        return Refused(EndReason.TOO_MANY_CONNECTIONS, detail=seat.text)
    client.seat = seat
    outcome: Opened | Refused | None = None
    try:
        outcome = (yield from _pace(listener, client)) or (
            yield from _pair(listener, client, greeting)
        )
        return outcome
    finally:
        if not isinstance(outcome, Opened):  # otherwise the session gives it back at its end
            client.leave()


def _pace(listener: Listener, client: Client) -> Generator[Step, StepResult, Refused | None]:
    """Make the client wait if rules limit the rate of connections."""
    services = listener.settings.services
    if Action.CONNECT not in services.paced:
        return None
    found = services.wait(Action.CONNECT, client.subject)
    while isinstance(found, Again):
        yield Wait(found.seconds)
        found = services.wait(Action.CONNECT, client.subject, found)
    if isinstance(found, Denial):
        return Refused(EndReason.TOO_MANY_CONNECTS, detail=found.text)
    if found:
        yield Wait(found)
    return None


def _silent(denial: StepResult) -> Refused:
    assert isinstance(denial, Denial)
    reason = _SILENCES.get(denial.refusal, EndReason.CLIENT_CLOSED)
    return Refused(reason, detail=denial.text)


# -- the broker --------------------------------------------------------------------------------


def _pair(listener: Listener, client: Client, greeting: Greeting) -> Opening:
    services = listener.settings.services
    target: Address | None = None
    if client.node is not None:
        target = services.broker(client.node)
        told = target is not None or (yield from _find_nodes(listener, client))
        target = target or services.broker(client.node)
        if told and target is None:
            return Refused(EndReason.NO_BROKER, detail=f"there is no broker {client.node}")
    dialled = yield Dial(target, client.subject.caller.principal)
    if not isinstance(dialled, Dialled):
        return _undialled(dialled)
    if target is None:
        client.guessed = dialled.address
    if not greeting.frame:
        return Opened(KafkaSession(listener, client))
    yield Transmit(Peer.BROKER, greeting.frame)
    told_versions = yield Receive(Peer.BROKER)
    if not isinstance(told_versions, bytes):
        return Refused(EndReason.BROKER_LOST, detail="the broker did not answer")
    try:
        changed = versions_for(greeting.head, told_versions)
    except PeerError as violation:
        return Refused(EndReason.BROKER_VIOLATION, detail=str(violation))
    yield Transmit(Peer.CLIENT, changed)
    return Opened(KafkaSession(listener, client))


def versions_for(head: Head, frame: bytes) -> bytes:
    """Return the broker's answer to ApiVersions as the client gets it. Raises `PeerError`."""
    known = _api(API_VERSIONS)
    if correlation(frame) != head.correlation:
        raise PeerError("an answer to another request")
    start = body_of_answer(known, head.version, frame)
    changed = offered(known.response, head.version, frame, start)
    return SIZE.pack(len(changed) - SIZE.size) + changed[SIZE.size :]


def _find_nodes(listener: Listener, client: Client) -> Generator[Step, StepResult, bool]:
    """Ask any broker where all of them are; return whether it has said so. A broker that wants to
    know first who asks does not."""
    dialled = yield Dial(None, client.subject.caller.principal)
    if not isinstance(dialled, Dialled):
        return False
    yield Transmit(Peer.BROKER, _ASK_FOR_NODES)
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        return False
    known = _api(METADATA)
    settings = listener.settings
    try:
        start = body_of_answer(known, _NODES_VERSION, frame)
        for node in nodes(known.response, _NODES_VERSION, frame, start):
            broker = node.address(tls=settings.brokers_tls)
            settings.services.advertise_node(node.id, broker)
    except PeerError:
        return False
    return True


def _undialled(denial: StepResult) -> Refused:
    if not isinstance(denial, Denial):
        denial = Denial(Refusal.NOT_READY, "no broker")
    return Refused(_DIAL_REASONS.get(denial.refusal, EndReason.NO_BROKER), detail=denial.text)


def _api(key: int) -> Api:
    found = api(key)
    assert found is not None
    return found


def _framed(data: bytes) -> bytes:
    return SIZE.pack(len(data)) + data


_ASK_FOR_NODES = _framed(struct.pack(">hhihi", METADATA, _NODES_VERSION, 0, -1, 0))
