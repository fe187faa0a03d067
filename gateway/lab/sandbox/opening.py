"""Handlers that open a connection and keep it alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway import __version__
from gateway.lab.sandbox import answers
from gateway.lab.sandbox.answers import ErrorReply
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ProtocolVersion
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.sandbox.session import BrokerSession, Handler
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect, CommandPing

SERVER_VERSION = f"Broker gateway sandbox {__version__}"

LARGEST_MESSAGE = 5 * 1024 * 1024
"""Bytes; Pulsar's default."""

NEWEST = max(ProtocolVersion.values())

FEATURES = {"supports_get_partitioned_metadata_without_auto_creation": True}
"""Feature flags. Without watched topic lists clients poll the topics instead."""


def connect(session: BrokerSession, command: CommandConnect, _: bytes) -> None:
    """Accept or refuse a client's CONNECT. Like a broker, ignore its `proxy_to_broker_url`."""
    roles = session.context.authenticator.authenticate(command, session.now)
    if isinstance(roles, ErrorReply):
        session.end(roles)
        return
    session.roles = roles
    session.is_open = True
    version = min(command.protocol_version, NEWEST)
    session.send(
        answers.frame(
            Kind.CONNECTED,
            server_version=SERVER_VERSION,
            protocol_version=version,
            max_message_size=LARGEST_MESSAGE,
            feature_flags=FEATURES,
        )
    )


def ping(session: BrokerSession, _: CommandPing, __: bytes) -> None:
    session.send(answers.frame(Kind.PONG))


def ignore(session: BrokerSession, _: object, __: bytes) -> None:
    """Do nothing, for a command that needs no response and changes nothing in the sandbox."""


HANDLERS: Mapping[int, Handler] = {
    Kind.CONNECT: connect,
    Kind.PING: ping,
    Kind.PONG: ignore,
    Kind.AUTH_RESPONSE: ignore,
}
