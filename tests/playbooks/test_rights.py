"""Rights: what a client may not do is refused as a broker refuses it, and no broker hears of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.policy.access import Access
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.wire.account import Action, Right
from gateway.wire.contract import Denial, Direction, Drop, Effects, Inject, Replace
from gateway.wire.pulsar import rights
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.commands import message_of
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.fields import RIGHTS
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State
from gateway.wire.services import LookupOutcome, Undecided
from gateway.wire.subject import Subject, TopicName
from tests.support.frames import data

from .frames import (
    LATER,
    TOPIC,
    Fields,
    close_consumer,
    close_producer,
    connect_to,
    error,
    failed,
    frame,
    lookup,
    message,
    number_field,
    producer,
    producer_success,
    raw,
    read,
    send,
    subscribe,
    success,
    unsubscribe,
)
from .script import Outcome, Play
from .services import FORBIDDEN, SEALED_1, URL_1, FakeServices
from .test_delays import Paced, no_partitions

SECRET = "persistent://public/default/secret"
COORDINATOR = "persistent://pulsar/system/transaction_coordinator_assign-partition-3"


def txn(*partitions: str, request: int = 7) -> bytes:
    of: Fields = {"request_id": request, "txnid_least_bits": 3, "txnid_most_bits": 1}
    return frame(Kind.ADD_PARTITION_TO_TXN, partitions=partitions, **of)


def txn_subscriptions(*topics: str, subscription: str = "s") -> bytes:
    named = [{"topic": topic, "subscription": subscription} for topic in topics]
    of: Fields = {"request_id": 7, "txnid_least_bits": 3, "txnid_most_bits": 1}
    return frame(Kind.ADD_SUBSCRIPTION_TO_TXN, subscription=named, **of)


TXN: Fields = {"request_id": 7, "txnid_least_bits": 3, "txnid_most_bits": 1}

ASKS: dict[Kind, Callable[[str], bytes]] = {
    Kind.PRODUCER: lambda topic: producer(1, request=7, topic=topic),
    Kind.SUBSCRIBE: lambda topic: subscribe(1, request=7, topic=topic),
    Kind.LOOKUP: lambda topic: lookup(7, topic),
    Kind.PARTITIONED_METADATA: lambda topic: frame(
        Kind.PARTITIONED_METADATA, topic=topic, request_id=7
    ),
    Kind.GET_SCHEMA: lambda topic: frame(Kind.GET_SCHEMA, topic=topic, request_id=7),
    Kind.GET_OR_CREATE_SCHEMA: lambda topic: frame(
        Kind.GET_OR_CREATE_SCHEMA,
        topic=topic,
        request_id=7,
        schema={"name": "a", "schema_data": b"{}", "type": 2},
    ),
    Kind.ADD_PARTITION_TO_TXN: txn,
    Kind.ADD_SUBSCRIPTION_TO_TXN: txn_subscriptions,
    Kind.END_TXN_ON_PARTITION: lambda topic: frame(Kind.END_TXN_ON_PARTITION, topic=topic, **TXN),
    Kind.END_TXN_ON_SUBSCRIPTION: lambda topic: frame(
        Kind.END_TXN_ON_SUBSCRIPTION, subscription={"topic": topic, "subscription": "s"}, **TXN
    ),
    Kind.SCALABLE_TOPIC_LOOKUP: lambda topic: frame(
        Kind.SCALABLE_TOPIC_LOOKUP, session_id=7, topic=topic
    ),
    Kind.SCALABLE_TOPIC_SUBSCRIBE: lambda topic: frame(
        Kind.SCALABLE_TOPIC_SUBSCRIBE,
        request_id=7,
        topic=topic,
        subscription="s",
        consumer_name="c",
        consumer_id=1,
        consumer_type=0,
    ),
}
"""A command of each kind that needs a right, about a topic."""


def refusals(code: ServerError.ValueType, text: str) -> dict[Kind, tuple[bytes, ...]]:
    """What a client is told of each, in place of the broker's response."""
    plain: Fields = {"error": code, "message": text}
    of_schema: Fields = {"error_code": code, "error_message": text}
    by_error = error(7, code, text)
    return {
        Kind.PRODUCER: (by_error,),
        Kind.SUBSCRIBE: (by_error, close_consumer(1)),
        Kind.LOOKUP: (failed(7, code, text),),
        Kind.PARTITIONED_METADATA: (no_partitions(7, code, text),),
        Kind.GET_SCHEMA: (frame(Kind.GET_SCHEMA_RESPONSE, request_id=7, **of_schema),),
        Kind.GET_OR_CREATE_SCHEMA: (
            frame(Kind.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=7, **of_schema),
        ),
        Kind.ADD_PARTITION_TO_TXN: (frame(Kind.ADD_PARTITION_TO_TXN_RESPONSE, **TXN, **plain),),
        Kind.ADD_SUBSCRIPTION_TO_TXN: (
            frame(Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, **TXN, **plain),
        ),
        Kind.END_TXN_ON_PARTITION: (frame(Kind.END_TXN_ON_PARTITION_RESPONSE, **TXN, **plain),),
        Kind.END_TXN_ON_SUBSCRIPTION: (
            frame(Kind.END_TXN_ON_SUBSCRIPTION_RESPONSE, **TXN, **plain),
        ),
        Kind.SCALABLE_TOPIC_LOOKUP: (frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=7, **plain),),
        Kind.SCALABLE_TOPIC_SUBSCRIBE: (
            frame(Kind.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, request_id=7, **plain),
        ),
    }


