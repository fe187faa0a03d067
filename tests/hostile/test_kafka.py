"""Hostile clients of Kafka: what they send before and after they are let in."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.kafka.sasl.plain import MECHANISM as PLAIN
from tests.fuzz.kafka import any_request, mutated, usual_request
from tests.fuzz.source import Source
from tests.playbooks_kafka.frames import (
    API_VERSIONS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ask,
    metadata,
    told,
)
from tests.real.brokers.ports import free_ports

from .peers import HOST, Wire
from .process import HANDSHAKE
from .protocols import LISTENERS, MIB, ProtocolGateway, flood, hear_to_the_end, storm, stuff

everywhere = pytest.mark.parametrize("listener", LISTENERS)

HELLO = ask(API_VERSIONS, 3, 1, ClientSoftwareName="hostile", ClientSoftwareVersion="1")


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


VIOLATIONS = {
    "a frame of no bytes": bytes(4),
    "a frame of fewer bytes than none": struct.pack(">i", -1),
    "a frame of 2 GiB": struct.pack(">ihhi", 2**31 - 1, API_VERSIONS, 3, 1),
    "a head that is torn": framed(b"\0\x12"),
    "a version below zero": framed(struct.pack(">hhih", API_VERSIONS, -1, 1, -1)),
    "an API that there is not": framed(struct.pack(">hhih", 4711, 0, 1, -1)),
    "an API of brokers": framed(struct.pack(">hhih", 4, 0, 1, -1)),
    "a client id longer than its frame": framed(struct.pack(">hhih", API_VERSIONS, 3, 1, 32767)),
    "a client id of negative length": framed(struct.pack(">hhih", API_VERSIONS, 3, 1, -2)),
    "an array of 2 billion in 15 bytes": framed(
        struct.pack(">hhihi", METADATA, 1, 1, -1, 2**31 - 1)
    ),
    "tagged fields that do not end": framed(
        struct.pack(">hhih", API_VERSIONS, 3, 1, -1) + b"\xff" * 20
    ),
    "HTTP": b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c403030000000000000000"),
    "Pulsar": bytes.fromhex("000000080000000408021200") * 4,
}

REASONS = (
    *(EndReason.CLIENT_VIOLATION, EndReason.UNKNOWN_COMMAND, EndReason.FRAME_TOO_LARGE),
    *(EndReason.AUTHENTICATION_FAILED, EndReason.HANDSHAKE_TIMEOUT, EndReason.CLIENT_CLOSED),
)


class Sandboxed(NamedTuple):
    """A broker in memory."""

    address: str


class KafkaGateway(ProtocolGateway):
    """A gateway whose listeners speak Kafka."""

    protocol = "kafka"

    def _identity(self, secret: Path) -> dict[str, Any]:
        """See `ProtocolGateway`."""
        return {"token": {"secret_file": str(secret)}}

    def _first_port(self, listener: str) -> int:
        """See `ProtocolGateway`."""
        (port,) = free_ports(HOST, 1)
        return port

    def serves(self) -> None:
        """Check that a good client can use the gateway."""
        with self.client("serving") as client:
            assert API_VERSIONS in offered(client)
            client.say(metadata(12, 7))
            assert told(METADATA, 12, hear(client))["Brokers"]


def hear(client: Wire) -> bytes:
    """Return the next frame. Raises `Closed`."""
    size = client._read(4)
    return size + client._read(int.from_bytes(size))


def offered(client: Wire) -> list[int]:
    client.say(HELLO)
    return [it["ApiKey"] for it in told(API_VERSIONS, 3, hear(client))["ApiKeys"]]


@pytest.fixture(scope="module")
def broker_of_kafka() -> Iterator[Sandboxed]:
    """Return a broker of the sandbox."""
    (port,) = free_ports(HOST, 1)
    command = [sys.executable, "-m", "gateway", "sandbox", "--protocol", "kafka"]
    process = subprocess.Popen([*command, "--brokers", f"{HOST}:{port}"])
    yield Sandboxed(f"{HOST}:{port}")
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def running_kafka(
    broker_of_kafka: Sandboxed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaGateway]:
    folder = tmp_path_factory.mktemp("kafka")
    gateway = KafkaGateway([broker_of_kafka], folder, {"idle": "1h"})
    yield gateway
    gateway.stop()


@pytest.fixture
def kafka(running_kafka: KafkaGateway) -> Iterator[KafkaGateway]:
    yield running_kafka
    running_kafka.serves()


@pytest.fixture(scope="module")
def hasty(
    broker_of_kafka: Sandboxed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaGateway]:
    """Return a gateway that gives clients less time to open a connection."""
    folder = tmp_path_factory.mktemp("hasty")
    gateway = KafkaGateway([broker_of_kafka], folder, {"handshake": f"{HANDSHAKE}s"})
    yield gateway
    gateway.stop()


@pytest.fixture
def small(broker_of_kafka: Sandboxed, tmp_path: Path) -> Iterator[KafkaGateway]:
    """Return a gateway with room for 50 clients, 20 of them unauthenticated."""
    limits = {"limits": {"connections": 50, "unauthenticated": 20}}
    gateway = KafkaGateway([broker_of_kafka], tmp_path, {"idle": "1h"}, more=limits)
    yield gateway
    gateway.stop()


# -- before a client is let in -------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("violation", VIOLATIONS)
def test_what_is_no_request_ends_the_connection(
    hasty: KafkaGateway, listener: str, violation: str, *, at_once: bool
) -> None:
    """Some are shorter than a head, and await the deadline."""
    with hasty.expecting(listener, *REASONS), hasty.client(listener) as client:
        (client.say if at_once else client.drip)(VIOLATIONS[violation])
        hear_to_the_end(client)


@everywhere
def test_a_client_that_says_half_of_it_is_not_awaited(hasty: KafkaGateway, listener: str) -> None:
    for cut in (1, 3, 8, len(HELLO) - 1):
        with hasty.expecting(listener, EndReason.HANDSHAKE_TIMEOUT), hasty.client(listener) as it:
            it.say(HELLO[:cut])
            hear_to_the_end(it)


def test_strangers_do_not_keep_clients_out_whom_the_broker_knows(small: KafkaGateway) -> None:
    """They ask for versions, as everybody may, and nothing else."""
    with ExitStack() as strangers:
        for _ in range(60):
            stranger = strangers.enter_context(small.client("serving"))
            assert API_VERSIONS in offered(stranger)
        small.serves()
        assert small.metrics().connections("serving") <= 21
        assert small.metrics().ended("serving")[EndReason.HANDSHAKE_TIMEOUT] >= 40


def test_nobody_gets_further_without_a_credential(hasty: KafkaGateway) -> None:
    """Neither by asking for versions again and again, nor by tokens, nor by other requests."""
    guesses = [
        [HELLO] * 100,
        [metadata(12, 1)],
        [HELLO, metadata(12, 1)],
        [HELLO, *_sasl(PLAIN, b"\0alice\0secret")],
        [HELLO, *_sasl("OAUTHBEARER", b"n,,\x01auth=Bearer e30.e30.\x01\x01")],
        [HELLO, *_sasl("OAUTHBEARER", b"x" * 40_000)],
        [HELLO, *_sasl("NOTHING", b"")],
        _sasl("OAUTHBEARER", b"")[1:],
    ]
    reasons = REASONS
    with hasty.expecting("verifying", *reasons, number=len(guesses)):
        for frames in guesses:
            with hasty.client("verifying") as client:
                client.say(b"".join(frames))
                hear_to_the_end(client)
    assert not hasty.metrics().remembered


def _sasl(mechanism: str, token: bytes) -> list[bytes]:
    return [
        ask(SASL_HANDSHAKE, 1, 2, Mechanism=mechanism),
        ask(SASL_AUTHENTICATE, 2, 3, AuthBytes=token),
    ]


def test_a_flood_of_strangers_keeps_no_client_out_and_no_memory(kafka: KafkaGateway) -> None:
    """Some say nothing, some half a frame, some ask for versions, some guess."""
    guess = b"".join([HELLO, *_sasl("OAUTHBEARER", b"x" * 1000)])
    flood(kafka, [b"", HELLO[:-1], HELLO * 50, guess])


# -- behind it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_requests_of_any_kind_harm_nobody_else(kafka: KafkaGateway, seed: int) -> None:
    """Whole ones, mutated ones and torn ones, in pieces of any size."""
    shapes = random.Random(seed)
    sources = [Source(shapes.randbytes(300)) for _ in range(60)]

    def say(number: int, client: Wire) -> None:
        source = sources[number]
        offered(client)
        for at in range(source.below(12) + 1):
            make = any_request if source.odd(2) else usual_request
            frame = make(source, at)
            if source.odd(3):
                frame = mutated(source, frame)
            cut = source.below(len(frame) + 1) if source.odd(4) else len(frame)
            client.say(frame[:cut])
            client.say(frame[cut:])

    storm(kafka, lambda _: kafka.client("passing"), say)


def test_a_client_that_reads_nothing_is_not_answered_without_end(kafka: KafkaGateway) -> None:
    """It asks for the cluster's metadata as fast as it can, and the broker answers each time."""
    asked = b"".join(metadata(12, number) for number in range(1000))
    stuff(kafka, kafka.client("passing"), HELLO, asked, 24 * MIB)
