"""The frames of an open client, and how the gateway ends its connection."""

from __future__ import annotations

import random
import select
import struct
from collections.abc import Callable

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import command, data, frame, message, number, receipt, send, simple, tail

from .peers import CONNECT, CONNECTED, Broker, Client, Closed, Wire, respond, says
from .process import COLLECTED, Gateway, until

DEEP = b"\x0b" * 30_000

VIOLATIONS = {
    "a second CONNECT": CONNECT,
    "a frame of no bytes": bytes(10),
    "a command larger than its frame": frame(b"\x08\x12" * 10, size=1000),
    "a command of no bytes": frame(b"", b"x" * 20, size=0),
    "a SEND that is cut": frame(command(6, number(1, 1) + b"\x10"), b"x" * 20),
    "a SEND whose varint has no end": frame(command(6, number(1, 1) + b"\x10" + b"\xff" * 12)),
    "groups in PRODUCER": frame(command(5, DEEP)),
    "a PRODUCER that is no protobuf": frame(command(5, b"\xff" * 30)),
    "a SEND of fewer messages than none": send(1, 1, num_messages=-5),
    "a MESSAGE": message(1),
    "bytes behind a PING": frame(command(18, b""), b"x" * 20),
    "a PRODUCER behind the type of PING": frame(number(1, 18) + data(5, b"\xff" * 30)),
}


@pytest.mark.parametrize("listener", ["passing", "masking"])
@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_of_an_open_client_get_an_error(
    gateway: Gateway, listener: str, name: str
) -> None:
    with (
        gateway.expecting(listener, EndReason.CLIENT_VIOLATION),
        Client(gateway.ports[listener]).open() as client,
    ):
        client.say(simple(Kind.PING) + VIOLATIONS[name])
        kinds = [response.type for response in client.hear_all()]
        assert kinds[-1] == BaseCommand.ERROR


