"""A TubeMQ server reads each request as the gateway judged it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.tubemq import methods as m
from tests.playbooks_tubemq.script import ask
from tests.unit.wire.tubemq.frames import in_blocks_of, vectors

from .oracle import Stream, TubeOracle
from .play import Played, play, play_these
from .run import judged, run

FEW_FRAMES = 1_500
FRAMES = 12_000
"""Takes some seconds. `make fuzz` plays ten million."""

PLACE = "1:127.0.0.1:30001#demo:0"
CONSUMER: dict[str, Any] = {"clientId": "c", "groupName": "g"}
MESSAGE: dict[str, Any] = {
    "clientId": "p",
    "topicName": "demo",
    "partitionId": 1,
    "data": b"12345",
    "flag": 0,
    "checkSum": -1,
    "sentAddr": 1,
}
SEND = ask(m.SEND_MESSAGE, **MESSAGE)
GET = ask(m.GET_MESSAGES, **CONSUMER, topicName="demo", partitionId=1)
BEAT = ask(m.BEAT_CONSUMER, **CONSUMER, reportSubscribeInfo=True, subscribeInfo=[f"c@g#{PLACE}"])
REGISTER = ask(m.REGISTER_PRODUCER, clientId="p", brokerCheckSum=5, hostName="h")


def _kinds(oracle: TubeOracle, played: Played) -> set[str]:
    return {finding.kind for finding in judged(oracle, played)}


@pytest.mark.parametrize(
    "frames", [pytest.param(FEW_FRAMES, marks=pytest.mark.tier("test")), FRAMES]
)
def test_a_server_reads_what_the_gateway_judged(tube_oracle: TubeOracle, frames: int) -> None:
    outcome = run(tube_oracle, frames, seed=frames)
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.reached > frames / 3


def test_the_same_seed_plays_the_same_connection() -> None:
    first, again = play(5), play(5)
    assert first.number > 0
    assert (first.streams, first.end) == (again.streams, again.end)


@pytest.mark.parametrize("listener", ["master", "b1", "b2"])
def test_what_real_clients_say_goes_on_and_is_read_alike(
    tube_oracle: TubeOracle, listener: str
) -> None:
    said = [
        it.frame
        for it in vectors()
        if it.is_request and it.listener == listener and not it.name.startswith("method-0")
    ]
    node = None if listener == "master" else int(listener[1:])
    for frame in said:
        played = play_these(frame, node=node)
        assert played.reached == 1
        assert judged(tube_oracle, played) == []


@pytest.mark.parametrize("size", [1, 3, 50])
def test_blocks_are_joined_as_a_server_joins_them(tube_oracle: TubeOracle, size: int) -> None:
    played = play_these(in_blocks_of(size, SEND), node=1)
    assert played.reached == 1
    assert judged(tube_oracle, played) == []


@pytest.mark.parametrize(
    ("frame", "node", "field", "value", "kind"),
    [
        (SEND, 1, "clientId", "other", "message"),
        (SEND, 1, "topicName", "other", "topic"),
        (SEND, 1, "partitionId", 2, "message"),
        (SEND, 1, "data", b"1234", "message"),
        (GET, 1, "groupName", "other", "group"),
        (REGISTER, None, "brokerCheckSum", 6, "message"),
        (BEAT, None, "subscribeInfo", [f"c@g#{PLACE}1"], "message"),
        (BEAT, None, "clientId", "other", "client"),
    ],
)
def test_what_was_not_judged_is_found(
    tube_oracle: TubeOracle, frame: bytes, node: int | None, field: str, value: Any, kind: str
) -> None:
    """The judge sees a difference in each field that is judged."""
    played = play_these(frame, node=node)
    assert judged(tube_oracle, played) == []
    step = played.steps[0]
    assert step.judged is not None
    if isinstance(value, list):
        getattr(step.judged.message, field)[:] = value
    else:
        setattr(step.judged.message, field, value)
    assert kind in _kinds(tube_oracle, played)


def test_bytes_that_were_not_counted_are_found(tube_oracle: TubeOracle) -> None:
    played = play_these(SEND, node=1)
    step = played.steps[0]
    assert step.judged is not None
    assert step.judged.counted == len(MESSAGE["data"])
    step.judged = step.judged._replace(counted=4)
    assert _kinds(tube_oracle, played) == {"size"}


def test_an_address_of_the_gateway_is_found(tube_oracle: TubeOracle) -> None:
    played = play_these(BEAT)
    step = played.steps[0]
    step.went_on = played.sent = BEAT
    assert _kinds(tube_oracle, played) == {"message", "address", "client"}


def test_requests_that_pass_the_session_are_found(tube_oracle: TubeOracle) -> None:
    played = play_these(SEND, node=1)
    played.sent += SEND
    assert _kinds(tube_oracle, played) == {"bytes", "stream"}


def test_a_frame_that_is_cut_is_found(tube_oracle: TubeOracle) -> None:
    played = play_these(SEND, node=1)
    played.sent += SEND[:20]
    assert _kinds(tube_oracle, played) == {"bytes", "stream"}


def test_a_server_tells_what_it_waits_for(tube_oracle: TubeOracle) -> None:
    whole, cut, torn = tube_oracle.read(Stream(GET, 1), Stream(GET[:-1], 5), Stream(b"x" * 12, 12))
    assert [it["method"] for it in whole["frames"]] == [m.GET_MESSAGES]
    assert not whole["begun"]
    assert cut["frames"] == []
    assert cut["begun"]
    assert torn["ex"] == "UnknownProtocolException"
