"""Hiding: no place of any command carries a broker's address to a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.errors import PeerError
from gateway.wire.contract import Direction, Drop, Inject
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind
from tests.support.commands import STOPS

from .frames import (
    LATER,
    Fields,
    close_consumer,
    close_producer,
    error,
    frame,
    framed,
    migrated,
    number_field,
    producer,
    producer_success,
    raw,
    read,
    send,
    send_error,
    subscribe,
    success,
)
from .script import Play
from .services import BROKER_1, OTHER_CLUSTER, OTHER_GATEWAY, SEALED_1, SEALED_2, URL_1, URL_2

ELSEWHERE = "pulsar://elsewhere.internal:6650"
"""A broker that the services has no name for."""


@pytest.fixture
def play() -> Play:
    return Play()


# -- assigned brokers --------------------------------------------------------------------------


def assigned(plain: str | None = None, tls: str | None = None) -> Fields:
    urls = {"assignedBrokerServiceUrl": plain, "assignedBrokerServiceUrlTls": tls}
    return {name: url for name, url in urls.items() if url is not None}


@pytest.mark.parametrize("close", [close_producer, close_consumer])
@pytest.mark.parametrize(
    "said",
    [
        assigned(URL_1),
        assigned(tls=URL_1),
        assigned(URL_1, "pulsar+ssl://x:1"),
        assigned("", URL_1),
    ],
)
def test_an_assigned_broker_is_named_in_both_fields(play: Play, close: Any, said: Fields) -> None:
    named = close(1, **assigned(SEALED_1, SEALED_1), unknown=LATER)
    play.broker(close(1, **said, unknown=LATER)).replaces(named)


@pytest.mark.parametrize("close", [close_producer, close_consumer])
@pytest.mark.parametrize("url", [ELSEWHERE, "nonsense", ""])
def test_an_assigned_broker_that_cannot_be_named_is_left_out(
    play: Play, close: Any, url: str
) -> None:
    """The client then looks the topic up again."""
    play.broker(close(1, **assigned(url, url))).replaces(close(1))


def test_names_are_in_the_clients_own_scheme() -> None:
    play = Play(tls=True)
    named = assigned("pulsar+ssl://one.gw:6650", "pulsar+ssl://one.gw:6650")
    play.broker(close_producer(1, **assigned(URL_1))).replaces(close_producer(1, **named))


# -- 5.0 ---------------------------------------------------------------------------------------


def dag(*brokers: str, controller: str | None = None, **fields: Any) -> dict[str, Any]:
    segments = [
        {"segment_id": id, "broker_url": url, "broker_url_tls": url}
        for id, url in enumerate(brokers)
    ]
    controlled = {} if controller is None else {"controller_broker_url": controller}
    return {"epoch": 3, "segment_brokers": segments} | controlled | fields


def test_the_brokers_of_a_scalable_topic_are_named(play: Play) -> None:
    said = dag(URL_1, URL_2, controller=URL_2)
    named = dag(SEALED_1, SEALED_2, controller=SEALED_2, controller_broker_url_tls=SEALED_2)
    update = frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, dag=said, unknown=LATER)
    play.broker(update).replaces(
        frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, dag=named, unknown=LATER)
    )


def test_a_segment_without_a_name_keeps_its_required_field(play: Play) -> None:
    update = frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, dag=dag(ELSEWHERE))
    nowhere = {"epoch": 3, "segment_brokers": [{"segment_id": 0, "broker_url": ""}]}
    play.broker(update).replaces(frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, dag=nowhere))


def test_a_scalable_topic_update_that_is_an_error_stays_one(play: Play) -> None:
    update = frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, error=11, message=f"at {BROKER_1}")
    cleaned = frame(Kind.SCALABLE_TOPIC_UPDATE, session_id=1, error=11, message="at broker")
    play.broker(update).replaces(cleaned)


def test_the_brokers_of_transaction_coordinators_are_named(play: Play) -> None:
    def update(*urls: str | None) -> bytes:
        assignments: list[Fields] = []
        for id, url in enumerate(urls):
            named = url is not None and url.endswith(".gw:6650")
            plain = {} if url is None else {"broker_service_url": url}
            tls = {"broker_service_url_tls": url} if named else {}
            assignments.append({"tc_id": id} | plain | tls)
        snapshot = {"parallelism": 2, "assignments": assignments}
        return frame(Kind.WATCH_TC_ASSIGNMENTS_UPDATE, watch_id=1, snapshot=snapshot)

    play.broker(update(URL_1, URL_2, None)).replaces(update(SEALED_1, SEALED_2, None))


# -- withheld ----------------------------------------------------------------------------------


def test_a_migration_is_withheld(play: Play) -> None:
    """It names brokers of another cluster, which have no name here."""
    play.broker(
        frame(Kind.TOPIC_MIGRATED, resource_id=1, resource_type=0, brokerServiceUrl=URL_1)
    ).drops()


def test_where_the_broker_sees_a_consumer_is_left_out(play: Play) -> None:
    """It is an inner address of the gateway itself."""
    stats: Fields = {"request_id": 1, "consumerName": "c", "availablePermits": 3}
    said = frame(Kind.CONSUMER_STATS_RESPONSE, address="/10.0.0.7:40112", **stats)
    play.broker(said).replaces(frame(Kind.CONSUMER_STATS_RESPONSE, **stats))
    play.broker(frame(Kind.CONSUMER_STATS_RESPONSE, **stats)).forwards()


# -- texts -------------------------------------------------------------------------------------

TEXTS: list[tuple[Kind, dict[str, Any], str]] = [
    (Kind.ERROR, {"request_id": 9, "error": 6}, "message"),
    (Kind.SEND_ERROR, {"producer_id": 9, "sequence_id": 1, "error": 2}, "message"),
    (Kind.PARTITIONED_METADATA_RESPONSE, {"request_id": 9, "response": 1, "error": 6}, "message"),
    (Kind.CONSUMER_STATS_RESPONSE, {"request_id": 9, "error_code": 6}, "error_message"),
    (Kind.GET_SCHEMA_RESPONSE, {"request_id": 9, "error_code": 6}, "error_message"),
    (Kind.GET_OR_CREATE_SCHEMA_RESPONSE, {"request_id": 9, "error_code": 6}, "error_message"),
    (Kind.ACK_RESPONSE, {"consumer_id": 9, "error": 6}, "message"),
    (Kind.NEW_TXN_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.ADD_PARTITION_TO_TXN_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.END_TXN_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.END_TXN_ON_PARTITION_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.END_TXN_ON_SUBSCRIPTION_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.TC_CLIENT_CONNECT_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, {"request_id": 9, "error": 6}, "message"),
    (Kind.WATCH_SCALABLE_TOPICS_UPDATE, {"watch_id": 9, "error": 6}, "message"),
    (Kind.WATCH_TC_ASSIGNMENTS_UPDATE, {"watch_id": 9, "error": 6}, "message"),
]
"""Every response with a text, but LOOKUP_RESPONSE and SCALABLE_TOPIC_UPDATE, which are always
new."""


@pytest.mark.parametrize(("kind", "fields", "text"), TEXTS)
def test_texts_lose_the_brokers_addresses_and_nothing_else(
    play: Play, kind: Kind, fields: dict[str, Any], text: str
) -> None:
    said = {text: f"persistent://a/b/c is being unloaded by {BROKER_1}"}
    cleaned = {text: "persistent://a/b/c is being unloaded by broker"}
    outcome = play.broker(frame(kind, **fields, **said, unknown=LATER))
    outcome.replaces(frame(kind, **fields, **cleaned, unknown=LATER))


@pytest.mark.parametrize(("kind", "fields", "text"), TEXTS)
def test_texts_without_an_address_go_on_as_they_came(
    play: Play, kind: Kind, fields: dict[str, Any], text: str
) -> None:
    play.broker(frame(kind, **fields, **{text: "is being unloaded"}, unknown=LATER)).forwards()
    play.broker(frame(kind, **fields)).forwards()


def test_error_codes_of_later_versions_survive_the_cleaning(play: Play) -> None:
    def said(text: str) -> bytes:
        return frame(Kind.ERROR, request_id=1, message=text, unknown=number_field(2, 99))

    play.broker(said(f"{BROKER_1}?")).replaces(said("broker?"))


def test_an_error_of_a_known_request_is_cleaned_too(play: Play) -> None:
    play.client(frame(Kind.PRODUCER, topic="t", producer_id=1, request_id=1)).forwards()
    outcome = play.broker(error(1, text=f"not by {BROKER_1}"))
    assert outcome.words == "replace + discard"
    play.broker(send_error(1, f"not by {BROKER_1}")).replaces(send_error(1, "not by broker"))


def test_a_brokers_command_that_is_written_in_another_order_never_reaches_a_client(
    play: Play,
) -> None:
    said = error(1, text=f"not by {BROKER_1}")[10:]
    with pytest.raises(PeerError, match="its type and the field of that type"):
        play.broker(framed(said + number_field(1, Kind.ERROR)))


# -- long texts --------------------------------------------------------------------------------

LONGEST = 100


def told(text: str) -> str:
    """What a client hears of a text."""
    play = Play(bounds=Bounds(text=LONGEST))
    message: str = play.broker(error(1, text=text)).replaced().error.message
    return message


def test_a_long_text_is_cut_between_two_words() -> None:
    text = "persistent://a/b/c is being unloaded, " + "and more " * 20
    assert told(text).startswith("persistent://a/b/c is being unloaded, and more and")
    assert told(text).endswith("more and ... (cut)")
    assert len(told(text)) <= LONGEST + len("... (cut)")


@pytest.mark.parametrize("before", range(LONGEST - len(str(BROKER_1)) - 3, LONGEST + 1))
def test_no_part_of_an_address_is_left_where_a_text_is_cut(before: int) -> None:
    heard = told("x" * (before - 1) + f" {BROKER_1} " + "y" * LONGEST)
    assert heard in ("x" * (before - 1) + end for end in (" ... (cut)", " broker ... (cut)"))


def test_of_a_text_that_is_one_long_word_nothing_is_left() -> None:
    assert told("a." * LONGEST) == "... (cut)"


def test_a_text_of_the_longest_allowed_is_whole(play: Play) -> None:
    said = error(1, text="x" * Bounds().text)
    play.broker(said).forwards()


def test_a_long_text_that_is_not_utf8_is_cut_too() -> None:
    play = Play(bounds=Bounds(text=LONGEST))
    text = b"\xff " * 1000
    message = bytes(read(error(1, text="?" * len(text))).SerializeToString())
    said = framed(message.replace(b"?" * len(text), text))
    heard = play.broker(said).replaced().error.message
    assert heard == "\ufffd " * (LONGEST // 2) + "... (cut)"


# -- nothing is forgotten ----------------------------------------------------------------------

FROM_CLIENTS = {
    Kind.CONNECT,  # proxy_to_broker_url: a name of ours
}


def _texts(message: Descriptor, inside: tuple[str, ...] = ()) -> Iterator[FieldDescriptor]:
    for field in message.fields:
        if field.message_type is not None and field.message_type.full_name not in inside:
            yield from _texts(field.message_type, (*inside, message.full_name))
        elif field.type == field.TYPE_STRING:
            yield field


def may_carry_an_address(message: Descriptor) -> bool:
    """By the names of its texts: URLs, addresses, and what a person reads."""
    words = ("url", "address", "message")
    return any(word in field.name.lower() for field in _texts(message) for word in words)


def test_every_command_whose_schema_has_room_for_an_address_stops() -> None:
    suspects = {
        Kind(field.number)
        for field in BaseCommand.DESCRIPTOR.fields
        if field.message_type is not None and may_carry_an_address(field.message_type)
    }
    assert suspects - FROM_CLIENTS <= STOPS[Direction.TO_CLIENT]
    assert len(suspects) > 20


def test_a_frame_of_a_stopping_command_stops_even_without_fields(play: Play) -> None:
    ending = {Kind.AUTH_CHALLENGE, Kind.CONNECTED, Kind.SEND}
    for kind in STOPS[Direction.TO_CLIENT] - ending:
        assert play.broker(raw(kind, b"")).effects is not None


@pytest.mark.parametrize("ask", [producer, subscribe])
def test_topics_that_hold_addresses_are_closed(play: Play, ask: Callable[..., bytes]) -> None:
    outcome = play.client(ask(1, request=7, topic="persistent://pulsar/system/reports"))
    effects = outcome.effects
    assert effects is not None
    drop, told, *_ = effects
    assert drop == Drop()
    assert isinstance(told, Inject)
    response = read(told.data).error
    assert (response.request_id, response.error) == (7, ServerError.AuthorizationError)
    assert play.services.admitted == []


# -- migration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["brokerServiceUrl", "brokerServiceUrlTls"])
def test_a_migration_leads_to_the_other_gateway(play: Play, field: str) -> None:
    urls = {field: f"pulsar://{OTHER_CLUSTER}"}
    said = frame(Kind.TOPIC_MIGRATED, resource_id=1, resource_type=1, unknown=LATER, **urls)
    url = f"pulsar://{OTHER_GATEWAY}"
    both = {"brokerServiceUrl": url, "brokerServiceUrlTls": url}
    told = frame(Kind.TOPIC_MIGRATED, resource_id=1, resource_type=1, unknown=LATER, **both)
    play.broker(said).replaces(told)


@pytest.mark.parametrize("url", [ELSEWHERE, "", "nonsense"])
def test_a_migration_to_where_no_gateway_is_known_is_withheld(play: Play, url: str) -> None:
    said = frame(Kind.TOPIC_MIGRATED, resource_id=1, resource_type=0, brokerServiceUrl=url)
    play.broker(said).drops()


def test_a_withheld_migration_that_answers_a_request_is_answered_by_the_gateway(play: Play) -> None:
    """Nothing else would answer it, and the client would wait until its patience ends."""
    play.client(producer(1, request=7)).happens()
    effects = play.broker(migrated(1, 0)).effects
    assert effects is not None
    told = read(next(it.data for it in effects if isinstance(it, Inject)))
    assert (told.error.request_id, told.error.error) == (7, ServerError.ServiceNotReady)
    play.broker(close_producer(1)).happens()
    play.client(producer(1, request=8)).forwards()
    play.broker(producer_success(8)).forwards()
    play.client(send(1)).passes()


def test_a_broker_that_opens_it_all_the_same_may_close_it_behind_the_next_request(
    play: Play,
) -> None:
    """The news were of the incarnation before; its client was told that this one failed."""
    play.client(producer(1, request=6)).happens()
    play.broker(producer_success(6)).happens()
    play.client(producer(1, request=7)).happens()
    play.broker(migrated(1, 0)).happens()
    play.broker(close_producer(1)).forwards()
    play.broker(producer_success(7)).forwards()
    play.client(producer(1, request=8)).happens()
    play.broker(close_producer(1)).forwards()
    play.broker(producer_success(8)).forwards()
    play.client(send(1)).passes()


def test_a_broker_that_answers_by_something_else_first_gets_no_answer_from_us(play: Play) -> None:
    """Nonsense, found by fuzzing: a SUCCESS for a PRODUCER, and then news of a migration."""
    play.client(producer(1, request=7)).forwards()
    play.broker(success(7)).forwards()
    play.broker(migrated(1, 0)).drops()
