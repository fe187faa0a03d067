"""The reason why a client may see each topic, group, transaction, member and host in a response.

A test compares this table with the protocol's definitions: each text, id and block of bytes of each
response must have an entry here, or must be listed in `NAMELESS`, except in APIs that need the
right to administer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Why(Enum):
    """The reason why a client may see a field."""

    ASKED = "the request names it, and was authorized"
    FILTERED = "it is left out if the client may not look the topic up"
    ADDRESS = "the gateway's own stands there, or nothing"
    OWN = "it is the client's own, or was authorized when the client asked for it"
    MEMBERS = "it is of the members of a group that the client may consume as"
    COUNTED = "messages of topics that have an account"


ASKED, FILTERED, ADDRESS = Why.ASKED, Why.FILTERED, Why.ADDRESS
OWN, MEMBERS, COUNTED = Why.OWN, Why.MEMBERS, Why.COUNTED


def _all(why: Why, *paths: str) -> Mapping[str, Why]:
    return dict.fromkeys(paths, why)


_NAMED = _all(ASKED, "Topics/Name")
_ENDPOINTS = _all(ADDRESS, "NodeEndpoints/Host")
_TOPICS = ("Topics/Name", "Topics/TopicId")


def _described(*members: str) -> Mapping[str, Why]:
    """Return the fields of a group and its members."""
    return {
        **_all(MEMBERS, *(f"Groups/Members/{field}" for field in members)),
        "Groups/GroupId": ASKED,
    }


_MEMBER = ("MemberId", "RackId", "ClientId", "ClientHost")


def _assigned(*assignments: str) -> Mapping[str, Why]:
    paths = (f"Groups/Members/{assignment}/TopicPartitions" for assignment in assignments)
    return {f"{path}/{name}": FILTERED for path in paths for name in ("TopicId", "TopicName")}


_SUBSCRIBED = _all(FILTERED, "Groups/Members/SubscribedTopicNames")
_TOPOLOGY = "Groups/Topology/Subtopologies"

SHOWN: Mapping[int, Mapping[str, Why]] = {
    0: {**_all(ASKED, "Responses/Name", "Responses/TopicId"), **_ENDPOINTS},
    1: {
        **_all(ASKED, "Responses/Topic", "Responses/TopicId"),
        "Responses/Partitions/Records": COUNTED,
        **_ENDPOINTS,
    },
    2: _NAMED,
    3: {**_all(FILTERED, *_TOPICS), "Brokers/Host": ADDRESS},
    8: _all(ASKED, *_TOPICS),
    9: {
        **_all(FILTERED, "Topics/Name", "Groups/Topics/Name", "Groups/Topics/TopicId"),
        **_all(MEMBERS, "Topics/Partitions/Metadata", "Groups/Topics/Partitions/Metadata"),
        "Groups/GroupId": ASKED,
    },
    10: {"Coordinators/Key": ASKED, **_all(ADDRESS, "Host", "Coordinators/Host")},
    11: {
        "MemberId": OWN,
        **_all(MEMBERS, "Leader", "Members/MemberId", "Members/GroupInstanceId"),
        "Members/Metadata": MEMBERS,
    },
    13: _all(ASKED, "Members/MemberId", "Members/GroupInstanceId"),
    14: {"Assignment": OWN},
    15: _described(
        *("MemberId", "GroupInstanceId", "ClientId", "ClientHost"),
        *("MemberMetadata", "MemberAssignment"),
    ),
    19: _all(ASKED, *_TOPICS, "Topics/Configs/Name", "Topics/Configs/Value"),
    20: _all(ASKED, "Responses/Name", "Responses/TopicId"),
    21: _NAMED,
    23: _all(ASKED, "Topics/Topic"),
    24: _all(
        ASKED,
        "ResultsByTransaction/TransactionalId",
        "ResultsByTransaction/TopicResults/Name",
        "ResultsByTopicV3AndBelow/Name",
    ),
    28: _NAMED,
    36: {"AuthBytes": OWN},
    37: _all(ASKED, "Results/Name"),
    42: _all(ASKED, "Results/GroupId"),
    43: _all(ASKED, "ReplicaElectionResults/Topic"),
    45: _all(ASKED, "Responses/Name"),
    46: _NAMED,
    47: _NAMED,
    60: {"Brokers/Host": ADDRESS},
    61: _NAMED,
    65: {"TransactionStates/TransactionalId": ASKED, "TransactionStates/Topics/Topic": FILTERED},
    68: {"MemberId": OWN, "Assignment/TopicPartitions/TopicId": FILTERED},
    69: {
        **_described(*_MEMBER, "InstanceId", "SubscribedTopicRegex"),
        **_SUBSCRIBED,
        **_assigned("Assignment", "TargetAssignment"),
    },
    71: {"ClientInstanceId": OWN},
    75: {**_all(FILTERED, *_TOPICS), "NextCursor/TopicName": ASKED},
    76: {"MemberId": OWN, "Assignment/TopicPartitions/TopicId": FILTERED},
    77: {**_described(*_MEMBER), **_SUBSCRIBED, **_assigned("Assignment")},
    78: {"Responses/TopicId": ASKED, "Responses/Partitions/Records": COUNTED, **_ENDPOINTS},
    79: {"Responses/TopicId": ASKED, **_ENDPOINTS},
    89: {
        **_described("MemberId", "InstanceId", "RackId", "ClientId", "ClientHost", "ProcessId"),
        **_all(MEMBERS, *(f"Groups/Members/ClientTags/{field}" for field in ("Key", "Value"))),
        "Groups/Members/UserEndpoint/Host": MEMBERS,
        **_all(
            FILTERED,
            *(f"{_TOPOLOGY}/{field}" for field in ("SourceTopics", "RepartitionSinkTopics")),
        ),
        **_all(
            FILTERED,
            f"{_TOPOLOGY}/StateChangelogTopics/Name",
            f"{_TOPOLOGY}/RepartitionSourceTopics/Name",
        ),
    },
    90: {
        "Groups/GroupId": ASKED,
        **_all(FILTERED, "Groups/Topics/TopicName", "Groups/Topics/TopicId"),
    },
    91: _all(ASKED, "Responses/TopicName", "Responses/TopicId"),
    92: _all(ASKED, "Responses/TopicName", "Responses/TopicId"),
}
"""By API key and path."""

FILTERED_APIS = frozenset(key for key, fields in SHOWN.items() if FILTERED in fields.values())
"""APIs from whose responses topics are removed that the client may not look up."""

NAMELESS = {
    "ErrorMessage": "a text, from which addresses are cleaned",
    "AcknowledgeErrorMessage": "likewise",
    "BatchIndexErrorMessage": "likewise",
    "Rack": "a part of the broker's site, as the client has one",
    "ClusterId": "of the cluster, which the client has reached",
    "ProtocolType": "what kind of group",
    "ProtocolName": "how a group assigns",
    "ProtocolData": "likewise",
    "AssignorName": "likewise",
    "GroupState": "of a group",
    "TransactionState": "of a transaction",
    "Mechanisms": "of SASL",
    "RequestedMetrics": "of the client's own",
    "SubtopologyId": "of a streams application",
    "SupportedFeatures/Name": "of brokers",
    "FinalizedFeatures/Name": "of brokers",
    "Groups/Topology/Subtopologies/StateChangelogTopics/TopicConfigs/Key": "a setting's name",
    "Groups/Topology/Subtopologies/StateChangelogTopics/TopicConfigs/Value": "a setting",
    "Groups/Topology/Subtopologies/RepartitionSourceTopics/TopicConfigs/Key": "a setting's name",
    "Groups/Topology/Subtopologies/RepartitionSourceTopics/TopicConfigs/Value": "a setting",
}
"""Fields, by name or path, that identify no topic, group, transaction, member or host."""
