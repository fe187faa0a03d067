"""Openings: from the client's first bytes to the pair, in all modes."""

from __future__ import annotations

import hmac
import struct
from base64 import b64encode
from typing import Any

import pytest

from gateway.wire.account import Action
from gateway.wire.address import Address
from gateway.wire.budget import Budget
from gateway.wire.contract import Credential, Denial, Dial, EndReason, Origin, Refusal
from gateway.wire.kafka.context import CLIENT_SIZE, Listener
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.greeting import HEAD
from gateway.wire.kafka.opening import MOST_GREETINGS, open_pair
from gateway.wire.kafka.sasl.handshake import (
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from gateway.wire.kafka.versions import Offer
from gateway.wire.scram import scram_keys
from gateway.wire.services import Again
from tests.playbooks.services import BROKER_1, ORIGIN
from tests.unit.wire.kafka.sasl.doubles import SHA_256, SHA_512
from tests.unit.wire.kafka.sasl.test_scram import FIRST, knowing

from .frames import (
    API_VERSIONS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ask,
    asked,
    batch,
    described,
    fetch,
    metadata,
    produce,
    split,
    tell,
    told,
)
from .script import FORWARD_TOO, VERIFY, KafkaServices, Talk, listener, opening
from .test_again import OTHER, RIGHT, WRONG, choose, show

TWO = Address("two.internal", 9092)
LIBRARY = {"ClientSoftwareName": "librdkafka", "ClientSoftwareVersion": "2.16.0"}
HELLO = ask(API_VERSIONS, 3, 5, **LIBRARY)
OFFERS = [{"ApiKey": key, "MinVersion": 0, "MaxVersion": 99} for key in (0, 1, 3, 17, 18, 36, 4)]
SILENCES = [
    (Refusal.TIMEOUT, EndReason.HANDSHAKE_TIMEOUT),
    (Refusal.TOO_MANY, EndReason.FRAME_TOO_LARGE),
    (Refusal.CLOSED, EndReason.CLIENT_CLOSED),
]


def versions(version: int = 3, correlation: int = 5) -> bytes:
    """Return what a broker offers."""
    return tell(API_VERSIONS, version, correlation, ApiKeys=OFFERS)


def offered(frame: bytes, version: int = 3) -> list[int]:
    return [it["ApiKey"] for it in told(API_VERSIONS, version, frame)["ApiKeys"]]


# -- pass-through ----------------------------------------------------------------------------------


def test_a_client_that_asks_for_versions_first_is_known_by_its_library() -> None:
    talk = opening(listener())
    assert talk.client(HELLO) == b""
    assert talk.broker_got() == HELLO
    talk.broker(versions())
    assert offered(talk.client_got()) == [0, 1, 3, 17, 18, 36]
    session = talk.opens()
    assert session.caller.library == "librdkafka 2.16.0"
    assert session.caller.client_id == "client"
    assert session.caller.listener == "clients"


@pytest.mark.parametrize(
    "first", [metadata(12, 1), produce(9, 1, a=batch(1)), fetch(4, 1, "a"), choose()]
)
def test_a_client_that_begins_with_another_request_gets_its_pair_at_once(first: bytes) -> None:
    services = KafkaServices()
    talk = opening(listener(services))
    assert talk.client(first) == b""
    assert talk.goes_on(services).broker_got() == first


def test_a_version_that_is_too_new_is_answered_and_asked_for_again() -> None:
    talk = opening(listener())
    later = bytearray(HELLO)
    later[6:8] = (77).to_bytes(2)
    response = told(API_VERSIONS, 0, talk.client(bytes(later)))
    assert response["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert talk.dials == []
    talk.client(HELLO)
    talk.broker(versions())
    talk.opens()


def test_a_client_that_takes_no_version_is_refused() -> None:
    talk = opening(listener())
    later = bytearray(HELLO)
    later[6:8] = (77).to_bytes(2)
    talk.client(*[bytes(later)] * MOST_GREETINGS)
    talk.refused(EndReason.CLIENT_VIOLATION)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(9), id="TLS"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", id="HTTP"),
        pytest.param(bytes(4), id="an empty frame"),
        pytest.param(b"\0\0\0\x01\0", id="a frame of a byte"),
        pytest.param(b"\0\0\0\x07" + bytes(20), id="a short frame"),
        pytest.param(b"\xff\xff\xff\xff" + bytes(20), id="a size below zero"),
        pytest.param(struct.pack(">ihhih", 10, 4, 0, 1, -1), id="an API of brokers"),
        pytest.param(struct.pack(">ihhih", 10, 3, -1, 1, -1), id="a version below zero"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="SSH"),
    ],
)
@pytest.mark.parametrize("mode", ["pass", VERIFY, FORWARD_TOO])
def test_what_is_not_kafka_is_refused_and_no_broker_is_dialled(first: bytes, mode: Any) -> None:
    of = listener() if mode == "pass" else listener(KafkaServices(methods=("",)), mode)
    talk = opening(of)
    talk.client(first)
    assert talk.refused(EndReason.CLIENT_VIOLATION).farewell == b""
    assert talk.dials == []


