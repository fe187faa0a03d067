"""What a topic's name says to a session."""

from __future__ import annotations

import re

from gateway.wire.gate import TopicName

_OWN = "pulsar/"
_PARTITION = re.compile(r"(.+)-partition-(?:0|[1-9][0-9]*)", re.DOTALL)
_COORDINATORS = "pulsar/system/transaction_coordinator_assign"


def is_brokers_own(topic: str) -> bool:
    """Whether brokers keep there what they tell each other, their addresses among it.

    That is all of tenant `pulsar` (load reports, health checks, policies), but for the names by
    which clients find transaction coordinators. Brokers compare names letter by letter.
    """
    path = topic.partition("://")[2] or topic
    return path.startswith(_OWN) and not path.startswith(_COORDINATORS)


def named(topic: str) -> TopicName | None:
    """Read a name as clients write it: `orders`, `tenant/namespace/orders`, or with a domain.

    None where it is none of these. Names of Pulsar 1 have a cluster between tenant and namespace.
    """
    domain, mark, path = topic.partition("://")
    if not mark:
        domain, path = "persistent", topic if "/" in topic else f"public/default/{topic}"
    steps = path.split("/", 3)
    if len(steps) < 3 or not all(steps):
        return None
    whole = f"{domain}://{path}"
    found = _PARTITION.fullmatch(whole)
    return TopicName(
        steps[0], "/".join(steps[:-1]), found[1] if found else whole, whole if found else None
    )
