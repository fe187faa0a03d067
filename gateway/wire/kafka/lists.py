"""What an empty or null list in a request means to brokers, by API.

Often such a list means "all topics". Then a right on some topics does not suffice: the client needs
the right on all. A test compares this table with the protocol's definitions: each list of each API
must have an entry here, except for APIs that need the right to administer anyway.

Source: the message definitions of Apache Kafka, whose comments say what an empty list means, and
the behaviour of Kafka's brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum


class Without(Enum):
    """What a request with an empty or null list asks for."""

    NOTHING = "nothing"
    ALL = "all topics: the client needs its right to all of them"
    KNOWN = "all topics: the response has those that the client may look up"
    SESSION = "the topics of the connection's own session"
    SAME = "what the member had before"
    CHOSEN = "what the broker chooses"


def _lists(*nothing: str, **others: Without) -> Mapping[str, Without]:
    return dict.fromkeys(nothing, Without.NOTHING) | others


_TOPICS = _lists("Topics", "Topics/Partitions")
_INDEXES = _lists("Topics", "Topics/PartitionIndexes")
_OF_SHARE = {
    "Topics": Without.SESSION,
    "Topics/Partitions": Without.NOTHING,
    "Topics/Partitions/AcknowledgementBatches": Without.NOTHING,
    "Topics/Partitions/AcknowledgementBatches/AcknowledgeTypes": Without.NOTHING,
}
_FORGOTTEN = _lists("ForgottenTopicsData", "ForgottenTopicsData/Partitions")

LISTS: Mapping[int, Mapping[str, Without]] = {
    0: _lists("TopicData", "TopicData/PartitionData"),
    1: {"Topics": Without.SESSION, "Topics/Partitions": Without.NOTHING, **_FORGOTTEN},
    2: _TOPICS,
    3: {"Topics": Without.KNOWN},
    8: _TOPICS,
    9: {
        **_INDEXES,
        "Topics": Without.KNOWN,
        "Groups": Without.NOTHING,
        "Groups/Topics": Without.KNOWN,
        "Groups/Topics/PartitionIndexes": Without.NOTHING,
    },
    10: _lists("CoordinatorKeys"),
    11: _lists("Protocols"),
    13: _lists("Members"),
    14: _lists("Assignments"),
    15: _lists("Groups"),
    19: {
        **_lists("Topics", "Topics/Assignments/BrokerIds", "Topics/Configs"),
        "Topics/Assignments": Without.CHOSEN,
    },
    20: _lists("Topics", "TopicNames"),
    21: _TOPICS,
    23: _TOPICS,
    24: _lists(
        "Transactions",
        "Transactions/Topics",
        "Transactions/Topics/Partitions",
        "V3AndBelowTopics",
        "V3AndBelowTopics/Partitions",
    ),
    28: _TOPICS,
    37: {
        **_lists("Topics", "Topics/Assignments/BrokerIds"),
        "Topics/Assignments": Without.CHOSEN,
    },
    42: _lists("GroupsNames"),
    43: {"TopicPartitions": Without.ALL, "TopicPartitions/Partitions": Without.NOTHING},
    45: {**_TOPICS, "Topics/Partitions/Replicas": Without.NOTHING},  # a reassignment is cancelled
    46: {**_INDEXES, "Topics": Without.ALL},
    47: _TOPICS,
    61: _INDEXES,
    65: _lists("TransactionalIds"),
    68: {
        "SubscribedTopicNames": Without.SAME,
        "TopicPartitions": Without.SAME,
        "TopicPartitions/Partitions": Without.NOTHING,
    },
    69: _lists("GroupIds"),
    75: {"Topics": Without.ALL},
    76: {"SubscribedTopicNames": Without.SAME},
    77: _lists("GroupIds"),
    78: {**_OF_SHARE, **_FORGOTTEN},
    79: _OF_SHARE,
    89: _lists("GroupIds"),
    90: {
        **_lists("Groups", "Groups/Topics/Partitions"),
        "Groups/Topics": Without.KNOWN,
    },
    91: _TOPICS,
    92: _lists("Topics"),
}
"""By API key and path."""


def of_all(key: int) -> Iterator[str]:
    """Yield the paths of those lists in an API's request that mean all topics if they are empty or
    null. `key`: the API key."""
    return (path for path, means in LISTS.get(key, {}).items() if means is Without.ALL)
