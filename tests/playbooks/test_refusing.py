"""SENDs that are refused rather than held, where a rule says so and the client can bear it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.account import Action, Patience
from gateway.wire.contract import Drop, Hold, Refuse
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind

from .frames import frame, producer, producer_success, read
from .script import Outcome, Play

SIZE = 100


def opened(version: str = "Pulsar-Java-v4.2.4", messages: float = 10, size: float = 1e9) -> Play:
    """A producer that is held, by a rule that lets so much wait."""
    play = Play(version=version)
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.account.messages, play.account.bytes = 1000, 1000 * SIZE
    play.account.hold()
    play.account.patience = Patience(messages, size)
    return play


def sends(play: Play, sequence: int, **fields: Any) -> Outcome:
    return play.client(frame(Kind.SEND, producer_id=1, sequence_id=sequence, **fields))


def refused(outcome: Outcome) -> tuple[int, int, int]:
    """Producer, sequence id and error that the client is told."""
    assert outcome.effects is not None
    drop, refuse = outcome.effects
    assert drop == Drop()
    assert isinstance(refuse, Refuse)
    told = read(refuse.data).send_error
    return told.producer_id, told.sequence_id, told.error


def test_so_much_waits_and_the_rest_is_refused() -> None:
    play = opened(messages=3)
    sends(play, 0).holds(play.account)
    play.account.queued = 2 * SIZE
    sends(play, 1).holds(play.account)
    play.account.queued = 3 * SIZE
    assert refused(sends(play, 2)) == (1, 2, ServerError.NotAllowedError)


def test_a_limit_of_bytes_counts_bytes() -> None:
    play = opened(size=500)
    sends(play, 0).holds(play.account)
    play.account.queued = 499
    assert refused(sends(play, 1))[:2] == (1, 1)


def test_of_a_batch_the_last_message_is_named() -> None:
    play = opened(messages=3)
    play.account.queued = SIZE
    assert refused(sends(play, 7, num_messages=5, highest_sequence_id=11))[1] == 11


def test_one_frame_of_any_size_waits() -> None:
    play = opened(messages=1)
    sends(play, 0, num_messages=500).holds(play.account)


@pytest.mark.parametrize("version", ["Pulsar Go 0.19.0", "Pulsar-CPP-v3.7.0", ""])
def test_clients_that_would_break_are_held(version: str) -> None:
    play = opened(version, messages=1)
    play.account.queued = 100 * SIZE
    sends(play, 0).gives(Hold(play.account))


def test_without_such_a_rule_everybody_is_held() -> None:
    play = opened()
    play.account.patience = None
    play.account.queued = 100 * SIZE
    sends(play, 0).gives(Hold(play.account))
    assert play.state(Action.PRODUCE) is not None
