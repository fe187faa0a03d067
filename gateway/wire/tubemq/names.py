"""Topic names, as rules and metrics read them, and the names of groups and clients.

TubeMQ has no tenants and no namespaces. So, for rules and metrics, all topics belong to the tenant
`tubemq` and to its one namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from gateway.wire.subject import TopicName

TENANT = "tubemq"
NAMESPACE = "tubemq/default"
ANY_TOPIC = TopicName(TENANT, NAMESPACE, "")
"""Stands for all topics where a request names a group alone."""

REFUSED = TopicName(TENANT, NAMESPACE, "(refused)")
"""Stands for the topics to which a client may not send: what it sends there is counted here, and
charged to its limits."""

May = Callable[[TopicName], bool]
"""Returns whether a client has the right on a topic."""

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)

_INTERNAL = frozenset({"__offset_history__"})
"""Topics of the brokers' own, which consumers may read."""

_CACHED = 4096
"""Parsed names that are kept, some 300 bytes each; the same names come again and again."""


LONGEST_TOPIC, LONGEST_NAME = 64, 1024
"""The most characters of names that servers accept: of a topic, and of a group or client."""


_BLANK = r"\x00-\x20"
"""Characters that servers trim from both ends of a name (Java's `String.trim`): `g ` is the group
`g` to them."""


def _whole(split: str) -> re.Pattern[str]:
    """Return the pattern of names without these characters, and without blanks at the ends. An
    empty name is that of no group."""
    inner, outer = rf"[^{split}]", rf"[^{split}{_BLANK}]"
    return re.compile(rf"(?:{outer}(?:{inner}{{0,{LONGEST_NAME - 2}}}{outer})?)?")


WHOLE = {"clientId": _whole("@#"), "groupName": _whole("@#:")}
"""By the field of a request: the names of clients and groups that servers read unchanged. They
refuse long names, trim names, and split texts in which they have put a name, such as
`client@group` and `group:topic:partition`."""


def read_topic(topic: str) -> TopicName | None:
    """Return the parsed name of a topic; None if servers accept no such name."""
    return _read(topic) if len(topic) <= LONGEST_TOPIC else None


@lru_cache(_CACHED)
def _read(topic: str) -> TopicName | None:
    if topic not in _INTERNAL and not _NAME.fullmatch(topic):
        return None
    return TopicName(TENANT, NAMESPACE, topic)
