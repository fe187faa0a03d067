"""What each API needs, and refusals that clients can read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.contract import Direction, EndReason
from gateway.wire.kafka import frames
from gateway.wire.kafka.answering import metadata_of
from gateway.wire.kafka.asking import LONGEST_QUESTION, OWN
from gateway.wire.kafka.codec import encode
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.fields import CLUSTER as OF_CLUSTER
from gateway.wire.kafka.fields import RIGHTS, TO_BROKER, TO_CLIENT, Act, rules_of
from gateway.wire.kafka.schema import Api, Field, of
from gateway.wire.kafka.synthetic import ERRORS
from gateway.wire.kafka.synthetic import refused as refusing
from gateway.wire.slices import finished
from tests.apache_kafka.encoding import body
from tests.support.versions import by_version, case, versions

from .frames import (
    EVERY_VERSION,
    JOIN_GROUP,
    METADATA,
    OFFERED,
    PRODUCE,
    ask,
    asked,
    assignment,
    batch,
    correlations,
    described,
    fetch,
    id_of,
    known,
    produce,
    subscription,
    tell,
    told,
)
from .script import CLUSTER, EVERY, KafkaServices, Play

GROUP, TRANSACTION = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
)
ON_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
ADD_PARTITIONS = 24
BY_TRANSACTION = 4
"""The first version of AddPartitionsToTxn with several transactions."""
SEEDS = range(12)


def _has(fields: tuple[Field, ...], version: int, path: str) -> bool:
    """Return whether a version has a field at a path."""
    first, _, rest = path.partition("/")
    here = [it for it in of(fields, version) if it.name == first]
    return bool(here) and (not rest or _has(here[0].fields, version, rest))


def _listed(fields: tuple[Field, ...], path: str, names: list[Any]) -> dict[str, Any]:
    """Return fields with these names at a path, each in an element of its own of the last list."""
    first, _, rest = path.partition("/")
    (it,) = [it for it in fields if it.name == first]
    if not rest:
        return {first: names}
    if "/" not in rest and it.kind == "[]{}":
        (inner,) = [field for field in it.fields if field.name == rest]
        if not inner.kind.startswith("[]"):
            return {first: [{rest: name} for name in names]}
    inner_fields = _listed(it.fields, rest, names)
    return {first: [inner_fields] if it.kind == "[]{}" else inner_fields}


def refused(it: Api, head: frames.Head, frame: bytes, error: ErrorCode) -> bytes:
    return finished(refusing(it, head, frame, error))


def guarded(*forbidden: tuple[Right, str]) -> KafkaServices:
    services = KafkaServices()
    services.forbidden = {*forbidden}
    return services


def random_request(key: int, version: int, seed: int, correlation: int = 1) -> bytes:
    it = known(key)
    made = body(it.request, version, (), seed).data
    return frames.written(it, version, correlation, b"c", bytes(made))


# -- refusals --------------------------------------------------------------------------------------


def errors(found: object) -> Iterator[int]:
    """Yield all error codes of a response."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name in ERRORS:
                yield value
            else:
                yield from errors(value)
    elif isinstance(found, list):
        for each in found:
            yield from errors(each)


def has_errors(fields: tuple[Field, ...], version: int) -> bool:
    return any(it.name in ERRORS or has_errors(it.fields, version) for it in of(fields, version))


@pytest.mark.parametrize(("key", "version"), by_version(EVERY_VERSION))
def test_a_refusal_of_any_request_can_be_read_and_says_the_error(key: int, version: int) -> None:
    it, seen = known(key), set[int]()
    for seed in SEEDS:
        frame = random_request(key, version, seed, correlation=77)
        response = refused(it, frames.request(frame), frame, GROUP)
        assert frames.correlation(response) == 77
        found = told(key, version, response)
        assert (
            encode(it.response, version, found) == response[-len(encode_of(key, version, found)) :]
        )
        seen |= set(errors(found))
    assert seen <= {GROUP}, "an answer that says of a part that it went well"
    assert seen or not has_errors(it.response.fields, version)


def encode_of(key: int, version: int, found: dict[str, Any]) -> bytes:
    return encode(known(key).response, version, found)


