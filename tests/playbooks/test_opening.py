"""Openings: from a client's CONNECT to a pair, or to a farewell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.contract import Denial, Direction, EndReason, Refusal, Refused
from gateway.wire.plugin import FRAME_PADDING, Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.opening import open_pair
from gateway.wire.subject import Caller, Subject
from tests.support.subjects import CONNECTION, HOST, topic_of

from .frames import (
    LATER,
    NO_REQUEST,
    TOPIC,
    auth_challenge,
    auth_response,
    connect,
    connected,
    error,
    frame,
    framed,
    number_field,
    producer,
    raw,
    read,
    subscribe,
)
from .script import FEW, FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, Talk, listener, opening
from .services import BROKER_1, EXPIRED, NAME_1, ORIGIN, OWN, FakeServices

VERIFYING = [VERIFY, FORWARD_TOO]
CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
SLOW = Denial(Refusal.TIMEOUT, "the handshake took too long")
LARGE = Denial(Refusal.TOO_MANY, "a frame of 99999 bytes before the connection is open")
NOT_ANSWERED = "the broker did not answer"


def greeted(mode: Mode = PASS_THROUGH, **settings: Any) -> Talk:
    """An opening up to our CONNECT to the broker."""
    talk = opening(mode, **settings).client_says(connect()).dials(None)
    talk.said_to_broker()
    return talk


def told(farewell: BaseCommand) -> tuple[int, int, str]:
    assert farewell.type == BaseCommand.ERROR
    return farewell.error.request_id, farewell.error.error, farewell.error.message


# -- pass-through ------------------------------------------------------------------------------


def test_a_client_is_paired_with_any_broker() -> None:
    talk = (
        opening()
        .client_says(connect())
        .dials(None)
        .tells_broker(connect())
        .broker_says(connected())
        .tells_client(connected())
    )
    assert talk.opens().expires_at is None


GREETINGS = {
    "later fields": connect(unknown=LATER),
    "java without authentication": connect(auth_method_name="none", auth_data=b""),
    "another proxy": connect(original_principal="carol", original_auth_data="x"),
    "another proxy's version": connect(proxy_version="2.0"),
    "old and new method": connect(auth_method=1),
    "no flags": connect(feature_flags={}),
    "odd versions": connect(client_version="é", protocol_version=99),
    "least": frame(Kind.CONNECT, client_version="least"),
    "old method": frame(Kind.CONNECT, client_version="old", auth_method=2, auth_data=b"x"),
    "nothing": raw(Kind.CONNECT, b""),
}


@pytest.mark.parametrize("said", GREETINGS.values(), ids=GREETINGS)
def test_connect_reaches_the_broker_as_it_came(said: bytes) -> None:
    opening().client_says(said).dials(None).tells_broker(said)


def test_only_the_name_of_the_broker_is_taken_out() -> None:
    said = connect(proxy_to_broker_url=f"{NAME_1}:6650", unknown=LATER)
    opening().client_says(said).dials(BROKER_1).tells_broker(connect(unknown=LATER))


def test_an_empty_name_means_any_broker() -> None:
    said = connect(proxy_to_broker_url="")
    opening().client_says(said).dials(None).tells_broker(connect())


def test_several_rounds_of_authentication_pass_through() -> None:
    talk = greeted()
    for number in (1, 2, 3):
        challenge = auth_challenge(b"round %d" % number)
        response = auth_response(b"answer %d" % number, method="sasl")
        talk.broker_says(challenge).tells_client(challenge)
        talk.client_says(response).tells_broker(response)
    talk.broker_says(connected()).tells_client(connected()).opens()


def test_rounds_have_an_end() -> None:
    talk = greeted(bounds=FEW)
    for _ in range(FEW.rounds):
        talk.broker_says(auth_challenge()).tells_client(auth_challenge())
        talk.client_says(auth_response(b"x")).tells_broker(auth_response(b"x"))
    farewell = talk.refused(EndReason.AUTHENTICATION_FAILED)
    code, text = ServerError.AuthenticationError, "the broker asked for too many rounds"
    assert told(farewell) == (NO_REQUEST, code, text)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        pytest.param(frame(Kind.PING), EndReason.CLIENT_VIOLATION, id="PING"),
        pytest.param(connect(), EndReason.CLIENT_VIOLATION, id="CONNECT"),
        pytest.param(framed(b"\xff\xff"), EndReason.CLIENT_VIOLATION, id="nonsense"),
        pytest.param(SLOW, EndReason.HANDSHAKE_TIMEOUT, id="nothing"),
    ],
)
def test_a_challenge_is_answered_by_nothing_else(response: bytes, reason: EndReason) -> None:
    talk = greeted().broker_says(auth_challenge()).tells_client(auth_challenge())
    assert talk.client_says(response).refused(reason).type == BaseCommand.ERROR


def test_a_client_that_goes_away_at_a_challenge_is_told_nothing() -> None:
    talk = greeted().broker_says(auth_challenge()).tells_client(auth_challenge())
    outcome = talk.client_says(CLOSED).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.farewell) == (EndReason.CLIENT_CLOSED, b"")


def test_the_broker_refuses_a_credential() -> None:
    code = ServerError.AuthenticationError
    talk = greeted().broker_says(error(code=code, text="bad"))
    assert told(talk.refused(EndReason.AUTHENTICATION_FAILED)) == (NO_REQUEST, code, "bad")


# -- whom it opens for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "principal"), [(PASS_THROUGH, None), (VERIFY, "alice"), (FORWARD_TOO, "alice")]
)
def test_services_complete_the_caller(mode: Mode, principal: str | None) -> None:
    services = FakeServices()
    opening(mode, services).client_says(connect()).dials(None).said_to_broker()
    origin = ORIGIN
    expected = Caller(
        protocol="pulsar",
        connection=origin.id,
        host=origin.host,
        principal=principal,
        library="Pulsar-CPP-v4.2.0",
        method="token",
    )
    assert services.completed == [expected]


def test_what_a_client_says_of_its_library_is_cut() -> None:
    services, version = FakeServices(), "Pulsar-CPP-v" + "4" * 1000
    said = connect(client_version=version)
    opening(services=services).client_says(said).dials(None).tells_broker(said)
    assert [caller.library for caller in services.completed] == [version[:128]]


@pytest.mark.parametrize(
    ("said", "topic", "subscription"),
    [
        (producer(1), TOPIC, None),
        (subscribe(1, topic=f"{TOPIC}-partition-3"), f"{TOPIC}-partition-3", "s"),
    ],
    ids=["PRODUCER", "SUBSCRIBE"],
)
def test_an_account_is_opened_for_the_client_and_its_topic(
    said: bytes, topic: str, subscription: str | None
) -> None:
    services = FakeServices()
    talk = opening(VERIFY, services).client_says(connect()).dials(None)
    talk.said_to_broker()
    session = talk.broker_says(connected()).tells_client(connected()).opens()
    session.decide(Direction.TO_BROKER, said, now=0.0)
    (caller,) = services.completed
    expected = Subject(services.complete(caller), topic_of(topic), subscription)
    assert [account.subject for account in services.admitted] == [expected]
    assert (expected.principal, expected.library) == ("alice", "Pulsar-CPP-v4.2.0")


# -- verify ------------------------------------------------------------------------------------


def spoken_for(mode: Mode, said: bytes) -> BaseCommand:
    """What the broker is told of a client that says this."""
    return opening(mode).client_says(said).dials(None).said_to_broker()


def test_a_verified_client_is_spoken_for() -> None:
    opening(VERIFY).client_says(connect(unknown=LATER)).dials(None).tells_broker(
        connect(
            auth_data=OWN.data,
            original_principal="alice",
            proxy_version=VERSION,
            unknown=LATER,
        )
    )


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_broker_is_dialled_for_the_client_that_was_verified(mode: Mode) -> None:
    opening(mode).client_says(connect()).dials_for("alice")


def test_a_broker_is_dialled_for_nobody_where_the_broker_verifies() -> None:
    opening(PASS_THROUGH).client_says(connect()).dials_for(None)


def test_a_forwarded_client_brings_its_own_proof_along() -> None:
    opening(FORWARD_TOO).client_says(connect()).dials(None).tells_broker(
        connect(
            auth_data=OWN.data,
            original_principal="alice",
            original_auth_data="alice's token",
            original_auth_method="token",
            proxy_version=VERSION,
        )
    )


@pytest.mark.parametrize("mode", VERIFYING)
def test_version_protocol_and_flags_are_the_clients(mode: Mode) -> None:
    flags = {"supports_topic_watchers": True, "supports_scalable_topics": False}
    said = connect(client_version="Go-0.19.0", protocol_version=18, feature_flags=flags)
    broker_side = spoken_for(mode, said).connect
    assert (broker_side.client_version, broker_side.protocol_version) == ("Go-0.19.0", 18)
    expected = read(said).connect.feature_flags
    if mode is VERIFY:  # the gateway answers challenges, whether the client can or not
        expected.supports_auth_refresh = True
    assert broker_side.feature_flags == expected


@pytest.mark.parametrize("mode", VERIFYING)
def test_the_old_number_of_a_method_does_not_stand_beside_ours(mode: Mode) -> None:
    assert not spoken_for(mode, connect(auth_method=1)).connect.HasField("auth_method")


def test_without_authentication_towards_brokers_the_method_is_none() -> None:
    services = FakeServices()
    services.own = type(OWN)("none", b"")
    talk = opening(VERIFY, services).client_says(connect()).dials(None)
    broker_side = talk.said_to_broker().connect
    assert (broker_side.auth_method_name, broker_side.auth_data) == ("none", b"")


def test_a_verified_credential_expires() -> None:
    talk = greeted(VERIFY).broker_says(connected()).tells_client(connected())
    assert talk.opens().expires_at == 1000.0


OLD_METHOD = frame(Kind.CONNECT, client_version="old", auth_method=2, auth_data=b"x")

UNVERIFIABLE = {
    "nonsense": (connect(auth_data=b"nonsense"), "wrong credential"),
    "empty": (connect(auth_data=b""), "wrong credential"),
    "another method": (connect(auth_method_name="basic"), "wrong credential"),
    "no credential": (frame(Kind.CONNECT, client_version="nobody"), "wrong credential"),
    "an old method": (OLD_METHOD, "wrong credential"),
    "expired": (connect(auth_data=b"alice's expired token"), EXPIRED.text),
    "principal": (connect(original_principal="root"), "original_principal is not accepted here"),
    "no principal": (connect(original_principal=""), "original_principal is not accepted here"),
    "proof": (connect(original_auth_data="x"), "original_auth_data is not accepted here"),
    "method": (connect(original_auth_method="x"), "original_auth_method is not accepted here"),
    "proxy": (connect(proxy_version="1"), "proxy_version is not accepted here"),
}


@pytest.mark.parametrize("mode", VERIFYING)
@pytest.mark.parametrize(("said", "text"), UNVERIFIABLE.values(), ids=UNVERIFIABLE)
def test_a_client_that_cannot_be_verified_is_refused_before_any_broker_is_dialled(
    mode: Mode, said: bytes, text: str
) -> None:
    farewell = opening(mode).client_says(said).refused(EndReason.AUTHENTICATION_FAILED)
    assert told(farewell) == (NO_REQUEST, ServerError.AuthenticationError, text)


@pytest.mark.parametrize("mode", VERIFYING)
def test_it_is_known_where_a_refused_client_came_from(mode: Mode) -> None:
    """Whoever guesses passwords is found by it."""
    said = connect(auth_data=b"guessed", auth_method_name="token", client_version="lib 1")
    outcome = opening(mode).client_says(said).outcome
    assert isinstance(outcome, Refused)
    assert outcome.reason is EndReason.AUTHENTICATION_FAILED
    caller = ("pulsar", "clients", "main", CONNECTION, HOST, None, "lib 1", "token")
    assert outcome.caller == Caller(*caller)


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_client_is_let_in_once_it_was_found_out_who_it_is(mode: Mode) -> None:
    services = FakeServices()
    services.settles = True
    talk = opening(mode, services).client_says(connect()).settles().dials(None)
    assert talk.said_to_broker().connect.original_principal == "alice"
    talk.broker_says(connected()).tells_client(connected()).opens()


@pytest.mark.parametrize("mode", VERIFYING)
@pytest.mark.parametrize(("said", "text"), UNVERIFIABLE.values(), ids=UNVERIFIABLE)
def test_a_client_is_refused_once_it_was_found_out_who_it_is(
    mode: Mode, said: bytes, text: str
) -> None:
    services = FakeServices()
    services.settles = True
    talk = opening(mode, services).client_says(said).settles()
    farewell = talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert told(farewell) == (NO_REQUEST, ServerError.AuthenticationError, text)


@pytest.mark.parametrize("refusal", [Refusal.TIMEOUT, Refusal.NOT_READY])
@pytest.mark.parametrize("mode", VERIFYING)
def test_a_client_that_could_not_be_verified_in_time_comes_again(
    mode: Mode, refusal: Refusal
) -> None:
    """Clients try again after this error, and not after a failed authentication."""
    services = FakeServices()
    services.settles = True
    talk = opening(mode, services).client_says(connect()).settles(Denial(refusal, "not now"))
    farewell = talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert told(farewell) == (NO_REQUEST, ServerError.ServiceNotReady, "not now")


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_clients_certificate_is_shown_to_the_services(mode: Mode) -> None:
    services = FakeServices()
    steps = open_pair(listener(services, mode), ORIGIN._replace(certificate=b"certificate"))
    Talk(steps).client_says(connect()).dials(None)
    assert services.certificates == [b"certificate"]


def test_nobody_asks_who_a_client_is_in_pass_through() -> None:
    services = FakeServices()
    services.settles = True
    opening(PASS_THROUGH, services).client_says(connect()).dials(None)
    assert services.certificates == []


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_missing_credential_of_ours_is_no_fault_of_the_client(mode: Mode) -> None:
    services = FakeServices()
    services.own = Denial(Refusal.NOT_READY, "no token")
    farewell = opening(mode, services).client_says(connect()).refused(EndReason.NO_BROKER)
    assert told(farewell) == (NO_REQUEST, ServerError.ServiceNotReady, "no token")


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_challenge_to_us_is_answered_by_us(mode: Mode) -> None:
    (
        greeted(mode)
        .broker_says(auth_challenge())
        .tells_broker(auth_response(OWN.data, version=VERSION))
        .broker_says(connected())
        .tells_client(connected())
        .opens()
    )


def test_our_credential_may_be_gone_when_it_is_asked_for_again() -> None:
    services = FakeServices()
    talk = opening(VERIFY, services).client_says(connect()).dials(None)
    talk.said_to_broker()
    services.own = Denial(Refusal.NOT_READY, "no token")
    talk.broker_says(auth_challenge()).refused(EndReason.NO_BROKER)


@pytest.mark.parametrize("mode", VERIFYING)
def test_a_broker_that_refuses_us_is_not_the_clients_failure(mode: Mode) -> None:
    code = ServerError.AuthenticationError
    talk = greeted(mode).broker_says(error(code=code, text="bad"))
    assert told(talk.refused(EndReason.BROKER_REFUSED)) == (NO_REQUEST, code, "bad")


# -- which broker ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_a_name_of_ours_is_opened(mode: Mode) -> None:
    said = connect(proxy_to_broker_url=f"{NAME_1}:6650")
    talk = opening(mode).client_says(said).dials(BROKER_1)
    assert not talk.said_to_broker().connect.HasField("proxy_to_broker_url")


@pytest.mark.parametrize("name", ["broker-1.internal:6650", "169.254.169.254:80", "other.gw:6650"])
def test_a_name_that_is_not_ours_is_dialled_by_nobody(name: str) -> None:
    talk = opening().client_says(connect(proxy_to_broker_url=name))
    farewell = talk.refused(EndReason.TARGET_REFUSED)
    assert told(farewell) == (NO_REQUEST, ServerError.ServiceNotReady, "unknown broker name")


@pytest.mark.parametrize(
    ("denial", "reason", "code"),
    [
        (Refusal.TARGET, EndReason.TARGET_REFUSED, ServerError.NotAllowedError),
        (Refusal.TIMEOUT, EndReason.DIAL_TIMEOUT, ServerError.ServiceNotReady),
        (Refusal.NOT_READY, EndReason.NO_BROKER, ServerError.ServiceNotReady),
        (Refusal.CLOSED, EndReason.NO_BROKER, ServerError.ServiceNotReady),
    ],
)
def test_a_broker_that_cannot_be_reached_is_no_silent_close(
    denial: Refusal, reason: EndReason, code: ServerError.ValueType
) -> None:
    said = connect(proxy_to_broker_url=f"{NAME_1}:6650")
    talk = opening().client_says(said).dials(BROKER_1, refused=Denial(denial, "why"))
    assert told(talk.refused(reason)) == (NO_REQUEST, code, "why")


# -- the broker's response -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_connected_reaches_the_client_as_it_came(mode: Mode) -> None:
    said = connected(
        max_message_size=20 << 20,
        feature_flags={"supports_topic_watchers": True},
        unknown=LATER,
    )
    greeted(mode).broker_says(said).tells_client(said).opens()


def test_a_brokers_message_size_raises_what_may_be_collected() -> None:
    said = connected(max_message_size=20 << 20)
    session = greeted().broker_says(said).tells_client(said).opens()
    assert session.collected_bound == (20 << 20) + FRAME_PADDING


@pytest.mark.parametrize("size", [32 << 20, 100 << 20, (1 << 31) - 1])
def test_whatever_a_broker_says_a_stop_frame_has_no_more_than_all_may_have(size: int) -> None:
    said = connected(max_message_size=size)
    session = greeted().broker_says(said).tells_client(said).opens()
    assert session.collected_bound == Bounds().all_collected == 32 << 20


@pytest.mark.parametrize("size", [1024, -1, 0])
def test_a_brokers_message_size_never_lowers_what_may_be_collected(size: int) -> None:
    said = connected(max_message_size=size)
    session = greeted().broker_says(said).tells_client(said).opens()
    assert session.collected_bound == Bounds().collected


@pytest.mark.parametrize("verifies", [True, False])
def test_a_client_is_promised_what_the_broker_takes(verifies: bool) -> None:
    said = connected(max_message_size=100 << 20)
    talk = opening(checksums=verifies).client_says(connect()).dials(None)
    talk.said_to_broker()
    talk.broker_says(said).tells_client(said).opens()


def test_unknown_flags_are_masked_both_ways() -> None:
    later = {"supports_auth_refresh": True}

    def with_later(make: Callable[..., bytes]) -> bytes:
        flags = BaseCommand.FromString(b"").connect.feature_flags
        flags.supports_auth_refresh = True
        data = flags.SerializeToString() + number_field(99, 1)
        number = 10 if make is connect else 4
        nested = bytes((number << 3 | 2, len(data))) + data
        return make(feature_flags=None, unknown=nested + LATER)

    talk = opening(unknown_pass=False).client_says(with_later(connect)).dials(None)
    talk.tells_broker(connect(feature_flags=later))
    talk.broker_says(with_later(connected)).tells_client(connected(feature_flags=later)).opens()
    untouched = opening().client_says(with_later(connect)).dials(None)
    untouched.tells_broker(with_later(connect))
    untouched.broker_says(with_later(connected)).tells_client(with_later(connected)).opens()


@pytest.mark.parametrize("mode", Mode)
def test_the_brokers_error_reaches_the_client_without_addresses(mode: Mode) -> None:
    code = ServerError.AuthorizationError
    talk = greeted(mode).broker_says(error(code=code, text=f"Invalid roles at {BROKER_1}."))
    farewell = talk.refused(EndReason.BROKER_REFUSED)
    assert told(farewell) == (NO_REQUEST, code, "Invalid roles at broker.")
    assert talk.outcome.detail == f"Invalid roles at {BROKER_1}."


def test_error_codes_of_later_versions_reach_the_client() -> None:
    said = frame(Kind.ERROR, request_id=NO_REQUEST, message="no", unknown=number_field(2, 99))
    talk = greeted().broker_says(said)
    assert talk.outcome.farewell == said


@pytest.mark.parametrize(
    ("denial", "reason"),
    [
        (CLOSED, EndReason.BROKER_LOST),
        (SLOW, EndReason.HANDSHAKE_TIMEOUT),
        (LARGE, EndReason.FRAME_TOO_LARGE),
    ],
)
def test_a_broker_that_does_not_answer(denial: Denial, reason: EndReason) -> None:
    farewell = greeted().broker_says(denial).refused(reason)
    assert told(farewell) == (NO_REQUEST, ServerError.ServiceNotReady, NOT_ANSWERED)


NONSENSE = {
    "PING": frame(Kind.PING),
    "PRODUCER_SUCCESS": frame(Kind.PRODUCER_SUCCESS, request_id=1, producer_name="p"),
    "unknown": raw(99, b""),
    "not decodable": framed(b"\xff\xff"),
    "HTTP": b"HTTP/1.1 400 Bad Request",
    "CONNECTED behind an empty command": connected()[:4] + bytes(4) + connected()[8:],
    "AUTH_CHALLENGE behind half a type": auth_challenge()[:4] + b"\0\0\0\1" + auth_challenge()[8:],
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_a_broker_that_answers_nonsense(nonsense: bytes) -> None:
    farewell = greeted().broker_says(nonsense).refused(EndReason.BROKER_VIOLATION)
    assert told(farewell) == (NO_REQUEST, ServerError.ServiceNotReady, NOT_ANSWERED)


# -- the client's first words ------------------------------------------------------------------


BEGINNINGS = {
    "PING": (frame(Kind.PING), "a connection begins with CONNECT, not with PING"),
    "LOOKUP": (frame(Kind.LOOKUP, topic="t", request_id=1), "not with LOOKUP"),
    "unknown": (raw(99, b""), "not with command 99"),
    "disguised": (framed(number_field(1, 99) + connect()[10:]), "its type and the field of"),
    "bare": (framed(b"\x08\x02"), "its type and the field of"),
    "not decodable": (framed(b"\xff\xff"), "its type and the field of"),
    "too short": (b"\x00\x00\x00\x01\x00", "holds no command"),
}


@pytest.mark.parametrize(("said", "text"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_connection_begins_with_connect(said: bytes, text: str) -> None:
    request, code, why = told(opening().client_says(said).refused(EndReason.CLIENT_VIOLATION))
    assert (request, code) == (NO_REQUEST, ServerError.UnsupportedVersionError)
    assert text in why


def test_a_client_that_says_nothing_is_told_nothing() -> None:
    assert opening().client_says(CLOSED).outcome == Refused(EndReason.CLIENT_CLOSED)


@pytest.mark.parametrize(
    ("denial", "reason", "code"),
    [
        (SLOW, EndReason.HANDSHAKE_TIMEOUT, ServerError.ServiceNotReady),
        (LARGE, EndReason.FRAME_TOO_LARGE, ServerError.UnsupportedVersionError),
    ],
)
def test_a_client_that_is_too_slow_or_too_long_is_told(
    denial: Denial, reason: EndReason, code: ServerError.ValueType
) -> None:
    farewell = opening().client_says(denial).refused(reason)
    assert told(farewell) == (NO_REQUEST, code, denial.text)


def test_an_opened_pair_has_scanners_of_its_own() -> None:
    sessions = [greeted().broker_says(connected()).tells_client(connected()).opens() for _ in "ab"]
    for direction in Direction:
        assert sessions[0].scanners[direction] is not sessions[1].scanners[direction]