@pytest.mark.parametrize(("refusal", "reason"), SILENCES)
@pytest.mark.parametrize("seen", [b"", HELLO[: HEAD.size]], ids=["nothing", "a head"])
def test_a_client_that_says_nothing_more_is_refused(
    refusal: Refusal, reason: EndReason, seen: bytes
) -> None:
    talk = opening(listener())
    for count in (SIZE.size, HEAD.size) if seen else ():
        talk.peeks(seen[:count])
    talk.client(Denial(refusal, "silence"))
    talk.refused(reason)
    assert talk.dials == []


def test_a_torn_request_for_versions_is_a_violation() -> None:
    talk = opening(listener())
    talk.client(HELLO[:-2])
    talk.refused(EndReason.CLIENT_VIOLATION)


def test_a_broker_that_answers_nothing_is_lost() -> None:
    talk = opening(listener())
    talk.client(HELLO)
    talk.broker(Denial(Refusal.CLOSED, "gone"))
    talk.refused(EndReason.BROKER_LOST)


@pytest.mark.parametrize(
    "response", [versions(3, 6), versions()[:20], b"\0\0\0\0", b"\0\0\0\x02ab", described(12, 5)]
)
def test_a_broker_that_answers_something_else_is_at_fault(response: bytes) -> None:
    talk = opening(listener())
    talk.client(HELLO)
    talk.broker(response)
    talk.refused(EndReason.BROKER_VIOLATION)


# -- which broker ----------------------------------------------------------------------------------


def numbered(**settings: Any) -> tuple[KafkaServices, Listener]:
    """Return services for a client that wants broker 2."""
    services = KafkaServices()
    services.wanted_node = 2
    return services, listener(services, **settings)


def test_a_client_reaches_the_broker_whose_address_it_has() -> None:
    services, of = numbered()
    services.nodes[2] = TWO
    talk = opening(of)
    talk.client(metadata(12, 1))
    assert talk.dials == [Dial(TWO)]
    play = talk.goes_on(services)
    assert play.client(metadata(12, 2)) == metadata(12, 1) + metadata(12, 2)


def test_a_broker_that_is_not_known_is_asked_for_and_dialled_then() -> None:
    _, of = numbered()
    talk = opening(of)
    talk.client(metadata(12, 1))
    assert asked(talk.broker_got())["Topics"] == []
    talk.broker(described(1, 0, brokers={1: BROKER_1.host, 2: TWO.host}))
    assert talk.dials == [Dial(None), Dial(TWO)]
    talk.opens()


def test_a_broker_that_there_is_not_is_refused() -> None:
    _, of = numbered()
    talk = opening(of)
    talk.client(metadata(12, 1))
    talk.broker(described(1, 0, brokers={1: BROKER_1.host}))
    talk.refused(EndReason.NO_BROKER)