def test_what_was_asked_for_one_by_one_is_refused_one_by_one() -> None:
    """Under the names that clients have given."""
    cases: list[tuple[int, int, dict[str, Any], str, list[dict[str, Any]]]] = [
        (42, 2, {"GroupsNames": ["a", "b"]}, "Results", [{"GroupId": "a"}, {"GroupId": "b"}]),
        (20, 3, {"TopicNames": ["a", "b"]}, "Responses", [{"Name": "a"}, {"Name": "b"}]),
        (15, 5, {"Groups": ["a"]}, "Groups", [{"GroupId": "a"}]),
        (19, 7, {"Topics": [{"Name": "a"}]}, "Topics", [{"Name": "a"}]),
        (
            51,
            0,
            {"Deletions": [{"Name": "a"}], "Upsertions": [{"Name": "b"}]},
            "Results",
            [{"User": "a"}, {"User": "b"}],
        ),
        (65, 0, {"TransactionalIds": ["a"]}, "TransactionStates", [{"TransactionalId": "a"}]),
    ]
    for key, version, fields, name, expected in cases:
        frame = ask(key, version, **fields)
        response = refused(known(key), frames.request(frame), frame, ON_CLUSTER)
        found = told(key, version, response)[name]
        assert [it["ErrorCode"] for it in found] == [ON_CLUSTER] * len(expected)
        for one, wanted in zip(found, expected, strict=True):
            assert {key: one[key] for key in wanted} == wanted


@pytest.mark.parametrize("version", versions(known(ADD_PARTITIONS).request))
def test_a_foreign_transaction_is_refused_for_each_partition(version: int) -> None:
    """A client takes an empty response for success."""
    topics = [{"Name": "a", "Partitions": [0, 7]}]
    fields: dict[str, Any] = {"V3AndBelowTransactionalId": "t", "V3AndBelowTopics": topics}
    if version >= BY_TRANSACTION:
        fields = {"Transactions": [{"TransactionalId": "t", "Topics": topics}]}
    play = Play(guarded((Right.PRODUCE, "group:t")))
    assert play.client(ask(ADD_PARTITIONS, version, **fields)) == b""
    found = told(ADD_PARTITIONS, version, play.client_got())
    results = found.get("ResultsByTopicV3AndBelow")
    if version >= BY_TRANSACTION:
        assert [it["TransactionalId"] for it in found["ResultsByTransaction"]] == ["t"]
        results = found["ResultsByTransaction"][0]["TopicResults"]
    partitions = [{"PartitionIndex": it, "PartitionErrorCode": TRANSACTION} for it in (0, 7)]
    assert results == [{"Name": "a", "ResultsByPartition": partitions}]


@pytest.mark.parametrize("version", versions(known(ADD_PARTITIONS).request))
def test_a_topic_of_a_transaction_without_the_right_has_its_error(version: int) -> None:
    topics = [{"Name": "a", "Partitions": [0]}, {"Name": "b", "Partitions": [0]}]
    asks: dict[str, Any] = {"V3AndBelowTransactionalId": "t", "V3AndBelowTopics": topics}
    if version >= BY_TRANSACTION:
        asks = {"Transactions": [{"TransactionalId": "t", "Topics": topics}]}
    play = Play(guarded((Right.PRODUCE, "b")))
    play.client(ask(ADD_PARTITIONS, version, **asks))

    def results(*names: str) -> dict[str, Any]:
        parts = [{"PartitionIndex": 0, "PartitionErrorCode": 3}]
        found = [{"Name": name, "ResultsByPartition": parts} for name in names]
        if version >= BY_TRANSACTION:
            return {"ResultsByTransaction": [{"TransactionalId": "t", "TopicResults": found}]}
        return {"ResultsByTopicV3AndBelow": found}

    response = play.broker(tell(ADD_PARTITIONS, version, 1, **results("a", "/")))
    assert TOPIC_DENIED in set(errors(told(ADD_PARTITIONS, version, response)))


def test_a_refusal_says_of_which_quotas() -> None:
    entity = [{"EntityType": "user", "EntityName": "a"}]
    frame = ask(49, 1, Entries=[{"Entity": entity, "Ops": [{"Key": "rate", "Value": 1.0}]}])
    found = told(49, 1, refused(known(49), frames.request(frame), frame, ON_CLUSTER))
    assert found["Entries"][0]["Entity"] == entity
    assert found["Entries"][0]["ErrorCode"] == ON_CLUSTER