def guarded(*forbidden: tuple[Right, str], **settings: Any) -> Play:
    """A pair whose client lacks these rights."""
    play = Play(limited=True, **settings)
    play.services.forbidden = set(forbidden)
    return play


def refused(outcome: Outcome, *told: bytes) -> None:
    """The frame is dropped, and the client gets these."""
    outcome.gives(Drop(), *(Inject(Direction.TO_CLIENT, it) for it in told))


EACH = pytest.mark.parametrize("kind", list(ASKS), ids=lambda kind: kind.name)


def test_each_command_that_needs_a_right_is_tried_here() -> None:
    assert ASKS.keys() == RIGHTS.keys()


# -- commands ----------------------------------------------------------------------------------


@EACH
def test_a_command_goes_on_with_the_right(kind: Kind) -> None:
    play = guarded(*((right, SECRET) for right in Right))
    play.client(ASKS[kind](TOPIC)).forwards()


@EACH
def test_a_command_without_the_right_is_refused_by_its_own_answer(kind: Kind) -> None:
    play = guarded((RIGHTS[kind], SECRET))
    told = refusals(ServerError.AuthorizationError, FORBIDDEN.text)[kind]
    refused(play.client(ASKS[kind](SECRET)), *told)
    assert play.services.asked == []
    assert play.services.admitted == []


@EACH
def test_no_other_right_is_needed(kind: Kind) -> None:
    others = set(Right) - {RIGHTS[kind]}
    guarded(*((right, SECRET) for right in others)).client(ASKS[kind](SECRET)).forwards()


@EACH
def test_a_partition_belongs_to_its_topic(kind: Kind) -> None:
    play = guarded((RIGHTS[kind], SECRET))
    effects = play.client(ASKS[kind](f"{SECRET}-partition-3")).effects or ()
    assert effects[0] == Drop()


@EACH
@pytest.mark.parametrize("topic", ["secret/", "PERSISTENT://public/default/secret", "", "a/b"])
def test_an_odd_name_is_refused_as_a_broker_refuses_it(kind: Kind, topic: str) -> None:
    play = guarded()
    effects = play.client(ASKS[kind](topic)).effects or ()
    assert effects[0] == Drop()
    assert isinstance(effects[1], Inject)
    assert code_of(read(effects[1].data)) == ServerError.InvalidTopicName


def code_of(command: BaseCommand) -> int:
    """The error that a response holds."""
    _, (_, response) = command.ListFields()
    field = "error_code" if hasattr(response, "error_code") else "error"
    return int(getattr(response, field))


