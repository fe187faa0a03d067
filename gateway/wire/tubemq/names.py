"""Topic names, as rules and metrics read them, and the names of groups and clients.

TubeMQ has no tenants and no namespaces. So, for rules and metrics, all topics belong to the tenant
`tubemq` and to its one namespace.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.wire.subject import TopicName

TENANT = "tubemq"
NAMESPACE = "tubemq/default"

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)

_INTERNAL = frozenset({"__offset_history__"})
"""Topics of the brokers' own, which consumers may read."""

_CACHED = 4096
"""Parsed names that are kept, some 300 bytes each; the same names come again and again."""


LONGEST_TOPIC, LONGEST_GROUP = 64, 1024
"""The most characters of names that servers accept."""


_TRIMMED = "".join(map(chr, range(0x21)))
"""Characters that servers trim from both ends of a name (Java's `String.trim`): `g ` is the group
`g` to them."""


def is_trimmed(name: str) -> bool:
    """Return whether servers read the name of a group or client unchanged: it neither begins nor
    ends with a character that servers trim."""
    return name == name.strip(_TRIMMED)


def is_group(name: str) -> bool:
    """Return whether a group may have this name. An empty name is allowed, and stands for no
    group."""
    return len(name) <= LONGEST_GROUP


def read_topic(topic: str) -> TopicName | None:
    """Return the parsed name of a topic; None if servers accept no such name."""
    return _read(topic) if len(topic) <= LONGEST_TOPIC else None


@lru_cache(_CACHED)
def _read(topic: str) -> TopicName | None:
    if topic not in _INTERNAL and not _NAME.fullmatch(topic):
        return None
    return TopicName(TENANT, NAMESPACE, topic)
