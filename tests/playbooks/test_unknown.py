"""Commands, flags and fields of later versions, and frames that are no commands at all."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Direction, EndReason, Forward, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.fields import is_sent
from gateway.wire.pulsar.frames import KNOWN, Kind
from tests.soak.largest import required
from tests.support.commands import COUNTED, LIMITS, STOPS

from .frames import (
    LATER,
    NO_REQUEST,
    connect,
    frame,
    framed,
    number_field,
    producer,
    raw,
    subscribe,
    varint,
)
from .script import Play, opening
from .services import FakeServices
from .test_rights import guarded

UNKNOWN = [1, 41, 49, 69, 82, 127]
FAR = [128, 300, 1 << 20]
"""Types of more than one byte."""


@pytest.mark.parametrize("kind", UNKNOWN + FAR)
def test_unknown_commands_pass(kind: int) -> None:
    play = Play(unknown_pass=True)
    for outcome in (play.client(raw(kind, b"xyz")), play.broker(raw(kind, b"xyz"))):
        assert outcome.effects in (None, (Forward(),))


@pytest.mark.parametrize("kind", UNKNOWN + FAR)
def test_masked_unknown_commands_of_a_client_end_the_pair(kind: int) -> None:
    farewell = Play(unknown_pass=False).client(raw(kind, b"")).ended(EndReason.UNKNOWN_COMMAND)
    assert farewell.error.request_id == NO_REQUEST
    assert farewell.error.error == ServerError.UnsupportedVersionError
    assert farewell.error.message.endswith("is not known to this gateway")


@pytest.mark.parametrize("kind", UNKNOWN + FAR)
def test_masked_unknown_commands_of_a_broker_are_withheld(kind: int) -> None:
    Play(unknown_pass=False).broker(raw(kind, b"pulsar://broker-1.internal:6650")).drops()


def test_the_masked_command_is_named() -> None:
    farewell = Play(unknown_pass=False).client(raw(99, b"")).ended(EndReason.UNKNOWN_COMMAND)
    assert farewell.error.message == "command 99 is not known to this gateway"


@pytest.mark.parametrize("unknown_pass", [True, False])
@pytest.mark.parametrize("direction", Direction)
def test_known_commands_that_nobody_decides_pass_unseen(
    direction: Direction, unknown_pass: bool
) -> None:
    play = Play(unknown_pass=unknown_pass)
    say = play.client if direction is Direction.TO_BROKER else play.broker
    for kind in KNOWN - STOPS[direction] - COUNTED[direction]:
        say(raw(kind, b"whatever, not even protobuf")).passes()


def test_fields_of_later_versions_stay_in_what_is_forwarded() -> None:
    play = Play()
    play.client(producer(1, unknown=LATER)).forwards()
    play.client(subscribe(1, request=2, unknown=LATER)).forwards()


UNREAD = {
    Direction.TO_BROKER: {
        *(Kind.PING, Kind.PONG, Kind.SEND, Kind.ACK, Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES),
        *(Kind.SEEK, Kind.GET_LAST_MESSAGE_ID, Kind.CONSUMER_STATS),
        *(Kind.TC_CLIENT_CONNECT_REQUEST, Kind.WATCH_TC_ASSIGNMENTS),
        *(Kind.WATCH_TC_ASSIGNMENTS_CLOSE, Kind.WATCH_TOPIC_LIST_CLOSE),
        *(Kind.WATCH_SCALABLE_TOPICS_CLOSE, Kind.SCALABLE_TOPIC_CLOSE),
    },
    Direction.TO_CLIENT: {
        *(Kind.PING, Kind.PONG, Kind.SEND_RECEIPT, Kind.MESSAGE, Kind.REACHED_END_OF_TOPIC),
        *(Kind.ACTIVE_CONSUMER_CHANGE, Kind.GET_LAST_MESSAGE_ID_RESPONSE),
        Kind.SCALABLE_TOPIC_ASSIGNMENT_UPDATE,
    },
}
"""What a closed edge does not decode. It concerns what is open already, or nothing."""


BEGUN = {Kind.CONNECT, Kind.CONNECTED, Kind.AUTH_CHALLENGE, Kind.AUTH_RESPONSE}


@pytest.mark.parametrize("direction", Direction)
def test_at_a_closed_edge_unknown_fields_pass_only_in_what_is_not_decoded(
    direction: Direction,
) -> None:
    read = STOPS[direction] | LIMITS[direction]
    sent = {kind for kind in KNOWN if is_sent(kind, direction)}
    assert sent - read == UNREAD[direction]
    play = guarded(unknown_pass=False)
    say = play.client if direction is Direction.TO_BROKER else play.broker
    for kind in sorted(sent & read - BEGUN):
        message = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
        effects = say(raw(kind, required(message) + LATER)).effects
        assert effects is not None
        assert not any(isinstance(effect, Forward) for effect in effects)
        gone = [effect.data for effect in effects if isinstance(effect, Replace)]
        assert not any(LATER in data for data in gone)


def test_a_command_that_cannot_be_decoded_is_its_senders_fault() -> None:
    text_that_reaches_beyond = b"\x02\x0a\x7f"
    for say, kind in ((Play().client, Kind.PRODUCER), (Play().broker, Kind.ERROR)):
        with pytest.raises(PeerError, match="cannot be decoded"):
            say(framed(number_field(1, kind) + varint(kind << 3 | 2) + text_that_reaches_beyond))


def test_a_frame_too_short_for_a_command_is_no_frame() -> None:
    for short in (b"", b"\x00\x00\x00\x04\x00\x00\x00\x00"):
        with pytest.raises(PeerError, match="holds no command"):
            Play().session.decide(Direction.TO_BROKER, short, 0.0)


def test_a_command_larger_than_its_frame_is_no_command() -> None:
    with pytest.raises(PeerError, match="cannot hold a command"):
        Play().session.decide(
            Direction.TO_BROKER, b"\x00\x00\x00\x08\x00\x00\x00\x09\x08\x05\x2a", 0.0
        )


# -- texts that are none -----------------------------------------------------------------------

NO_TEXT = b"\xff\xfe"


def text_field(number: int, data: bytes = NO_TEXT) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data


@pytest.mark.parametrize(
    "said",
    [
        raw(Kind.PRODUCER, text_field(1) + number_field(2, 1) + number_field(3, 1)),
        raw(Kind.SUBSCRIBE, text_field(1) + number_field(4, 1) + number_field(5, 1)),
        raw(Kind.LOOKUP, text_field(1) + number_field(2, 1)),
        raw(Kind.AUTH_RESPONSE, text_field(2, text_field(1))),
    ],
    ids=["PRODUCER", "SUBSCRIBE", "LOOKUP", "AUTH_RESPONSE"],
)
def test_a_client_whose_text_is_not_utf_8_is_at_fault(said: bytes) -> None:
    with pytest.raises(PeerError, match="not UTF-8"):
        Play().client(said)


@pytest.mark.parametrize("field", [5, 6])
def test_a_connect_whose_text_is_not_utf_8_is_refused(field: int) -> None:
    farewell = opening().client_says(raw(Kind.CONNECT, text_field(field)))
    assert "not UTF-8" in farewell.refused(EndReason.CLIENT_VIOLATION).error.message


def test_what_a_client_says_of_its_library_may_be_no_text() -> None:
    services = FakeServices()
    said = raw(Kind.CONNECT, text_field(1))
    opening(services=services).client_says(said).dials(None).tells_broker(said)
    assert [caller.library for caller in services.completed] == ["\ufffd\ufffd"]


def test_a_brokers_text_that_is_not_utf_8_is_made_readable() -> None:
    said = frame(Kind.ERROR, request_id=1, error=1, unknown=text_field(3, b"broker-1.internal\xff"))
    assert Play().broker(said).replaced().error.message == "broker\N{REPLACEMENT CHARACTER}"


def test_a_brokers_url_that_is_not_utf_8_leads_nowhere() -> None:
    said = frame(Kind.CLOSE_PRODUCER, producer_id=1, request_id=1, unknown=text_field(3))
    rewritten = Play().broker(said).replaced().close_producer
    assert not rewritten.HasField("assignedBrokerServiceUrl")
    answered = frame(Kind.LOOKUP_RESPONSE, request_id=1, response=1, unknown=text_field(1))
    no = Play().broker(answered).replaced().lookupTopicResponse
    assert no.message == "no broker was named"


def test_a_refusal_that_is_not_utf_8_reaches_client_and_log() -> None:
    talk = opening().client_says(connect()).dials(None)
    talk.said_to_broker()
    talk.broker_says(frame(Kind.ERROR, request_id=1, error=1, unknown=text_field(3)))
    farewell = talk.refused(EndReason.BROKER_REFUSED)
    assert farewell.error.message == "\N{REPLACEMENT CHARACTER}" * 2
    assert talk.outcome.detail == repr(NO_TEXT)
