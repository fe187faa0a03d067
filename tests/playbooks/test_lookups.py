"""Lookups: answers name what stands for a broker, redirects are withheld and chased."""

from __future__ import annotations

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import Denial, Direction, Drop, Inject, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.chase import NOT_FOUND
from gateway.wire.pulsar.context import Bounds
from gateway.wire.services import LookupOutcome

from .frames import (
    LATER,
    TOPIC,
    connect_to,
    error,
    failed,
    framed,
    lookup,
    number_field,
    redirect_to,
    response,
)
from .script import FEW, Play
from .services import (
    BROKER_1,
    FORBIDDEN,
    ORIGIN,
    SEALED_1,
    SEALED_2,
    TOO_LONG,
    URL_1,
    URL_2,
)

BUSY = "too many requests wait on this connection"


@pytest.fixture
def play() -> Play:
    return Play()


def to_client(frame: bytes) -> Inject:
    return Inject(Direction.TO_CLIENT, frame)


def hidden(url: str = SEALED_1, request: int = 1, *, unknown: bytes = b"") -> bytes:
    """A Connect as the client gets it."""
    return connect_to(
        url, request, brokerServiceUrlTls=url, proxy_through_service_url=True, unknown=unknown
    )


# -- the client asks ---------------------------------------------------------------------------


def test_a_lookup_is_forwarded_as_it_came(play: Play) -> None:
    play.client(lookup(1, advertised_listener_name="", unknown=LATER)).forwards()


def test_odd_topic_names_are_the_brokers_to_judge(play: Play) -> None:
    """Java looks patterns up as if they were topics."""
    play.client(lookup(1, "persistent://public/default/k1-[xyz].*")).forwards()


def test_services_are_asked_for_each_lookup(play: Play) -> None:
    outcome = play.client(lookup(3, "persistent://a/b/forbidden"))
    outcome.refuses(failed(3, ServerError.AuthorizationError, FORBIDDEN.text))
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


def test_lookups_are_admitted_for_the_clients_principal(play: Play) -> None:
    play.client(lookup(1)).forwards()
    (asked,) = play.services.asked
    subject = asked.subject
    assert (asked.action, asked.name) == (Action.LOOKUP, TOPIC)
    assert subject.principal == play.hello.principal.name == "alice"
    assert subject.topic == ("public", "public/default", TOPIC, None)
    assert (subject.connection, subject.host) == ORIGIN[:2]


def test_more_lookups_than_the_bound_are_refused_until_one_is_answered() -> None:
    play = Play(bounds=FEW)
    play.client(lookup(1)).forwards()
    play.client(lookup(2)).forwards()
    play.client(lookup(3)).refuses(failed(3, ServerError.TooManyRequests, BUSY))
    play.broker(connect_to(URL_1, 1)).replaced()
    play.client(lookup(3)).forwards()


def test_chased_lookups_count_among_those_that_wait() -> None:
    play = Play(bounds=FEW)
    play.client(lookup(1)).forwards()
    _, token = play.broker(redirect_to(URL_2, 1)).started()
    play.client(lookup(2)).forwards()
    play.client(lookup(3)).refuses(failed(3, ServerError.TooManyRequests, BUSY))
    play.resume(token, connect_to(URL_2, 1)).happens()
    play.client(lookup(3)).forwards()


def test_the_bytes_of_waiting_lookups_are_bounded() -> None:
    play = Play(bounds=Bounds(lookup_bytes=1000))
    large = "t" * 900
    play.client(lookup(1, large)).forwards()
    play.client(lookup(2, large)).refuses(failed(2, ServerError.TooManyRequests, BUSY))
    _, token = play.broker(redirect_to(URL_2, 1)).started()
    play.client(lookup(2, large)).happens()
    play.resume(token, connect_to(URL_2, 1)).happens()
    play.client(lookup(2, large)).forwards()


def test_a_request_id_that_is_used_again_is_kept_once() -> None:
    play = Play(bounds=FEW)
    for _ in range(9):
        play.client(lookup(1)).forwards()
    play.client(lookup(2)).forwards()
    play.client(lookup(3)).happens()
    assert play.session._lookups._kept == len(lookup(1)) + len(lookup(2))


# -- Connect -----------------------------------------------------------------------------------