@pytest.mark.parametrize(
    "response",
    [
        Denial(Refusal.CLOSED, "it wants to know first who asks"),
        b"\0\0\0\0",
        described(1, 0, brokers={2: "two.internal"})[:20],
        tell(METADATA, 1, 0, Brokers=[{"NodeId": 2, "Host": "h", "Port": 0}]),
    ],
)
def test_where_brokers_do_not_say_it_any_one_is_dialled(response: bytes | Denial) -> None:
    services, of = numbered()
    talk = opening(of)
    talk.client(metadata(12, 1))
    talk.broker(response)
    assert talk.dials == [Dial(None), Dial(None)]
    play = talk.goes_on(services)
    assert play.broker_got() == metadata(12, 1)
    play.broker(described(12, 1, brokers={1: BROKER_1.host, 2: TWO.host}))
    play.client(metadata(12, 2))
    assert play.ended is EndReason.TARGET_REFUSED


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Refusal.TARGET, EndReason.TARGET_REFUSED),
        (Refusal.TIMEOUT, EndReason.DIAL_TIMEOUT),
        (Refusal.NOT_READY, EndReason.NO_BROKER),
    ],
)
def test_a_broker_that_cannot_be_dialled_is_refused(refusal: Refusal, reason: EndReason) -> None:
    services = KafkaServices()
    of = listener(services)
    talk = Talk(open_pair(of, ORIGIN), reach=lambda _: Denial(refusal, "no"))
    talk.client(metadata(12, 1))
    talk.refused(reason)
    assert of.settings.budget.taken == 0


# -- bounds ----------------------------------------------------------------------------------------


def test_a_connection_takes_bytes_of_the_budget_and_gives_them_back() -> None:
    budget = Budget(2 * CLIENT_SIZE)
    of = listener(KafkaServices(), budget=budget)
    talk = opening(of)
    talk.client(metadata(12, 1))
    assert budget.taken == CLIENT_SIZE
    other = opening(of)
    other.client(metadata(12, 1))
    other.refused(EndReason.OUT_OF_MEMORY)
    assert not talk.opens().close()
    assert budget.taken == 0


def test_too_many_connections_are_refused() -> None:
    services = KafkaServices()
    services.slot = lambda _: Denial(Refusal.TOO_MANY, "no")  # type: ignore[method-assign,assignment]
    of = listener(services)
    talk = opening(of)
    talk.client(metadata(12, 1))
    talk.refused(EndReason.TOO_MANY_CONNECTIONS)
    assert of.settings.budget.taken == 0


@pytest.mark.parametrize("delay", [2.0, Again(0.5, 0.0)])
def test_connections_wait_for_their_rate(delay: float | Again) -> None:
    services = KafkaServices()
    services.paced = {Action.CONNECT}
    responses = iter([delay, 0.0])
    services.wait = lambda action, subject, again=None: next(responses)  # type: ignore[method-assign]
    talk = opening(listener(services))
    talk.client(metadata(12, 1))
    assert talk.waited == [delay.seconds if isinstance(delay, Again) else delay]
    talk.opens()


def test_connections_that_would_wait_too_long_are_refused() -> None:
    services = KafkaServices()
    services.paced, services.delay = {Action.CONNECT}, Denial(Refusal.TOO_OFTEN, "no")
    talk = opening(listener(services))
    talk.client(metadata(12, 1))
    talk.refused(EndReason.TOO_MANY_CONNECTS)


# -- verified --------------------------------------------------------------------------------------


