"""Traces: what a traced connection tells, and what it never does."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.contract import Denial, Direction, EndReason, Later, Peer, Receive, Refusal, Start
from gateway.wire.pulsar.entry import PulsarEntry
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.trace import LONGEST, describe
from gateway.wire.traced import TracedSession
from tests.support.requests import to_session

from .frames import (
    NO_REQUEST,
    auth_challenge,
    auth_response,
    connect,
    connect_to,
    frame,
    framed,
    lookup,
    message,
    producer,
    producer_success,
    read,
    receipt,
    redirect_to,
    send,
    varint,
)
from .script import Play, listener
from .services import ORIGIN, URL_2, FakeServices

SECRET = b"a secret"


OF_LATER_VERSIONS = varint(100 << 3 | 2) + varint(len(SECRET)) + SECRET

SECRETS = {
    "CONNECT": connect(auth_data=SECRET, original_auth_data=SECRET.decode()),
    "AUTH_RESPONSE": auth_response(SECRET),
    "AUTH_CHALLENGE": auth_challenge(SECRET),
    "LOOKUP": lookup(1, original_auth_data=SECRET.decode()),
    "PARTITIONED_METADATA": frame(
        Kind.PARTITIONED_METADATA, topic="t", request_id=1, original_auth_data=SECRET.decode()
    ),
    "a field of later versions": connect(unknown=OF_LATER_VERSIONS),
}


@pytest.mark.parametrize("said", SECRETS.values(), ids=SECRETS)
def test_secrets_are_masked(said: bytes) -> None:
    told = describe(said)
    assert told.split()[0] == Kind(said[9]).name
    assert SECRET.decode() not in told


def test_a_frame_is_told_by_name_and_fields() -> None:
    assert describe(frame(Kind.PING)) == "PING"
    told = describe(producer(3, request=5, topic="persistent://a/b/c"))
    assert told == 'PRODUCER topic: "persistent://a/b/c" producer_id: 3 request_id: 5'


def test_a_payload_is_never_told() -> None:
    assert describe(send(1, 7)) == "SEND producer_id: 1 sequence_id: 7"
    assert "payload" not in describe(message(1))


def test_what_is_cut_or_broken_is_told_as_such() -> None:
    assert describe(b"\x00\x00") == "cut"
    assert describe(producer()[:14]) == "PRODUCER"
    assert describe(framed(b"\x08\x05\x2a\x7f")) == "PRODUCER (not decodable)"
    assert len(describe(producer(topic="t" * 9999))) == LONGEST


class Traced:
    """An open pair that is traced; `told`: direction, what, size, decision."""

    def __init__(self) -> None:
        self.play = Play()
        self.told: list[tuple[Direction, str, int, str]] = []
        inner = self.play.session
        entry = PulsarEntry(self.play.listener)
        self.session = TracedSession(inner, lambda *told: self.told.append(told), entry)

    def say(self, direction: Direction, data: bytes) -> int:
        return self.session.scanners[direction].scan(bytearray(data), 0, len(data))

    def decide(self, direction: Direction, data: bytes) -> str:
        if direction is Direction.TO_CLIENT:
            data = to_session(self.play.session, data)
        self.effects = self.session.decide(direction, data, 0.0)
        return self.told[-1][3]

    def started(self, result: bytes | Denial) -> None:
        """The job that was started last has this result."""
        start = self.effects[-1]
        assert isinstance(start, Start)
        start.then(result, 0.0)

    def later(self, now: float) -> None:
        """It is as late as the session asked for last."""
        later = self.effects[-1]
        assert isinstance(later, Later)
        later.then(now)


def test_decisions_are_told() -> None:
    traced = Traced()
    assert traced.decide(Direction.TO_BROKER, producer(1)) == "replace"
    assert traced.decide(Direction.TO_CLIENT, producer_success(1)) == "replace"
    assert traced.decide(Direction.TO_BROKER, lookup(2)) == "forward"
    assert traced.decide(Direction.TO_CLIENT, redirect_to(URL_2, 2)) == "drop + start"
    traced.started(connect_to(URL_2, 2))
    assert traced.told[-1][3] == "resume: inject"


def test_a_job_that_failed_is_told() -> None:
    traced = Traced()
    traced.decide(Direction.TO_BROKER, lookup(2))
    traced.decide(Direction.TO_CLIENT, redirect_to(URL_2, 2))
    traced.started(Denial(Refusal.TIMEOUT, "slow"))
    assert traced.told[-1][1:] == ("slow", 0, "resume: inject")


def test_what_waited_for_its_time_is_told() -> None:
    traced = Traced()
    traced.play.services.paced, traced.play.services.delay = {Action.PRODUCE}, 1.0
    assert traced.decide(Direction.TO_BROKER, producer(1)) == "drop + later"
    traced.later(1.0)
    assert traced.told[-1][1:] == ("the delay is over", 0, "resume: inject")


def test_a_violation_is_told_and_raised() -> None:
    traced = Traced()
    with pytest.raises(PeerError):
        traced.decide(Direction.TO_BROKER, connect())
    assert traced.told[-1][3] == "violation"


def test_passing_frames_are_told_one_by_one_whatever_the_chunks_are() -> None:
    traced = Traced()
    traced.decide(Direction.TO_BROKER, producer(1))
    traced.decide(Direction.TO_CLIENT, producer_success(1))
    traced.told.clear()
    said = send(1, 0) + frame(Kind.PING) + send(1, 1)
    cut = len(send(1, 0)) + len(frame(Kind.PING)) + 25
    assert traced.say(Direction.TO_BROKER, said[:cut]) == cut
    owed = traced.session.scanners[Direction.TO_BROKER].owed
    assert traced.say(Direction.TO_BROKER, said[cut:]) == owed == len(said) - cut
    assert [(told[1].split()[0], told[2]) for told in traced.told] == [
        ("SEND", len(send(1, 0))),
        ("PING", len(frame(Kind.PING))),
        ("SEND", len(send(1, 1))),
    ]
    assert all(told[3] == "pass" for told in traced.told)


def test_a_traced_pair_is_the_same_pair() -> None:
    traced = Traced()
    inner = traced.play.session
    assert traced.session.collected_bound == inner.collected_bound
    assert traced.session.expires_at == inner.expires_at
    reason = EndReason.CLIENT_VIOLATION
    assert traced.session.farewell(reason, "x") == inner.farewell(reason, "x")
    assert traced.say(Direction.TO_BROKER, lookup(1)) == 0
    assert traced.session.scanners[Direction.TO_BROKER].stop == len(lookup(1))
    traced.say(Direction.TO_CLIENT, receipt(1))
    traced.decide(Direction.TO_BROKER, producer(1))
    traced.session.close()
    assert traced.play.services.live == []


# -- the entry ---------------------------------------------------------------------------------


def test_the_length_of_a_frame_is_in_its_first_four_bytes() -> None:
    entry = PulsarEntry(listener(FakeServices()))
    said = producer()
    assert [entry.frame_length(said[:count]) for count in (0, 3, 4, 9)] == [
        0,
        0,
        len(said),
        len(said),
    ]


def test_a_connection_that_is_not_heard_is_told_why() -> None:
    entry = PulsarEntry(listener(FakeServices()))
    refusal = read(entry.refuse(Denial(Refusal.TOO_MANY, "full"))).error
    assert (refusal.request_id, refusal.message) == (NO_REQUEST, "full")


def test_an_entry_opens_by_hearing_the_client() -> None:
    entry = PulsarEntry(listener(FakeServices()))
    assert next(entry.open(ORIGIN)) == Receive(Peer.CLIENT)
    assert entry.describe(Direction.TO_BROKER, frame(Kind.PING)) == "PING"