TOO_LARGE: dict[str, bytes] = {
    "a PRODUCER": frame(command(5, data(1, b"x" * 2 * COLLECTED))),
    "the promise of a PRODUCER": frame(command(5, b"")[:-1] + b"\xff\xff\xff\x7f", total=1 << 30),
    "a SEND of nobody": frame(command(6, number(1, 1) + number(2, 1)), total=1 << 31),
    "a SUBSCRIBE": struct.pack(">II", 1 << 30, (1 << 30) - 4) + b"\x08\x04\x22\x80\x80\x80\x80\x01",
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_frame_above_the_bound_ends_the_connection(gateway: Gateway, name: str) -> None:
    reasons = EndReason.FRAME_TOO_LARGE, EndReason.CLIENT_VIOLATION
    with (
        gateway.expecting("passing", *reasons),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.say(TOO_LARGE[name])
        assert [response.type for response in client.hear_all()] == [BaseCommand.ERROR]


def test_a_large_send_is_never_collected(gateway: Gateway) -> None:
    """The broker judges the frame, which never ends here; the gateway only passes it on."""
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.produce()
        client.say(frame(command(6, number(1, 1) + number(2, 1)), b"x" * 1000, total=0x7FFFFFFF))
        for _ in range(20):
            client.say(b"x" * 50_000)
        assert gateway.buffered < 1 << 20


@pytest.mark.parametrize("listener", ["passing", "masking"])
def test_random_bytes_of_an_open_client_end_the_connection(gateway: Gateway, listener: str) -> None:
    noise = random.Random(3)
    rounds = 40
    reasons = EndReason.CLIENT_VIOLATION, EndReason.FRAME_TOO_LARGE, EndReason.CLIENT_CLOSED
    masked = (EndReason.UNKNOWN_COMMAND,)
    with gateway.expecting(listener, *reasons, *masked, EndReason.BROKER_CLOSED, number=rounds):
        for _ in range(rounds):
            with Client(gateway.ports[listener]).open() as client:
                if noise.random() < 0.5:
                    client.say(noise.randbytes(noise.randrange(1, 3000)))
                else:
                    kind = noise.choice(list(Kind))
                    client.say(frame(command(kind, noise.randbytes(noise.randrange(60)))))


def test_commands_with_changed_bytes_do_no_harm(gateway: Gateway) -> None:
    noise = random.Random(4)
    good = [
        simple(Kind.PRODUCER, topic="t", producer_id=1, request_id=1),
        simple(Kind.SUBSCRIBE, topic="t", subscription="s", consumer_id=1, request_id=2),
        simple(Kind.LOOKUP, topic="t", request_id=3),
        simple(Kind.CLOSE_PRODUCER, producer_id=1, request_id=4),
        simple(Kind.ACK, consumer_id=1),
        simple(Kind.FLOW, consumer_id=1, messagePermits=10),
        send(1, 1),
        send(1, 2, num_messages=10),
    ]
    rounds = 80
    with gateway.expecting("passing", *EndReason, number=rounds):
        for _ in range(rounds):
            with Client(gateway.ports["passing"]).open() as client:
                for _ in range(5):
                    broken = bytearray(noise.choice(good))
                    for _ in range(noise.randrange(3)):
                        broken[noise.randrange(len(broken))] = noise.randrange(256)
                    client.say(bytes(broken))


class Listening:
    """A well-behaved broker that records what it received."""

    def __init__(self) -> None:
        self.kinds: list[int] = []

    def __call__(self, wire: Wire) -> None:
        wire.say(CONNECTED)
        try:
            while True:
                heard = wire.hear()
                self.kinds.append(heard.type)
                respond(wire, heard)
        except Closed:
            pass


def test_unknown_ids_are_forwarded_except_in_a_send(gateway: Gateway, broker: Broker) -> None:
    """The broker handles unknown ids, but closes the connection at a SEND of an unknown producer,
    so the gateway drops that SEND."""
    frames = [
        simple(Kind.ACK, consumer_id=7),
        simple(Kind.FLOW, consumer_id=7, messagePermits=1000),
        simple(Kind.CLOSE_PRODUCER, producer_id=7, request_id=1),
        simple(Kind.CLOSE_CONSUMER, consumer_id=7, request_id=2),
        simple(Kind.UNSUBSCRIBE, consumer_id=7, request_id=3),
        simple(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=7),
        simple(Kind.SEEK, consumer_id=7, request_id=4),
        *(send(id, 1) for id in (0, 1, 7, 300, (1 << 64) - 1)),
        receipt(7),
        simple(Kind.PING),
    ]
    listening = Listening()
    with (
        broker.playing(listening),
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.say(b"".join(frames))
        while client.hear().type != BaseCommand.PONG:
            pass
    assert Kind.SEND not in listening.kinds
    assert {Kind.ACK, Kind.FLOW, Kind.SEEK, Kind.PING} <= set(listening.kinds)


@pytest.mark.parametrize("listener", ["passing", "masking"])
def test_an_unknown_command_passes_unless_masked(gateway: Gateway, listener: str) -> None:
    masked = listener == "masking"
    reason = EndReason.UNKNOWN_COMMAND if masked else EndReason.CLIENT_CLOSED
    with gateway.expecting(listener, reason), Client(gateway.ports[listener]).open() as client:
        client.say(frame(command(99, b"x" * 20)) + simple(Kind.PING))
        assert client.hear().type == (BaseCommand.ERROR if masked else BaseCommand.PONG)


def test_the_last_of_several_command_types_counts(gateway: Gateway, broker: Broker) -> None:
    """A protobuf decoder uses the last type of a command, and so must the gateway."""
    listening = Listening()
    smuggled = frame(number(1, Kind.PING) + command(Kind.CONNECT, data(1, b"x")))
    with (
        broker.playing(listening),
        gateway.expecting("passing", EndReason.CLIENT_VIOLATION),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.say(smuggled)
        assert [response.type for response in client.hear_all()] == [BaseCommand.ERROR]
    assert Kind.CONNECT not in listening.kinds


LYING = [
    send(1, 1, num_messages=(1 << 31) - 1),
    frame(command(6, number(1, 1) + number(2, 1)), tail(b"", length=0xFFFFFFFF)),
    frame(command(6, number(1, 1) + number(2, 1))),
    frame(command(6, number(1, 1) + number(2, 1) + data(100, b"x" * 5000))),
]


def test_sends_with_false_metadata_pass(gateway: Gateway) -> None:
    """The broker judges the metadata."""
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.produce()
        for lie in LYING:
            client.say(lie)
            assert client.hear().type == BaseCommand.SEND_RECEIPT


def test_a_session_may_come_byte_by_byte(gateway: Gateway) -> None:
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]) as client,
    ):
        client.drip(CONNECT)
        assert client.hear().type == BaseCommand.CONNECTED
        client.drip(simple(Kind.PRODUCER, topic="t", producer_id=1, request_id=1))
        assert client.hear().type == BaseCommand.PRODUCER_SUCCESS
        client.drip(send(1, 5))
        assert client.hear().send_receipt.sequence_id == 5
        client.drip(simple(Kind.LOOKUP, topic="t", request_id=2))
        assert client.hear().type == BaseCommand.LOOKUP_RESPONSE


@pytest.mark.parametrize(
    "said", [send(1, 1)[:-1], simple(Kind.LOOKUP, topic="x" * 90, request_id=1)[:50], b"\0\0"]
)
@pytest.mark.parametrize("leave", [Client.close, Client.reset])
def test_a_client_may_leave_within_a_frame(
    gateway: Gateway, said: bytes, leave: Callable[[Client], None]
) -> None:
    with gateway.expecting("passing", EndReason.CLIENT_CLOSED, EndReason.CLIENT_LOST):
        client = Client(gateway.ports["passing"]).open()
        client.produce()
        client.say(said)
        leave(client)


def test_a_producer_id_may_be_opened_again_and_again(gateway: Gateway) -> None:
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        for request in range(500):
            client.say(simple(Kind.PRODUCER, topic="t", producer_id=1, request_id=request))
            client.say(send(1, request))
        client.say(simple(Kind.PING))
        while client.hear().type != BaseCommand.PONG:
            pass


def test_a_client_that_reads_no_answers_is_no_longer_read(gateway: Gateway, broker: Broker) -> None:
    """The gateway keeps answers within a bound, and then stops reading the client."""
    # The broker answers no lookup, so they pile up until the gateway refuses them itself.
    with broker.playing(says(CONNECTED)), gateway.expecting("passing", *EndReason):
        client = Client(gateway.ports["passing"], receive_buffer=4096).open()
        lookups = [simple(Kind.LOOKUP, topic="t" * 9, request_id=n) for n in range(6000)]
        client.say(b"".join(lookups))
        client.sock.setblocking(False)
        flood = b"".join(lookups[5000:])  # beyond the bound of pending lookups
        said = quiet = 0
        while quiet < 20:
            try:
                said += client.sock.send(flood)
                quiet = 0
            except BlockingIOError:
                quiet += 1
                select.select([], [client.sock], [], 0.02)
            assert said < 30 << 20, "the gateway reads the client without end"
        assert gateway.buffered < 4 << 20
        client.close()


def test_messages_for_a_stalled_client_are_bounded(gateway: Gateway, broker: Broker) -> None:
    def chatty(wire: Wire) -> None:
        wire.say(CONNECTED)
        for _ in range(200):
            wire.say(message(1, tail(b"", b"x" * 100_000)))

    with (
        broker.playing(chatty),
        gateway.expecting("passing", *EndReason),
        Client(gateway.ports["passing"]).open(),
    ):
        until(lambda: gateway.buffered > 0)
        assert gateway.buffered < 1 << 20


def test_a_good_client_is_served_while_others_misbehave(gateway: Gateway) -> None:
    noise = random.Random(5)
    bad = 50
    reasons = EndReason.CLIENT_CLOSED, EndReason.CLIENT_VIOLATION, EndReason.FRAME_TOO_LARGE
    with (
        gateway.expecting("passing", *reasons, number=bad + 1),
        Client(gateway.ports["passing"]).open() as client,
    ):
        client.produce()
        for sequence_id in range(bad):
            with Client(gateway.ports["passing"]) as other:
                other.say(noise.randbytes(100))
            client.say(send(1, sequence_id))
            assert client.hear().send_receipt.sequence_id == sequence_id