def verifying(
    *methods: str, mode: Any = VERIFY, own: Credential | Denial | None = None, **settings: Any
) -> tuple[KafkaServices, Listener]:
    services = KafkaServices(methods=methods or ("scram", "basic"))
    services.own = own or Credential("none", b"")
    return services, listener(services, mode, tls=True, **settings)


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_that_proves_its_password_reaches_a_broker(mechanism: str, version: int) -> None:
    services, of = verifying()
    of.offers = opening_offers()
    talk = opening(of)
    assert offered(talk.client(HELLO)) == [0, 1, 3, 17, 18, 36]
    found = told(SASL_HANDSHAKE, 1, talk.client(choose(mechanism)))
    assert found["Mechanisms"] == ["PLAIN", SHA_256, SHA_512]
    challenge = told(SASL_AUTHENTICATE, version, talk.client(show(FIRST, 2, version)))["AuthBytes"]
    assert talk.dials == []
    response = talk.client(show(knowing(mechanism)(challenge), 3, version), metadata(12, 4))
    assert told(SASL_AUTHENTICATE, version, response)["ErrorCode"] == 0
    assert talk.dials == [Dial(None)]
    session = talk.opens()
    assert (session.caller.principal, session.caller.method) == ("alice", mechanism)
    assert session.caller.library == "librdkafka 2.16.0"
    assert session.caller.client_id == "client"
    assert talk.goes_on(services).broker_got() == metadata(12, 4)


def opening_offers() -> Any:
    return tuple(Offer(key, 0, 3, b"\0") for key in (0, 1, 3, 17, 18, 36))


def test_bare_tokens_are_verified_too() -> None:
    services, of = verifying()
    talk = opening(of)
    found = told(SASL_HANDSHAKE, 0, talk.client(choose(SHA_256, version=0)))
    assert found["ErrorCode"] == 0
    challenge = talk.client(_bare(FIRST))[4:]
    proof = talk.client(_bare(knowing()(challenge)), metadata(12, 1))
    assert proof[4:].startswith(b"v=")
    assert talk.goes_on(services).broker_got() == metadata(12, 1)


def _bare(token: bytes) -> bytes:
    return len(token).to_bytes(4) + token


def test_a_client_whose_bare_token_is_wrong_is_told_nothing() -> None:
    _, of = verifying()
    talk = opening(of)
    talk.client(choose(version=0))
    assert talk.client(_bare(WRONG)) == b""
    talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert talk.dials == []


def test_an_opening_with_a_password_that_takes_longer_to_check_waits_for_it() -> None:
    services, of = verifying()
    services.settles = True
    talk = opening(of)
    talk.client(choose(), show(RIGHT), metadata(12, 3))
    talk.opens()


@pytest.mark.parametrize("token", [WRONG, b"", b"\0nobody\0secret", b"\0bob\0"])
def test_a_wrong_credential_is_refused_after_a_while(token: bytes) -> None:
    services, of = verifying()
    services.delay_of_failures = 3.0
    talk = opening(of)
    talk.client(choose())
    response = told(SASL_AUTHENTICATE, 2, talk.client(show(token)))
    assert response["ErrorCode"] == SASL_AUTHENTICATION_FAILED
    assert talk.waited == [3.0]
    assert talk.refused(EndReason.AUTHENTICATION_FAILED).farewell == b""
    assert talk.dials == []


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are() -> None:
    _, of = verifying("scram")
    talk = opening(of)
    found = told(SASL_HANDSHAKE, 1, talk.client(choose("GSSAPI")))
    assert found == {"ErrorCode": UNSUPPORTED_SASL_MECHANISM, "Mechanisms": [SHA_256, SHA_512]}
    talk.refused(EndReason.AUTHENTICATION_FAILED)


@pytest.mark.parametrize(("refusal", "reason"), SILENCES)
@pytest.mark.parametrize("said", [(), (choose(),), (choose(SHA_256), show(FIRST))])
def test_a_client_that_falls_silent_within_sasl_is_refused(
    refusal: Refusal, reason: EndReason, said: tuple[bytes, ...]
) -> None:
    _, of = verifying()
    talk = opening(of)
    talk.client(*said, Denial(refusal, "silence"))
    talk.refused(reason)


