"""Misbehaviour of a broker that the gateway trusts."""

from __future__ import annotations

import random
import struct
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
    ServerError,
)
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import command, data, frame, message, number, send, simple, tail

from .peers import CONNECT, CONNECTED, Broker, Client, Closed, Script, Wire, listen, says
from .process import COLLECTED, HANDSHAKE, Gateway

CLIENT_GONE = EndReason.CLIENT_CLOSED, EndReason.CLIENT_LOST
"""A peer that closes before it has read everything resets the connection."""

CHALLENGE = simple(Kind.AUTH_CHALLENGE, server_version="x", challenge={"auth_method_name": "x"})
RESPONSE = simple(Kind.AUTH_RESPONSE, client_version="x", response={"auth_method_name": "x"})


@pytest.fixture(scope="module")
def running(hasty: Gateway) -> Gateway:
    return hasty


def leave(wire: Wire) -> None:
    """Close in good order."""


# -- opening ---------------------------------------------------------------------------------

OPENINGS = {
    "closes": (says(b"", leave), EndReason.BROKER_LOST),
    "resets": (says(b"", Wire.reset), EndReason.BROKER_LOST),
    "closes within a frame": (says(CONNECTED[:20], leave), EndReason.BROKER_LOST),
    "says nothing": (says(b""), EndReason.HANDSHAKE_TIMEOUT),
    "says half": (says(CONNECTED[:-1]), EndReason.HANDSHAKE_TIMEOUT),
    "says HTTP": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), EndReason.FRAME_TOO_LARGE),
    "promises 4 GiB": (says(b"\xff" * 8), EndReason.FRAME_TOO_LARGE),
    "sends an empty frame": (says(bytes(4)), EndReason.BROKER_VIOLATION),
    "sends no protobuf": (says(frame(b"\xff" * 40)), EndReason.BROKER_VIOLATION),
    "sends groups": (says(frame(command(3, b"\x0b" * 9000))), EndReason.BROKER_VIOLATION),
    "sends a PING": (says(simple(Kind.PING)), EndReason.BROKER_VIOLATION),
    "sends a CONNECT": (says(CONNECT), EndReason.BROKER_VIOLATION),
    "sends an unknown command": (says(frame(command(99, b""))), EndReason.BROKER_VIOLATION),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_failed_broker_handshake_is_reported_as_not_ready(
    gateway: Gateway, broker: Broker, name: str
) -> None:
    script, reason = OPENINGS[name]
    with (
        broker.playing(script),
        gateway.expecting("passing", reason),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(CONNECT)
        (response,) = client.hear_all()
        assert response.type == BaseCommand.ERROR
        assert response.error.error == ServerError.ServiceNotReady


def test_a_silent_broker_is_avoided(broker: Broker, tmp_path: Path) -> None:
    """A frozen process still accepts connections. One client times out, and the next is not sent
    there."""
    silent = Broker()
    gateway = Gateway([broker, silent], tmp_path, {"handshake": f"{HANDSHAKE}s"})
    try:
        responses = []
        with silent.playing(listen):
            for _ in range(8):
                with Client(gateway.ports["passing"]) as client:
                    client.say(CONNECT)
                    responses.append(client.hear().type)
        assert responses.count(BaseCommand.ERROR) == 1
        assert gateway.metrics().ended("passing")[EndReason.HANDSHAKE_TIMEOUT] == 1
        assert gateway.failures("silent") == 1
        assert [it["broker"] for it in gateway.logged("broker_silent")] == [silent.address]
    finally:
        gateway.stop()
        silent.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (ServerError.AuthenticationError, EndReason.AUTHENTICATION_FAILED),
        (ServerError.UnknownError, EndReason.BROKER_REFUSED),
        (12345, EndReason.BROKER_REFUSED),
    ],
)
def test_a_refusal_of_the_broker_is_passed_on(
    gateway: Gateway, broker: Broker, code: int, reason: EndReason
) -> None:
    body = number(1, (1 << 64) - 1) + number(2, code) + data(3, b"not \xff\xfe utf-8")
    script = says(frame(command(14, body)))
    with (
        broker.playing(script),
        gateway.expecting("passing", reason),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(CONNECT)
        with suppress(Closed):
            assert client.hear().type == BaseCommand.ERROR


def test_a_broker_cannot_challenge_without_end(gateway: Gateway, broker: Broker) -> None:
    def asks(wire: Wire) -> None:
        with suppress(Closed):
            while True:
                wire.say(CHALLENGE)
                wire.hear()

    with (
        broker.playing(asks),
        gateway.expecting("passing", EndReason.AUTHENTICATION_FAILED),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(CONNECT)
        while client.hear().type == BaseCommand.AUTH_CHALLENGE:
            client.say(RESPONSE)
        with pytest.raises(Closed):
            client.hear()


def test_a_random_answer_to_connect_gets_an_error(gateway: Gateway, broker: Broker) -> None:
    noise = random.Random(6)
    lock = threading.Lock()

    def noisy(wire: Wire) -> None:
        with lock:
            size = noise.randrange(1, 500)
            said = noise.randbytes(size)
            honest = noise.random() < 0.5
        wire.say(struct.pack(">II", size + 4, size // 2) + said if honest else said)

    rounds = 40
    reasons = EndReason.BROKER_LOST, EndReason.BROKER_VIOLATION, EndReason.FRAME_TOO_LARGE
    with broker.playing(noisy), gateway.expecting("passing", *reasons, number=rounds):
        for _ in range(rounds):
            with Client(gateway.ports["passing"]) as client:
                client.say(CONNECT)
                (response,) = client.hear_all()
                assert response.type == BaseCommand.ERROR


# -- open connections ------------------------------------------------------------------------

HIDDEN = simple(
    Kind.LOOKUP_RESPONSE,
    request_id=1,
    response=CommandLookupTopicResponse.Connect,
    brokerServiceUrl="pulsar://169.254.169.254:80",
)[8:]

VIOLATIONS = {
    "an empty frame": bytes(10),
    "a command of no bytes": frame(b"", b"x" * 20, size=0),
    "a command larger than its frame": frame(b"\x08\x12" * 10, size=1000),
    "a MESSAGE of a huge command": frame(command(9, number(1, 1) + data(3, b"x" * 70_000))),
    "an answer that is no protobuf": frame(command(17, b"\xff" * 30)),
    "groups in an answer": frame(command(13, b"\x0b" * 9000)),
    "a LOOKUP_RESPONSE behind a MESSAGE": frame(command(9, number(1, 1)) + HIDDEN),
    "a LOOKUP_RESPONSE behind a SEND_RECEIPT": frame(command(7, number(1, 1)) + HIDDEN),
    "a second CONNECTED": CONNECTED,
    "a SEND": send(1, 1),
}


@pytest.mark.parametrize("listener", ["passing", "masking"])
@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_of_a_broker_end_the_connection(
    gateway: Gateway, broker: Broker, listener: str, name: str
) -> None:
    script = says(CONNECTED + VIOLATIONS[name])
    with (
        broker.playing(script),
        gateway.expecting(listener, EndReason.BROKER_VIOLATION),
        Client(gateway.ports[listener]).open() as client,
    ):
        client.hear_all()


LYING = [
    frame(command(9, number(1, 1))),
    message(1, tail(b"x" * 50, length=5000)),
    message(1, tail(b"\x58" + b"\xff" * 50)),
    message(1, tail(b"\x0b" * 5000)),
    message(1, tail(b"", entry=b"\xff" * 5000)),
    message((1 << 64) - 1),
]


@pytest.mark.parametrize("lie", LYING)
def test_messages_with_false_metadata_pass(gateway: Gateway, broker: Broker, lie: bytes) -> None:
    """A broker passes on the producer's metadata, and clients check it."""
    script = says(CONNECTED + lie + simple(Kind.PING))
    with (
        broker.playing(script),
        gateway.expecting("passing", *CLIENT_GONE),
        Client(gateway.ports["passing"]).open() as client,
    ):
        while client.hear().type != BaseCommand.PING:
            pass


@pytest.mark.parametrize("end", [leave, Wire.reset])
def test_a_broker_that_closes_ends_the_connection(
    gateway: Gateway, broker: Broker, end: Script
) -> None:
    script = says(CONNECTED + message(1)[:-3], end)
    reasons = EndReason.BROKER_CLOSED, EndReason.BROKER_LOST
    with (
        broker.playing(script),
        gateway.expecting("passing", *reasons),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(CONNECT)
        with suppress(Closed):
            while True:
                client.hear()


def test_an_answer_above_the_bound_ends_the_connection(gateway: Gateway, broker: Broker) -> None:
    large = frame(command(Kind.LOOKUP_RESPONSE, data(3, b"x" * 2 * COLLECTED)))
    script = says(CONNECTED + large)
    with (
        broker.playing(script),
        gateway.expecting("passing", EndReason.FRAME_TOO_LARGE),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.hear_all()


NOBODY_ASKED = [
    simple(Kind.PRODUCER_SUCCESS, request_id=77, producer_name="x"),
    simple(Kind.SUCCESS, request_id=78),
    simple(Kind.ERROR, request_id=79, error=1, message="x"),
    simple(Kind.SEND_ERROR, producer_id=7, sequence_id=1, error=1, message="x"),
    simple(Kind.CLOSE_PRODUCER, producer_id=7, request_id=1),
    simple(Kind.CLOSE_CONSUMER, consumer_id=7, request_id=2),
    simple(Kind.LOOKUP_RESPONSE, request_id=80, response=CommandLookupTopicResponse.Redirect),
    simple(
        Kind.LOOKUP_RESPONSE,
        request_id=81,
        response=CommandLookupTopicResponse.Connect,
        brokerServiceUrl="pulsar://[:::::",
    ),
    simple(Kind.LOOKUP_RESPONSE, request_id=82),
    message(77),
    simple(Kind.PONG),
]


def test_unrequested_answers_do_no_harm(gateway: Gateway, broker: Broker) -> None:
    script = says(CONNECTED + b"".join(NOBODY_ASKED) + simple(Kind.PING))
    with (
        broker.playing(script),
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        while client.hear().type != BaseCommand.PING:
            pass


def test_random_bytes_of_a_broker_end_the_connection(gateway: Gateway, broker: Broker) -> None:
    noise = random.Random(7)
    lock = threading.Lock()

    def noisy(wire: Wire) -> None:
        with lock:
            kind = noise.choice(list(Kind))
            said = noise.randbytes(noise.randrange(100))
            honest = noise.random() < 0.5
        wire.say(CONNECTED + (frame(command(kind, said)) if honest else said))

    rounds = 60
    with broker.playing(noisy), gateway.expecting("passing", *EndReason, number=rounds):
        for _ in range(rounds):
            with Client(gateway.ports["passing"]) as client:
                client.say(CONNECT)
                with suppress(Exception):  # the client hears random bytes too
                    while True:
                        client.hear()


# -- redirects -------------------------------------------------------------------------------


def redirects(url: str) -> Script:
    """Redirect every lookup to this URL."""

    def script(wire: Wire) -> None:
        wire.say(CONNECTED)
        with suppress(Closed):
            while True:
                heard = wire.hear()
                if heard.type == BaseCommand.LOOKUP:
                    wire.say(
                        simple(
                            Kind.LOOKUP_RESPONSE,
                            request_id=heard.lookupTopic.request_id,
                            response=CommandLookupTopicResponse.Redirect,
                            brokerServiceUrl=url,
                        )
                    )

    return script


@pytest.mark.parametrize(
    "url",
    [
        "pulsar://127.0.0.1:1",
        "pulsar://169.254.169.254:80",
        "pulsar://:0",
        "nonsense",
        "",
        "pulsar://{broker}",  # to itself, without end
    ],
)
def test_redirects_to_nowhere_fail_the_lookup(gateway: Gateway, broker: Broker, url: str) -> None:
    script = redirects(url.format(broker=broker.address))
    with (
        broker.playing(script),
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        for request in range(20):
            client.say(simple(Kind.LOOKUP, topic="t", request_id=request))
        requests = set()
        for _ in range(20):
            response = client.hear().lookupTopicResponse
            assert response.response == CommandLookupTopicResponse.Failed
            requests.add(response.request_id)
        assert requests == set(range(20))


class Misled:
    """Redirects the first connection to this same broker; other connections get another script."""

    def __init__(self, broker: Broker, other: Script) -> None:
        self._redirects = redirects(f"pulsar://{broker.address}")
        self._other = other
        self._lock = threading.Lock()
        self._known = False

    def __call__(self, wire: Wire) -> None:
        with self._lock:
            known, self._known = self._known, True
        (self._other if known else self._redirects)(wire)


def flood(wire: Wire) -> None:
    """Send a million PINGs."""
    wire.say(CONNECTED)
    pings = simple(Kind.PING) * 5000
    for _ in range(200):
        wire.sock.sendall(pings)


SIDES = {
    "says nothing": says(b""),
    "closes": says(b"", leave),
    "says nonsense": says(b"\xff" * 100),
    "is silent later": says(CONNECTED),
    "answers by noise": says(CONNECTED + frame(b"\xff" * 40)),
    "talks without end": flood,
}


@pytest.mark.parametrize("name", SIDES)
def test_a_redirect_to_a_misbehaving_broker_harms_no_other_client(
    gateway: Gateway, broker: Broker, name: str
) -> None:
    """The client leaves before its response. Nothing remains of its lookups, and other clients are
    served all the time."""
    with (
        broker.playing(Misled(broker, SIDES[name])),
        gateway.expecting("passing", *CLIENT_GONE),
        Client(gateway.ports["passing"]).open() as client,
    ):
        for request in range(20):
            client.say(simple(Kind.LOOKUP, topic="t", request_id=request))
        client.say(simple(Kind.PONG))
        for _ in range(5):
            assert gateway.healthy


def test_clients_of_a_lost_broker_get_an_error(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broker = Broker()
    gateway = Gateway([broker], tmp_path_factory.mktemp("gone"), {"dial": "200ms"})
    broker.close()
    try:
        with gateway.expecting("passing", EndReason.NO_BROKER, number=10):
            for _ in range(10):
                with Client(gateway.ports["passing"]) as client:
                    client.say(CONNECT)
                    (response,) = client.hear_all()
                    assert response.error.error == ServerError.ServiceNotReady
    finally:
        gateway.stop()
