"""Names of topics as values that rules and metrics read.

Kafka has no tenants and no namespaces, so all topics belong to the tenant `kafka` and to its one
namespace.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.errors import PeerError
from gateway.wire.subject import TopicName

TENANT = "kafka"
NAMESPACE = "kafka/default"

EVERY_TOPIC = TopicName(TENANT, NAMESPACE, "")
"""Stands for all topics of a cluster."""

_CACHED = 4096
"""Names that are read again and again; an entry takes some 300 bytes."""


_NAME = re.compile(rb"[a-zA-Z0-9._-]{1,249}")


def is_name(name: bytes) -> bool:
    """Return whether this may be the name of a topic. Brokers refuse all others."""
    return bool(_NAME.fullmatch(name)) and name not in (b".", b"..")


def readable(name: bytes) -> str:
    """Return a name as a text. Raises `PeerError` if it is not UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise PeerError("a name that is not UTF-8") from error


@lru_cache(_CACHED)
def read_topic(topic: str) -> TopicName | None:
    """Return a topic's name; None: brokers accept no such name."""
    if not topic.isascii() or not is_name(topic.encode()):
        return None
    return TopicName(TENANT, NAMESPACE, topic)
