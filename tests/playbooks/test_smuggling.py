"""No client says one thing to the gateway and another one to the broker.

Brokers and gateway decode the same bytes by different decoders. Whatever two decoders could read
differently is either refused, or goes on as the gateway read it.
"""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Direction, EndReason, Replace, ViolationError
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandSend
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind

from .frames import (
    auth_challenge,
    connect,
    connected,
    frame,
    framed,
    lookup,
    message,
    number_field,
    producer,
    producer_success,
    raw,
    read,
    receipt,
    send,
    subscribe,
    varint,
)
from .script import Play, opening

OWN = "persistent://pulsar/system/load"
HARMLESS = "persistent://public/default/t"


def data_field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def command_of(frame: bytes) -> bytes:
    return frame[8:]


def fields_of(frame: bytes, kind: Kind) -> bytes:
    """The fields of a command with less than 128 bytes of them."""
    assert frame[9] == kind
    return frame[10 + len(varint(kind << 3 | 2)) + 1 :]


SCALABLE = number_field(1, Kind.SCALABLE_TOPIC_LOOKUP)
"""A type that brokers 4.x do not know: they ignore it, and keep the one before."""

SMUGGLED = {
    "SEND": send(1),
    "PRODUCER": producer(1, topic=OWN),
    "SUBSCRIBE": subscribe(1, topic=OWN),
    "AUTH_RESPONSE": frame(Kind.AUTH_RESPONSE, response={"auth_data": b"other"}),
    "PING": frame(Kind.PING),
    "LOOKUP": lookup(1),
}


@pytest.mark.parametrize("unknown_pass", [True, False])
@pytest.mark.parametrize("inner", SMUGGLED.values(), ids=SMUGGLED)
@pytest.mark.parametrize("later", [70, 75, 81, 82, 127, 128, 300], ids=str)
def test_a_second_type_ends_the_pair(inner: bytes, later: int, unknown_pass: bool) -> None:
    second = number_field(1, later)
    for said in (
        framed(command_of(inner) + second),
        framed(second + command_of(inner)),
        framed(command_of(inner)[:2] + second + command_of(inner)[2:]),
        framed(command_of(inner) + second + data_field(later, b"")),
    ):
        with pytest.raises(PeerError, match="its type and the field of that type"):
            Play(unknown_pass=unknown_pass).client(said)


@pytest.mark.parametrize("kind", [Kind.PRODUCER, Kind.SEND, Kind.SUBSCRIBE])
def test_a_second_type_behind_a_passing_one_ends_the_pair(kind: Kind) -> None:
    inner = producer(1, topic=OWN) if kind is Kind.PRODUCER else subscribe(1, topic=OWN)
    ping = number_field(1, Kind.PING) + data_field(Kind.PING, b"")
    for said in (framed(ping + number_field(1, kind) + command_of(inner)[2:]), framed(ping + ping)):
        with pytest.raises(PeerError, match="its type and the field of that type"):
            Play().client(said)


def test_an_unknown_field_in_front_of_the_type_ends_the_pair() -> None:
    for front in (
        number_field(100, 7),
        data_field(100, b"xyz"),
        bytes((8 << 3, Kind.PING)),  # where a scanner looks for the type
        b"\x09" + bytes(8),
    ):
        with pytest.raises(PeerError, match="its type and the field of that type"):
            Play().client(framed(front + command_of(producer(1))))


@pytest.mark.parametrize("width", [2, 3, 5])
def test_a_type_that_is_written_too_long_ends_the_pair(width: int) -> None:
    long = b"\x08" + bytes((Kind.PRODUCER | 128, *[128] * (width - 2), 0))
    with pytest.raises(PeerError, match="its type and the field of that type"):
        Play().client(framed(long + command_of(producer(1))[2:]))


def test_a_repeated_command_ends_the_pair() -> None:
    """Protobuf merges the two, brokers take the last one."""
    twice = command_of(producer(1, topic=OWN)) + command_of(producer(1))[2:]
    with pytest.raises(PeerError, match="its type and the field of that type"):
        Play().client(framed(twice))


