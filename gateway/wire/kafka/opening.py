"""The opening conversation of a connection, from the client's first request to the pair.

Clients mostly send ApiVersions first, and state their library in it. If a client begins with
another request, the pair (the client connection and its broker connection) is opened at once, and
its session handles that request. The address to which a client has connected says which broker it
wants (`Services.reached`). If the gateway does not know that broker's address yet, because it has
just started, it requests Metadata from any broker.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.admission import admit, silent, undialled
from gateway.wire.budget import Quota
from gateway.wire.contract import (
    Denial,
    EndReason,
    Opened,
    Opening,
    Origin,
    Peer,
    Principal,
    Receive,
    Refused,
    Step,
    StepResult,
    Transmit,
)
from gateway.wire.kafka.addresses import METADATA, nodes
from gateway.wire.kafka.authenticating import Known, Unknown, identify, reach
from gateway.wire.kafka.context import CLIENT_SIZE, Client, Listener
from gateway.wire.kafka.frames import (
    API_VERSIONS,
    SIZE,
    Head,
    body_of_response,
    correlation,
    request,
    response,
)
from gateway.wire.kafka.greeting import Stated, begins, stated
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.session import KafkaSession
from gateway.wire.kafka.versions import offered, offers_in, unsupported
from gateway.wire.plugin import Mode
from gateway.wire.subject import Caller, Subject

MOST_GREETINGS = 3
"""The most versions of ApiVersions that a client may try; real clients take the version that they
are told after the first."""

_NODES_VERSION = 1
"""The first version of Metadata in which a client can request no topic. Every broker knows it."""

_NOBODY = Known(Principal("", verified=False), None, Stated(), "")
"""A client that its broker authenticates, and the gateway does not."""


class Greeting(NamedTuple):
    """The ApiVersions request with which a client begins. `frame`: empty if the client begins with
    another request."""

    frame: bytes = b""
    head: Head = Head(API_VERSIONS, 0, 0, None, -1)
    stated: Stated = Stated()


def open_pair(listener: Listener, origin: Origin) -> Opening:
    """Return the opening conversation of one client connection."""
    settings = listener.settings
    caller = Caller("kafka", None, None, origin.id, origin.host)
    caller = settings.services.complete(caller)
    try:
        if settings.mode is Mode.PASS_THROUGH:
            greeted = yield from _greeting()
            known: Known | Unknown | Refused = _NOBODY
        else:
            greeted, known = Greeting(), (yield from identify(listener, origin))
        if isinstance(greeted, Refused):
            return greeted
        if isinstance(known, Refused):
            return known
        if isinstance(known, Unknown):
            denied = known.denial.detail
            return Refused(EndReason.AUTHENTICATION_FAILED, detail=denied, caller=caller)
        caller = Caller(
            *caller[:5],
            principal=known.principal.name or None,
            library=known.stated.library or greeted.stated.library,
            method=known.method or None,
            client_id=known.stated.client_id or greeted.stated.client_id or None,
        )
        quota = Quota(settings.budget, origin.host)
        client = Client(Subject(caller), quota, known.principal, known.credential)
        client.node = settings.services.reached(origin)
        pair = _pair(listener, client, greeted)
        outcome = yield from admit(settings.services, client, CLIENT_SIZE, pair)
    except PeerError as violation:
        return Refused(EndReason.CLIENT_VIOLATION, detail=str(violation), caller=caller)
    return replace(outcome, caller=caller) if isinstance(outcome, Refused) else outcome


# -- the client --------------------------------------------------------------------------------


def _greeting() -> Generator[Step, StepResult, Greeting | Refused]:
    """Receive the client's first request if it is ApiVersions, and leave any other unread."""
    known = _api(API_VERSIONS)
    for _ in range(MOST_GREETINGS):
        key = yield from begins()
        if isinstance(key, Denial):
            return silent(key)
        if key != API_VERSIONS:
            return Greeting()
        frame = yield Receive(Peer.CLIENT)
        if not isinstance(frame, bytes):
            return silent(frame)
        head = request(frame)
        if head.body >= 0:
            return Greeting(frame, head, stated(head, frame))
        yield Transmit(Peer.CLIENT, response(known, 0, head.correlation, unsupported()))
    raise PeerError("a client that takes no version of ApiVersions")


# -- the broker --------------------------------------------------------------------------------


def _pair(listener: Listener, client: Client, greeted: Greeting) -> Opening:
    services = listener.settings.services
    principal = client.subject.caller.principal
    try:
        target: Address | None = None
        if client.node is not None:
            target = services.broker(client.node)
            knows_nodes = target is not None or (yield from _find_nodes(listener, client))
            target = target or services.broker(client.node)
            if knows_nodes and target is None:
                return Refused(EndReason.NO_BROKER, detail=f"there is no broker {client.node}")
        reached = yield from reach(listener, target, principal, client.credential)
        if isinstance(reached, Denial):
            return undialled(reached)
        client.lifetime = reached.lifetime
        if client.node is not None and target is None:
            client.guessed = reached.address
        if not greeted.frame:
            return Opened(KafkaSession(listener, client))
        yield Transmit(Peer.BROKER, greeted.frame)
        versions = yield Receive(Peer.BROKER)
        if not isinstance(versions, bytes):
            return Refused(EndReason.BROKER_LOST, detail="the broker did not answer")
        changed = versions_for(listener, greeted.head, versions)
    except PeerError as violation:
        return Refused(EndReason.BROKER_VIOLATION, detail=str(violation))
    yield Transmit(Peer.CLIENT, changed)
    return Opened(KafkaSession(listener, client))


def versions_for(listener: Listener, head: Head, frame: bytes) -> bytes:
    """Return the response to a client's ApiVersions request, changed from `frame`, the broker's
    response. Keep the broker's versions for later clients. `head`: the head of the client's
    request. Raises `PeerError` if `frame` is truncated, or belongs to another request."""
    known = _api(API_VERSIONS)
    if correlation(frame) != head.correlation:
        raise PeerError("an answer to another request")
    start = body_of_response(known, head.version, frame)
    listener.offers = offers_in(known.response, head.version, frame, start, listener.hidden)
    changed = offered(known.response, head.version, frame, start, listener.hidden)
    return SIZE.pack(len(changed) - SIZE.size) + changed[SIZE.size :]


def _find_nodes(listener: Listener, client: Client) -> Generator[Step, StepResult, bool]:
    """Request the addresses of all brokers from any broker; return whether it has responded with
    them. A broker that requires authentication first does not."""
    principal = client.subject.caller.principal
    dialled = yield from reach(listener, None, principal, client.credential)
    if isinstance(dialled, Denial):
        return False
    yield Transmit(Peer.BROKER, _ASK_FOR_NODES)
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        return False
    known = _api(METADATA)
    settings = listener.settings
    try:
        start = body_of_response(known, _NODES_VERSION, frame)
        for node in nodes(known.response, _NODES_VERSION, frame, start):
            broker = node.address(tls=settings.brokers_tls)
            settings.services.advertise_node(node.id, broker)
    except PeerError:
        return False
    return True


def _api(key: int) -> Api:
    known = api(key)
    assert known is not None
    return known


def _framed(data: bytes) -> bytes:
    return SIZE.pack(len(data)) + data


_ASK_FOR_NODES = _framed(struct.pack(">hhihi", METADATA, _NODES_VERSION, 0, -1, 0))