# -- the cluster -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "version"), by_version(it for it in EVERY_VERSION if it[0] in OF_CLUSTER)
)
def test_what_concerns_the_cluster_needs_the_right_to_administer(key: int, version: int) -> None:
    frame = random_request(key, version, 1)
    play = Play(guarded((Right.ADMINISTER, CLUSTER)))
    assert play.client(frame) == b""
    assert correlations(play.client_got()) == [1]
    assert play.services.judged == [(Right.ADMINISTER, CLUSTER)]
    assert Play(guarded()).client(frame) == frame
    assert Play().client(frame) == frame


# -- lists that name nothing -----------------------------------------------------------------------


@pytest.mark.parametrize("topics", [None, []])
@pytest.mark.parametrize(
    ("key", "version", "field"), [(43, 2, "TopicPartitions"), (46, 0, "Topics")]
)
def test_what_is_done_to_all_topics_needs_the_right_to_administer(
    key: int, version: int, field: str, topics: object
) -> None:
    """Kafka elects the leaders of all partitions for a client that names none."""
    play = Play(guarded((Right.ADMINISTER, CLUSTER)))
    frame = ask(key, version, **{field: topics})
    assert play.client(frame) == b""
    assert told(key, version, play.client_got())["ErrorCode"] == ON_CLUSTER
    assert Play(guarded()).client(frame) == frame


def test_an_election_of_named_topics_needs_the_right_to_these() -> None:
    frame = ask(43, 2, TopicPartitions=[{"Topic": "a", "Partitions": [0]}])
    assert Play(guarded((Right.ADMINISTER, CLUSTER))).client(frame) == frame


def test_describing_all_topics_needs_the_right_to_look_all_of_them_up() -> None:
    """The cursor of the response would name the hidden topic where the next part begins."""
    play = Play(guarded((Right.LOOKUP, "secret")))
    frame = ask(75, 0, Topics=[], ResponsePartitionLimit=1)
    assert play.client(frame) == b""
    assert told(75, 0, play.client_got()) == {"ThrottleTimeMs": 0, "Topics": [], "NextCursor": None}
    assert play.services.judged == [(Right.LOOKUP, EVERY)]
    assert Play(guarded()).client(frame) == frame


@pytest.mark.parametrize(("expression", "refused"), [("sec.*", True), ("", False), (None, False)])
def test_an_expression_needs_the_right_to_look_all_topics_up(
    expression: str | None, refused: bool
) -> None:
    """Brokers tell the ids of all topics that it fits."""
    frame = ask(68, 1, GroupId="g", SubscribedTopicRegex=expression)
    play = Play(guarded((Right.LOOKUP, "secret")))
    assert (play.client(frame) == b"") is refused
    if refused:
        code = told(68, 1, play.client_got())["ErrorCode"]
        assert code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert Play(guarded()).client(frame) == frame


# -- what answers tell -----------------------------------------------------------------------------


def acting(key: int, direction: Direction, *acts: Act) -> list[str]:
    """Return the paths of an API's fields with which this happens."""
    return [path for path, rule in rules_of(key, direction).items() if rule.act in acts]


IN_LISTS = [
    case(it.response, version, it.key, version, path)
    for it in OFFERED
    for version in range(it.response.first, it.response.last + 1)
    for path in acting(it.key, TO_CLIENT, Act.FILTERED)
    if not (it.key == METADATA and path.endswith("TopicId"))  # which has a name beside it
    if _has(it.response.fields, version, path)
]


@pytest.mark.parametrize(("key", "version", "path"), IN_LISTS)
def test_an_answer_loses_the_topics_that_may_not_be_looked_up(
    key: int, version: int, path: str
) -> None:
    by_id = path.endswith("TopicId")
    of = (lambda name: id_of(name)) if by_id else (lambda name: name)  # noqa: PLW0108
    both, one = (
        tell(key, version, 1, **_listed(known(key).response.fields, path, [of(it) for it in names]))
        for names in (["plain", "secret", "other"], ["plain", "other"])
    )
    play = Play(guarded((Right.LOOKUP, "secret")), known=("plain", "secret", "other"))
    play.client(
        ask(key, version, 1, Topics=[{"Name": "plain"}]) if key == 75 else ask(key, version)
    )
    assert play.broker(both) == one
    free = Play(known=("plain", "secret", "other"))
    free.client(ask(key, version))
    assert free.broker(both) == both


