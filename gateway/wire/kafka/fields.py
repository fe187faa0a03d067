"""What happens to each field that names, lists, reveals or reaches something: a topic, a group, a
member, a transactional id, a producer, a client, a session, a principal, a broker or a host.

The code works by this table: `authorizing` reads it for requests, `rewriting` for responses. A rule
is for a field of one API (`EXCEPTIONS`), for fields of a name (`NAMES`), or for what fields name by
the protocol's definitions (`ENTITIES`); the first of these decides. In APIs about the cluster, all
fields without a rule of the first two kinds pass, because clients need the right to administer.

Tests compare the table with the protocol's definitions: they fail for a text, an id, a block of
bytes or a field with an entity that no rule decides, for a rule that decides no field, and for a
list of topics in a request whose meaning is not known when it is empty.

Sources: the message definitions of Apache Kafka, whose comments say what an empty list means, and
the behaviour of Kafka's brokers; KIP-227 (fetch sessions), KIP-932 (share groups), KIP-951 (leaders
in Produce and Fetch), KIP-853 (listeners in DescribeQuorum), KIP-714 (metrics of clients).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple

from gateway.wire.account import Right
from gateway.wire.contract import Direction
from gateway.wire.kafka.schema import Field, api

TO_BROKER, TO_CLIENT = Direction

# -- APIs ----------------------------------------------------------------------------------------

TOPICS = {
    Right.LOOKUP: (2, 3, 9, 23, 68, 75, 76, 90),
    Right.PRODUCE: (0, 24),
    Right.CONSUME: (1, 8, 28, 47, 61, 78, 79, 91, 92),
    Right.ADMINISTER: (19, 20, 21, 37, 43, 45, 46),
}
"""The APIs whose requests need a right on each topic that they name."""

CLUSTER = frozenset(
    {16, 27, *range(29, 36), *range(38, 42), 44, *range(48, 52), 55, 57, 64, 66, 74, 88}
)
"""The APIs that need the right to administer, whatever they name. For 88, StreamsGroupHeartbeat,
brokers create topics of any name."""

NO_TOPIC = frozenset({*range(10, 16), 17, 18, 22, 25, 26, 36, 42, 60, 65, 69, 71, 72, 77, 89})
"""The APIs whose requests name no topic."""

DEAR = frozenset({3, 16, 29, 32, 35, 46, 48, 66, 74, 75})
"""The APIs whose requests are short, and whose responses describe all that a cluster has of a kind.
They count as lookups for rules."""

LISTING = frozenset({3, 9, 15, 65, 68, 69, 75, 76, 77, 89, 90})
"""The APIs whose responses have topics that the request did not name."""

RIGHTS: Mapping[int, Right] = {key: right for right, keys in TOPICS.items() for key in keys}
"""By API key: the right on each topic."""

# -- fields --------------------------------------------------------------------------------------


class Act(Enum):
    """What happens to a field."""

    TOPIC = "the client needs the API's right; without it a substitute takes the topic's place"
    GROUP = "the client needs the right to consume as this group"
    TRANSACTION = "the client needs the right to produce with this transactional id"
    EXPRESSION = "the client needs the API's right on all topics, unless it is empty"
    SUBSCRIPTION = "loses the topics that the client may not look up"
    REPLICA = "ends the connection, unless it is -1 or -2: the request is a replica's"
    FETCH_SESSION = "must be a session of this connection, else error 70"
    SHARE_SESSION = "names a share session, which must be one of this connection, else error 122"
    ASKED = "the request named it; a substitute becomes the denied topic, with its error"
    FILTERED = (
        "as ASKED; its element is removed if the client may not look the topic up, or if it has an "
        "id alone, whose name is not known"
    )
    MEMBERSHIP = "emptied if it names a topic that the client may not look up"
    ADDRESS = "the gateway's host and port take the place of a broker's; the node's id stays"
    EMPTIED = "the list is sent empty"
    TEXT = "broker addresses are removed"
    SETTING = "as TEXT; null if the setting is an address"
    COUNTED = "messages, charged to the topic's account; those without an account are removed"
    PASSED = "passes"


class Rule(NamedTuple):
    """What happens to a field, and why, where that needs a reason."""

    act: Act
    why: str = ""


def _passed(why: str, *names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, Rule(Act.PASSED, why))


def _acts(act: Act, *names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, Rule(act))


ADMINISTERED = Rule(Act.PASSED, "clients need the right to administer the cluster")

_MEMBERS = "of a group that the client may consume as: rights are on groups, not on their members"
_OWN = "the client's own, or of its group"
_NODES = "clients reach brokers by their ids, and have the gateway's addresses for them"
_NO_NAME = "names nothing"

NAMES: Mapping[Direction, Mapping[str, Rule]] = {
    TO_BROKER: {
        **_acts(Act.TOPIC, "TopicId"),
        **_acts(Act.REPLICA, "ReplicaId"),
        **_acts(Act.EXPRESSION, "SubscribedTopicRegex"),
        **_acts(Act.FETCH_SESSION, "SessionId", "SessionEpoch"),
        **_acts(Act.SHARE_SESSION, "ShareSessionEpoch"),
        **_acts(Act.COUNTED, "Records"),
        **_passed(_MEMBERS, "MemberId", "GroupInstanceId", "InstanceId"),
        **_passed(_OWN, "RackId", "Reason", "ProtocolType", "ProtocolName", "ServerAssignor"),
        **_acts(Act.SUBSCRIPTION, "Protocols/Metadata"),
        **_passed(_OWN, "Protocols/Name", "CommittedMetadata", "Metrics"),
        **_passed(_OWN, "ClientSoftwareName", "ClientSoftwareVersion", "Mechanism", "AuthBytes"),
        **_passed("the leader of a group assigns to its members", "Assignments/Assignment"),
        **_passed("brokers draw it at random, and tell it to its client alone", "ClientInstanceId"),
        **_passed("only a coordinator's address comes back", "Key", "CoordinatorKeys"),
        **_passed("a setting of a topic", "Configs/Name", "Configs/Value"),
        **_passed("of the cluster", "ClusterId"),
        **_passed("of replicas, whose requests are refused", "ReplicaDirectoryId"),
    },
    TO_CLIENT: {
        **_acts(Act.ADDRESS, "Host"),
        **_acts(Act.EMPTIED, "Nodes/Listeners"),
        **_acts(Act.TEXT, "ErrorMessage", "AcknowledgeErrorMessage", "BatchIndexErrorMessage"),
        **_acts(Act.TEXT, "StatusDetail"),
        **_acts(Act.MEMBERSHIP, "MemberMetadata", "MemberAssignment"),
        **_acts(Act.COUNTED, "Records"),
        **_passed("hosts of clients", "Acls/Host", "MatchingAcls/Host", "UserEndpoint/Host"),
        **_passed("in a list that is sent empty", "Listeners/Host", "Listeners/Name"),
        **_passed(_MEMBERS, "MemberId", "GroupInstanceId", "InstanceId", "RackId", "ProcessId"),
        **_passed(_MEMBERS, "ClientId", "ClientHost", "Leader", "SubscribedTopicRegex"),
        **_passed(_MEMBERS, "ClientTags/Key", "ClientTags/Value", "Partitions/Metadata"),
        **_passed("the leader assigns by it, and has to know all of it", "Members/Metadata"),
        **_passed(_OWN, "Assignment", "AuthBytes", "ClientInstanceId", "RequestedMetrics"),
        **_passed("the request named it", "Coordinators/Key", "Configs/Name", "Configs/Value"),
        **_passed("a part of a broker's site, as the client has one", "Rack"),
        **_passed("of the cluster, which the client has reached", "ClusterId"),
        **_passed("of the topics' own", "TopicConfigs/Key", "TopicConfigs/Value"),
        **_passed(_NO_NAME, "ProtocolType", "ProtocolName", "ProtocolData", "AssignorName"),
        **_passed(_NO_NAME, "GroupState", "TransactionState", "Mechanisms", "SubtopologyId"),
        **_passed(_NO_NAME, "SupportedFeatures/Name", "FinalizedFeatures/Name"),
    },
}
"""By the last name, or the last two names, of a field's path."""

