"""What a Kafka broker is asked, and what its answers say."""

from __future__ import annotations

import struct

import pytest

from gateway.config.units import MOST_IDS
from gateway.doctor.kafka.hello import (
    CLIENT,
    LARGEST_ANSWER,
    Answer,
    Broker,
    Versions,
    frame_length,
    greet,
    read_brokers,
    read_versions,
)
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger
from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dial, Dialled, Refusal, StepResult, Transmit
from gateway.wire.kafka.addresses import METADATA, PRODUCE
from gateway.wire.kafka.frames import API_VERSIONS, request
from tests.unit.doctor.kafka.fakes import CURRENT, framed, metadata, versions

HERE = Dialled(Address("127.0.0.1", 9092))
TOLD = {1: Address("a.example", 9092), 0: Address("::1", 9093)}
CLOSED = Denial(Refusal.CLOSED, "")


def play(*heard: StepResult, dialled: StepResult = HERE) -> tuple[Answer, list[bytes]]:
    """Run the conversation with a peer that sends this; return the answer and the sent frames."""
    answers, sent = iter(heard), list[bytes]()
    steps, result = greet(), None
    while True:
        try:
            step = steps.send(result)
        except StopIteration as stop:
            assert next(answers, None) is None, "the peer was not heard to the end"
            return stop.value, sent
        if isinstance(step, Transmit):
            sent.append(step.data)
            result = None
        else:
            result = dialled if isinstance(step, Dial) else next(answers)


def test_both_requests_can_be_read_and_name_who_asks() -> None:
    answer, sent = play(versions(CURRENT), metadata(TOLD))
    heads = [request(it) for it in sent]
    assert [(it.key, it.version, it.client) for it in heads] == [
        (API_VERSIONS, 0, CLIENT),
        (METADATA, 1, CLIENT),
    ]
    assert sent[1][heads[1].body :] == bytes(4), "no topic, which is not all topics"
    assert [frame_length(bytearray(it)) for it in sent] == [len(it) for it in sent]
    assert isinstance(answer, Broker)
    assert answer.versions[PRODUCE] == Versions(0, 13)
    assert answer.metadata == {0: Address("::1", 9093), 1: Address("a.example", 9092)}


@pytest.mark.parametrize(
    ("refusal", "oddity"),
    [
        (Refusal.TIMEOUT, Stranger.SILENT),
        (Refusal.CLOSED, Stranger.CLOSED),
        (Refusal.TOO_MANY, Stranger.STRANGE),
    ],
)
def test_no_answer_at_first_means_a_stranger_and_later_a_broker(
    refusal: Refusal, oddity: Stranger
) -> None:
    assert play(Denial(refusal, ""))[0] is oddity
    answer, _ = play(versions(CURRENT), Denial(refusal, ""))
    assert isinstance(answer, Broker)
    assert answer.metadata is oddity


def test_without_a_connection_nothing_is_sent() -> None:
    assert play(dialled=CLOSED) == (Unreached(None), [])


def test_the_answer_to_another_request_is_a_violation() -> None:
    with pytest.raises(PeerError):
        play(metadata(TOLD))
    answer, _ = play(versions(CURRENT), versions(CURRENT))
    assert isinstance(answer, Broker)
    assert answer.metadata is Stranger.STRANGE


@pytest.mark.parametrize("cut", range(1, 20))
def test_torn_answers_are_violations(cut: int) -> None:
    for whole, read in ((versions(CURRENT), read_versions), (metadata(TOLD), read_brokers)):
        with pytest.raises(PeerError):
            read(whole[:-cut] if read is read_versions else whole[: -8 - cut])


def test_a_count_beyond_the_frame_is_a_violation() -> None:
    with pytest.raises(PeerError):
        read_versions(framed(API_VERSIONS, struct.pack(">hi", 0, 2**31 - 1)))
    with pytest.raises(PeerError):
        read_brokers(framed(METADATA, struct.pack(">i", 2**31 - 1)))


@pytest.mark.parametrize(
    "told",
    [
        {-1: Address("a.example", 9092)},
        {1: Address("a.example", 0)},
        {1: Address("a.example", 70_000)},
        {1: Address("\x1b[2J", 9092)},
        {1: Address("two words", 9092)},
        {1: Address("a" * 300, 9092)},
    ],
)
def test_what_can_be_no_broker_is_a_violation(told: dict[int, Address]) -> None:
    with pytest.raises(PeerError):
        read_brokers(metadata(told))


def test_only_as_many_brokers_are_read_as_a_listener_may_have() -> None:
    told = {id: Address("a.example", 9092) for id in range(MOST_IDS + 5)}
    assert list(read_brokers(metadata(told))) == list(range(MOST_IDS))


def test_a_full_answer_of_the_longest_hosts_is_not_too_large() -> None:
    told = {id: Address("a" * 255, 9092) for id in range(MOST_IDS)}
    assert len(metadata(told)) < LARGEST_ANSWER


@pytest.mark.parametrize("head", [b"HTTP", b"\x16\x03\x03\x00", b"\xff\xff\xff\xff"])
def test_first_bytes_of_others_are_no_frame(head: bytes) -> None:
    assert frame_length(bytearray(head)) > LARGEST_ANSWER
    assert frame_length(bytearray(head[:3])) == 0