def _assigned(key: int, version: int, *topics: str) -> bytes:
    """Return a response that assigns partition 0 of these topics to a group's member."""
    partitions = [{"TopicId": id_of(topic), "Partitions": [0]} for topic in topics]
    assigned = {"TopicPartitions": partitions}
    return tell(key, version, 1, MemberId="m", MemberEpoch=2, Assignment=assigned)


ASSIGNED = by_version(it for it in EVERY_VERSION if it[0] in {68, 76})


@pytest.mark.parametrize(("key", "version"), ASSIGNED)
def test_a_member_is_assigned_topics_once_their_names_are_known(key: int, version: int) -> None:
    """Whoever may use the group would learn the ids of hidden topics from it."""
    response = _assigned(key, version, "plain", "secret", "unheard")
    play = Play(guarded((Right.LOOKUP, "secret")), known=("plain",))
    play.client(ask(key, version))
    heard = told(key, version, play.broker(response))
    assert (heard["ErrorCode"], heard["Assignment"]) == (ErrorCode.COORDINATOR_LOADING, None)
    unknown = [id_of("secret"), id_of("unheard")]
    assert [it["TopicId"] for it in asked(play.broker_got())["Topics"]] == unknown
    assert play.broker(described(12, OWN, "secret", "unheard")) == b""
    play.client(ask(key, version))
    assert play.broker(response) == _assigned(key, version, "plain", "unheard")


@pytest.mark.parametrize(("key", "version"), ASSIGNED)
def test_where_nothing_is_forbidden_ids_need_no_names(key: int, version: int) -> None:
    response = _assigned(key, version, "unheard")
    play = Play()
    play.client(ask(key, version))
    assert play.broker(response) == response


def test_a_groups_offsets_name_no_topic_whose_name_is_not_known() -> None:
    groups = [
        {"GroupId": "g", "Topics": [{"TopicId": id_of(it)} for it in ("plain", "unheard")]},
    ]
    play = Play(guarded((Right.LOOKUP, "secret")), known=("plain",))
    play.client(ask(9, 10, Groups=[{"GroupId": "g", "Topics": None}]))
    (group,) = told(9, 10, play.broker(tell(9, 10, 1, Groups=groups)))["Groups"]
    assert [it["TopicId"] for it in group["Topics"]] == [id_of("plain")]


DESCRIBE_GROUPS = 15


@pytest.mark.parametrize("version", versions(known(DESCRIBE_GROUPS).response))
@pytest.mark.parametrize(
    ("kind", "wants", "has", "shown"),
    [
        ("consumer", subscription("plain"), assignment("plain"), (True, True)),
        ("consumer", subscription("plain", "secret"), assignment("plain"), (False, True)),
        ("consumer", subscription("plain"), assignment("plain", "secret"), (True, False)),
        ("consumer", subscription(), b"", (True, True)),
        ("consumer", b"not as consumers write it", assignment("secret")[:-9], (False, False)),
        ("connect", subscription("secret"), b"a worker's", (True, True)),
    ],
)
def test_what_members_told_their_group_names_no_hidden_topic(
    version: int, kind: str, wants: bytes, has: bytes, shown: tuple[bool, bool]
) -> None:
    """Brokers do not read it. Members of a group may use it without a right to each topic of it."""
    member = {"MemberId": "m", "MemberMetadata": wants, "MemberAssignment": has}
    groups = [{"GroupId": "g", "ProtocolType": kind, "Members": [member, {"MemberId": "n"}]}]
    response = tell(DESCRIBE_GROUPS, version, 1, Groups=groups)
    play = Play(guarded((Right.LOOKUP, "secret")))
    play.client(ask(DESCRIBE_GROUPS, version, 1, Groups=["g"]))
    (heard, other) = told(DESCRIBE_GROUPS, version, play.broker(response))["Groups"][0]["Members"]
    expected = [
        data if is_shown else b"" for data, is_shown in zip((wants, has), shown, strict=True)
    ]
    assert [heard["MemberMetadata"], heard["MemberAssignment"]] == expected
    assert other["MemberId"] == "n"
    free = Play()
    free.client(ask(DESCRIBE_GROUPS, version, 1, Groups=["g"]))
    assert free.broker(response) == response


