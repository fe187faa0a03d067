"""Credentials on open connections: shown again where the gateway verifies, claimed where brokers
do."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Denial, EndReason, Prolong, Refusal
from gateway.wire.kafka.frames import API_VERSIONS
from gateway.wire.kafka.sasl import handshake, plain
from gateway.wire.kafka.sasl.handshake import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from tests.unit.wire.kafka.sasl.doubles import SHA_256
from tests.unit.wire.kafka.sasl.test_scram import FIRST, knowing

from .frames import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ask,
    batch,
    correlations,
    described,
    fetch,
    fetched,
    metadata,
    produce,
    produced,
    tell,
    told,
)
from .script import NOW, PASS_THROUGH, VERIFY, KafkaServices, Play

PLAIN = plain.MECHANISM
RIGHT, WRONG, OTHER = b"\0alice\0secret", b"\0alice\0wrong", b"\0bob\0builder"
REFUSED = EndReason.AUTHENTICATION_FAILED


def choose(mechanism: str = PLAIN, correlation: int = 1, version: int = 1) -> bytes:
    return ask(SASL_HANDSHAKE, version, correlation, Mechanism=mechanism)


def show(token: bytes, correlation: int = 2, version: int = 2) -> bytes:
    return ask(SASL_AUTHENTICATE, version, correlation, AuthBytes=token)


def chosen(correlation: int = 1, error: int = 0, version: int = 1) -> bytes:
    return tell(SASL_HANDSHAKE, version, correlation, ErrorCode=error, Mechanisms=[PLAIN, SHA_256])


def shown(correlation: int = 2, error: int = 0, data: bytes = b"") -> bytes:
    return tell(SASL_AUTHENTICATE, 2, correlation, ErrorCode=error, AuthBytes=data)


def heard(stream: bytes, version: int = 2) -> dict[str, Any]:
    return told(SASL_AUTHENTICATE, version, stream)


def verifying(**settings: Any) -> Play:
    services = KafkaServices(methods=("basic", "scram", "token"))
    return Play(services, VERIFY, tls=True, **settings)


# -- shown again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_that_shows_its_credential_again_lives_on(version: int) -> None:
    play = verifying()
    assert play.client(choose(), show(RIGHT, 2, version)) == b"", "brokers learn nothing of it"
    play.client(metadata(12, 3))
    responses = play.client_got()
    assert correlations(responses) == [1, 2]
    assert play.prolonged == [Prolong(math.inf)]
    assert play.ended is None


def test_scram_goes_on_over_two_requests() -> None:
    play = verifying()
    play.services.expiry = 5000.0
    play.client(choose(SHA_256))
    play.client_got()
    play.client(show(FIRST, 2))
    challenge = heard(play.client_got())["AuthBytes"]
    play.client(show(knowing()(challenge), 3))
    response = heard(play.client_got())
    assert (response["ErrorCode"], response["SessionLifetimeMs"]) == (0, 100_000)
    assert play.prolonged == [Prolong(NOW + 100.0)]


def test_a_token_that_is_too_large_is_a_violation() -> None:
    with pytest.raises(PeerError):
        verifying().client(choose(), show(b"x" * 40_000))


@pytest.mark.parametrize("token", [WRONG, OTHER, b"", b"nonsense"])
def test_a_wrong_credential_and_another_client_are_refused_alike(token: bytes) -> None:
    play = verifying()
    play.client(choose(), show(token))
    response = play.client_got()[len(_offered()) :]
    assert heard(response)["ErrorCode"] == SASL_AUTHENTICATION_FAILED
    assert heard(response)["ErrorMessage"] == handshake.FAILED.decode()
    assert play.ended is REFUSED


def _offered() -> bytes:
    play = verifying()
    play.client(choose())
    return play.client_got()


def test_who_is_refused_gets_the_answers_before_it_first_and_asks_no_more() -> None:
    play = verifying()
    asked = metadata(12, 7) + produce(9, 8, a=batch(1))
    play.client(asked, choose(), show(WRONG))
    assert play.ended is None
    assert play.client(produce(9, 9, a=batch(1)), fetch(12, 10, "a"), metadata(12, 11)) == b""
    responses = play.broker(described(12, 7))
    assert play.ended is None
    responses += play.broker(tell(0, 9, 8))
    assert correlations(responses) == [7, 8, 1, 2]
    assert play.ended is REFUSED


@pytest.mark.parametrize("piece", [1, 100, 9000])
def test_who_is_refused_behind_a_fetch_gets_all_of_it(piece: int) -> None:
    play = verifying()
    play.client(fetch(12, 7, "a"), choose(), show(WRONG))
    said = fetched(12, 7, a=batch(1, 3000))
    responses = b"".join(play.broker(said[at : at + piece]) for at in range(0, len(said), piece))
    play.after(1)
    responses += play.client_got()
    assert correlations(responses) == [7, 1, 2]
    assert play.ended is REFUSED


@pytest.mark.parametrize("mechanism", ["GSSAPI", "SCRAM-SHA-1", "OAUTHBEARER2", ""])
def test_a_mechanism_that_is_not_offered_is_refused(mechanism: str) -> None:
    play = verifying()
    play.client(choose(mechanism))
    response = told(SASL_HANDSHAKE, 1, play.client_got())
    assert response["ErrorCode"] == UNSUPPORTED_SASL_MECHANISM
    assert play.ended is REFUSED


def test_tokens_without_requests_are_not_taken_again() -> None:
    play = verifying()
    play.client(choose(version=0))
    assert play.ended is REFUSED


def test_a_token_without_a_mechanism_is_refused() -> None:
    play = verifying()
    play.client(show(RIGHT))
    assert heard(play.client_got())["ErrorCode"] == ILLEGAL_SASL_STATE
    assert play.ended is REFUSED


def test_passwords_are_not_offered_without_tls() -> None:
    services = KafkaServices(methods=("basic", "scram"))
    play = Play(services, VERIFY)
    play.client(choose())
    assert PLAIN not in told(SASL_HANDSHAKE, 1, play.client_got())["Mechanisms"]
    assert play.ended is REFUSED


# -- that take longer ------------------------------------------------------------------------------


def settling() -> Play:
    play = verifying()
    play.services.settles = True
    return play


def test_a_credential_that_takes_longer_is_waited_for() -> None:
    play = settling()
    play.client(choose(), show(RIGHT), metadata(12, 3))
    play.client_got()
    assert play.is_waiting
    play.finish()
    assert heard(play.client_got())["ErrorCode"] == 0
    assert play.broker_got() == metadata(12, 3)
    assert play.prolonged == [Prolong(math.inf)]


@pytest.mark.parametrize("told_", [True, False])
def test_one_that_takes_too_long_is_refused(told_: bool) -> None:
    play = settling()
    play.client(choose(), show(RIGHT))
    if told_:
        play.finish(late=Denial(Refusal.TIMEOUT, "too late"))
    else:
        play.after(10)
    assert play.ended is REFUSED


def test_a_grant_meanwhile_does_not_have_it_refused() -> None:
    play = settling()
    play.services.lease = 1
    play.client(fetch(12, 1, "b"), fetch(12, 2, "b"))
    play.broker(fetched(12, 1, b=batch(2)), fetched(12, 2, b=batch(2)))
    play.client(choose(), show(RIGHT))
    play.grant(play.account("b"), 100)
    assert play.ended is None
    assert len(play.jobs) == 1, "it is asked for once"
    play.finish()
    assert play.ended is None
    assert play.prolonged == [Prolong(math.inf)]


# -- claimed, where brokers verify -----------------------------------------------------------------


def passing() -> Play:
    return Play(mode=PASS_THROUGH, principal="")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_name_that_a_broker_accepts_is_the_clients(version: int) -> None:
    play = passing()
    said = choose() + show(RIGHT, 2, version)
    assert play.client(said) == said
    play.broker(chosen())
    assert name(play) == ""
    play.broker(tell(SASL_AUTHENTICATE, version, 2))
    assert name(play) == "alice"


def test_a_name_that_it_refuses_is_not() -> None:
    play = passing()
    play.client(choose(), show(RIGHT))
    play.broker(chosen(), shown(error=58))
    assert name(play) == ""


def test_a_name_is_the_clients_only_when_the_broker_has_seen_its_proof() -> None:
    """A client that does not wait for the challenge has proven nothing when it comes."""
    play = passing()
    play.client(choose(SHA_256), show(FIRST, 2), show(b"c=biws,r=abc,p=AAAA", 3))
    play.broker(chosen(), shown(2, data=b"r=abcdef,s=c2FsdA==,i=4096"))
    assert name(play) == ""
    play.broker(shown(3, error=58))
    assert name(play) == ""


def test_a_later_claim_does_not_take_the_answer_to_an_earlier_one() -> None:
    play = passing()
    play.client(choose(), show(RIGHT), choose(correlation=3), show(OTHER, 4))
    play.broker(chosen(), shown())
    assert name(play) == "alice"
    play.broker(chosen(3), shown(4, error=58))
    assert name(play) == "alice"


def name(play: Play) -> str:
    """Return the name by which a client is known."""
    return play.session.caller.principal or ""


def _bare(token: bytes) -> bytes:
    return len(token).to_bytes(4) + token


def test_bare_tokens_pass_and_requests_follow() -> None:
    play = passing()
    said = choose(version=0)
    assert play.client(said) == said
    play.broker(chosen(version=0))
    assert play.client(_bare(RIGHT)) == _bare(RIGHT)
    assert play.client(metadata(12, 1)) == b"", "the broker has to accept the token first"
    assert play.broker(_bare(b"")) == _bare(b"")
    assert name(play) == "alice"
    assert play.broker_got() == metadata(12, 1)
    assert play.broker(described(12, 1)) == described(12, 1)


def test_bare_tokens_of_scram_go_over_two_rounds() -> None:
    play = passing()
    play.client(choose(SHA_256, version=0))
    play.broker(chosen(version=0))
    play.client(_bare(FIRST))
    assert play.broker(_bare(b"challenge")) == _bare(b"challenge")
    assert name(play) == ""
    play.client(_bare(b"final"))
    play.broker(_bare(b"v=proof"))
    assert name(play) == "alice"
    assert play.client(metadata(12, 1)) == metadata(12, 1)


def test_bare_tokens_that_do_not_wait_prove_nothing_before_the_last_answer() -> None:
    play = passing()
    play.client(choose(SHA_256, version=0))
    play.broker(chosen(version=0))
    said = _bare(FIRST) + _bare(b"final")
    assert play.client(said, metadata(12, 1)) == said
    assert play.broker(_bare(b"challenge")) == _bare(b"challenge")
    assert name(play) == ""
    assert play.broker_got() == b""
    assert play.broker(_bare(b"v=proof")) == _bare(b"v=proof")
    assert name(play) == "alice"
    assert play.broker_got() == metadata(12, 1)


def test_bare_tokens_that_a_broker_refuses_to_begin_are_none() -> None:
    play = passing()
    play.client(choose(version=0))
    play.broker(chosen(error=33, version=0))
    assert play.client(metadata(12, 1)) == metadata(12, 1)


def test_bare_tokens_of_a_mechanism_that_nobody_knows_end_the_connection() -> None:
    play = passing()
    assert play.client(choose("GSSAPI", version=0)) == b""
    assert play.ended is EndReason.UNKNOWN_COMMAND


# -- known, where brokers verify -------------------------------------------------------------------


def test_a_client_that_has_asked_for_versions_alone_is_unknown() -> None:
    play = passing()
    assert not play.session.is_known
    versions = ask(API_VERSIONS, 0)
    assert play.client(versions) == versions
    play.broker(tell(API_VERSIONS, 0, ErrorCode=0, ApiKeys=[]))
    assert not play.session.is_known


def test_a_client_is_known_once_the_broker_has_accepted_its_password() -> None:
    play = passing()
    play.client(choose(), show(RIGHT))
    play.broker(chosen())
    assert not play.session.is_known
    play.broker(shown())
    assert play.session.is_known


def test_a_client_that_a_broker_refuses_stays_unknown() -> None:
    play = passing()
    play.client(choose(), show(RIGHT))
    play.broker(chosen(), shown(error=58))
    assert not play.session.is_known


def test_a_challenge_makes_no_client_known() -> None:
    play = passing()
    play.client(choose(SHA_256), show(FIRST, 2))
    play.broker(chosen(), shown(2, data=b"r=abcdef,s=c2FsdA==,i=4096"))
    assert not play.session.is_known
    play.client(show(b"c=biws,r=abc,p=AAAA", 3))
    play.broker(shown(3, data=b"v=proof"))
    assert play.session.is_known


def test_a_client_is_known_by_bare_tokens_too() -> None:
    play = passing()
    play.client(choose(version=0))
    play.broker(chosen(version=0))
    play.client(_bare(RIGHT))
    assert not play.session.is_known
    play.broker(_bare(b""))
    assert play.session.is_known


def test_a_client_is_known_once_the_broker_serves_it() -> None:
    play = passing()
    play.client(metadata(12, 1))
    assert not play.session.is_known
    play.broker(described(12, 1))
    assert play.session.is_known


def test_a_client_is_known_once_the_broker_stores_what_it_sends() -> None:
    """These requests and responses pass without a decision."""
    play = passing()
    play.client(produce(9, 1, b=batch(2)))
    assert not play.session.is_known
    play.broker(produced(9, 1, b=0))
    assert play.session.is_known


def test_a_client_that_the_gateway_verifies_is_known() -> None:
    assert Play(mode=VERIFY).session.is_known
