"""Names of topics as values that rules and metrics read.

TubeMQ has no tenants and no namespaces, so all topics belong to the tenant `tubemq` and to its one
namespace.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.wire.subject import TopicName

TENANT = "tubemq"
NAMESPACE = "tubemq/default"

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)

_INTERNAL = frozenset({"__offset_history__"})
"""Topics of the brokers' own, from which consumers may read."""

_CACHED = 4096
"""Names that are read again and again; an entry takes some 300 bytes."""


LONGEST_TOPIC, LONGEST_GROUP = 64, 1024
"""Characters of names that servers accept."""


_TRIMMED = "".join(map(chr, range(0x21)))
"""Characters that servers trim from both ends of a name (Java's `String.trim`): `g ` is the group
`g` to them."""


def is_trimmed(name: str) -> bool:
    """Return whether servers read the name of a group or client unchanged, as nothing of it is
    trimmed."""
    return name == name.strip(_TRIMMED)


def is_group(name: str) -> bool:
    """Return whether a group may have this name; empty: there is none."""
    return len(name) <= LONGEST_GROUP


def read_topic(topic: str) -> TopicName | None:
    """Return a topic's name; None: servers accept no such name."""
    return _read(topic) if len(topic) <= LONGEST_TOPIC else None


@lru_cache(_CACHED)
def _read(topic: str) -> TopicName | None:
    if topic not in _INTERNAL and not _NAME.fullmatch(topic):
        return None
    return TopicName(TENANT, NAMESPACE, topic)