# -- groups and transactions -----------------------------------------------------------------------


def _places(key: int, version: int, *acts: Act) -> list[str]:
    """Return the fields of a version's requests with which this happens."""
    fields = known(key).request.fields
    return [
        path + "[]" * _is_array(fields, path)
        for path in acting(key, TO_BROKER, *acts)
        if _has(fields, version, path)
    ]


def _is_array(fields: tuple[Field, ...], path: str) -> bool:
    first, _, rest = path.partition("/")
    (it,) = (it for it in fields if it.name == first)
    return _is_array(it.fields, rest) if rest else it.kind.startswith("[]")


def _filled(path: str, value: object) -> dict[str, Any]:
    """Return fields in which this stands at a path."""
    first, _, rest = path.partition("/")
    if rest:
        inner = _filled(rest, value)
        return {first: inner if first == "Cursor" else [inner]}
    return {first.removesuffix("[]"): [value] if first.endswith("[]") else value}


NAMED = [
    case(known(key).request, version, key, version, path, right, code)
    for key, version in EVERY_VERSION
    if key != PRODUCE  # which is authorized while it passes
    for act, right, code in (
        (Act.GROUP, Right.CONSUME, GROUP),
        (Act.TRANSACTION, Right.PRODUCE, TRANSACTION),
    )
    for path in _places(key, version, act)
]


@pytest.mark.parametrize(("key", "version", "path", "right", "code"), NAMED)
def test_a_group_and_a_transaction_need_the_right_to_them(
    key: int, version: int, path: str, right: Right, code: ErrorCode
) -> None:
    frame = ask(key, version, 1, **_filled(path, "its name"))
    play = Play(guarded((right, "group:its name")))
    assert play.client(frame) == b""
    assert set(errors(told(key, version, play.client_got()))) <= {code}
    assert (right, "group:its name") in play.services.judged
    allowed = Play(guarded((right, "group:another")))
    assert allowed.client(frame) == frame
    assert (right, "group:its name") in allowed.services.judged


def test_an_idempotent_producer_and_a_consumer_without_a_group_need_none() -> None:
    play = Play(guarded())
    frames_of = ask(22, 4, TransactionalId=None), ask(61, 0, Topics=[])
    assert play.client(*frames_of) == b"".join(frames_of)
    assert play.services.judged == []


@pytest.mark.parametrize(
    ("key", "version", "field", "right"),
    [(8, 8, "GroupId", Right.CONSUME), (24, 3, "V3AndBelowTransactionalId", Right.PRODUCE)],
)
def test_an_empty_name_is_one(key: int, version: int, field: str, right: Right) -> None:
    """Brokers keep offsets of the group without a name, and would judge the gateway's right."""
    play = Play(guarded((right, "group:")))
    assert play.client(ask(key, version, 1, **{field: ""})) == b""
    assert (right, "group:") in play.services.judged


# -- topics ----------------------------------------------------------------------------------------

OF_TOPICS = [
    case(known(key).request, version, key, version, path, RIGHTS.get(key))
    for key, version in EVERY_VERSION
    if key != PRODUCE
    for path in _places(key, version, Act.TOPIC)
    if not (key == METADATA and path.endswith("TopicId"))  # whose names the response has
]


@pytest.mark.parametrize(("key", "version", "path", "right"), OF_TOPICS)
def test_a_topic_without_the_right_becomes_another_one(
    key: int, version: int, path: str, right: Right
) -> None:
    by_id = path.endswith("TopicId")
    value: object = id_of("secret") if by_id else "secret"
    fields = _filled(path, value)
    if path == "Cursor/TopicName":  # a request that names no topic is about all of them
        fields["Topics"] = [{"Name": "plain"}]
    frame = ask(key, version, 1, **fields)
    play = Play(guarded((right, "secret")), known=("secret",))
    reached = play.client(frame)
    assert len(reached) == len(frame)
    assert asked(reached).keys() == asked(frame).keys()
    assert (id_of("secret") if by_id else b"secret") not in reached
    allowed = Play(guarded((right, "public")), known=("secret",))
    assert allowed.client(frame) == frame
    of_topics = [it for it in allowed.services.judged if not it[1].startswith("group:")]
    assert (right, "secret") in of_topics
    assert {*of_topics} <= {(right, "secret"), (right, "plain")}


