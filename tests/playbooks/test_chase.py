"""Chases: from redirect to redirect on side connections, in the client's name."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.chase import HOPS
from gateway.wire.pulsar.frames import Kind

from .frames import (
    LATER,
    Fields,
    auth_challenge,
    auth_response,
    connect,
    connect_to,
    connected,
    error,
    failed,
    frame,
    lookup,
    raw,
    redirect_to,
)
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, Play, Talk
from .services import BROKER_1, BROKER_2, OWN, URL_1, URL_2

CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
NOT_FOUND = Denial(Refusal.NOT_READY, "the topic's broker was not found")
PING, PONG = frame(Kind.PING), frame(Kind.PONG)


def redirected(
    play: Play | None = None, asked: bytes | None = None, *, authoritative: bool = False
) -> Talk:
    """The chase of a lookup that was sent to broker 2."""
    play = play or Play()
    play.client(asked or lookup(1)).forwards()
    said = redirect_to(URL_2, 1, authoritative=authoritative)
    chase, _ = play.broker(said).started()
    return Talk(chase.converse())


def greeted(play: Play | None = None) -> Talk:
    """The same, up to CONNECTED."""
    talk = redirected(play).dials(BROKER_2)
    talk.said_to_broker()
    return talk.broker_says(connected())


def test_one_hop_on_a_fresh_connection() -> None:
    (
        redirected()
        .dials(BROKER_2)
        .tells_broker(connect())
        .broker_says(connected())
        .tells_broker(lookup(1, authoritative=False))
        .broker_says(connect_to(URL_2))
        .ends(connect_to(URL_2))
    )


def test_a_pooled_connection_is_not_greeted_again() -> None:
    (
        redirected()
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=False))
        .broker_says(connect_to(URL_2))
        .ends(connect_to(URL_2))
    )


def test_each_hop_has_the_authoritative_flag_of_the_answer_before() -> None:
    (
        redirected(authoritative=True)
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=True))
        .broker_says(redirect_to(URL_1))
        .dials(BROKER_1, pooled=True)
        .tells_broker(lookup(1, authoritative=False))
        .broker_says(redirect_to(URL_2, authoritative=True))
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=True))
        .broker_says(connect_to(URL_2))
        .ends(connect_to(URL_2))
    )


def test_the_clients_own_lookup_is_sent_again() -> None:
    asked: Fields = {
        "advertised_listener_name": "outside",
        "properties": [{"key": "k", "value": "v"}],
        "unknown": LATER,
    }
    (
        redirected(asked=lookup(1, **asked), authoritative=True)
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=True, **asked))
    )


def test_every_hop_is_counted() -> None:
    play = Play()
    (
        redirected(play)
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=False))
        .broker_says(redirect_to(URL_1))
        .dials(BROKER_1, pooled=True)
    )
    assert play.services.redirects == 2


def test_a_circle_of_redirects_has_an_end() -> None:
    talk = redirected()
    for _ in range(HOPS):
        talk.dials(BROKER_2, pooled=True).said_to_broker()
        talk.broker_says(redirect_to(URL_2))
    talk.ends(NOT_FOUND)


def test_a_failed_lookup_is_an_answer() -> None:
    no = failed(1, ServerError.MetadataError)
    talk = redirected().dials(BROKER_2, pooled=True)
    talk.said_to_broker()
    talk.broker_says(no).ends(no)


def test_a_redirect_to_nowhere_is_the_last_answer() -> None:
    talk = redirected().dials(BROKER_2, pooled=True)
    talk.said_to_broker()
    talk.broker_says(redirect_to("nonsense")).ends(redirect_to("nonsense"))


def test_the_port_of_a_url_without_one_is_pulsars() -> None:
    talk = redirected().dials(BROKER_2, pooled=True)
    talk.said_to_broker()
    talk.broker_says(redirect_to("pulsar://broker-1.internal")).dials(BROKER_1, pooled=True)
    talk.said_to_broker()
    talk.broker_says(redirect_to("pulsar+ssl://b")).dials(Address("b", 6651, tls=True))


# -- what goes wrong ---------------------------------------------------------------------------


def test_a_broker_that_cannot_be_dialled() -> None:
    refused = Denial(Refusal.TARGET, "not on the list")
    redirected().dials(BROKER_2, refused=refused).ends(refused)


def test_a_broker_that_goes_away() -> None:
    greeted().tells_broker(lookup(1, authoritative=False)).broker_says(CLOSED).ends(CLOSED)


def test_a_broker_that_goes_away_instead_of_connected() -> None:
    redirected().dials(BROKER_2).tells_broker(connect()).broker_says(CLOSED).ends(CLOSED)


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        (ServerError.AuthenticationError, Refusal.UNAUTHENTICATED),
        (ServerError.AuthorizationError, Refusal.UNAUTHORIZED),
        (ServerError.ServiceNotReady, Refusal.NOT_READY),
        (ServerError.TooManyRequests, Refusal.NOT_READY),
    ],
)
def test_an_error_is_told_without_addresses(code: ServerError.ValueType, refusal: Refusal) -> None:
    talk = redirected().dials(BROKER_2).tells_broker(connect())
    no = error(code=code, text=f"not by {BROKER_2}")
    talk.broker_says(no).ends(Denial(refusal, "not by broker"))


def test_an_error_in_place_of_an_answer() -> None:
    talk = greeted().tells_broker(lookup(1, authoritative=False))
    talk.broker_says(error(1)).ends(Denial(Refusal.NOT_READY, "no"))


def test_a_broker_that_answers_nonsense() -> None:
    for nonsense in (frame(Kind.SUCCESS, request_id=1), raw(99, b"")):
        talk = greeted().tells_broker(lookup(1, authoritative=False))
        with pytest.raises(PeerError, match="answered a lookup by"):
            talk.broker_says(nonsense)


def test_a_broker_that_answers_another_lookup() -> None:
    talk = greeted().tells_broker(lookup(1, authoritative=False))
    with pytest.raises(PeerError, match="answered lookup 2 instead of 1"):
        talk.broker_says(connect_to(URL_2, 2))


def test_our_own_credential_may_be_missing() -> None:
    play = Play(VERIFY)
    play.services.own = Denial(Refusal.NOT_READY, "no token")
    redirected(play).dials(BROKER_2).ends(play.services.own)


# -- answering for itself ----------------------------------------------------------------------


def test_pings_are_answered() -> None:
    (
        redirected()
        .dials(BROKER_2, pooled=True)
        .tells_broker(lookup(1, authoritative=False))
        .broker_says(PING)
        .tells_broker(PONG)
        .broker_says(PONG)
        .broker_says(connect_to(URL_2))
        .ends(connect_to(URL_2))
    )


@pytest.mark.parametrize(
    ("mode", "shown"),
    [(PASS_THROUGH, b"alice's token"), (VERIFY, OWN.data), (FORWARD_TOO, b"alice's token")],
)
def test_a_challenge_is_answered_by_whose_credential_can_expire(mode: Mode, shown: bytes) -> None:
    talk = redirected(Play(mode)).dials(BROKER_2, pooled=True)
    talk.said_to_broker()
    (
        talk.broker_says(auth_challenge())
        .tells_broker(auth_response(shown, version=VERSION))
        .broker_says(connect_to(URL_2))
        .ends(connect_to(URL_2))
    )


@pytest.mark.parametrize(
    ("mode", "shown"),
    [(PASS_THROUGH, b"alice's token"), (VERIFY, OWN.data), (FORWARD_TOO, OWN.data)],
)
def test_a_challenge_before_connected_is_answered_by_what_connect_showed(
    mode: Mode, shown: bytes
) -> None:
    talk = redirected(Play(mode)).dials(BROKER_2)
    talk.said_to_broker()
    talk.broker_says(auth_challenge()).tells_broker(auth_response(shown, version=VERSION))


def test_our_own_credential_may_be_missing_when_it_is_asked_for() -> None:
    play = Play(VERIFY)
    talk = greeted(play)
    talk.said_to_broker()
    play.services.own = Denial(Refusal.NOT_READY, "no token")
    talk.broker_says(auth_challenge()).ends(play.services.own)


def test_a_side_connection_can_be_asked_for_its_credential_again() -> None:
    """Even for a client that cannot: the broker would close the connection instead."""
    play = Play()
    hello = play.hello.connect
    hello.feature_flags.supports_auth_refresh = False
    play.hello.connect = hello
    greeting = redirected(play).dials(BROKER_2).said_to_broker().connect
    assert greeting.feature_flags.supports_auth_refresh
    assert not play.hello.connect.feature_flags.supports_auth_refresh


def test_side_connections_show_the_newest_credential() -> None:
    play = Play()
    play.client(auth_response(b"alice's newer token")).forwards()
    greeting = redirected(play).dials(BROKER_2).said_to_broker().connect
    assert (greeting.auth_method_name, greeting.auth_data) == ("token", b"alice's newer token")


def test_side_connections_speak_for_the_client_where_it_was_verified() -> None:
    greeting = redirected(Play(VERIFY)).dials(BROKER_2).said_to_broker().connect
    assert greeting.original_principal == "alice"
    assert greeting.auth_data == OWN.data
    assert not greeting.HasField("original_auth_data")


def test_side_connections_forward_the_newest_credential() -> None:
    play = Play(FORWARD_TOO)
    play.client(auth_response(b"alice's newer token")).forwards()
    greeting = redirected(play).dials(BROKER_2).said_to_broker().connect
    assert greeting.original_auth_data == "alice's newer token"
    assert greeting.auth_data == OWN.data