@EACH
def test_a_name_longer_than_the_bound_is_refused(kind: Kind) -> None:
    play = guarded(bounds=Bounds(names=64))
    effects = play.client(ASKS[kind]("x" * 65)).effects or ()
    assert isinstance(effects[1], Inject)
    assert b"a name of 65 characters, of 64 at most" in effects[1].data


@EACH
def test_a_name_that_is_not_utf8_ends_the_pair(kind: Kind) -> None:
    data = ASKS[kind]("persistent://public/default/????")
    with pytest.raises(PeerError, match="not UTF-8"):
        guarded().client(data.replace(b"????", b"\xff\xfe\xfd\xfc"))


@EACH
def test_where_no_rules_are_nothing_is_asked(kind: Kind) -> None:
    play = Play(limited=True)
    assert not play.services.guarded
    play.client(ASKS[kind](SECRET)).forwards()


@pytest.mark.parametrize("kind", [Kind.GET_SCHEMA, Kind.PRODUCER, Kind.LOOKUP])
def test_of_two_topics_in_one_field_the_last_counts_and_alone_goes_on(kind: Kind) -> None:
    """Brokers merge repeated fields otherwise than we do, if they see them."""
    play = guarded((RIGHTS[kind], SECRET))

    def naming(first: str, second: str) -> bytes:
        message = message_of(kind, read(ASKS[kind](first)))
        number = message.DESCRIPTOR.fields_by_name["topic"].number
        return raw(kind, message.SerializeToString() + data(number, second.encode()))

    assert (play.client(naming(TOPIC, SECRET)).effects or ())[0] == Drop()
    assert play.client(naming(SECRET, TOPIC)).effects == (Replace(ASKS[kind](TOPIC)),)


def test_a_refused_lookup_is_counted() -> None:
    play = guarded((Right.LOOKUP, SECRET))
    play.client(lookup(7, SECRET)).happens()
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


def test_a_refused_consumer_is_not_open() -> None:
    play = guarded((Right.CONSUME, SECRET))
    play.client(subscribe(1, request=7, topic=SECRET)).happens()
    assert play.state(Action.CONSUME) is None
    play.client(frame(Kind.FLOW, consumer_id=1, messagePermits=1000)).drops()


def test_a_refused_producer_cannot_send() -> None:
    play = guarded((Right.PRODUCE, SECRET))
    play.client(producer(1, request=7, topic=SECRET)).happens()
    play.client(send(1)).drops()


# -- transactions ------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(3))
def test_one_forbidden_topic_of_a_transaction_refuses_all(at: int) -> None:
    topics = [f"{TOPIC}-{number}" for number in range(3)]
    topics[at] = SECRET
    play = guarded((Right.PRODUCE, SECRET), (Right.CONSUME, SECRET))
    told = refusals(ServerError.AuthorizationError, FORBIDDEN.text)
    refused(play.client(txn(*topics)), *told[Kind.ADD_PARTITION_TO_TXN])
    refused(play.client(txn_subscriptions(*topics)), *told[Kind.ADD_SUBSCRIPTION_TO_TXN])


def test_all_topics_of_a_transaction_go_on_together() -> None:
    topics = [f"{TOPIC}-{number}" for number in range(rights.MOST_NAMED)]
    play = guarded((Right.PRODUCE, SECRET), (Right.CONSUME, SECRET))
    play.client(txn(*topics)).forwards()
    play.client(txn_subscriptions(*topics)).forwards()


@pytest.mark.parametrize("ask", [txn, txn_subscriptions])
def test_topics_of_one_command_have_a_bound(ask: Callable[..., bytes]) -> None:
    topics = [f"{TOPIC}-{number}" for number in range(rights.MOST_NAMED + 1)]
    effects = guarded().client(ask(*topics)).effects or ()
    assert effects[0] == Drop()
    assert isinstance(effects[1], Inject)
    assert code_of(read(effects[1].data)) == ServerError.TooManyRequests


