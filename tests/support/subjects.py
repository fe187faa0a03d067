"""Subjects for tests that need few of their fields."""

from __future__ import annotations

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect
from gateway.wire.pulsar.topics import named
from gateway.wire.subject import Caller, Subject, TopicName

HOST = "192.0.2.7"
CONNECTION = 1


def topic_of(name: str) -> TopicName:
    """Return the parts of a topic name, valid or not."""
    return named(name) or TopicName("", "", name)


def subject_of(
    topic: str,
    subscription: str | None = None,
    *,
    protocol: str | None = None,
    listener: str | None = None,
    connection: int | None = None,
    host: str | None = None,
    principal: str | None = None,
    library: str | None = None,
) -> Subject:
    """Return a client with this topic, valid or not."""
    caller = Caller(
        protocol=protocol,
        listener=listener,
        connection=connection,
        host=host,
        principal=principal,
        library=library,
    )
    return Subject(caller, topic_of(topic), subscription)


def caller_of(connect: CommandConnect, principal: str | None = "alice") -> Caller:
    """Return the client of a connection that begins with this CONNECT."""
    return Caller(
        protocol="pulsar",
        connection=CONNECTION,
        host=HOST,
        principal=principal,
        library=str(connect.client_version),
    )