HIDDEN, SEEN = id_of("hidden"), id_of("seen")


@pytest.mark.parametrize(
    ("frame", "errors"),
    [
        (produce(13, 1, a=batch(1), hidden=batch(1), seen=batch(1)), {HIDDEN: 100, SEEN: 29}),
        (fetch(13, 1, "a", "hidden", "seen"), {HIDDEN: 100, SEEN: 29}),
        (ask(20, 6, 1, Topics=[{"TopicId": it} for it in (HIDDEN, SEEN)]), {HIDDEN: 100, SEEN: 29}),
        (ask(METADATA, 12, 1, Topics=[{"TopicId": it} for it in (HIDDEN, SEEN)]), {HIDDEN: 100}),
    ],
    ids=["Produce", "Fetch", "DeleteTopics", "Metadata"],
)
def test_the_id_of_a_topic_that_is_hidden_is_one_that_nobody_has(
    frame: bytes, errors: dict[bytes, int]
) -> None:
    """As brokers say it (KIP-516)."""
    every = [(right, it) for right in (*Right,) for it in ("hidden", "seen")]
    services = guarded(*(it for it in every if it != (Right.LOOKUP, "seen")))
    play = Play(services, known=("a", "hidden", "seen"))
    reached = play.client(frame)
    assert HIDDEN not in reached
    others = play.session._substitutes._originals  # type: ignore[attr-defined]
    assert dict(others.values()) == errors


def test_whether_an_id_in_metadata_is_of_a_hidden_topic_is_asked_for_first() -> None:
    play = Play(guarded((Right.LOOKUP, "hidden")))
    frame = ask(METADATA, 12, 1, Topics=[{"TopicId": HIDDEN, "Name": None}])
    assert play.client(frame) == metadata_of([HIDDEN], OWN)[1]
    play.broker(described(12, OWN, "hidden"))
    (topic,) = asked(play.broker_got())["Topics"]
    assert topic["TopicId"] != HIDDEN
    said = [{"TopicId": topic["TopicId"], "ErrorCode": 100, "Name": None}]
    (topic,) = told(METADATA, 12, play.broker(tell(METADATA, 12, 1, Topics=said)))["Topics"]
    assert (topic["TopicId"], topic["ErrorCode"], topic["Name"]) == (HIDDEN, 100, None)


# -- subscriptions of classic consumers ------------------------------------------------------------

JOINS = versions(known(JOIN_GROUP).request)


def owning(number: int, wanted: Iterable[str], owned: Iterable[str], rest: bytes = b"") -> bytes:
    """Return a subscription of a version from 1 on, with the partitions that the member has."""
    names = [struct.pack(">h", len(it)) + it.encode() for it in wanted]
    has = [struct.pack(">h", len(it)) + it.encode() + struct.pack(">ii", 1, 0) for it in owned]
    head = struct.pack(">hi", number, len(names)) + b"".join(names)
    return head + struct.pack(">i", 3) + b"own" + struct.pack(">i", len(has)) + b"".join(has) + rest


def join(version: int, *data: bytes, kind: str = "consumer") -> bytes:
    protocols = [{"Name": f"p{number}", "Metadata": it} for number, it in enumerate(data)]
    fields = {"ProtocolType": kind, "Protocols": protocols, "MemberId": "m", "Reason": "why"}
    return ask(JOIN_GROUP, version, 1, GroupId="g", **fields)


