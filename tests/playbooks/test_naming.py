"""A topic has one name: what brokers would read differently is refused as a broker refuses it."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Drop, EndReason, Inject
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandLookupTopicResponse, ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind

from .frames import (
    NO_REQUEST,
    close_consumer,
    close_producer,
    connect,
    frame,
    lookup,
    producer,
    producer_success,
    read,
    subscribe,
    success,
)
from .script import Play, opening

ODD = [
    "orders/",
    "/orders",
    "//orders//",
    "PERSISTENT://public/default/orders",
    "Non-Persistent://public/default/orders",
    "persistent://public//default/orders",
    "persistent://public/default/",
    "persistent://t n/n/orders",
    "queue://t/n/orders",
    "segment://t/n/orders/0-FFFF-01",
    "orders-partition-\N{ARABIC-INDIC DIGIT THREE}",
    "tenant/orders",
    " ",
    "",
]

SPELLINGS = ["orders", "public/default/orders", "persistent://public/default/orders"]


@pytest.mark.parametrize("topic", ODD)
def test_a_producer_of_an_odd_name_is_refused(topic: str) -> None:
    play = Play()
    drop, told = play.client(producer(3, request=7, topic=topic)).effects or ()
    assert drop == Drop()
    assert isinstance(told, Inject)
    no = read(told.data).error
    assert (no.request_id, no.error) == (7, ServerError.InvalidTopicName)
    assert no.message.startswith("Invalid topic name: ")
    assert play.services.admitted == []


@pytest.mark.parametrize("topic", ODD)
def test_a_consumer_of_an_odd_name_is_refused(topic: str) -> None:
    play = Play()
    _, told, closed = play.client(subscribe(3, request=7, topic=topic)).effects or ()
    assert isinstance(told, Inject)
    assert isinstance(closed, Inject)
    assert read(told.data).error.error == ServerError.InvalidTopicName
    assert closed.data == close_consumer(3, request=NO_REQUEST)
    assert play.services.admitted == []


@pytest.mark.parametrize("topic", ODD)
def test_a_lookup_of_an_odd_name_fails(topic: str) -> None:
    play = Play()
    _, told = play.client(lookup(7, topic=topic)).effects or ()
    assert isinstance(told, Inject)
    no = read(told.data).lookupTopicResponse
    assert (no.request_id, no.response) == (7, CommandLookupTopicResponse.Failed)
    assert no.error == ServerError.InvalidTopicName


def test_partitions_of_an_odd_name_fail_where_they_are_looked_at() -> None:
    asked = frame(Kind.PARTITIONED_METADATA, topic="/orders", request_id=7)
    Play().client(asked).passes()
    _, told = Play(limited=True).client(asked).effects or ()
    assert isinstance(told, Inject)
    no = read(told.data).partitionMetadataResponse
    assert (no.request_id, no.error) == (7, ServerError.InvalidTopicName)


def test_all_spellings_of_a_topic_are_counted_as_one() -> None:
    play = Play()
    for number, topic in enumerate(SPELLINGS):
        play.client(producer(number, request=number, topic=topic)).forwards()
    assert {account.topic for account in play.services.admitted} == {SPELLINGS[-1]}


def test_a_segment_is_counted_with_the_namespace_of_its_topic() -> None:
    play = Play()
    name = "segment://t/n/orders/0000-7fff-1"
    play.client(producer(1, topic=name)).forwards()
    assert play.account.topic == name


LONG = "x" * 65


@pytest.mark.parametrize(
    "said",
    [
        producer(1, topic=LONG),
        producer(1, producer_name=LONG),
        subscribe(1, topic=LONG),
        subscribe(1, consumer_name=LONG),
        lookup(1, topic=LONG),
        lookup(1, advertised_listener_name=LONG),
    ],
)
def test_names_have_a_bound(said: bytes) -> None:
    play = Play(bounds=Bounds(names=64))
    effects = play.client(said).effects or ()
    told = [effect.data for effect in effects if isinstance(effect, Inject)]
    assert b"a name of 65 characters, of 64 at most" in told[0]
    assert Drop() in effects
    assert play.services.admitted == []


def test_the_principal_that_a_proxy_names_has_a_bound() -> None:
    proxies, bounds = frozenset({"alice"}), Bounds(names=64)
    for longer, reason in ((0, None), (1, EndReason.AUTHENTICATION_FAILED)):
        talk = opening(Mode.VERIFY, proxies=proxies, bounds=bounds)
        talk.client_says(connect(original_principal="x" * (64 + longer)))
        if reason is None:
            talk.dials(None)
        else:
            assert "too long" in talk.refused(reason).error.message


def test_the_names_of_all_that_is_open_have_a_bound() -> None:
    play = Play(bounds=Bounds(handle_names=100))
    long = "persistent://public/default/" + "x" * 40
    play.client(producer(1, topic=long)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(subscribe(1, request=2, topic=long)).forwards()
    _, told = play.client(producer(2, request=3, topic=long)).effects or ()
    assert isinstance(told, Inject)
    assert read(told.data).error.error == ServerError.TooManyRequests
    play.client(close_producer(1, request=4)).forwards()
    play.broker(success(4)).happens()
    play.client(producer(2, request=5, topic=long)).forwards()


def test_a_flow_that_brokers_read_as_a_negative_number_ends_the_pair() -> None:
    play = Play(limited=True)
    play.client(subscribe(1)).forwards()
    play.broker(success(1)).happens()
    with pytest.raises(PeerError, match="a FLOW of 2147483648 permits"):
        play.client(frame(Kind.FLOW, consumer_id=1, messagePermits=1 << 31))