def test_the_subscription_of_a_transaction_counts() -> None:
    rule = {"id": "a", "match": {"topic": "t", "subscription": "mine"}, "allow": "consume"}
    play = ruled([rule], closed=True)
    play.client(txn_subscriptions(TOPIC, subscription="mine")).forwards()
    effects = play.client(txn_subscriptions(TOPIC, subscription="yours")).effects or ()
    assert effects[0] == Drop()


# -- producers that create a subscription ------------------------------------------------------


def test_a_producer_that_creates_a_subscription_needs_the_right_to_consume() -> None:
    play = guarded((Right.CONSUME, SECRET))
    asked = producer(1, request=7, topic=SECRET, initial_subscription_name="s")
    refused(play.client(asked), error(7, ServerError.AuthorizationError, FORBIDDEN.text))
    play.client(producer(1, request=7, topic=SECRET, initial_subscription_name="")).forwards()


def test_a_producer_that_creates_a_subscription_needs_the_right_for_that_one() -> None:
    rules: list[dict[str, Any]] = [
        {"id": "a", "allow": "produce"},
        {"id": "b", "match": {"subscription": "mine"}, "allow": "consume"},
    ]
    play = ruled(rules, closed=True)
    play.client(producer(1, request=1, initial_subscription_name="mine")).forwards()
    effects = play.client(producer(2, request=2, initial_subscription_name="yours")).effects or ()
    assert effects[0] == Drop()


# -- coordinators ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.LOOKUP, Kind.PARTITIONED_METADATA])
@pytest.mark.parametrize("topic", [COORDINATOR, COORDINATOR.removesuffix("-partition-3")])
def test_all_may_find_coordinators(kind: Kind, topic: str) -> None:
    ruled([], closed=True).client(ASKS[kind](topic)).forwards()


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.SUBSCRIBE, Kind.ADD_PARTITION_TO_TXN])
def test_coordinators_names_may_only_be_found(kind: Kind) -> None:
    effects = ruled([], closed=True).client(ASKS[kind](COORDINATOR)).effects or ()
    assert effects[0] == Drop()


# -- sequences ---------------------------------------------------------------------------------


def test_another_topic_of_an_open_id_needs_its_own_right() -> None:
    play = guarded((Right.PRODUCE, SECRET), (Right.CONSUME, SECRET))
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(subscribe(1, request=2)).forwards()
    play.broker(success(2)).happens()
    told = error(7, ServerError.AuthorizationError, FORBIDDEN.text)
    refused(play.client(producer(1, request=7, topic=SECRET)), told)
    refused(play.client(subscribe(1, request=7, topic=SECRET)), told, close_consumer(1))
    play.client(send(1)).passes()
    assert play.state(Action.PRODUCE) is play.state(Action.CONSUME) is State.OPEN
    assert {account.topic for account in play.services.live} == {TOPIC}


@pytest.mark.parametrize("answered", [False, True])
def test_opening_again_needs_the_right_again(answered: bool) -> None:
    play = guarded()
    play.client(producer(1, request=1)).forwards()
    play.client(subscribe(1, request=2)).forwards()
    if answered:
        play.broker(producer_success(1)).forwards()
        play.broker(success(2)).happens()
    play.services.forbidden = {(Right.PRODUCE, TOPIC), (Right.CONSUME, TOPIC)}
    told = error(7, ServerError.AuthorizationError, FORBIDDEN.text)
    refused(play.client(producer(1, request=7)), told)
    refused(play.client(subscribe(1, request=7)), told, close_consumer(1))


def test_while_a_right_is_taken_back_the_id_cannot_be_opened_again() -> None:
    play = guarded()
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.services.forbidden = {(Right.PRODUCE, TOPIC)}
    play._note(play.session.revoke(play.account, FORBIDDEN, 0.0))
    play.client(producer(1, request=7)).refuses(
        error(7, ServerError.AuthorizationError, FORBIDDEN.text)
    )
    play.client(send(1)).drops()
    play.broker(success(play.our_close)).happens()
    play.client(send(1)).drops()
    assert play.services.live == []


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.SUBSCRIBE, Kind.LOOKUP])
def test_a_command_that_waited_is_checked_once_more(kind: Kind) -> None:
    """Rules that change meanwhile close what is open, which this is not yet."""
    play = Paced()
    play.services.forbidden = set()
    then = play.later(play.client(ASKS[kind](TOPIC)))
    play.services.forbidden = {(RIGHTS[kind], TOPIC)}
    told = refusals(ServerError.AuthorizationError, FORBIDDEN.text)[kind]
    refused(play.due(then), *told)
    assert play.services.admitted == []


