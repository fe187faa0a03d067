"""Peers that vanish without closing: the process hangs, or the machine is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import message, simple, tail

from .peers import CONNECTED, Broker, Client, Wire, says
from .process import Gateway, until

PING = simple(Kind.PING)
SOON = 0.2
"""Seconds between two frames of a live peer."""


@pytest.fixture(scope="module")
def impatient(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a gateway with deadlines of a second in place of a minute."""
    deadlines = {"silent": "1s", "stalled": "1s", "idle": "1h"}
    gateway = Gateway([broker], tmp_path_factory.mktemp("impatient"), deadlines)
    yield gateway
    gateway.serves()
    gateway.stop()


def pings(wire: Wire, gone: threading.Event) -> None:
    """Send a PING now and then until `gone` is set."""
    while not gone.wait(SOON):
        wire.say(PING)


def test_a_silent_client_is_ended(impatient: Gateway, broker: Broker) -> None:
    gone = threading.Event()
    with (
        broker.playing(says(CONNECTED, partial(pings, gone=gone))),
        impatient.expecting("passing", EndReason.CLIENT_SILENT),
        Client(impatient.ports["passing"]).open() as client,
    ):
        assert {command.type for command in client.hear_all()} == {BaseCommand.PING}
        gone.set()


def test_a_silent_broker_is_ended(impatient: Gateway, broker: Broker) -> None:
    gone = threading.Event()
    with (
        broker.playing(says(CONNECTED)),
        impatient.expecting("passing", EndReason.BROKER_SILENT),
        Client(impatient.ports["passing"]).open() as client,
    ):
        speaking = threading.Thread(target=pings, args=(client, gone))
        speaking.start()
        assert client.hear_all() == []
        gone.set()
        speaking.join()


def test_a_client_that_reads_nothing_is_ended(impatient: Gateway, broker: Broker) -> None:
    def floods(wire: Wire) -> None:
        wire.say(CONNECTED)
        wire.say(message(1, tail(b"", b"x" * 100_000)) * 200)

    gone = threading.Event()
    with broker.playing(floods), impatient.expecting("passing", EndReason.CLIENT_STALLED):
        client = Client(impatient.ports["passing"], receive_buffer=4096).open()
        speaking = threading.Thread(target=pings, args=(client, gone))  # so it is not silent
        speaking.start()
        assert until(lambda: impatient.metrics().ended("passing")[EndReason.CLIENT_STALLED])
        gone.set()
        speaking.join()
        client.close()


def test_a_broker_that_reads_nothing_is_ended(impatient: Gateway, broker: Broker) -> None:
    gone = threading.Event()
    with (
        # Like a broker short of memory, which sends and does not read.
        broker.playing(says(CONNECTED, partial(pings, gone=gone))),
        impatient.expecting("passing", EndReason.BROKER_STALLED),
        Client(impatient.ports["passing"]).open() as client,
    ):
        client.say(PING * 2_000_000)
        client.hear_all()
        gone.set()
