"""Topic names, as rules and metrics read them.

Kafka has no tenants and no namespaces. So, for rules and metrics, all topics belong to the tenant
`kafka` and to its one namespace.
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

REFUSED = TopicName(TENANT, NAMESPACE, "(refused)")
"""Stands for the topics to which a client may not produce, and those for which it gets errors in
place of messages: what it sends, and the errors, are counted here and charged to its limits."""

_CACHED = 4096
"""Parsed names that are kept, some 300 bytes each; the same names come again and again."""


_NAME = re.compile(rb"[a-zA-Z0-9._-]{1,249}")


def is_name(name: bytes) -> bool:
    """Return whether a topic may have this name. Brokers refuse all other names."""
    return bool(_NAME.fullmatch(name)) and name not in (b".", b"..")


def readable(name: bytes) -> str:
    """Return a name as text. Raises `PeerError` if it is not UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise PeerError("a name that is not UTF-8") from error


@lru_cache(_CACHED)
def read_topic(topic: str) -> TopicName | None:
    """Return the parsed name of a topic; None if brokers accept no such name."""
    if not topic.isascii() or not is_name(topic.encode()):
        return None
    return TopicName(TENANT, NAMESPACE, topic)