ENTITIES: Mapping[Direction, Mapping[str, Rule]] = {
    TO_BROKER: {
        "topicName": Rule(Act.TOPIC),
        "groupId": Rule(Act.GROUP),
        "transactionalId": Rule(Act.TRANSACTION),
        "producerId": Rule(
            Act.PASSED,
            "brokers compare it with the transactional id; without one, it reaches the topics of "
            "the request, on which the client may produce, as brokers allow any client",
        ),
        "brokerId": Rule(Act.PASSED, "replicas of topics that the client may administer"),
    },
    TO_CLIENT: {
        "topicName": Rule(Act.ASKED),
        "groupId": Rule(Act.PASSED, "the request named it"),
        "transactionalId": Rule(Act.PASSED, "the request named it"),
        "producerId": Rule(Act.PASSED, "of topics or transactions that the client may use"),
        "brokerId": Rule(Act.PASSED, _NODES),
    },
}
"""By what the protocol's definitions say that a field names."""

EXCEPTIONS: Mapping[Direction, Mapping[tuple[int, str], Rule]] = {
    TO_BROKER: {
        (68, "TopicPartitions/TopicId"): Rule(Act.PASSED, "what the member has already"),
        (78, "MemberId"): Rule(Act.SHARE_SESSION),
        (79, "MemberId"): Rule(Act.SHARE_SESSION),
    },
    TO_CLIENT: {
        (32, "Results/Configs/Value"): Rule(Act.SETTING),
        (32, "Results/Configs/Synonyms/Value"): Rule(Act.SETTING),
        (75, "NextCursor/TopicName"): Rule(Act.ASKED, "the first named topic of the next part"),
    },
}