def test_what_waited_goes_on_with_the_right() -> None:
    play = Paced()
    play.services.forbidden = {(Right.PRODUCE, SECRET)}
    then = play.later(play.client(producer(1, request=7)))
    play.due(then).gives(Inject(Direction.TO_BROKER, producer(1, request=7)))


def test_what_is_refused_does_not_wait() -> None:
    play = Paced()
    play.services.forbidden = {(Right.PRODUCE, SECRET)}
    play.client(producer(1, request=7, topic=SECRET)).refuses(
        error(7, ServerError.AuthorizationError, FORBIDDEN.text)
    )
    assert play.services.counted == []


def test_a_lookup_that_was_allowed_is_chased_for_its_own_topic_alone() -> None:
    play = guarded((Right.LOOKUP, SECRET))
    play.client(lookup(1, TOPIC)).forwards()
    play.client(lookup(1, SECRET)).happens()
    told = play.broker(connect_to(URL_1, 1)).replaced().lookupTopicResponse
    assert told.brokerServiceUrl == SEALED_1
    assert play.services.outcomes == {LookupOutcome.CONNECT: 1, LookupOutcome.REFUSED: 1}


def test_closes_of_what_was_refused_change_nothing() -> None:
    play = guarded((Right.PRODUCE, SECRET), (Right.CONSUME, SECRET))
    play.client(producer(1, request=1, topic=SECRET)).happens()
    play.client(subscribe(1, request=2, topic=SECRET)).happens()
    for said in (close_producer(1, request=3), close_consumer(1, request=4)):
        play.client(said).forwards()
    play.client(unsubscribe(1, request=5)).forwards()
    assert play.state(Action.PRODUCE) is play.state(Action.CONSUME) is None
    play.client(send(1)).drops()


def test_while_the_gateway_stops_rights_are_checked_too() -> None:
    play = guarded((Right.PRODUCE, SECRET), (Right.CONSUME, SECRET))
    play.leave().happens()
    told = error(7, ServerError.AuthorizationError, FORBIDDEN.text)
    refused(play.client(producer(1, request=7, topic=SECRET)), told)
    refused(play.client(subscribe(1, request=7, topic=SECRET)), told, close_consumer(1))


# -- lists of topics ---------------------------------------------------------------------------

OWN = "topics of tenant pulsar are the brokers' own"
VISIBLE = [f"persistent://public/default/t-{number}" for number in range(3)]
HIDDEN = [SECRET, f"{SECRET}-partition-0", "odd/name"]
ALL = [VISIBLE[0], *HIDDEN, *VISIBLE[1:]]


def of_namespace(topics: Iterable[str], **fields: Any) -> bytes:
    more: Fields = {"request_id": 7, "filtered": True} | fields
    return frame(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, topics=topics, **more)


def watched(topics: Iterable[str], **fields: Any) -> bytes:
    more: Fields = {"request_id": 7, "watcher_id": 3, "topics_hash": ""} | fields
    return frame(Kind.WATCH_TOPIC_LIST_SUCCESS, topic=topics, **more)


def appeared(topics: Iterable[str], **fields: Any) -> bytes:
    more: Fields = {"watcher_id": 3, "topics_hash": ""} | fields
    return frame(Kind.WATCH_TOPIC_UPDATE, new_topics=topics, **more)


def disappeared(topics: Iterable[str], **fields: Any) -> bytes:
    more: Fields = {"watcher_id": 3, "topics_hash": ""} | fields
    return frame(Kind.WATCH_TOPIC_UPDATE, deleted_topics=topics, **more)


def changed(topics: Iterable[str], **fields: Any) -> bytes:
    """As many topics came as went."""
    return appeared(topics, deleted_topics=list(topics), **fields)