@pytest.mark.parametrize("version", JOINS)
def test_a_classic_consumer_does_not_subscribe_to_what_it_may_not_look_up(version: int) -> None:
    """A broker with a group of the new protocol would tell it the topic's id and partitions."""
    rest = struct.pack(">ih", 7, 1) + b"r"
    frame = join(
        version,
        struct.pack(">hi", 0, 2) + b"\0\1a\0\6secret" + b"\xff" * 4,
        owning(1, ["secret", "a"], ["b", "secret"]),
        owning(3, ["secret"], ["secret"], rest),
        owning(9, ["a", "not a name"], ["a"], rest),
        subscription("secret", "a"),  # of version 1, without the partitions
        b"",
    )
    shown = join(
        version,
        struct.pack(">hi", 0, 1) + b"\0\1a" + b"\xff" * 4,
        owning(1, ["a"], ["b"]),
        owning(3, [], [], rest),
        owning(9, ["a", "not a name"], ["a"], rest),
        subscription("a"),
        b"",
    )
    assert Play(guarded((Right.LOOKUP, "secret"))).client(frame) == shown
    assert Play(guarded((Right.PRODUCE, "secret"))).client(frame) == frame
    assert Play().client(frame) == frame


def test_members_of_other_groups_say_what_they_will() -> None:
    frame = join(5, subscription("secret"), b"?", kind="connect")
    assert Play(guarded((Right.LOOKUP, "secret"))).client(frame) == frame


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        subscription("a")[:-1],
        struct.pack(">hi", 0, 1) + b"\xff\xff" + b"\xff" * 4,
        struct.pack(">hi", 0, -1) + b"\xff" * 4,
        struct.pack(">hi", 0, 0) + struct.pack(">i", 9),
        struct.pack(">hi", 0, 0) + struct.pack(">i", -2),
        owning(1, ["a"], ["b"])[:-1],
        struct.pack(">hi", 1, 0) + b"\xff" * 4 + struct.pack(">ih", 1, 1) + b"a" + b"\xff" * 4,
    ],
)
def test_a_subscription_that_cannot_be_read_is_refused(data: bytes) -> None:
    play = Play(guarded((Right.LOOKUP, "secret")))
    assert play.client(join(5, data)) == b""
    assert told(JOIN_GROUP, 5, play.client_got())["ErrorCode"] == TOPIC_DENIED


def test_a_join_waits_until_it_is_known_what_the_member_may_look_up() -> None:
    services = guarded()
    services.undecided = {"a", "b"}
    play = Play(services)
    frame = join(5, owning(1, ["a"], ["b"]))
    assert play.client(frame) == b""
    play.finish()
    assert play.broker_got() == frame
    play.broker(tell(JOIN_GROUP, 5, 1))
    services.undecided = {"a"}
    assert play.client(frame) == b""
    play.after(LONGEST_QUESTION)
    assert told(JOIN_GROUP, 5, play.client_got())["ErrorCode"] == ErrorCode.COORDINATOR_LOADING


# -- questions about rights ------------------------------------------------------------------------


def test_a_request_waits_until_it_is_known_whether_its_group_may() -> None:
    services = guarded()
    services.undecided = {"group:g"}
    play = Play(services)
    frame = ask(12, 4, 1, GroupId="g")
    assert play.client(frame) == b""
    assert play.is_waiting
    play.finish()
    assert play.broker_got() == frame


def test_a_request_is_refused_if_nobody_says_that_its_group_may() -> None:
    services = guarded()
    services.undecided = {"group:g"}
    play = Play(services)
    play.client(ask(12, 4, 1, GroupId="g"))
    play.after(5)
    assert play.broker_got() == b""
    assert told(12, 4, play.client_got())["ErrorCode"] == GROUP
    assert play.ended is None


def test_a_name_that_is_not_utf_8_is_a_violation() -> None:
    frame = ask(12, 0, 1, GroupId="gg").replace(b"gg", b"\xff\xfe")
    with pytest.raises(PeerError):
        Play(guarded()).client(frame)


def test_a_torn_request_is_a_violation_with_rules_and_without() -> None:
    for services in (guarded(), KafkaServices()):
        frame = ask(12, 0, 1, GroupId="g")[:-3]
        frame = (len(frame) - 4).to_bytes(4) + frame[4:]
        play = Play(services)
        with pytest.raises(PeerError):
            play.client(frame)
        assert play.ended is not EndReason.UNKNOWN_COMMAND
        assert play.broker_got() == b""
