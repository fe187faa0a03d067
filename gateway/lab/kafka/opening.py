"""Handlers of the requests that open a connection: versions, and the login.

Sources: KIP-35 and KIP-511 (ApiVersions), KIP-43 and KIP-152 (SASL), KIP-368 (reauthentication).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gateway.errors import PeerError
from gateway.lab.kafka.codes import FIRST, Error, Key
from gateway.lab.kafka.users import DENIED
from gateway.wire.kafka.schema import api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
_FIRST_WITH_SOFTWARE = 3

_FIRST_WITH_HEADS = 1
"""The first version of SaslHandshake behind which the login's messages are requests."""


async def versions(session: KafkaSession, request: Request) -> Struct:
    """Return the APIs that the sandbox serves, with their versions (ApiVersions)."""
    if request.version >= _FIRST_WITH_SOFTWARE:
        names = (request.body["ClientSoftwareName"], request.body["ClientSoftwareVersion"])
        if not all(map(_SOFTWARE.fullmatch, names)):
            return {"ErrorCode": Error.INVALID_REQUEST}
    return {"ApiKeys": list(_offered(session.context.handlers))}


def _offered(keys: Iterable[int]) -> Iterable[Struct]:
    for key in sorted(keys):
        known = api(key)
        assert known is not None
        # librdkafka compresses only where it sees old versions, so brokers name them, though they
        # take none below 3 (KAFKA-18659).
        least = 0 if key == Key.PRODUCE else FIRST.get(key, 0)
        yield {"ApiKey": key, "MinVersion": least, "MaxVersion": known.request.last}


async def handshake(session: KafkaSession, request: Request) -> Struct:
    """Begin a login with a SASL mechanism (SaslHandshake). An unknown mechanism ends the
    connection."""
    users = session.context.users
    session.exchange = users.begin(request.body["Mechanism"])
    session.is_raw = session.exchange is not None and request.version < _FIRST_WITH_HEADS
    error = Error.NONE
    if session.exchange is None:
        session.is_ended = True
        error = Error.UNSUPPORTED_SASL_MECHANISM
    return {"ErrorCode": error, "Mechanisms": users.mechanisms}


async def authenticate(session: KafkaSession, request: Request) -> Struct:
    """Check one message of a login (SaslAuthenticate). A failed login ends the connection. Raises
    `PeerError`, which ends the connection too, if a client reauthenticates as another principal."""
    if session.exchange is None:
        session.is_ended = True
        why = "a handshake comes first"
        return {"ErrorCode": Error.ILLEGAL_SASL_STATE, "ErrorMessage": why}
    now = session.now
    outcome = session.exchange.step(request.body["AuthBytes"], now)
    if outcome.error:
        session.is_ended = True
        return {"ErrorCode": outcome.error, "ErrorMessage": DENIED}
    if not outcome.principal:
        return {"AuthBytes": outcome.reply}
    if session.principal not in ("", outcome.principal):
        raise PeerError("a login as somebody else")
    session.principal, session.exchange = outcome.principal, None
    lifetime = session.context.users.lifetime
    if lifetime and outcome.until:
        lifetime = min(lifetime, outcome.until - now)
    session.expires = now + lifetime if lifetime else 0.0
    return {"AuthBytes": outcome.reply, "SessionLifetimeMs": int(lifetime * 1000)}


HANDLERS: Mapping[int, Handler] = {
    Key.API_VERSIONS: versions,
    Key.SASL_HANDSHAKE: handshake,
    Key.SASL_AUTHENTICATE: authenticate,
}