def snapshot(topics: Iterable[str], **fields: Any) -> bytes:
    of: Fields = {"watch_id": 3, "snapshot": {"topics": topics}} | fields
    return frame(Kind.WATCH_SCALABLE_TOPICS_UPDATE, **of)


def diff(topics: Iterable[str], **fields: Any) -> bytes:
    topics = list(topics)
    of: Fields = {"watch_id": 3, "diff": {"added": topics, "removed": topics}} | fields
    return frame(Kind.WATCH_SCALABLE_TOPICS_UPDATE, **of)


LISTS = [of_namespace, watched, appeared, disappeared, changed, snapshot, diff]

LISTED = pytest.mark.parametrize("listing", LISTS, ids=lambda listing: listing.__name__)
Listing = Callable[..., bytes]


def hiding(**settings: Any) -> Play:
    return guarded((Right.LOOKUP, SECRET), **settings)


@LISTED
def test_a_list_loses_the_topics_that_may_not_be_looked_up(listing: Listing) -> None:
    hiding().broker(listing(ALL)).replaces(listing(VISIBLE))


@pytest.mark.parametrize("listing", [of_namespace, watched, snapshot])
def test_a_list_of_hidden_topics_is_empty(listing: Listing) -> None:
    hiding().broker(listing(HIDDEN)).replaces(listing([]))


@pytest.mark.parametrize("listing", [appeared, disappeared, changed, diff])
def test_an_update_about_hidden_topics_alone_is_dropped(listing: Listing) -> None:
    """Its arrival would tell that a topic of the watch's pattern appeared or disappeared."""
    hiding().broker(listing(HIDDEN)).drops()


@LISTED
def test_a_list_without_hidden_topics_goes_on_as_it_came(listing: Listing) -> None:
    hiding().broker(listing(VISIBLE, unknown=LATER)).forwards()
    hiding().broker(listing([])).forwards()


def test_a_name_that_is_not_utf_8_is_in_no_list() -> None:
    names = [data(2, name) for name in (b"\xff", VISIBLE[0].encode())]
    said = raw(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, number_field(1, 7) + b"".join(names))
    seen = frame(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=7, topics=VISIBLE[:1])
    hiding().broker(said).replaces(seen)


@LISTED
def test_where_no_rights_are_needed_a_list_goes_on_as_it_came(listing: Listing) -> None:
    Play(limited=True).broker(listing(ALL, unknown=LATER)).forwards()


@LISTED
def test_unknown_fields_stay_in_a_list_unless_they_are_masked(listing: Listing) -> None:
    said = listing(ALL, unknown=LATER)
    hiding().broker(said).replaces(listing(VISIBLE, unknown=LATER))
    hiding(unknown_pass=False).broker(said).replaces(listing(VISIBLE))


@LISTED
def test_the_rights_of_the_moment_count(listing: Listing) -> None:
    play = hiding()
    play.broker(listing(VISIBLE)).forwards()
    play.services.forbidden = {(Right.LOOKUP, VISIBLE[0])}
    play.broker(listing(VISIBLE)).replaces(listing(VISIBLE[1:]))


MANY = [
    f"persistent://public/default/a-topic-with-a-name-of-usual-length-{n}" for n in range(20_000)
]


@LISTED
def test_a_list_of_20000_topics_passes(listing: Listing) -> None:
    few = MANY[::2]
    play = guarded(*((Right.LOOKUP, topic) for topic in MANY[1::2]))
    assert Bounds().fields < len(MANY)
    assert Bounds().command < len(listing(MANY))
    play.broker(listing(few)).forwards()
    play.broker(listing(MANY)).replaces(listing(few))


@pytest.mark.parametrize("listing", [of_namespace, watched])
def test_the_hash_of_a_whole_list_goes_with_its_hidden_topics(listing: Listing) -> None:
    """Whoever guesses topics could confirm them by it."""
    hiding().broker(listing(ALL, topics_hash="h")).replaces(listing(VISIBLE))