def test_connect_names_what_stands_for_the_broker(play: Play) -> None:
    play.client(lookup(1)).forwards()
    play.broker(connect_to(URL_1, 1)).replaces(hidden())
    assert play.services.outcomes == {LookupOutcome.CONNECT: 1}


def test_both_urls_are_in_the_clients_own_scheme() -> None:
    play = Play(tls=True)
    play.client(lookup(1)).forwards()
    answered = connect_to(URL_1, 1, brokerServiceUrlTls="pulsar+ssl://broker-1.internal:6651")
    rewritten = play.broker(answered).replaced().lookupTopicResponse
    assert rewritten.brokerServiceUrl == "pulsar+ssl://one.gw:6650"
    assert rewritten.brokerServiceUrlTls == "pulsar+ssl://one.gw:6650"


def test_a_broker_known_only_by_its_tls_url_is_named_too(play: Play) -> None:
    play.client(lookup(1)).forwards()
    said = response(1, response=1, brokerServiceUrlTls="pulsar+ssl://broker-1.internal:6650")
    play.broker(said).replaces(hidden())


def test_all_else_in_a_connect_stays(play: Play) -> None:
    play.client(lookup(1)).forwards()
    play.broker(connect_to(URL_1, 1, authoritative=True, unknown=LATER)).replaces(
        connect_to(
            SEALED_1,
            1,
            brokerServiceUrlTls=SEALED_1,
            authoritative=True,
            proxy_through_service_url=True,
            unknown=LATER,
        )
    )


def test_an_answer_that_nobody_asked_for_is_rewritten_all_the_same(play: Play) -> None:
    play.broker(connect_to(URL_1, 9)).replaces(hidden(request=9))


def test_a_broker_that_cannot_be_named_makes_the_lookup_fail(play: Play) -> None:
    play.client(lookup(1)).forwards()
    said = connect_to("pulsar://elsewhere.internal:6650", 1)
    play.broker(said).replaces(failed(1, ServerError.ServiceNotReady, TOO_LONG.text))
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


@pytest.mark.parametrize("url", ["", "nonsense", "pulsar://:6650", "pulsar://a:6650,b:6650"])
def test_a_connect_to_nowhere_makes_the_lookup_fail(play: Play, url: str) -> None:
    play.client(lookup(1)).forwards()
    no = failed(1, ServerError.ServiceNotReady, "no broker was named")
    play.broker(connect_to(url, 1)).replaces(no)


# -- Failed ------------------------------------------------------------------------------------


def test_failed_keeps_its_code_and_loses_the_addresses(play: Play) -> None:
    play.client(lookup(1)).forwards()
    text = f"Namespace bundle for {TOPIC} not served by {BROKER_1}. Please redo the lookup."
    said = failed(1, ServerError.ServiceNotReady, text, brokerServiceUrl=URL_1, unknown=LATER)
    cleaned = text.replace(str(BROKER_1), "broker")
    play.broker(said).replaces(failed(1, ServerError.ServiceNotReady, cleaned, unknown=LATER))
    assert play.services.outcomes == {LookupOutcome.FAILED: 1}


def test_error_codes_of_later_versions_survive(play: Play) -> None:
    play.client(lookup(1)).forwards()
    said = response(1, response=2, message="no", unknown=number_field(6, 99))
    play.broker(said).forwards()


def test_kinds_of_answers_of_later_versions_survive_without_an_address(play: Play) -> None:
    play.client(lookup(1)).forwards()
    later = number_field(3, 99)
    said = response(1, brokerServiceUrl=URL_1, brokerServiceUrlTls=URL_1, unknown=later)
    play.broker(said).replaces(response(1, unknown=later))


def test_an_error_in_place_of_an_answer_ends_the_lookup() -> None:
    play = Play(bounds=FEW)
    for request in range(1, 9):
        play.client(lookup(request)).forwards()
        play.broker(error(request)).forwards()
    assert play.services.outcomes == {LookupOutcome.FAILED: 8}


# -- Redirect ----------------------------------------------------------------------------------


