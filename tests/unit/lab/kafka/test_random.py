"""Requests whose fields are random get an answer, or end the connection; never a bug."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from gateway.errors import PeerError
from gateway.lab.kafka.codes import Key
from gateway.lab.kafka.connection import HANDLERS
from gateway.wire.kafka import frames
from gateway.wire.kafka.codec import decode
from tests.apache_kafka.encoding import body
from tests.unit.lab.kafka.playbook import Brokers, known_api, request

SEEDS = 20


@pytest.mark.parametrize("key", sorted(HANDLERS), ids=lambda it: Key(it).name)
async def test_random_requests_are_answered_or_refused(
    brokers: Brokers, key: int, autojump_clock: MockClock
) -> None:
    """The clock is the test's: some wait for long."""
    known, answered = known_api(key), 0
    for version in range(known.request.first, known.request.last + 1):
        flexible = version >= known.request.flexible
        for seed in range(SEEDS):
            data = bytes(body(known.request, version, (), seed).data)
            frame = request(key, version, seed, data, flexible=flexible)
            try:
                answer = await brokers.client(1 + seed % 2).send(frame)
            except PeerError:
                continue
            if answer is not None:
                decode(
                    known.response,
                    version,
                    answer[frames.body_of_response(known, version, answer) :],
                )
                answered += 1
    assert answered
