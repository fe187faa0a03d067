"""What a topic's name says to a session."""

from __future__ import annotations

_OWN = "pulsar/"
_COORDINATORS = "pulsar/system/transaction_coordinator_assign"


def is_brokers_own(topic: str) -> bool:
    """Whether brokers keep there what they tell each other, their addresses among it.

    That is all of tenant `pulsar` (load reports, health checks, policies), but for the names by
    which clients find transaction coordinators. Brokers compare names letter by letter.
    """
    path = topic.partition("://")[2] or topic
    return path.startswith(_OWN) and not path.startswith(_COORDINATORS)