def test_a_redirect_is_withheld_and_chased(play: Play) -> None:
    asked = lookup(7)
    play.client(asked).forwards()
    chase, token = play.broker(redirect_to(URL_2, 7, authoritative=True)).started()
    assert (chase.lookup, chase.request_id) == (asked, 7)
    assert (chase.hop.address.host, chase.hop.authoritative) == ("broker-2.internal", True)
    play.resume(token, connect_to(URL_2, 7)).gives(to_client(hidden(SEALED_2, 7)))
    assert play.services.redirects == 1
    assert play.services.outcomes == {LookupOutcome.CONNECT: 1}


def test_several_lookups_are_chased_at_a_time(play: Play) -> None:
    tokens = []
    for request in (1, 2):
        play.client(lookup(request)).forwards()
        tokens.append(play.broker(redirect_to(URL_2, request)).started()[1])
    play.resume(tokens[1], connect_to(URL_1, 2)).gives(to_client(hidden(SEALED_1, 2)))
    play.resume(tokens[0], connect_to(URL_2, 1)).gives(to_client(hidden(SEALED_2, 1)))


@pytest.mark.parametrize(
    "result", [b"", b"\x00\x00\x00\x04\x00\x00\x00\x00", framed(b"\x08\x18\xff")]
)
def test_a_chase_whose_answer_cannot_be_read_makes_the_lookup_fail(
    play: Play, result: bytes
) -> None:
    """The broker at fault is none of this pair's, which goes on."""
    play.client(lookup(7)).forwards()
    _, token = play.broker(redirect_to(URL_2, 7)).started()
    no = failed(7, ServerError.ServiceNotReady, NOT_FOUND.text)
    play.resume(token, result).gives(to_client(no))
    assert play.services.outcomes == {LookupOutcome.FAILED: 1}
    assert not play.session._lookups


def test_a_chase_that_fails_makes_the_lookup_fail(play: Play) -> None:
    play.client(lookup(7)).forwards()
    _, token = play.broker(redirect_to(URL_2, 7)).started()
    no = failed(7, ServerError.ServiceNotReady, "slow")
    play.resume(token, Denial(Refusal.TIMEOUT, "slow")).gives(to_client(no))
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


def test_a_failed_answer_to_a_chase_is_cleaned(play: Play) -> None:
    play.client(lookup(7)).forwards()
    _, token = play.broker(redirect_to(URL_2, 7)).started()
    said = failed(7, ServerError.MetadataError, f"{BROKER_1} says no")
    cleaned = failed(7, ServerError.MetadataError, "broker says no")
    play.resume(token, said).gives(to_client(cleaned))


def test_a_chase_may_end_at_a_redirect_that_leads_nowhere(play: Play) -> None:
    play.client(lookup(7)).forwards()
    _, token = play.broker(redirect_to(URL_2, 7)).started()
    no = failed(7, ServerError.ServiceNotReady, "the topic's broker was not found")
    play.resume(token, redirect_to("nonsense", 7)).gives(to_client(no))


@pytest.mark.parametrize("url", ["", "nonsense"])
def test_a_redirect_to_nowhere_makes_the_lookup_fail(play: Play, url: str) -> None:
    play.client(lookup(1)).forwards()
    no = failed(1, ServerError.ServiceNotReady, "the topic's broker was not found")
    play.broker(redirect_to(url, 1)).replaces(no)


def test_a_redirect_that_nobody_asked_for_is_not_chased(play: Play) -> None:
    no = failed(1, ServerError.ServiceNotReady, "the topic's broker was not found")
    play.broker(redirect_to(URL_2, 1)).replaces(no)


def test_results_that_come_after_the_end_are_dropped(play: Play) -> None:
    play.client(lookup(1)).forwards()
    _, token = play.broker(redirect_to(URL_2, 1)).started()
    play.session.close()
    play.resume(token, connect_to(URL_2, 1)).gives()


def test_a_result_is_taken_once(play: Play) -> None:
    play.client(lookup(1)).forwards()
    _, token = play.broker(redirect_to(URL_2, 1)).started()
    play.resume(token, connect_to(URL_2, 1)).happens()
    play.resume(token, connect_to(URL_2, 1)).gives()


def test_the_redirect_itself_reaches_nobody(play: Play) -> None:
    play.client(lookup(1)).forwards()
    effects = play.broker(redirect_to(URL_2, 1)).effects
    assert effects is not None
    assert effects[0] == Drop()
    assert len(effects) == 2
