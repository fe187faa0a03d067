"""Opening a connection, and keeping it alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway import __version__
from gateway.sandbox import answers
from gateway.sandbox.answers import Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ProtocolVersion
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.sandbox.session import Handler, Session
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect, CommandPing

SERVER = f"Broker gateway sandbox {__version__}"
"""What it says of itself."""

LARGEST_MESSAGE = 5 * 1024 * 1024
"""Bytes; Pulsar's default."""

NEWEST = max(ProtocolVersion.values())

FEATURES = {"supports_get_partitioned_metadata_without_auto_creation": True}
"""Feature flags. No watched topic lists: clients ask for them again and again instead."""


def connect(session: Session, command: CommandConnect, _: bytes) -> None:
    """`proxy_to_broker_url` is for proxies: a broker ignores it."""
    found = session.place.doorkeeper.judge(command, session.now)
    if isinstance(found, Refusal):
        session.end(found)
        return
    session.who = found
    session.is_open = True
    version = min(command.protocol_version, NEWEST)
    session.send(
        answers.frame(
            Kind.CONNECTED,
            server_version=SERVER,
            protocol_version=version,
            max_message_size=LARGEST_MESSAGE,
            feature_flags=FEATURES,
        )
    )


def ping(session: Session, _: CommandPing, __: bytes) -> None:
    session.send(answers.frame(Kind.PONG))


def ignore(session: Session, _: object, __: bytes) -> None:
    """What a client may say without being asked, and what changes nothing here."""


HANDLERS: Mapping[int, Handler] = {
    Kind.CONNECT: connect,
    Kind.PING: ping,
    Kind.PONG: ignore,
    Kind.AUTH_RESPONSE: ignore,
}