@pytest.mark.parametrize("listing", [of_namespace, watched])
def test_a_list_has_no_hash_though_nothing_is_hidden(listing: Listing) -> None:
    """Whoever asks by a pattern would learn from a missing hash that a hidden topic matches."""
    hiding().broker(listing(VISIBLE, topics_hash="h")).replaces(listing(VISIBLE))
    hiding().broker(listing([], topics_hash="h")).replaces(listing([]))


@pytest.mark.parametrize("listing", [appeared, disappeared, changed])
def test_an_update_has_no_hash_of_what_it_does_not_list(listing: Listing) -> None:
    hiding().broker(listing(VISIBLE, topics_hash="h")).replaces(listing(VISIBLE))


def test_a_client_cannot_confirm_a_list_that_it_guesses() -> None:
    of: Fields = {"request_id": 7, "namespace": "public/default"}
    more: Fields = {"watcher_id": 3, "topics_pattern": ".*"}
    for kind, fields in ((Kind.GET_TOPICS_OF_NAMESPACE, of), (Kind.WATCH_TOPIC_LIST, of | more)):
        said = frame(kind, topics_hash="h", **fields)
        hiding().client(said).replaces(frame(kind, **fields))
        hiding().client(frame(kind, **fields)).forwards()
        Play(limited=True).client(said).forwards()


def test_a_client_cannot_confirm_a_list_of_scalable_topics_that_it_guesses() -> None:
    of: Fields = {"watch_id": 3, "namespace": "public/default"}
    said = frame(Kind.WATCH_SCALABLE_TOPICS, current_hash="h", **of)
    hiding().client(said).replaces(frame(Kind.WATCH_SCALABLE_TOPICS, **of))


@pytest.mark.parametrize("play", [hiding, Play])
@pytest.mark.parametrize("namespace", ["pulsar/10.0.0.1:8080", "pulsar/system", "pulsar/c/x"])
def test_nobody_lists_the_brokers_own_topics(play: Callable[[], Play], namespace: str) -> None:
    """Their namespaces are named after brokers, so a list would confirm an address."""
    of: Fields = {"request_id": 7, "namespace": namespace}
    more: Fields = {"watcher_id": 3, "topics_pattern": ".*"}
    for kind, fields in ((Kind.GET_TOPICS_OF_NAMESPACE, of), (Kind.WATCH_TOPIC_LIST, of | more)):
        told: Fields = {"request_id": 7, "error": ServerError.AuthorizationError, "message": OWN}
        play().client(frame(kind, **fields)).refuses(frame(Kind.ERROR, **told))
    said = frame(Kind.WATCH_SCALABLE_TOPICS, watch_id=3, namespace=namespace)
    told = {"watch_id": 3, "error": ServerError.AuthorizationError, "message": OWN}
    play().client(said).refuses(frame(Kind.WATCH_SCALABLE_TOPICS_UPDATE, **told))


def test_addresses_are_hidden_in_lists_too() -> None:
    text = f"{URL_1} has no such namespace"
    told = hiding().broker(snapshot(ALL, message=text)).replaced()
    assert told.watchScalableTopicsUpdate.message == "pulsar://broker has no such namespace"
    assert list(told.watchScalableTopicsUpdate.snapshot.topics) == VISIBLE
    shown = hiding().broker(snapshot(VISIBLE, message=text)).replaced()
    assert shown.watchScalableTopicsUpdate.message == "pulsar://broker has no such namespace"


def test_a_failed_watch_of_scalable_topics_goes_on() -> None:
    no: Fields = {"watch_id": 3, "error": ServerError.MetadataError, "message": "no"}
    hiding().broker(frame(Kind.WATCH_SCALABLE_TOPICS_UPDATE, **no)).forwards()


# -- spellings, under real rules ---------------------------------------------------------------

DENY: dict[str, Any] = {"id": "deny", "deny": ["produce", "consume", "lookup", "administer"]}


