"""The opening conversation of a connection.

The address at which a client has connected says whether it wants the master or a broker
(`Services.reached`). If there are several masters, one is active, and the others reply to every
request with an error. So the gateway connects a client to the active master. A gateway that has
just started does not know where brokers are. To learn it, the gateway registers at the master as a
producer, and closes this producer at once.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.admission import admit, silent, undialled
from gateway.wire.budget import Quota
from gateway.wire.contract import (
    Credential,
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
    Refusal,
    Refused,
    Step,
    StepResult,
)
from gateway.wire.plugin import EntrySettings
from gateway.wire.subject import Caller, Subject
from gateway.wire.tubemq.asking import Role, find_brokers, role
from gateway.wire.tubemq.callers import SIGNATURE
from gateway.wire.tubemq.context import CLIENT_SIZE, Client, Listener
from gateway.wire.tubemq.frames import HEAD, head
from gateway.wire.tubemq.session import TubeSession

_TLS, _NOTHING = "tls", ""
"""Methods that authenticate a client which sends no credential in the protocol."""

MOST_MASTERS = 5
"""The most masters that are dialled to find the active one. Clusters have two or three."""


def open_pair(listener: Listener, origin: Origin) -> Opening:
    """Return the steps that open a pair for one client connection."""
    settings = listener.settings
    caller = settings.services.complete(Caller("tubemq", None, None, origin.id, origin.host))
    known = _known(settings, origin)
    if isinstance(known, Denial):
        return Refused(EndReason.AUTHENTICATION_FAILED, detail=known.detail, caller=caller)
    if known is not None:
        caller = caller._replace(principal=known.principal.name, method=known.method or None)
    client = Client(
        Subject(caller),
        Quota(settings.budget, origin.host),
        settings.services.reached(origin),
        principal=None if known is None else known.principal,
        signs=SIGNATURE in settings.services.methods and (known is None or known.method != _TLS),
    )
    try:
        seen = yield Peek(Peer.CLIENT, HEAD.size)
        if not isinstance(seen, bytes):
            return silent(seen)
        head(seen)
        pair = _pair(listener, client)
        outcome = yield from admit(settings.services, client, CLIENT_SIZE, pair)
    except PeerError as violation:
        return Refused(EndReason.CLIENT_VIOLATION, detail=str(violation), caller=caller)
    return replace(outcome, caller=caller) if isinstance(outcome, Refused) else outcome


class _Known(NamedTuple):
    """A client's identity by its connection. `method`: that of its authentication."""

    principal: Principal
    method: str


def _known(settings: EntrySettings, origin: Origin) -> _Known | Denial | None:
    """Return a client's identity by its connection, or why it may not connect; None if its requests
    are authenticated each, or no client is."""
    methods = settings.services.methods
    denial: Denial | None = None
    for method in (_TLS, _NOTHING):
        if method in methods and not (method == _TLS and origin.certificate is None):
            outcome = settings.services.authenticate(
                Credential(method, b""), origin.host, origin.certificate
            )
            if isinstance(outcome, Principal):
                return _Known(outcome, method)
            assert isinstance(outcome, Denial), "certificates are verified from memory"
            denial = outcome
    if not methods or SIGNATURE in methods:
        return None
    return denial or Denial(Refusal.UNAUTHENTICATED, "the client shows no certificate")


def _pair(listener: Listener, client: Client) -> Opening:
    try:
        if client.node is None:
            reached = yield from _dial_master()
            if isinstance(reached, Dialled) and not listener.knows_brokers:
                yield from _find_brokers(listener)
        else:
            reached = yield from _dial_broker(listener, client)
    except PeerError as violation:
        return Refused(EndReason.BROKER_VIOLATION, detail=str(violation))
    if isinstance(reached, Denial):
        return undialled(reached)
    return Opened(TubeSession(listener, client))


def _dial_broker(
    listener: Listener, client: Client
) -> Generator[Step, StepResult, Dialled | Denial]:
    """Dial the broker that a client wants. If its address, or the token for brokers, is unknown,
    ask a master for it first."""
    services, node = listener.settings.services, client.node
    assert node is not None
    if services.broker(node) is None or (client.signs and not listener.visit):
        dialled = yield from _dial_master()
        if isinstance(dialled, Denial):
            return dialled
        yield from _find_brokers(listener)
    target = services.broker(node)
    if target is None:
        return Denial(Refusal.NOT_READY, f"there is no broker {node}")
    result = yield Dial(target)
    assert isinstance(result, Dialled | Denial)
    return result


def _dial_master() -> Generator[Step, StepResult, Dialled | Denial]:
    """Dial masters until one is active. Raises `PeerError` if a reply is malformed."""
    for _ in range(MOST_MASTERS):
        dialled = yield Dial()
        assert isinstance(dialled, Dialled | Denial)
        if isinstance(dialled, Denial) or (yield from role()) is Role.ACTIVE:
            return dialled
    return Denial(Refusal.NOT_READY, "no master is active")


def _find_brokers(listener: Listener) -> Generator[Step, StepResult, None]:
    """Learn the brokers from the dialled active master, since its replies to some clients have only
    the addresses of single brokers. Raises `PeerError` if the reply is malformed."""
    cluster = yield from find_brokers(tls=listener.settings.brokers_tls)
    if cluster.visit:
        listener.visit = cluster.visit
    for id, broker in cluster.brokers.items():
        listener.settings.services.advertise_node(id, broker)
    listener.knows_brokers = bool(cluster.brokers)
