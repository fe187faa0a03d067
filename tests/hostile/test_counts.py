"""Clients that send false message counts through a running gateway with a limit of messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from tests.support.frames import command, frame, metadata_of, number, send, tail

from .peers import Broker, Client
from .process import Gateway

RULES = """\
version: 1
rules:
  - id: generous
    limit: {publish: {messages: 1000000/s}}
    per: namespace
  - id: strict
    match: {listener: masking}
    limit: {publish: {messages: 1/s}}
    per: namespace
"""

LIES = {
    "1,000 messages that say 1": (None, 1000, None),
    "1 message that says 2,147,483,647": ((1 << 31) - 1, 1, None),
    "1,000 messages behind broker entry metadata": (None, 1000, bytes(5000)),
}


@pytest.fixture(scope="module")
def limiting(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("limiting")
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    gateway = Gateway([broker], folder, {"handshake": "5s"}, more={"rules": str(rules)})
    yield gateway
    gateway.stop()


def lie(said: int | None, held: int, entry: bytes | None) -> bytes:
    """Return a SEND whose metadata says one count while its batch holds another."""
    fields = number(1, 1) + number(2, 7) + (b"" if said is None else number(3, said))
    rest = tail(metadata_of(7, num_messages_in_batch=held), b"payload", entry=entry)
    return frame(command(6, fields), rest)


@pytest.mark.parametrize("listener", ["passing", "masking"])
@pytest.mark.parametrize(("said", "held", "entry"), LIES.values(), ids=LIES)
def test_a_false_message_count_ends_the_connection(
    limiting: Gateway, listener: str, said: int | None, held: int, entry: bytes | None
) -> None:
    with (
        limiting.expecting(listener, EndReason.MISCOUNTED),
        Client(limiting.ports[listener]).open() as client,
    ):
        client.produce()
        client.say(lie(said, held, entry))
        told = client.hear_all()[-1]
        assert told.type == BaseCommand.ERROR
        assert ("messages" if entry is None else "broker entry metadata") in told.error.message


def test_a_client_with_true_counts_goes_on(limiting: Gateway) -> None:
    with (
        limiting.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(limiting.ports["passing"]).open() as client,
    ):
        client.produce()
        for number_ in range(200):
            several = send(1, number_, num_messages=50)
            client.say(several if number_ % 2 else send(1, number_))
            assert client.hear().type == BaseCommand.SEND_RECEIPT
