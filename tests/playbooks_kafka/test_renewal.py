"""The gateway shows its broker a credential again before the broker ends the connection."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Credential, Denial, EndReason, Refusal
from gateway.wire.kafka import frames
from gateway.wire.kafka.renewal import LEAST, SHARE
from gateway.wire.kafka.sasl import plain
from tests.unit.wire.kafka.sasl.doubles import SHA_256

from .frames import (
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    asked,
    batch,
    described,
    fetch,
    fetched,
    metadata,
    produce,
    produced,
    split,
    tell,
)
from .script import VERIFY, KafkaServices, Play

PLAIN = plain.MECHANISM
OWN = -1
BASIC = Credential("basic", b"alice:secret")
LIFETIME = 100.0
DUE = SHARE * LIFETIME


def begun(
    mechanism: str = PLAIN, own: Credential | Denial = BASIC, lifetime: float = LIFETIME
) -> Play:
    services = KafkaServices()
    services.own = own
    play = Play(services, VERIFY, known=("a",), lifetime=lifetime)
    play.listener.mechanism = mechanism
    return play


def keys(stream: bytes) -> list[int]:
    return [frames.request(frame).key for frame in split(stream)]


def chosen(error: int = 0) -> bytes:
    return tell(SASL_HANDSHAKE, 1, OWN, ErrorCode=error, Mechanisms=[PLAIN])


def shown(error: int = 0, data: bytes = b"", lifetime: float = 0) -> bytes:
    lifetime_ms = int(lifetime * 1000)
    fields: dict[str, Any] = {"ErrorCode": error, "AuthBytes": data}
    return tell(SASL_AUTHENTICATE, 1, OWN, **fields, SessionLifetimeMs=lifetime_ms)


def test_a_credential_is_shown_again_in_time() -> None:
    play = begun()
    play.after(DUE - 1)
    assert play.broker_got() == b""
    play.after(1)
    assert asked(play.broker_got())["Mechanism"] == PLAIN
    assert play.broker(chosen()) == b""
    assert asked(play.broker_got())["AuthBytes"] == b"\0alice\0secret"
    assert play.broker(shown(lifetime=LIFETIME / 2)) == b""
    play.after(DUE / 2 - 1)
    assert play.broker_got() == b""
    play.after(1)
    assert keys(play.broker_got()) == [SASL_HANDSHAKE]


def test_a_credential_that_is_good_for_ever_is_not_shown_again() -> None:
    play = begun(lifetime=math.inf)
    play.after(1e9)
    assert play.broker_got() == b""
    play = begun()
    renewed(play)
    play.after(1e9)
    assert play.broker_got() == b""


def renewed(play: Play) -> None:
    play.after(DUE)
    assert keys(play.broker_got()) == [SASL_HANDSHAKE]
    play.broker(chosen())
    assert keys(play.broker_got()) == [SASL_AUTHENTICATE]
    play.broker(shown())


@pytest.mark.parametrize("of", [fetch, produce])
def test_a_request_that_is_decided_in_slices_waits_for_a_renewal_that_began(of: Any) -> None:
    """A broker takes no other request between the two of a reauthentication."""
    names = [f"topic-{number}" for number in range(100)]
    said = fetch(12, 1, *names) if of is fetch else produce(9, 1, **dict.fromkeys(names, batch(1)))
    play = begun()

    def renew() -> None:
        if play.slices == 1:
            play.after(DUE)

    play.between_slices = renew
    assert keys(play.client(said)) == [SASL_HANDSHAKE]
    assert play.is_waiting
    play.broker(chosen())
    assert keys(play.broker_got()) == [SASL_AUTHENTICATE]
    play.broker(shown())
    assert play.broker_got() == said


def test_a_broker_whose_time_is_short_is_not_asked_all_the_time() -> None:
    play = begun(lifetime=0.001)
    play.after(LEAST / 2)
    assert play.broker_got() == b""
    play.after(LEAST / 2)
    assert keys(play.broker_got()) == [SASL_HANDSHAKE]


def test_by_scram_the_broker_proves_itself_again() -> None:
    play = begun(SHA_256)
    play.after(DUE)
    assert asked(play.broker_got())["Mechanism"] == SHA_256
    play.broker(chosen())
    first = asked(play.broker_got())["AuthBytes"]
    nonce = first.rpartition(b"r=")[2].decode()
    salted = b"r=%smore,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4096" % nonce.encode()
    play.broker(shown(data=salted))
    assert asked(play.broker_got())["AuthBytes"].startswith(b"c=biws,r=%smore," % nonce.encode())
    with pytest.raises(PeerError):
        play.broker(shown(data=b"v=AAAA"))


def test_requests_wait_meanwhile_and_go_on_in_their_order() -> None:
    play = begun()
    play.client(metadata(12, 1))
    play.after(DUE)
    assert keys(play.broker_got())[-1:] == [SASL_HANDSHAKE]
    requests = [metadata(12, 2), produce(9, 3, a=batch(1)), fetch(12, 4, "a")]
    assert play.client(*requests) == b""
    assert play.is_waiting
    assert play.broker(described(12, 1))
    assert play.broker(chosen()) == b""
    assert keys(play.broker_got()) == [SASL_AUTHENTICATE]
    play.broker(shown(lifetime=LIFETIME))
    assert play.broker_got() == b"".join(requests)
    heard = play.broker(described(12, 2), produced(9, 3, a=0), fetched(12, 4, a=batch(1)))
    assert [frames.correlation(it) for it in split(heard)] == [2, 3, 4]
    assert play.ended is None


def test_a_request_that_passes_comes_to_its_end_before() -> None:
    play = begun()
    whole = produce(9, 1, a=batch(1, 4000))
    reached = play.client(whole[:-10])
    play.after(DUE)
    assert play.broker_got() == b""
    reached += play.client(whole[-10:])
    play.after(1)
    reached += play.broker_got()
    assert keys(reached) == [PRODUCE, SASL_HANDSHAKE]


def test_names_are_asked_for_when_it_is_over() -> None:
    """A broker that hears another request between two of SASL closes the connection."""
    play = begun()
    play.client(fetch(16, 1, "a"))
    play.after(DUE)
    assert keys(play.broker_got())[-1] == SASL_HANDSHAKE
    play.broker(fetched(16, 1, b=batch(1)))
    play.broker(chosen())
    assert keys(play.broker_got()) == [SASL_AUTHENTICATE]
    play.broker(shown())
    assert keys(play.broker_got()) == [METADATA]


@pytest.mark.parametrize("responses", [[chosen(33)], [chosen(), shown(58)]])
def test_a_broker_that_accepts_it_no_more_ends_the_connection(responses: list[bytes]) -> None:
    play = begun()
    play.after(DUE)
    for response in responses:
        play.broker(response)
    assert play.ended is EndReason.BROKER_REFUSED


def test_without_a_credential_clients_are_served_as_long_as_the_broker_does() -> None:
    play = begun(own=Denial(Refusal.NOT_READY, "the file is gone"))
    play.after(DUE)
    request = produce(9, 1, a=batch(1))
    assert play.client(request) == request


def test_a_connection_that_is_left_shows_nothing_more() -> None:
    play = begun()
    play.leave()
    play.after(DUE)
    assert play.broker_got() == b""


def test_a_connection_that_is_left_meanwhile_waits_for_the_answers() -> None:
    play = begun()
    play.after(DUE)
    assert play.leave()
    assert play.leave()
    play.broker(chosen())
    assert play.leave()
    play.broker(shown())
    assert not play.leave()