_NAMING = ("string", "uuid", "bytes", "records")


def path_of(at: str, field: Field) -> str:
    """Return the path of a field in the struct with the path `at`; empty for a whole message."""
    return f"{at}/{field.name}" if at else field.name


def walked(fields: tuple[Field, ...], at: str = "") -> Iterator[tuple[str, Field]]:
    """Yield all fields of a struct, at all levels, each with its path."""
    for field in fields:
        path = path_of(at, field)
        yield path, field
        yield from walked(field.fields, path)


def names_something(field: Field) -> bool:
    """Return whether a field may name something, and so needs a rule."""
    return bool(field.entity) or field.kind.removeprefix("[]") in _NAMING


def names_topic(field: Field) -> bool:
    """Return whether a field is the name or the id of a topic, or an array of these."""
    return field.entity == "topicName" or field.name == "TopicId"


def rule_of(key: int, direction: Direction, path: str, field: Field) -> Rule | None:
    """Return the rule for a field; None if there is none."""
    two = "/".join(path.split("/")[-2:])
    names = NAMES[direction]
    rule = EXCEPTIONS[direction].get((key, path)) or names.get(two) or names.get(field.name)
    if rule is None and key in CLUSTER and names_something(field):
        return ADMINISTERED
    if direction is TO_CLIENT and rule is None and names_topic(field):
        return Rule(Act.FILTERED if key in LISTING else Act.ASKED)
    return rule or ENTITIES[direction].get(field.entity)


@cache
def rules_of(key: int, direction: Direction) -> Mapping[str, Rule]:
    """Return the rules for an API's requests or responses, by path."""
    known = api(key)
    assert known is not None
    schema = known.request if direction is TO_BROKER else known.response
    found = ((path, rule_of(key, direction, path, field)) for path, field in walked(schema.fields))
    return {path: rule for path, rule in found if rule is not None}


# -- lists of topics in requests -----------------------------------------------------------------


class Without(Enum):
    """What a request asks for whose list of topics is empty or null."""

    NOTHING = "nothing"
    ALL = "all topics: the client needs its right on all of them"
    KNOWN = "all topics: the response has those that the client may look up"
    SESSION = "the topics of the connection's own session"
    SAME = "what the member had before"


EMPTY: Mapping[Without, frozenset[tuple[int, str]]] = {
    Without.ALL: frozenset({(43, "TopicPartitions"), (46, "Topics"), (75, "Topics")}),
    Without.KNOWN: frozenset(
        {(3, "Topics"), (9, "Topics"), (9, "Groups/Topics"), (90, "Groups/Topics")}
    ),
    Without.SESSION: frozenset({(1, "Topics"), (78, "Topics"), (79, "Topics")}),
    Without.SAME: frozenset(
        {(68, "SubscribedTopicNames"), (68, "TopicPartitions"), (76, "SubscribedTopicNames")}
    ),
    Without.NOTHING: frozenset(
        {
            *((key, "Topics") for key in (2, 8, 19, 20, 21, 23, 28, 37, 45, 47, 61, 91, 92)),
            *((key, "ForgottenTopicsData") for key in (1, 78)),
            (0, "TopicData"),
            (20, "TopicNames"),
            (24, "Transactions/Topics"),
            (24, "V3AndBelowTopics"),
        }
    ),
}
"""The lists of topics by what they mean if they are empty, each by API key and path."""


def lists_of_topics(key: int) -> Iterator[str]:
    """Yield the paths of the lists of topics in an API's requests."""
    known = api(key)
    assert known is not None
    for path, field in walked(known.request.fields):
        members = (names_topic(member) for member in field.fields)
        if field.kind.startswith("[]") and (names_topic(field) or any(members)):
            yield path


def lists_of_all(key: int) -> Iterator[str]:
    """Yield the paths of those lists in an API's requests that mean all topics if they are empty or
    null."""
    return (path for of, path in EMPTY[Without.ALL] if of == key)