class RuledServices(FakeServices):
    """Services of which rules decide who may do what."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access

    @property
    def guarded(self) -> bool:
        return True

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        return self._access.refuse(right, subject)

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        return self._access.which(right, client)


def ruled(rules: Iterable[dict[str, Any]], *, closed: bool = False) -> Play:
    """A pair under these rules, whose client is alice."""
    compiled = RuleSet.compile(Rule.model_validate(rule) for rule in rules)
    default: Any = "closed" if closed else "open"
    services = RuledServices(Access(compiled, {"clients": default}, lambda _: None))
    return Play(limited=True, services=services)


NAMES = ["secret", "public/default/secret", "persistent://public/default/secret"]
"""The ways in which a rule may name the topic."""

SPELLINGS = [
    *("secret", "public/default/secret", "persistent://public/default/secret"),
    *("secret/", "/secret", "//secret//", "PERSISTENT://public/default/secret"),
    *("Persistent://public/default/secret", "persistent://public//default/secret"),
    *("secret-partition-3", "persistent://public/default/secret-partition-0"),
    "secret-partition-\N{ARABIC-INDIC DIGIT THREE}",
    "persistent://public/default/secret-partition-2147483647",
]
"""All spellings of the topic and its partitions that some broker takes for it."""


@EACH
@pytest.mark.parametrize("named", NAMES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_gets_around_a_denial(kind: Kind, named: str, spelling: str) -> None:
    play = ruled([DENY | {"match": {"topic": named}}])
    effects = play.client(ASKS[kind](spelling)).effects or ()
    assert effects[0] == Drop()
    assert all(isinstance(it, Inject) and it.direction is Direction.TO_CLIENT for it in effects[1:])


@EACH
@pytest.mark.parametrize("spelling", NAMES)
def test_every_spelling_has_what_a_rule_allows(kind: Kind, spelling: str) -> None:
    for named in NAMES:
        allow = {"id": "a", "match": {"topic": named}, "allow": list(Right)}
        ruled([allow], closed=True).client(ASKS[kind](spelling)).forwards()


SCALABLE = ["topic://t/n/x", "segment://t/n/x/0000-7fff-1"]


@EACH
@pytest.mark.parametrize("spelling", [*SCALABLE, "segment://t/n/x/0000-7FFF-01", "topic:///t/n/x"])
@pytest.mark.parametrize("match", [{"topic": "t/n/x"}, {"topic": "topic://t/n/x"}, {"tenant": "t"}])
def test_segments_belong_to_their_topic(kind: Kind, spelling: str, match: dict[str, Any]) -> None:
    effects = ruled([DENY | {"match": match}]).client(ASKS[kind](spelling)).effects or ()
    assert effects[0] == Drop()


@EACH
@pytest.mark.parametrize("match", [{"namespace": "t/c/n"}, {"namespace": "n"}, {"tenant": "t"}])
def test_names_of_pulsar_1_have_a_namespace_too(kind: Kind, match: dict[str, Any]) -> None:
    effects = ruled([DENY | {"match": match}]).client(ASKS[kind]("persistent://t/c/n/x")).effects
    assert (effects or ())[0] == Drop()


def test_a_denied_topic_is_in_no_list_however_it_is_spelt() -> None:
    for named in NAMES:
        play = ruled([DENY | {"match": {"topic": named}}])
        seen = play.broker(of_namespace([*SPELLINGS, *VISIBLE])).replaced()
        assert list(seen.getTopicsOfNamespaceResponse.topics) == VISIBLE


def test_the_rule_that_denies_is_told() -> None:
    effects: Effects = ruled([DENY]).client(producer(1, request=7)).effects or ()
    told = error(7, ServerError.AuthorizationError, TOLD)
    assert effects == (Drop(), Inject(Direction.TO_CLIENT, told))


TOLD = "this client may not produce here: rule deny denies it"


def test_a_consumer_that_was_allowed_gets_its_messages() -> None:
    play = ruled([{"id": "a", "match": {"principal": "alice"}, "allow": "consume"}], closed=True)
    play.client(subscribe(1, request=1)).forwards()
    play.broker(success(1)).happens()
    play.broker(message(1)).passes()
    play.client(producer(1, request=2)).refuses(
        error(
            2, ServerError.AuthorizationError, "this client may not produce here: no rule allows it"
        )
    )
