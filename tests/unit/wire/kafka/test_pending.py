"""Answers keep the order of requests."""

from __future__ import annotations

from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.pending import MOST, Asked, Pending


@pytest.mark.parametrize("seed", range(50))
def test_clients_get_answers_in_the_order_of_their_requests(seed: int) -> None:
    random, pending = Random(seed), Pending()
    sent = bytearray()
    at_broker: list[int] = []
    for number in range(200):
        if random.random() < 0.4:
            sent += pending.answer(bytes([number]))
        else:
            pending.ask(Asked(3, 12, number))
            at_broker.append(number)
        while at_broker and random.random() < 0.4:
            sent += _answered(pending, at_broker.pop(0))
    while at_broker:
        sent += _answered(pending, at_broker.pop(0))
    assert list(sent) == list(range(200))
    assert pending.open == 0


def _answered(pending: Pending, number: int) -> bytes:
    assert pending.next(number) == Asked(3, 12, number)
    follows = pending.precedes_own_answer
    own = pending.answered()
    assert bool(own) == follows
    return bytes([number]) + own


def test_an_answer_nobody_asked_for_is_a_violation() -> None:
    with pytest.raises(PeerError, match="without a request"):
        Pending().next(1)


def test_an_answer_to_another_request_is_a_violation() -> None:
    pending = Pending()
    pending.ask(Asked(3, 12, 1))
    pending.ask(Asked(3, 12, 2))
    with pytest.raises(PeerError, match="an answer to 2 in place of 1"):
        pending.next(2)


def test_a_client_that_asks_too_much_at_once_is_not_read() -> None:
    pending = Pending()
    for number in range(MOST):
        assert not pending.is_full
        pending.ask(Asked(3, 12, number))
    assert pending.is_full
    pending.answered()
    assert not pending.is_full