def test_of_a_repeated_text_the_broker_gets_the_one_that_was_judged() -> None:
    both = data_field(1, OWN.encode()) + fields_of(producer(1, topic=HARMLESS), Kind.PRODUCER)
    sent = Play().client(raw(Kind.PRODUCER, both)).replaced()
    assert sent.producer.topic == HARMLESS
    assert OWN.encode() not in sent.SerializeToString()


def test_a_repeated_message_goes_on_as_it_was_read() -> None:
    """Protobuf merges the credentials of an AUTH_RESPONSE, brokers take the last one."""
    play = Play(Mode.PASS_THROUGH)
    one = data_field(2, data_field(1, b"token") + data_field(2, b"first"))
    two = data_field(2, data_field(1, b"token"))
    sent = play.client(raw(Kind.AUTH_RESPONSE, one + two)).replaced().authResponse.response
    assert (sent.auth_method_name, sent.auth_data) == ("token", b"first")
    assert play.hello.credential.data == b"first"


def test_a_send_goes_on_as_it_was_counted() -> None:
    """Its fields are repeated and padded, so the scanner leaves it to the session."""
    play = opened()
    hidden = data_field(9, number_field(3, 1000))  # where a message id is expected
    fields = number_field(1, 1) + number_field(2, 7) + number_field(3, 900) + number_field(3, 5)
    (effect,) = play.client(raw(Kind.SEND, fields + hidden, b"\0\0\0\0payload")).effects or ()
    assert isinstance(effect, Replace)
    sent = read(effect.data).send
    assert (sent.producer_id, sent.sequence_id, sent.num_messages) == (1, 7, 5)
    assert play.account.messages == 5
    assert effect.data.endswith(b"\0\0\0\0payload")
    assert number_field(3, 900) not in effect.data


def test_what_every_client_writes_goes_on_as_it_came() -> None:
    play = Play()
    play.client(producer(1)).forwards()
    play.client(subscribe(1, request=2)).forwards()
    play.client(lookup(3)).forwards()


def test_bytes_behind_a_command_without_a_payload_end_the_pair() -> None:
    """A nested field that runs out of its message would be read on in them by some decoders."""
    for said in (producer(1), subscribe(1), lookup(1), frame(Kind.PING), frame(Kind.ACK)):
        body = said[8:]
        kind = Kind(said[9])
        with pytest.raises(PeerError, match=f"{kind.name} with 5 bytes behind it"):
            Play().client(raw(kind, body[2 + len(varint(kind << 3 | 2)) + 1 :], b"12345"))


@pytest.mark.parametrize("kind", [Kind.PONG, Kind.ACTIVE_CONSUMER_CHANGE, Kind.ERROR])
def test_the_same_holds_for_brokers(kind: Kind) -> None:
    two_types = number_field(1, kind) + data_field(kind, b"") + number_field(1, kind)
    for said in (framed(two_types), raw(kind, b"", b"12345"), framed(number_field(1, kind))):
        with pytest.raises(PeerError):
            Play().broker(said)


HIDDEN = {
    "LOOKUP_RESPONSE": frame(
        Kind.LOOKUP_RESPONSE, request_id=3, response=1, brokerServiceUrl="pulsar://b.internal:6650"
    ),
    "TOPIC_MIGRATED": frame(
        Kind.TOPIC_MIGRATED,
        resource_id=1,
        resource_type=0,
        brokerServiceUrl="pulsar://b.internal:6650",
    ),
    "PING": frame(Kind.PING),
}


@pytest.mark.parametrize("unknown_pass", [True, False])
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("outer", [message(1), receipt(1)], ids=["MESSAGE", "SEND_RECEIPT"])
def test_a_broker_hides_no_command_behind_what_passes(
    outer: bytes, hidden: bytes, unknown_pass: bool
) -> None:
    """Clients take the last of two types: a raw address would lead them past the gateway."""
    size = int.from_bytes(outer[4:8])
    command, payload = outer[8 : 8 + size], outer[8 + size :]
    for said in (command + command_of(hidden), command[:2] + command_of(hidden)):
        total = (len(said) + len(payload) + 4).to_bytes(4)
        with pytest.raises(PeerError, match="its type and the field of that type"):
            Play(unknown_pass=unknown_pass).broker(total + len(said).to_bytes(4) + said + payload)