@pytest.mark.parametrize("second", [metadata(12, 2), choose(), HELLO, b"\0\0\0\x02ab"])
def test_another_request_within_sasl_is_a_violation(second: bytes) -> None:
    _, of = verifying()
    talk = opening(of)
    talk.client(choose(), second)
    talk.refused(EndReason.CLIENT_VIOLATION)


def test_a_client_that_does_not_say_who_it_is_is_refused() -> None:
    _, of = verifying()
    talk = opening(of)
    assert talk.client(metadata(12, 1)) == b""
    talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert talk.dials == []


def test_one_that_asks_for_versions_for_ever_is_refused() -> None:
    _, of = verifying()
    of.offers = opening_offers()
    talk = opening(of)
    talk.client(*[HELLO] * 20)
    talk.refused(EndReason.CLIENT_VIOLATION)


def test_a_client_is_known_by_its_certificate() -> None:
    services, of = verifying("tls", "scram")
    origin = ORIGIN._replace(certificate=b"certificate")
    talk = opening(of, origin)
    talk.client(metadata(12, 1))
    session = talk.opens()
    assert (session.caller.principal, session.caller.method) == ("certified", "tls")
    assert services.certificates == [b"certificate"]


def test_anybody_may_come_in_where_nobody_has_to_say_who_it_is() -> None:
    _, of = verifying("", "scram")
    talk = opening(of)
    talk.client(metadata(12, 1))
    session = talk.opens()
    assert (session.caller.principal, session.caller.method) == ("nobody", None)


def test_versions_that_nobody_has_said_are_asked_of_a_broker() -> None:
    _, of = verifying()
    talk = opening(of)
    assert talk.client(HELLO) == b""
    assert talk.dials == [Dial(None)]
    talk.broker(versions(0, 0))
    assert offered(talk.client_got()) == [0, 1, 3, 17, 18, 36]
    assert offered(opening(of).client(HELLO)) == [0, 1, 3, 17, 18, 36]


@pytest.mark.parametrize(
    "response", [Denial(Refusal.CLOSED, "gone"), b"\0\0\0\0", b"\0\0\0\x06abcdef"]
)
def test_a_listener_whose_brokers_say_no_versions_refuses(response: bytes | Denial) -> None:
    _, of = verifying()
    talk = opening(of)
    talk.client(HELLO)
    talk.broker(response)
    talk.refused(EndReason.NO_BROKER)


# -- the gateway's own credential ------------------------------------------------------------------

OWN = Credential("basic", b"gateway:own")


def known_client(of: Listener) -> Talk:
    """Return an opening whose client is known, and that shows a broker the gateway's credential."""
    talk = opening(of)
    talk.client(choose(), show(RIGHT), metadata(12, 3))
    talk.client_got()
    return talk


def test_a_broker_is_shown_the_gateways_credential_by_scram() -> None:
    services, of = verifying(own=OWN)
    talk = known_client(of)
    assert asked(talk.broker_got()) == {"Mechanism": SHA_512}
    token = asked(talk.broker(tell(SASL_HANDSHAKE, 1, 0, Mechanisms=[SHA_512])))["AuthBytes"]
    nonce = token.rpartition(b"r=")[2]
    challenge = b"r=" + nonce + b"theirs,s=c2FsdA==,i=4096"
    final = asked(talk.broker(tell(SASL_AUTHENTICATE, 1, 0, AuthBytes=challenge)))["AuthBytes"]
    talk.broker(tell(SASL_AUTHENTICATE, 1, 0, AuthBytes=_signature(token, challenge, final)))
    assert talk.goes_on(services).broker_got() == metadata(12, 3)
    assert of.mechanism == SHA_512


def _signature(first: bytes, challenge: bytes, final: bytes) -> bytes:
    keys = scram_keys(SHA_512, b"own", b"salt", 4096)
    signed = b",".join((first[3:], challenge, final.rpartition(b",p=")[0]))
    return b"v=" + b64encode(hmac.digest(keys.server, signed, "sha512"))


