"""Frames of thousands of topics, groups or partitions are decided in slices."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.contract import Direction, Sliced
from gateway.wire.kafka.asking import OWN
from gateway.wire.kafka.codec import AT_ONCE
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.session import SWEPT
from gateway.wire.kafka.walk import unsigned
from gateway.wire.slices import UNITS
from tests.apache_kafka.encoding import UNKNOWN_TAG

from .frames import (
    DESCRIBE_CONFIGS,
    FETCH,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    ask,
    asked,
    assignment,
    batch,
    correlations,
    described,
    fetch,
    fetched,
    id_of,
    metadata,
    old,
    produce,
    subscription,
    tell,
    told,
)
from .script import CLUSTER, KafkaServices, Play

MANY = 3000
NAMES = [f"topic-{number}" for number in range(MANY)]
CREATE_ACLS, DESCRIBE_GROUPS, LIST_GROUPS, GROUP_DESCRIBE = 30, 15, 16, 69
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guarded(*forbidden: tuple[Right, str]) -> KafkaServices:
    services = KafkaServices()
    services.forbidden = {*forbidden}
    return services


def offsets(*names: str, correlation: int = 1) -> bytes:
    topics = [{"Name": name, "Partitions": [{"PartitionIndex": 0}]} for name in names]
    return ask(LIST_OFFSETS, 7, correlation, Topics=topics)


@pytest.mark.parametrize(
    "frame",
    [
        fetch(12, 1, *NAMES),
        offsets(*NAMES),
        ask(METADATA, 12, 1, Topics=[{"Name": name} for name in NAMES]),
        ask(DESCRIBE_GROUPS, 5, 1, Groups=NAMES),
    ],
    ids=["fetch", "list offsets", "metadata", "describe groups"],
)
def test_a_request_of_thousands_of_names_is_authorized_in_slices(frame: bytes) -> None:
    """Each right that is looked up, and each account that is opened, takes up to 0.5 ms."""
    play = Play(guarded((Right.LOOKUP, "secret")))
    done: list[int] = []
    play.between_slices = lambda: done.append(len(play.services.judged))
    assert play.client(frame) == frame
    assert max(after - before for before, after in itertools.pairwise(done)) <= 8
    assert play.slices >= MANY / 8 - 1


def test_the_accounts_of_one_request_are_opened_a_few_at_a_time() -> None:
    play = Play()
    done: list[int] = []
    play.between_slices = lambda: done.append(len(play.services.admitted))
    play.client(fetch(12, 1, *NAMES))
    assert len(play.services.admitted) == MANY
    assert max(after - before for before, after in itertools.pairwise(done)) <= 4


def test_a_small_request_and_its_response_are_decided_at_once() -> None:
    play = Play(guarded((Right.LOOKUP, "secret")))
    play.client(metadata(12, 1, "a", "secret"), offsets("a", correlation=2))
    play.broker(described(12, 1, "a"), tell(LIST_OFFSETS, 7, 2))
    assert play.slices == 0


def test_thousands_of_denied_topics_come_back_with_their_error() -> None:
    play = Play(guarded(*((Right.LOOKUP, name) for name in NAMES[1:])))
    reached = asked(play.client(offsets(*NAMES)))["Topics"]
    assert not {it["Name"] for it in reached} & {*NAMES[1:]}
    said = [
        {"Name": it["Name"], "Partitions": [{"ErrorCode": 0 if it["Name"] in NAMES else 17}]}
        for it in reached
    ]
    before = play.slices
    heard = told(LIST_OFFSETS, 7, play.broker(tell(LIST_OFFSETS, 7, 1, Topics=said)))["Topics"]
    assert [it["Name"] for it in heard] == NAMES
    assert [it["Partitions"][0]["ErrorCode"] for it in heard] == [0] + [DENIED] * (MANY - 1)
    assert play.slices > before


def test_errors_are_counted_by_what_the_client_gets() -> None:
    """Those of Metadata are not: while leaders move, it has one for each topic."""
    play = Play(guarded((Right.LOOKUP, "secret")))
    (substitute,) = asked(play.client(metadata(12, 1, "secret")))["Topics"]
    topics = [{"ErrorCode": 3, "Name": substitute["Name"]}, {"ErrorCode": 5, "Name": "a"}]
    heard = told(METADATA, 12, play.broker(tell(METADATA, 12, 1, Topics=topics)))["Topics"]
    assert [(it["Name"], it["ErrorCode"]) for it in heard] == [("secret", DENIED), ("a", 5)]
    assert not play.services.errors
    play.client(offsets("a", "secret", correlation=2))
    said = [
        {"Name": name, "Partitions": [{"ErrorCode": code}]}
        for name, code in (("a", 6), (substitute["Name"], 17))
    ]
    play.broker(tell(LIST_OFFSETS, 7, 2, Topics=said))
    assert play.services.errors == {("ListOffsets", 6): 1, ("ListOffsets", DENIED): 1}


def test_tagged_fields_of_a_refused_request_are_read_in_slices() -> None:
    """Each that nobody knows takes 1 µs."""
    play = Play(guarded((Right.ADMINISTER, CLUSTER)))
    tags = unsigned(MANY) + (unsigned(UNKNOWN_TAG) + unsigned(0)) * MANY
    data = ask(LIST_GROUPS, 5)[SIZE.size : -1] + tags
    play.client(SIZE.pack(len(data)) + data)
    refused = told(LIST_GROUPS, 5, play.client_got())
    assert refused["ErrorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert play.slices >= MANY / AT_ONCE - 1


@pytest.mark.parametrize("hidden", [(), ("topic-2999",)])
def test_what_members_say_to_each_other_is_read_in_slices(hidden: tuple[str, ...]) -> None:
    """A member names as many topics as it wants, in one block of bytes."""
    play = Play(guarded(*((Right.LOOKUP, name) for name in hidden)))
    play.client(ask(DESCRIBE_GROUPS, 5, 1, Groups=["g"]))
    said = {"MemberMetadata": subscription(*NAMES), "MemberAssignment": assignment(*NAMES)}
    groups = [{"GroupId": "g", "ProtocolType": "consumer", "Members": [said]}]
    heard = told(DESCRIBE_GROUPS, 5, play.broker(tell(DESCRIBE_GROUPS, 5, 1, Groups=groups)))
    (member,) = heard["Groups"][0]["Members"]
    shown = {key: member[key] for key in said}
    assert shown == (dict.fromkeys(said, b"") if hidden else said)
    assert play.slices >= 2 * MANY / 100


def test_the_batches_of_one_partition_are_counted_in_slices() -> None:
    """A message takes 17 bytes at least."""
    play = Play(guarded((Right.PRODUCE, "denied")))
    play.client(produce(8, a=old(0) * MANY, denied=batch(1)))
    assert [it.messages for it in play.services.admitted] == [MANY, 1]
    assert play.slices >= MANY / 1000


def test_few_long_texts_are_cleaned_at_once() -> None:
    """To look for addresses in 4 KB takes up to 2 ms, and clients choose what is in them."""
    play = Play()
    play.client(ask(GROUP_DESCRIBE, 0, 1, GroupIds=["g"]))
    groups = [{"GroupId": "g", "ErrorMessage": "1:2:" * 1000}] * 100
    play.broker(tell(GROUP_DESCRIBE, 0, 1, Groups=groups))
    assert play.slices >= 99


@pytest.mark.parametrize("hidden", [NAMES[:-1], NAMES[1:], NAMES[::2], NAMES, []])
def test_a_list_of_thousands_loses_what_the_client_may_not_look_up(hidden: list[str]) -> None:
    play = Play(guarded(*((Right.LOOKUP, name) for name in hidden)))
    play.client(metadata(12, 1))
    heard = told(METADATA, 12, play.broker(described(12, 1, *NAMES)))["Topics"]
    assert [it["Name"] for it in heard] == [name for name in NAMES if name not in {*hidden}]
    assert play.slices >= MANY / 100


def test_a_response_of_many_partitions_pauses_within_a_topic() -> None:
    play = Play()
    play.client(metadata(12, 1))
    partitions = [{"PartitionIndex": it, "ReplicaNodes": [1, 2]} for it in range(20_000)]
    topics = [{"Name": "a", "TopicId": id_of("a"), "Partitions": partitions}]
    response = tell(METADATA, 12, 1, Topics=topics)
    assert play.broker(response) == response
    assert play.slices >= 4


@pytest.mark.parametrize(
    ("frame", "key", "version", "items"),
    [
        (ask(DESCRIBE_GROUPS, 5, 1, Groups=NAMES), DESCRIBE_GROUPS, 5, "Groups"),
        (ask(CREATE_ACLS, 3, 1, Creations=[{}] * MANY), CREATE_ACLS, 3, "Results"),
    ],
    ids=["groups", "rights"],
)
def test_a_refusal_of_thousands_is_made_in_slices(
    frame: bytes, key: int, version: int, items: str
) -> None:
    play = Play(guarded((Right.CONSUME, "group:topic-0"), (Right.ADMINISTER, CLUSTER)))
    assert play.client(frame) == b""
    errors = [it["ErrorCode"] for it in told(key, version, play.client_got())[items]]
    assert len(errors) == MANY
    assert 0 not in errors
    assert play.slices >= MANY / 200


def test_a_subscription_of_thousands_is_filtered_in_slices() -> None:
    def join(*topics: str) -> bytes:
        protocols = [{"Name": "range", "Metadata": subscription(*topics)}]
        return ask(JOIN_GROUP, 5, 1, GroupId="g", ProtocolType="consumer", Protocols=protocols)

    play = Play(guarded((Right.LOOKUP, NAMES[0])))
    done: list[int] = []
    play.between_slices = lambda: done.append(len(play.services.judged))
    assert play.client(join(*NAMES)) == join(*NAMES[1:])
    assert max(after - before for before, after in itertools.pairwise(done)) <= UNITS


def test_substitutes_are_kept_while_a_request_is_decided() -> None:
    """A sweep forgets them where nothing is in flight."""
    play = Play(guarded((Right.CONSUME, "secret"), *((Right.CONSUME, it) for it in NAMES)))
    play.client(fetch(12, 1, "a", "secret"))
    play.broker(fetched(12, 1, a=batch(1)))
    play.between_slices = lambda: play.after(SWEPT)
    names = asked(play.client(fetch(12, 2, "a", *NAMES)))["Topics"]
    play.between_slices = lambda: None
    said = {it["Topic"]: b"" for it in names}
    heard = told(FETCH, 12, play.broker(fetched(12, 2, **said)))["Responses"]
    assert [it["Topic"] for it in heard] == ["a", *NAMES]


def test_a_response_is_decided_while_a_request_is() -> None:
    """The order of responses stays that of requests."""
    play = Play(guarded((Right.LOOKUP, "secret"), (Right.ADMINISTER, CLUSTER)))
    play.client(metadata(12, 1, "a"))
    heard = bytearray()
    play.between_slices = lambda: heard.extend(
        play.broker(described(12, 1, "a")) if not heard else b""
    )
    play.client(offsets(*NAMES, correlation=2), ask(DESCRIBE_CONFIGS, 4, 3))
    assert correlations(bytes(heard)) == [1]
    assert correlations(play.broker(tell(LIST_OFFSETS, 7, 2))) == [2, 3]


def test_a_torn_end_of_a_long_request_is_a_violation() -> None:
    frame = offsets(*NAMES)[:-1]
    frame = (len(frame) - 4).to_bytes(4) + frame[4:]
    play = Play(guarded((Right.LOOKUP, "secret")))
    with pytest.raises(PeerError):
        play.client(frame)
    assert play.broker_got() == b""


def test_a_decision_that_is_given_up_leaves_nothing() -> None:
    play = Play(guarded((Right.CONSUME, "secret")))
    (effect,) = play.session.decide(Direction.TO_BROKER, fetch(12, 1, *NAMES), play.now)
    assert isinstance(effect, Sliced)
    next(effect.steps)
    effect.steps.close()
    play.close()


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("rules", [True, False])
def test_ids_that_nobody_knows_are_asked_for_within_a_bound(version: int, rules: bool) -> None:
    """Two requests of 19,000 unknown ids hung a broker of Kafka 4.3."""
    ids = [number.to_bytes(16) for number in range(1, 252)]

    def of(*ids: bytes) -> bytes:
        return ask(METADATA, version, 1, Topics=[{"TopicId": id, "Name": None} for id in ids])

    services = guarded((Right.LOOKUP, "secret")) if rules else KafkaServices()
    play = Play(services, known=("a",))
    assert play.client(of(*ids)) == b""
    response = told(METADATA, version, play.client_got())
    unknown = {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_ID}
    topics = [{key: it[key] for key in ("TopicId", "ErrorCode")} for it in response["Topics"]]
    assert topics == [{"TopicId": id, **unknown} for id in ids]
    most = of(*ids[:250], *[id_of("a")] * 500)
    reached = play.client(most)
    if rules:  # their names are asked for first
        assert len(asked(reached)["Topics"]) == 250
        play.broker(tell(METADATA, 12, OWN))
        reached = play.broker_got()
    assert reached == most


def test_the_gateway_asks_for_no_more_ids_at_once_than_clients_may() -> None:
    play = Play()
    ids = [number.to_bytes(16) for number in range(1, 1000)]
    topics = [{"TopicId": id, "Partitions": [{"Partition": 0}]} for id in ids]
    own: Any = asked(play.client(ask(FETCH, 16, 1, Topics=topics)))
    assert len(own["Topics"]) == 250


def test_a_produce_of_thousands_of_topics_is_decided_in_slices() -> None:
    play = Play(guarded((Right.PRODUCE, NAMES[0])))
    done: list[int] = []
    play.between_slices = lambda: done.append(len(play.services.admitted))
    play.client(produce(9, 1, **dict.fromkeys(NAMES, batch(1))))
    assert len(play.services.admitted) == MANY
    assert max(after - before for before, after in itertools.pairwise(done)) <= 4