@pytest.mark.parametrize("unknown_pass", [True, False])
def test_a_second_connected_ends_the_pair(unknown_pass: bool) -> None:
    """Its flags and bounds would not be those that the gateway let through."""
    with pytest.raises(PeerError, match="a second CONNECTED"):
        Play(unknown_pass=unknown_pass).broker(connected(feature_flags={}))


@pytest.mark.parametrize("unknown_pass", [True, False])
def test_payloads_do_not_come_from_where_they_go(unknown_pass: bool) -> None:
    """Their nested lengths could run out into the payload, where decoders differ."""
    with pytest.raises(PeerError, match="a MESSAGE from the side that receives them"):
        Play(unknown_pass=unknown_pass).client(message(1))
    with pytest.raises(PeerError, match="a SEND from the side that receives them"):
        Play(unknown_pass=unknown_pass).broker(send(1))


def test_a_credential_of_an_opening_goes_on_as_it_was_read() -> None:
    talk = opening().client_says(connect()).dials(None)
    talk.said_to_broker()
    talk.broker_says(auth_challenge()).tells_client(auth_challenge())
    with_two = raw(
        Kind.AUTH_RESPONSE,
        data_field(2, data_field(2, b"one")) + data_field(2, data_field(2, b"two")),
    )
    talk.client_says(with_two)
    assert talk.said_to_broker().authResponse.response.auth_data == b"two"
    talk.broker_says(connected())


# -- bounds ------------------------------------------------------------------------------------


def test_a_command_of_too_many_fields_ends_the_pair() -> None:
    many = producer(1)[:0] + raw(
        Kind.PRODUCER, fields_of(producer(1), Kind.PRODUCER) + data_field(6, b"") * 40_000
    )
    with pytest.raises(PeerError, match="more than 5000 fields"):
        Play().client(many)


def test_fields_within_fields_count_too() -> None:
    schema = data_field(1, b"s") + data_field(5, b"") * 40_000
    with pytest.raises(PeerError, match="more than 5000 fields"):
        Play().client(
            raw(Kind.PRODUCER, fields_of(producer(1), Kind.PRODUCER) + data_field(7, schema))
        )


def test_a_schema_of_many_bytes_is_one_field() -> None:
    schema = {"name": "s", "schema_data": bytes(900_000), "type": 4}
    Play().client(producer(1, schema=schema)).forwards()


def test_a_command_that_is_too_large_ends_the_pair() -> None:
    for said in (producer(1, schema={"name": "s", "schema_data": bytes(3000), "type": 4}),):
        with pytest.raises(ViolationError, match="a command of 3") as found:
            Play(bounds=Bounds(command=3000)).client(said)
        assert found.value.reason is EndReason.FRAME_TOO_LARGE


def test_a_passing_command_that_is_too_large_ends_the_pair() -> None:
    with pytest.raises(ViolationError, match="a command of"):
        Play(bounds=Bounds(command=3000)).client(raw(Kind.PARTITIONED_METADATA, bytes(5000)))


def test_a_send_may_be_as_large_as_the_broker_allows() -> None:
    play = opened(bounds=Bounds(command=3000))
    body = CommandSend(producer_id=1, sequence_id=0).SerializeToString()
    play.client(raw(Kind.SEND, body, bytes(100_000))).passes()


# -- helpers -----------------------------------------------------------------------------------


def opened(bounds: Bounds | None = None) -> Play:
    """Return a pair with producer 1 open."""
    play = Play(bounds=bounds or Bounds())
    play.client(producer(1)).forwards()
    play.broker(producer_success()).forwards()
    assert play.session.scanners[Direction.TO_BROKER].owed == 0
    return play
