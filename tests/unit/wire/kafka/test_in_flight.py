"""Answers keep the order of requests."""

from __future__ import annotations

from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.in_flight import MOST, Asked, InFlight


@pytest.mark.parametrize("seed", range(50))
def test_clients_get_answers_in_the_order_of_their_requests(seed: int) -> None:
    random, in_flight = Random(seed), InFlight()
    sent = bytearray()
    at_broker: list[int] = []
    for number in range(200):
        if random.random() < 0.4:
            sent += in_flight.respond(bytes([number]))
        else:
            in_flight.ask(Asked(3, 12, number))
            at_broker.append(number)
        while at_broker and random.random() < 0.4:
            sent += _answered(in_flight, at_broker.pop(0))
    while at_broker:
        sent += _answered(in_flight, at_broker.pop(0))
    assert list(sent) == list(range(200))
    assert in_flight.open == 0


def _answered(in_flight: InFlight, number: int) -> bytes:
    assert in_flight.next(number) == Asked(3, 12, number)
    follows = in_flight.precedes_own()
    own = in_flight.answered()
    assert bool(own) == follows
    return bytes([number]) + own


def test_an_answer_nobody_asked_for_is_a_violation() -> None:
    with pytest.raises(PeerError, match="without a request"):
        InFlight().next(1)


def test_an_answer_to_another_request_is_a_violation() -> None:
    in_flight = InFlight()
    in_flight.ask(Asked(3, 12, 1))
    in_flight.ask(Asked(3, 12, 2))
    with pytest.raises(PeerError, match="a response to 2 in place of 1"):
        in_flight.next(2)


def test_a_client_that_asks_too_much_at_once_is_not_read() -> None:
    in_flight = InFlight()
    for number in range(MOST):
        assert not in_flight.is_full()
        in_flight.ask(Asked(3, 12, number))
    assert in_flight.is_full()
    in_flight.answered()
    assert not in_flight.is_full()