def test_a_broker_that_cannot_prove_that_it_knows_the_password_is_at_fault() -> None:
    _, of = verifying(own=OWN)
    talk = known_client(of)
    talk.broker_got()
    token = asked(talk.broker(tell(SASL_HANDSHAKE, 1, 0, Mechanisms=[SHA_512])))["AuthBytes"]
    challenge = b"r=" + token.rpartition(b"r=")[2] + b"theirs,s=c2FsdA==,i=4096"
    talk.broker(tell(SASL_AUTHENTICATE, 1, 0, AuthBytes=challenge))
    talk.broker(tell(SASL_AUTHENTICATE, 1, 0, AuthBytes=b"v=AAAA"))
    talk.refused(EndReason.BROKER_VIOLATION)


def test_a_broker_with_another_mechanism_is_dialled_again() -> None:
    _, of = verifying(own=OWN)
    talk = known_client(of)
    talk.broker_got()
    again = talk.broker(tell(SASL_HANDSHAKE, 1, 0, ErrorCode=33, Mechanisms=[SHA_256, "GSSAPI"]))
    assert asked(again) == {"Mechanism": SHA_256}
    assert talk.dials == [Dial(None)] * 2
    assert of.mechanism == SHA_256


def test_a_password_is_not_shown_to_a_broker_without_tls() -> None:
    _, of = verifying(own=OWN)
    talk = known_client(of)
    talk.broker_got()
    assert talk.broker(tell(SASL_HANDSHAKE, 1, 0, ErrorCode=33, Mechanisms=["PLAIN"])) == b""
    talk.refused(EndReason.NO_BROKER)


@pytest.mark.parametrize("method", ["none", "tls", ""])
def test_a_credential_that_is_not_shown_in_the_protocol_is_not(method: str) -> None:
    services, of = verifying(own=Credential(method, b""))
    talk = known_client(of)
    assert talk.goes_on(services).broker_got() == metadata(12, 3)


def test_a_credential_that_the_gateway_lacks_refuses_its_clients() -> None:
    _, of = verifying(own=Denial(Refusal.NOT_READY, "no credential"))
    talk = known_client(of)
    talk.refused(EndReason.NO_BROKER)
    assert talk.dials == []


def test_what_a_client_has_shown_is_forwarded() -> None:
    _, of = verifying(mode=FORWARD_TOO, brokers_tls=True)
    talk = known_client(of)
    assert asked(talk.broker_got())["Mechanism"] in (SHA_512, "PLAIN")


def test_what_was_proven_and_not_shown_cannot_be_forwarded() -> None:
    _, of = verifying(mode=FORWARD_TOO)
    talk = opening(of)
    challenge = told(SASL_AUTHENTICATE, 2, split(talk.client(choose(SHA_256), show(FIRST)))[1])[
        "AuthBytes"
    ]
    talk.client(show(knowing()(challenge), 3), metadata(12, 4))
    talk.refused(EndReason.NO_BROKER)


def test_the_name_of_the_client_goes_with_its_dial() -> None:
    _, of = verifying()
    talk = known_client(of)
    assert [it.principal for it in talk.dials] == ["alice"]


def test_a_refused_client_is_named_as_far_as_it_is_known() -> None:
    _, of = verifying()
    talk = opening(of)
    talk.client(choose(), show(OTHER[:4] + b"\0no"))
    caller = talk.refused(EndReason.AUTHENTICATION_FAILED).caller
    assert caller is not None
    assert (caller.host, caller.principal) == (ORIGIN.host, None)


def test_an_origin_says_which_broker_is_wanted() -> None:
    services = KafkaServices()
    wanted: list[Origin] = []
    services.reached = wanted.append  # type: ignore[method-assign,assignment]
    talk = opening(listener(services))
    talk.client(metadata(12, 1))
    assert wanted == [ORIGIN]
