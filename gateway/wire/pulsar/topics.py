"""Reads topic names as every supported broker reads them, or refuses them.

Brokers 4.0, 4.2 and 5.0 read some spellings differently: 4.0 reads `orders/` as `orders` and
`PERSISTENT://t/n/x` as `persistent://t/n/x`; 4.2 refuses the former and takes the latter for
another topic. Then rules, limits, metrics and logs would name another topic than the broker does.
So `named` accepts only names that all versions read the same way, if they accept them:

- `topic` and `tenant/namespace/topic`, which mean `persistent://public/default/topic` and
  `persistent://tenant/namespace/topic`;
- `persistent://tenant/namespace/topic`, also `non-persistent://`, written in lower case;
- the same with a cluster between tenant and namespace (names of Pulsar 1, which only 4.0 accepts);
- `topic://tenant/namespace/topic` and `segment://tenant/namespace/topic/0000-7fff-1` (scalable
  topics, which only 5.0 accepts).

Source: `TopicName`, `NamespaceName` and `NamedEntity` of the three versions, run side by side by
`tests/oracle`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.wire.subject import TopicName

LATEST = 16
"""Names whose parts are cached: a command's topic is read twice, once to check it and once for the
subject."""

_OWN = "pulsar/"
_NOT_PERSISTENT = "non-persistent://"
_COORDINATORS = "pulsar/system/transaction_coordinator_assign"

_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
_SEGMENT = re.compile(r"([0-9a-f]{4})-([0-9a-f]{4})-(?:0|[1-9][0-9]{0,17})")
_PARTITION = "-partition-"
_LAST_PARTITION = (1 << 31) - 1

_BLANK = re.compile(r"[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*")
"""Whitespace of Java's `Character.isWhitespace`. A local name of whitespace alone is refused."""


def is_brokers_own(topic: str) -> bool:
    """Return whether a topic is one of the brokers' own topics, whose messages contain broker
    addresses.

    These are all topics of the tenant `pulsar` (load reports, health checks, policies), except the
    names by which clients find transaction coordinators. Brokers compare names letter by letter.
    """
    path = topic.partition("://")[2] or topic
    return path.startswith(_OWN) and not is_coordinator(topic)


def is_kept(topic: str) -> bool:
    """Return whether brokers keep a topic's messages while a consumer has no permits. If the topic
    is not persistent, brokers drop these messages."""
    return not topic.startswith(_NOT_PERSISTENT)


def is_coordinator(topic: str) -> bool:
    """Return whether a topic's name is one by which clients find transaction coordinators."""
    path = topic.partition("://")[2] or topic
    return path == _COORDINATORS or path.startswith(_COORDINATORS + _PARTITION)


@lru_cache(LATEST)
def named(topic: str) -> TopicName | None:
    """Return the parts of a topic's name; None if brokers refuse the name, or if brokers of
    different versions read it differently."""
    domain, mark, path = topic.partition("://")
    if not mark:
        domain, path = "persistent", topic if "/" in topic else f"public/default/{topic}"
    steps = path.split("/")
    if len(steps) < 3 or not all(steps) or _BLANK.fullmatch(steps[-1]):
        return None
    if len(steps) > 3 and not mark:
        return None
    match domain:
        case "persistent" | "non-persistent":
            return _topic(domain, steps[:2] if len(steps) == 3 else steps[:3], path)
        case "topic":
            return _topic(domain, steps[:2], path)
        case "segment" if len(steps) > 3:
            return _segment(steps, topic)
    return None


def _topic(domain: str, namespace: list[str], path: str) -> TopicName | None:
    """Return a topic, or one of its partitions: `topic-partition-3`."""
    if not all(map(_ENTITY.fullmatch, namespace)):
        return None
    name = f"{domain}://{path}"
    tenant, whole_namespace = namespace[0], "/".join(namespace)
    base, mark, number = name.rpartition(_PARTITION)
    if not mark or not number.isdecimal():
        return TopicName(tenant, whole_namespace, name, None)
    if not number.isascii() or base.endswith("/"):
        # Brokers accept digits of any script, and a partition of a topic with an empty name.
        return None
    if str(int(number[:11])) != number or int(number) > _LAST_PARTITION:
        return TopicName(tenant, whole_namespace, name, None)
    return TopicName(tenant, whole_namespace, base, name)


def _segment(steps: list[str], name: str) -> TopicName | None:
    """Return a segment of a scalable topic, which counts as a partition of the topic."""
    hashes = _SEGMENT.fullmatch(steps[-1])
    if hashes is None or hashes[1] > hashes[2]:
        return None
    parent = _topic("topic", steps[:2], "/".join(steps[:-1]))
    return None if parent is None else parent._replace(partition=name)
